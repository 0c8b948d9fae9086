#include "tessera/gen/binary.h"
#include "tessera/gen/compare.h"
#include "tessera/gen/copy.h"
#include "tessera/gen/linalg.h"
#include "tessera/gen/ternary.h"
#include "tessera/gen/unary.h"
#include "tessera/ops/call.h"

namespace tessera {

TS_OP({
    .schema = "renorm(Tensor self, Scalar p, int dim, Scalar maxnorm) -> Tensor",
    .doc = "Each slice along a dimension, scaled down where its p-norm is larger than maxnorm.",
    .example = "torch.renorm(torch.tensor([[3.0, 4.0], [0.3, 0.4]]), 2, 0, 1.0)",
    .forms = kFunction | kMethod | kInplace | kOut,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& self = c.tensor(0);
      TS_CHECK(!c.scalar(1).is_complex(), "renorm: p must be real-valued");
      TS_CHECK(c.number(1) > 0, "renorm: non-positive-norm not supported");
      TS_CHECK(!c.scalar(3).is_complex(), "renorm: maxnorm must be real-valued");
      TS_CHECK(c.number(3) >= 0, "renorm: expected maxnorm to be >= 0 but got ", c.number(3));
      TS_CHECK(self.dim() > 1, "renorm: input needs at least 2 dimensions, got ", self.dim(),
               " dimensions");
      TS_CHECK(is_differentiable(self.dtype()),
               "renorm: expected a floating point or complex "
               "tensor, got ",
               self.dtype());
      const int64_t kept = wrap_dim(c.integer(2), self.dim());
      Dims dims;
      for (int d = 0; d < self.dim(); ++d)
        if (d != kept) dims.push_back(d);
      // Half floats are measured in float32; the factor then has the tensor's own real dtype.
      std::optional<DType> wide;
      if (is_floating(self.dtype()) && itemsize(self.dtype()) < 4) wide = DType::kFloat32;
      TensorBase norm = op::linalg_vector_norm(self, c.scalar(1), dims.span(), true, wide);
      TensorBase shrink = op::mul(op::reciprocal(op::add(norm, Scalar(1e-7))), c.scalar(3));
      TensorBase factor = op::where(op::gt(norm, c.scalar(3)), shrink, Scalar(1.0));
      if (wide) factor = op::_to_dtype(factor, self.dtype());
      return op::mul(self, factor);
    },
    .autocast = Autocast::kFloat32Gpu,
    .exact_out = true,
    .samples = {{"T(3, 4), 2, 0, 1.0"}, {"T(2, 3, 4), 1, 1, 3"}, {"T(3, 4), 2.5, -1, 100.0"}},
});

}  // namespace tessera
