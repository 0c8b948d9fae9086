// Norms that bound or divide parts of a tensor.
#include "tessera/gen/binary.h"
#include "tessera/gen/copy.h"
#include "tessera/gen/linalg.h"
#include "tessera/gen/norm.h"
#include "tessera/gen/pad.h"
#include "tessera/gen/pool.h"
#include "tessera/gen/ternary.h"
#include "tessera/gen/view.h"
#include "tessera/ops/call.h"

namespace tessera {

TS_OP({
    .schema = "nn.functional.local_response_norm(Tensor input, int size, float alpha=0.0001, float "
              "beta=0.75, float k=1.0) -> Tensor",
    .doc = "Divides each element by a power of the mean square of the channels around it.",
    .example = "torch.nn.functional.local_response_norm(torch.ones(1, 3, 2), 2)",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& x = c.tensor(0);
      TS_CHECK_VALUE(x.dim() >= 3, "Expected 3D or higher dimensionality input (got ", x.dim(),
                     " dimensions)");
      if (x.numel() == 0) return x;
      const int64_t size = c.integer(1);
      // Batch x 1 x channels x elements: a mean over channels is one of an image's rows.
      const Dims image{x.size(0), 1, x.size(1), -1}, own = x.sizes();
      const Dims around{0, 0, size / 2, (size - 1) / 2}, window{size, 1}, step{1};
      TensorBase square = op::reshape(op::mul(x, x), image.span());
      TensorBase mean = op::avg_pool2d(op::pad(square, around.span()), window.span(), step.span());
      TensorBase base = op::add(op::mul(mean, Scalar(c.number(2))), Scalar(c.number(4)));
      TensorBase under = op::pow(base, Scalar(c.number(3)));
      return op::div(x, op::reshape(under, own.span()));
    },
    .samples = {{"T(2, 4, 3), 3"}, {"T(2, 3, 2, 2), 2, 0.5, 0.75, 2.0"}},
});

TS_OP({
    .schema = "renorm(Tensor self, Scalar p, int dim, Scalar maxnorm) -> Tensor",
    .doc = "Scales the slices along dim whose p-norm is above maxnorm down to it.",
    .example = "torch.renorm(torch.tensor([[3.0, 4.0], [0.3, 0.4]]), 2, 0, 1)",
    .forms = kFunction | kMethod | kInplace | kOut,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& self = c.tensor(0);
      TS_CHECK(!is_complex(c.args[1].scalar.dtype()), "renorm: p must be real-valued");
      TS_CHECK(c.number(1) > 0, "renorm: non-positive-norm not supported");
      TS_CHECK(!is_complex(c.args[3].scalar.dtype()), "renorm: maxnorm must be real-valued");
      TS_CHECK(c.number(3) >= 0, "renorm: expected maxnorm to be >= 0 but got ", c.number(3));
      TS_CHECK(self.dim() > 1, "renorm: input needs at least 2 dimensions, got ", self.dim(),
               " dimensions");
      TS_CHECK(is_floating(self.dtype()) || is_complex(self.dtype()),
               "linalg.vector_norm: Expected a floating point or complex tensor as input. Got ",
               dtype_title(self.dtype()));
      const int dim = wrap_dim(c.integer(2), self.dim());
      Dims others;
      for (int d = 0; d < self.dim(); ++d)
        if (d != dim) others.push_back(d);
      const bool narrow = self.dtype() == DType::kFloat16 || self.dtype() == DType::kBFloat16;
      TensorBase wide = narrow ? op::_to_dtype(self, DType::kFloat32) : self;
      TensorBase norm = op::linalg_vector_norm(wide, c.scalar(1), others.span(), true);
      const double limit = c.number(3);
      TensorBase factor = op::div(Scalar(limit), op::add(norm, Scalar(1e-7)));
      factor = op::where(op::gt(norm, Scalar(limit)), factor, Scalar(1.0));
      if (narrow) factor = op::_to_dtype(factor, self.dtype());
      return op::mul(self, factor);
    },
    .samples = {{"T(3, 4), 2, 0, 1.5"}, {"T(2, 3, 4), 1, -1, 5"}},
});

}  // namespace tessera
