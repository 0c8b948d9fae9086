#include "dims.h"
#include "tessera/gen/binary.h"
#include "tessera/gen/copy.h"
#include "tessera/ops/reduce_loops.h"

namespace tessera {

TS_REDUCE(mean, (TS_FLOATS, TS_COMPLEX), T(0), a, x + y, x / n)

TS_OP({
    .schema =
        "mean(Tensor self, int[1]? dim=None, bool keepdim=False, *, dtype? dtype=None) -> Tensor",
    .doc = "The mean of all elements, or of those along the given dimensions.",
    .example = "torch.mean(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), dim=0)",
    .kind = Kind::kReduction,
    .forms = kFunction | kMethod | kOut,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& self = c.tensor(0);
      DType out = c.dtype(3, self.dtype());
      TS_CHECK(is_floating(out) || is_complex(out),
               "mean(): could not infer output dtype. Input dtype must be either a floating point "
               "or complex dtype. Got: ",
               out);
      TensorBase in = reg_class(out) == reg_class(self.dtype()) ? self : op::_to_dtype(self, out);
      return reduce(mean_reduce, in, reduced_dims(c, 1, self.dim()), c.flag(2), out);
    },
    .backward =
        [](Backward& b) {
          const Dims& shape = b.shape(0);
          Dims dims = dims_of(b, 1, shape.ndim());
          TensorBase g = with_reduced_dims(b.grad, dims, b.flag(2), shape);
          b.set(0, op::div(op::expand(g, shape.span()), Scalar(reduced_count(dims, shape))));
        },
    .samples = {{"T(3, 4)"},
                {"T(3, 4), 0"},
                {"T(3, 4), [0, 1], keepdim=True"},
                {"T(2, 3, 4), [0, 2]"},
                {"T()"},
                {"T(0, 3), 1"}},
});

}  // namespace tessera
