#include "dims.h"
#include "tessera/gen/copy.h"
#include "tessera/ops/reduce_loops.h"

namespace tessera {

TS_REDUCE(sum, (TS_NUMBERS, TS_COMPLEX), T(0), a, x + y, x)

TS_OP({
    .schema =
        "sum(Tensor self, int[1]? dim=None, bool keepdim=False, *, dtype? dtype=None) -> Tensor",
    .doc = "The sum of all elements, or of those along the given dimensions.",
    .example = "torch.sum(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), dim=0)",
    .kind = Kind::kReduction,
    .forms = kFunction | kMethod | kOut,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& self = c.tensor(0);
      DType natural = is_integral(self.dtype(), true) ? DType::kInt64 : self.dtype();
      DType out = c.dtype(3, natural);
      // Rounded to the asked dtype before the sum only where it is wider or of another kind.
      if (c.has(3) && reg_class(out) != reg_class(self.dtype()))
        return reduce(sum_reduce, op::_to_dtype(self, out), reduced_dims(c, 1, self.dim()),
                      c.flag(2), out);
      return reduce(sum_reduce, self, reduced_dims(c, 1, self.dim()), c.flag(2), out);
    },
    .backward =
        [](Backward& b) {
          const Dims& shape = b.shape(0);
          TensorBase g = with_reduced_dims(b.grad, dims_of(b, 1, shape.ndim()), b.flag(2), shape);
          b.set(0, op::expand(g, shape.span()));
        },
    .autocast = Autocast::kFloat32Gpu,
    .samples = {{"T(3, 4)"},
                {"T(3, 4), 0"},
                {"T(3, 4), [0, 1], keepdim=True"},
                {"T(3, 4), -1"},
                {"T()"},
                {"T(0, 3)"},
                {"T(0, 3), 0"}},
});

}  // namespace tessera
