#include "tessera/gen/binary.h"
#include "tessera/gen/copy.h"
#include "tessera/gen/reduce.h"
#include "tessera/gen/softmax.h"
#include "tessera/gen/ternary.h"
#include "tessera/ops/in_dtype.h"

namespace tessera {

// Names under which PyTorch's dispatcher has softmax and its gradient.
TS_OP({
    .schema = "_softmax(Tensor self, int dim, bool half_to_float) -> Tensor",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const DType own = c.tensor(0).dtype();
      return op::softmax(c.tensor(0), c.integer(1), c.flag(2) ? DType::kFloat32 : own);
    },
});
TS_OP({
    .schema = "_log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const DType own = c.tensor(0).dtype();
      return op::log_softmax(c.tensor(0), c.integer(1), c.flag(2) ? DType::kFloat32 : own);
    },
});
TS_OP({
    .schema = "_softmax_backward_data(Tensor grad_output, Tensor output, int dim, dtype "
              "input_dtype) -> Tensor",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      TensorBase g = op::_softmax_backward(c.tensor(0), c.tensor(1), c.integer(2));
      return in_dtype(g, c.args[3].dtype);
    },
});
TS_OP({
    .schema = "_log_softmax_backward_data(Tensor grad_output, Tensor output, int dim, dtype "
              "input_dtype) -> Tensor",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      TensorBase g = op::_log_softmax_backward(c.tensor(0), c.tensor(1), c.integer(2));
      return in_dtype(g, c.args[3].dtype);
    },
});

// Zero, not NaN, where all of a line is -inf: attention that has nothing to attend to.
TS_OP({
    .schema = "_safe_softmax(Tensor self, int dim, dtype? dtype=None) -> Tensor",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& x = c.tensor(0);
      const int64_t dim = c.integer(1);
      std::optional<DType> dtype;
      if (c.has(2)) dtype = c.args[2].dtype;
      TensorBase p = op::softmax(x, dim, dtype);
      TensorBase nothing = op::all(op::eq(x, Scalar(-std::numeric_limits<double>::infinity())),
                                   std::span(&dim, 1), true);
      return op::where(nothing, Scalar(0.0), p);
    },
    .saves = "result",
    // Zeros for rows of zeros, where softmax's own would be NaN.
    .backward =
        [](Backward& b) { b.set(0, op::_softmax_backward(b.grad, b.result, b.integer(1))); },
});

}  // namespace tessera
