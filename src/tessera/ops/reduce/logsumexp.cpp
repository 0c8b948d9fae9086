#include "dims.h"
#include "tessera/gen/binary.h"
#include "tessera/gen/complex.h"
#include "tessera/gen/copy.h"
#include "tessera/gen/reduce.h"
#include "tessera/gen/scan.h"
#include "tessera/gen/unary.h"
#include "tessera/gen/view.h"
#include "tessera/ops/loops.h"

namespace tessera {

// The largest element, or 0 where that is infinite: what is subtracted before exponentials.
TS_BODY(finite_or_zero, "t", 't', 0, (TS_FLOATS), return select(isinf(a), T(0), a);)
TS_OP({
    .schema = "_finite_or_zero(Tensor self) -> Tensor",
    .kind = Kind::kPointwise,
    .forms = kFunction,
    .body = &finite_or_zero_body,
    .not_differentiable = true,
});

TS_OP({
    .schema = "logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor",
    .also = "special.logsumexp",
    .doc = "The logarithm of the sum of exponentials along the given dimensions, without overflow.",
    .example = "torch.logsumexp(torch.tensor([1000.0, 1000.0]), 0)",
    .forms = kFunction | kMethod | kOut,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& given = c.tensor(0);
      TensorBase self =
          is_differentiable(given.dtype()) ? given : op::_to_dtype(given, default_dtype());
      const Dims dims = reduced_dims(c, 1, self.dim());
      const bool keepdim = c.flag(2);
      if (self.numel() == 0) return op::log(op::sum(op::exp(self), dims.span(), keepdim));
      TensorBase real = is_complex(self.dtype()) ? op::real(self) : self;
      TensorBase top = op::_finite_or_zero(op::amax(real, dims.span(), true));
      TensorBase total = op::sum(op::exp(op::sub(self, top)), dims.span(), keepdim);
      if (!keepdim)
        for (size_t i = dims.size(); i-- > 0;) top = op::squeeze(top, dims[i]);
      return op::add(op::log(total), top);
    },
    .saves = "self result",
    .backward =
        [](Backward& b) {
          const Dims& shape = b.shape(0);
          Dims dims = dims_of(b, 1, shape.ndim());
          TensorBase g = with_reduced_dims(b.grad, dims, b.flag(2), shape);
          TensorBase y = with_reduced_dims(b.result, dims, b.flag(2), shape);
          b.set(0, op::mul(g, op::conj(op::_exp_difference(b.tensor(0), y))));
        },
    .autocast = Autocast::kFloat32Gpu,
    .samples = {{"T(3, 4), 0"}, {"T(3, 4), [0, 1]"}, {"T(3, 4), -1, True"}, {"T(), 0"}},
});

}  // namespace tessera
