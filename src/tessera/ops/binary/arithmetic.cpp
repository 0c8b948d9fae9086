// Sum, difference, product and quotient.
#include "tessera/ops/gradient.h"
#include "tessera/ops/loops.h"

namespace tessera {

namespace {

bool is_one(const Value& alpha) {
  return !alpha.scalar.is_complex() && alpha.scalar.to_double() == 1;
}

TensorBase scaled(const TensorBase& g, Scalar alpha) {
  return is_one(Value(alpha)) ? g : op::mul(g, grad::conj(alpha));
}

void check_subtraction(const Call& c) {
  bool left = c.dtype_of(0) == DType::kBool, right = c.dtype_of(1) == DType::kBool;
  TS_CHECK(!(left && right),
           "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or "
           "`logical_xor()` operator instead.");
  TS_CHECK(!left && !right,
           "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying "
           "to invert a mask, use the `~` or `logical_not()` operator instead.");
}

void add_backward(Backward& b) {
  if (b.wants(0)) b.set(0, b.grad);
  if (b.wants(1)) b.set(1, scaled(b.grad, b.scalar(2)));
}

void sub_backward(Backward& b) {
  if (b.wants(0)) b.set(0, b.grad);
  if (b.wants(1)) b.set(1, op::neg(scaled(b.grad, b.scalar(2))));
}

void mul_backward(Backward& b) {
  if (b.wants(0)) b.set(0, grad::times(b.grad, b.args[1]));
  if (b.wants(1)) b.set(1, grad::times(b.grad, b.args[0]));
}

// self / other
void div_backward(Backward& b) {
  if (b.wants(0)) b.set(0, grad::over(b.grad, b.args[1]));
  if (!b.wants(1)) return;
  const TensorBase& other = b.tensor(1);
  TensorBase quotient = b.is_tensor(0) ? op::div(b.tensor(0), other) : op::div(b.scalar(0), other);
  b.set(1, grad::times(op::neg(b.grad), op::div(quotient, other)));
}

}  // namespace

TS_BODY(add, "tt", 't', 0, (TS_NUMBERS, TS_COMPLEX), return a + b;)
TS_BODY(add_scaled, "tt", 't', 1, (TS_NUMBERS, TS_COMPLEX), return a + s0 * b;)
TS_OP({
    .schema = "add(Tensor self, Tensor|Scalar other, *, Scalar alpha=1) -> Tensor",
    .doc = "self + alpha * other, element by element.",
    .example = "torch.add(torch.tensor([1.0, 2.0]), 10, alpha=2)",
    .kind = Kind::kPointwise,
    .forms = kFunction | kMethod | kInplace | kOut,
    .choose = [](Args args) { return is_one(args[2]) ? &add_body : &add_scaled_body; },
    .backward = add_backward,
    .flops = [](const Call& c) { return c.tensor(0).numel(); },
    .operators = "__add__ __radd__ __iadd__",
    .samples = {{"T(3, 4), T(3, 4)"},
                {"T(3, 4), T(4)"},
                {"T(3, 1), T(4), alpha=2"},
                {"T(3, 4), 2"},
                {"T(), T()"},
                {"T(0, 3), T(3)"}},
});
TS_OP({
    .schema = "add(Number self, Tensor|Scalar other, *, Scalar alpha=1) -> Tensor",
    .doc = "self + alpha * other.",
    .example = "torch.add(1, torch.tensor([1.0, 2.0]))",
    .kind = Kind::kPointwise,
    .forms = kFunction | kOut,
    .hidden = true,
    .choose = [](Args args) { return is_one(args[2]) ? &add_body : &add_scaled_body; },
    .backward = add_backward,
    .samples = {{"2, T(3, 4)"}},
});
TS_OP({
    .schema = "add(Tensor self, Scalar alpha, Tensor other) -> Tensor",
    .doc = "self + alpha * other: PyTorch's old order of arguments.",
    .example = "torch.add(torch.tensor([1.0, 2.0]), 10, torch.tensor([1.0, 2.0]))",
    .forms = kFunction | kMethod | kInplace | kOut,
    .hidden = true,
    .run = [](const Call& c) -> Outputs { return op::add(c.tensor(0), c.args[2], c.scalar(1)); },
    .samples = {{"T(3, 4), 2, T(4)"}},
});

TS_BODY(sub, "tt", 't', 0, (TS_NUMBERS, TS_COMPLEX), return a - b;)
TS_BODY(sub_scaled, "tt", 't', 1, (TS_NUMBERS, TS_COMPLEX), return a - s0 * b;)
TS_OP({
    .schema = "sub(Tensor self, Tensor|Scalar other, *, Scalar alpha=1) -> Tensor",
    .also = "subtract",
    .doc = "self - alpha * other, element by element.",
    .example = "torch.sub(torch.tensor([1.0, 2.0]), 10)",
    .kind = Kind::kPointwise,
    .forms = kFunction | kMethod | kInplace | kOut,
    .check = check_subtraction,
    .choose = [](Args args) { return is_one(args[2]) ? &sub_body : &sub_scaled_body; },
    .backward = sub_backward,
    .operators = "__sub__ __isub__",
    .samples = {{"T(3, 4), T(3, 4)"}, {"T(3, 4), T(4), alpha=2"}, {"T(3, 4), 2"}},
});
TS_OP({
    .schema = "sub(Number self, Tensor|Scalar other, *, Scalar alpha=1) -> Tensor",
    .also = "subtract",
    .doc = "self - alpha * other.",
    .example = "torch.sub(1, torch.tensor([1.0, 2.0]))",
    .kind = Kind::kPointwise,
    .forms = kFunction | kOut,
    .hidden = true,
    .check = check_subtraction,
    .choose = [](Args args) { return is_one(args[2]) ? &sub_body : &sub_scaled_body; },
    .backward = sub_backward,
    .samples = {{"2, T(3, 4)"}},
});
TS_OP({
    .schema = "sub(Tensor self, Scalar alpha, Tensor other) -> Tensor",
    .also = "subtract",
    .doc = "self - alpha * other: PyTorch's old order of arguments.",
    .example = "torch.sub(torch.tensor([1.0, 2.0]), 10, torch.tensor([1.0, 2.0]))",
    .forms = kFunction | kMethod | kInplace | kOut,
    .hidden = true,
    .run = [](const Call& c) -> Outputs { return op::sub(c.tensor(0), c.args[2], c.scalar(1)); },
    .samples = {{"T(3, 4), 2, T(4)"}},
});

TS_BODY(rsub, "tt", 't', 0, (TS_NUMBERS, TS_COMPLEX), return b - a;)
TS_BODY(rsub_scaled, "tt", 't', 1, (TS_NUMBERS, TS_COMPLEX), return b - s0 * a;)
TS_OP({
    .schema = "rsub(Tensor self, Tensor|Scalar other, *, Scalar alpha=1) -> Tensor",
    .doc = "other - alpha * self, element by element.",
    .example = "torch.rsub(torch.tensor([1.0, 2.0]), 10)",
    .kind = Kind::kPointwise,
    .forms = kFunction,
    .check = check_subtraction,
    .choose = [](Args args) { return is_one(args[2]) ? &rsub_body : &rsub_scaled_body; },
    .backward =
        [](Backward& b) {
          if (b.wants(0)) b.set(0, op::neg(scaled(b.grad, b.scalar(2))));
          if (b.wants(1)) b.set(1, b.grad);
        },
    .operators = "__rsub__",
    .samples = {{"T(3, 4), T(3, 4)"}, {"T(3, 4), 2, alpha=2"}, {"T(3, 4), 2"}},
});

TS_BODY(mul, "tt", 't', 0, (TS_NUMBERS, TS_COMPLEX), return a * b;)
TS_OP({
    .schema = "mul(Tensor self, Tensor|Scalar other) -> Tensor",
    .also = "multiply",
    .doc = "self * other, element by element.",
    .example = "torch.mul(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]))",
    .kind = Kind::kPointwise,
    .forms = kFunction | kMethod | kInplace | kOut,
    .body = &mul_body,
    .saves = "self:other other:self",
    .backward = mul_backward,
    .flops = [](const Call& c) { return c.tensor(0).numel(); },
    .operators = "__mul__ __rmul__ __imul__",
    .samples = {{"T(3, 4), T(3, 4)"}, {"T(3, 4), T(4)"}, {"T(3, 4), 2.5"}, {"T(), T()"}},
});
TS_OP({
    .schema = "mul(Number self, Tensor|Scalar other) -> Tensor",
    .also = "multiply",
    .doc = "self * other.",
    .example = "torch.mul(2, torch.tensor([3.0, 4.0]))",
    .kind = Kind::kPointwise,
    .forms = kFunction | kOut,
    .hidden = true,
    .body = &mul_body,
    .backward = mul_backward,
    .samples = {{"2, T(3, 4)"}},
});

TS_BODY(div, "tt", 't', 0, (TS_FLOATS, TS_COMPLEX), return a / b;)
TS_OP({
    .schema = "div(Tensor self, Tensor|Scalar other) -> Tensor",
    .also = "divide true_divide",
    .doc = "self / other, element by element, as floating point; with a rounding mode as div says.",
    .example = "torch.div(torch.tensor([1.0, 2.0]), 4)",
    .kind = Kind::kPointwise,
    .types = TypeRule::kPromoteFloat,
    .forms = kFunction | kMethod | kInplace | kOut,
    .body = &div_body,
    .saves = "self:other other",
    .backward = div_backward,
    .operators = "__truediv__ __itruediv__",
    .samples = {{"T(3, 4), T(3, 4)"}, {"T(3, 4), 2.5"}},
});
TS_OP({
    .schema = "div(Number self, Tensor|Scalar other) -> Tensor",
    .also = "divide true_divide",
    .doc = "self / other.",
    .example = "torch.div(1, torch.tensor([3.0, 4.0]))",
    .kind = Kind::kPointwise,
    .types = TypeRule::kPromoteFloat,
    .forms = kFunction | kOut,
    .hidden = true,
    .body = &div_body,
    .saves = "other",
    .backward = div_backward,
    .samples = {{"2, T(3, 4)"}},
});
TS_OP({
    .schema = "div(Tensor self, Tensor|Scalar other, *, str? rounding_mode) -> Tensor",
    .also = "divide",
    .doc = "self / other, rounded down ('floor') or towards zero ('trunc'): integers stay so.",
    .example = "torch.div(torch.tensor([7, -7]), 2, rounding_mode='floor')",
    .forms = kFunction | kMethod | kInplace | kOut,
    .run = [](const Call& c) -> Outputs {
      if (!c.has(2)) return op::div(c.tensor(0), c.args[1]);
      TS_CHECK(c.text(2) == "trunc" || c.text(2) == "floor",
               "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '",
               c.text(2), "'");
      if (c.text(2) == "floor") return op::_div_floor(c.tensor(0), c.args[1]);
      // PyTorch rounds the quotient of two tensors to its dtype before it cuts it.
      if (c.args[1].is_tensor() && is_reduced_floating(result_type(c.args.first(2))))
        return op::trunc(op::div(c.tensor(0), c.args[1]));
      return op::_div_trunc(c.tensor(0), c.args[1]);
    },
    .samples = {{"T(3, 4), T(3, 4), rounding_mode='floor'"},
                {"T(3, 4), 2, rounding_mode='trunc'"},
                {"T(3, 4), 2, rounding_mode=None"}},
});
TS_OP({
    .schema = "div(Number self, Tensor|Scalar other, *, str? rounding_mode) -> Tensor",
    .also = "divide",
    .doc = "self / other, rounded.",
    .example = "torch.div(7, torch.tensor([2, -2]), rounding_mode='floor')",
    .forms = kFunction | kOut,
    .hidden = true,
    .run = [](const Call& c) -> Outputs {
      const Scalar x = c.scalar(0);
      const Device device = c.args[1].is_tensor() ? c.tensor(1).device() : Device{};
      TensorBase self = op::full({}, x, result_type(c.args.first(1)), device);
      std::optional<std::string_view> mode;
      if (c.has(2)) mode = c.text(2);
      return op::div(self, c.args[1], mode);
    },
    .samples = {{"7, T(3, 4), rounding_mode=None"}},
});
TS_OP({
    // other / self, as PyTorch computes it.
    .schema = "_rdiv(Tensor self, Tensor|Scalar other) -> Tensor",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs { return op::mul(op::reciprocal(c.tensor(0)), c.args[1]); },
    .autocast = Autocast::kFloat32Gpu,
    .operators = "__rtruediv__",
});

}  // namespace tessera
