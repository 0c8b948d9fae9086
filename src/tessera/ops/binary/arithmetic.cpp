#include "tessera/gen/binary.h"
#include "tessera/gen/unary.h"
#include "tessera/ops/loops.h"

namespace tessera {

TS_BODY(add, "tt", 't', 1, (TS_NUMBERS), return a + s0 * b;)
TS_OP({
    .schema = "add(Tensor self, Tensor|Scalar other, *, Scalar alpha=1) -> Tensor",
    .doc = "self + alpha * other, element by element.",
    .example = "torch.add(torch.tensor([1.0, 2.0]), 10, alpha=2)",
    .kind = Kind::kPointwise,
    .forms = kFunction | kMethod | kInplace | kOut,
    .body = &add_body,
    .backward =
        [](Backward& b) {
          b.set(0, b.grad);
          if (!b.wants(1)) return;
          Scalar alpha = b.scalar(2);
          b.set(1, alpha.to_double() == 1 ? b.grad : op::mul(b.grad, alpha));
        },
    .operators = "__add__ __radd__ __iadd__",
    .samples = {{"T(3, 4), T(3, 4)"},
                {"T(3, 4), T(4)"},
                {"T(3, 1), T(4), alpha=2"},
                {"T(3, 4), 2"},
                {"T(), T()"},
                {"T(0, 3), T(3)"}},
});

TS_BODY(sub, "tt", 't', 1, (TS_NUMBERS), return a - s0 * b;)
TS_OP({
    .schema = "sub(Tensor self, Tensor|Scalar other, *, Scalar alpha=1) -> Tensor",
    .doc = "self - alpha * other, element by element.",
    .example = "torch.sub(torch.tensor([1.0, 2.0]), 10)",
    .kind = Kind::kPointwise,
    .forms = kFunction | kMethod | kInplace | kOut,
    .choose = [](Args args) -> const PointwiseBody* {
      bool left = args[0].tensor->dtype() == DType::kBool;
      bool right = args[1].is_tensor() ? args[1].tensor->dtype() == DType::kBool
                                       : args[1].scalar.kind == Scalar::Kind::kBool;
      TS_CHECK(
          !(left && right),
          "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or "
          "`logical_xor()` operator instead.");
      TS_CHECK(
          !left && !(right && args[1].is_tensor()),
          "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying "
          "to invert a mask, use the `~` or `logical_not()` operator instead.");
      return &sub_body;
    },
    .backward =
        [](Backward& b) {
          b.set(0, b.grad);
          if (!b.wants(1)) return;
          Scalar alpha = b.scalar(2);
          b.set(1, alpha.to_double() == 1 ? op::neg(b.grad) : op::mul(b.grad, -alpha.to_double()));
        },
    .operators = "__sub__ __isub__",
    .samples = {{"T(3, 4), T(3, 4)"}, {"T(3, 4), T(4), alpha=2"}, {"T(3, 4), 2"}},
});

TS_BODY(mul, "tt", 't', 0, (TS_NUMBERS), return a * b;)
TS_OP({
    .schema = "mul(Tensor self, Tensor|Scalar other) -> Tensor",
    .doc = "self * other, element by element.",
    .example = "torch.mul(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]))",
    .kind = Kind::kPointwise,
    .forms = kFunction | kMethod | kInplace | kOut,
    .body = &mul_body,
    .saves = "self:other other:self",
    .backward =
        [](Backward& b) {
          if (b.wants(0)) b.set(0, op::mul(b.grad, b.args[1]));
          if (b.wants(1)) b.set(1, op::mul(b.grad, b.tensor(0)));
        },
    .operators = "__mul__ __rmul__ __imul__",
    .samples = {{"T(3, 4), T(3, 4)"}, {"T(3, 4), T(4)"}, {"T(3, 4), 2.5"}, {"T(), T()"}},
});

TS_BODY(div, "tt", 't', 0, (TS_FLOATS), return a / b;)
TS_OP({
    .schema = "div(Tensor self, Tensor|Scalar other) -> Tensor",
    .doc = "self / other, element by element, as floating point.",
    .example = "torch.div(torch.tensor([1.0, 2.0]), 4)",
    .kind = Kind::kPointwise,
    .types = TypeRule::kPromoteFloat,
    .forms = kFunction | kMethod | kInplace | kOut,
    .body = &div_body,
    .saves = "self:other other",
    .backward =
        [](Backward& b) {
          if (b.wants(0)) b.set(0, op::div(b.grad, b.args[1]));
          if (b.wants(1))
            b.set(1, op::neg(op::div(op::mul(b.grad, op::div(b.tensor(0), b.args[1])), b.args[1])));
        },
    .operators = "__truediv__ __itruediv__",
    .samples = {{"T(3, 4), T(3, 4)"}, {"T(3, 4), 2.5"}},
});

TS_BODY(eq, "tt", 'b', 0, (TS_ALL), return a == b;)
TS_OP({
    .schema = "eq(Tensor self, Tensor|Scalar other) -> Tensor",
    .doc = "True where the elements are equal.",
    .example = "torch.eq(torch.tensor([1, 2]), 2)",
    .kind = Kind::kPointwise,
    .types = TypeRule::kCompare,
    .forms = kFunction | kMethod | kOut,
    .body = &eq_body,
    .not_differentiable = true,
    .operators = "__eq__",
    .samples = {{"T(3, 4), T(3, 4)"}, {"T(3, 4), 1"}},
});

}  // namespace tessera
