#include "tessera/gen/binary.h"
#include "tessera/gen/copy.h"
#include "tessera/gen/reduce.h"

namespace tessera {

TS_OP({
    .schema = "softmax(Tensor self, int dim, dtype? dtype=None) -> Tensor",
    .doc = "Exponentials along a dimension, divided by their sum.",
    .example = "torch.softmax(torch.tensor([1.0, 2.0, 3.0]), dim=0)",
    .kind = Kind::kKernel,
    .forms = kFunction | kMethod,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& self = c.tensor(0);
      DType dtype = c.dtype(2, self.dtype());
      TS_CHECK_IMPLEMENTED(is_floating(dtype), "\"softmax\" not implemented for ", dtype);
      int64_t dim = wrap_dim(c.integer(1), self.dim());
      TensorBase in = self.dtype() == dtype ? self : op::_to_dtype(self, dtype);
      TensorBase out = new_empty(self.sizes(), dtype, self.device());
      if (out.numel() == 0) return out;
      if (self.dim() == 0) {
        fill(out, Scalar(1));
        return out;
      }
      launch("softmax", {&out, 1}, {&in, 1}, {&dim, 1});
      return out;
    },
    .saves = "result",
    .backward =
        [](Backward& b) {
          int64_t dim = b.integer(1);
          TensorBase weighted = op::mul(b.grad, b.result);
          TensorBase total = op::sum(weighted, std::span(&dim, 1), true, std::nullopt);
          b.set(0, op::sub(weighted, op::mul(b.result, total), Scalar(1)));
        },
    .autocast = Autocast::kFloat32,
    .samples = {{"T(3, 4), 0"}, {"T(3, 4), -1"}, {"T(2, 3, 4), 1"}, {"T(), 0"}, {"T(0, 3), 1"}},
});

}  // namespace tessera
