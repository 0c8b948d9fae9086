#include "tessera/gen/binary.h"
#include "tessera/gen/unary.h"
#include "tessera/ops/loops.h"

namespace tessera {

TS_BODY(exp, "t", 't', 0, (TS_FLOATS), return exp(a);)
TS_OP({
    .schema = "exp(Tensor self) -> Tensor",
    .doc = "The exponential of each element.",
    .example = "torch.exp(torch.tensor([0.0, 1.0]))",
    .kind = Kind::kPointwise,
    .types = TypeRule::kPromoteFloat,
    .forms = kFunction | kMethod | kInplace | kOut,
    .body = &exp_body,
    .saves = "result",
    .backward = [](Backward& b) { b.set(0, op::mul(b.grad, b.result)); },
    .samples = {{"T(3, 4)"}, {"T()"}, {"T(0, 3)"}},
});

// By the sign bit, on NaN too: a compiler is free to do otherwise with a minus.
TS_BODY(neg, "t", 't', 0, (TS_NUMBERS), return negate(a);)
TS_OP({
    .schema = "neg(Tensor self) -> Tensor",
    .doc = "Each element with its sign changed.",
    .example = "torch.neg(torch.tensor([1.0, -2.0]))",
    .kind = Kind::kPointwise,
    .forms = kFunction | kMethod | kInplace | kOut,
    .choose = [](Args args) -> const PointwiseBody* {
      TS_CHECK(
          args[0].tensor->dtype() != DType::kBool,
          "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to "
          "invert a mask, use the `~` or `logical_not()` operator instead.");
      return &neg_body;
    },
    .backward = [](Backward& b) { b.set(0, op::neg(b.grad)); },
    .operators = "__neg__",
    .samples = {{"T(3, 4)"}, {"T()"}},
});

TS_BODY(relu, "t", 't', 0, (TS_NUMBERS), return select(a <= T(0), T(0), a);)
TS_OP({
    .schema = "relu(Tensor self) -> Tensor",
    .doc = "Each element, or 0 where it is negative.",
    .example = "torch.relu(torch.tensor([-1.0, 2.0]))",
    .kind = Kind::kPointwise,
    .forms = kFunction | kMethod | kInplace | kOut,
    .body = &relu_body,
    .saves = "result",
    .backward = [](Backward& b) { b.set(0, op::_relu_backward(b.grad, b.result)); },
    .samples = {{"T(3, 4)"}, {"T()"}},
});

TS_BODY(relu_backward, "tt", 't', 0, (TS_FLOATS), return select(b <= T(0), T(0), a);)
TS_OP({
    .schema = "_relu_backward(Tensor grad, Tensor result) -> Tensor",
    .kind = Kind::kPointwise,
    .forms = kFunction,
    .body = &relu_backward_body,
    .saves = "result",
    .backward = [](Backward& b) { b.set(0, op::_relu_backward(b.grad, b.tensor(1))); },
});

TS_BODY(sigmoid, "t", 't', 0, (TS_FLOATS), return T(1) / (T(1) + exp(negate(a)));)
TS_OP({
    .schema = "sigmoid(Tensor self) -> Tensor",
    .doc = "1 / (1 + exp(-x)): each element brought between 0 and 1.",
    .example = "torch.sigmoid(torch.tensor([-1.0, 0.0, 2.0]))",
    .kind = Kind::kPointwise,
    .types = TypeRule::kPromoteFloat,
    .forms = kFunction | kMethod | kInplace | kOut,
    .body = &sigmoid_body,
    .saves = "result",
    .backward = [](Backward& b) { b.set(0, op::_sigmoid_backward(b.grad, b.result)); },
    .reference = "1 / (1 + np.exp(-self))",
    .samples = {{"T(3, 4)"}, {"T()"}, {"T(0, 3)"}},
});

TS_BODY(sigmoid_backward, "tt", 't', 0, (TS_FLOATS), return a * (T(1) - b) * b;)
TS_OP({
    .schema = "_sigmoid_backward(Tensor grad, Tensor result) -> Tensor",
    .kind = Kind::kPointwise,
    .forms = kFunction,
    .body = &sigmoid_backward_body,
    .saves = "grad:result result",
    .backward =
        [](Backward& b) {
          const TensorBase& y = b.tensor(1);
          b.set(0, op::_sigmoid_backward(b.grad, y));
          if (b.wants(1))  // grad * (1 - 2 y)
            b.set(1, op::mul(op::mul(b.grad, b.tensor(0)), op::add(op::mul(y, -2), 1)));
        },
});

}  // namespace tessera
