// Division that rounds, and what it leaves.
#include "tessera/ops/gradient.h"
#include "tessera/ops/reduce_loops.h"

namespace tessera {

TS_REDUCE(any_zero, (int64_t), T(0), T(a == T(0)), x | y, x)

namespace {

// Of integers, on the CPU, a zero raises as in PyTorch; a GPU is not asked.
void check_divisor(const Call& c) {
  refuse_bool(c);
  if (!is_integral(result_type(c.args), true)) return;
  const Value& divisor = c.args[1];
  bool zero = false;
  if (divisor.is_scalar()) {
    zero = divisor.scalar.is_zero();
  } else if (divisor.tensor->device().is_cpu() && divisor.tensor->numel() > 0) {
    const TensorBase& t = *divisor.tensor;
    Dims all;
    for (int d = 0; d < t.dim(); ++d) all.push_back(d);
    TensorBase found = host_data(reduce(any_zero_reduce, t, all, false, DType::kInt64));
    zero = *reinterpret_cast<const int64_t*>(found.raw()) != 0;
  }
  TS_CHECK(!zero, "ZeroDivisionError");
}

void zeros_backward(Backward& b) {
  for (int i : {0, 1})
    if (b.wants(i)) b.set(i, op::zeros_like(b.grad));
}

// As PyTorch: the result seems to have a gradient, and backward raises.
void no_derivative(Backward&) {
  raise(ErrorKind::kNotImplemented, "derivative for aten::floor_divide is not implemented");
}

// self - other * quotient(self, other), the quotient a step function.
void rest_backward(Backward& b, TensorBase (*quotient)(const TensorBase&, const Value&)) {
  if (b.wants(0)) b.set(0, b.grad);
  if (!b.wants(1)) return;
  const TensorBase& other = b.tensor(1);
  TensorBase self = b.is_tensor(0) ? b.tensor(0) : op::mul(op::ones_like(other), b.scalar(0));
  b.set(1, op::mul(op::neg(b.grad), quotient(self, Value(other))));
}

}  // namespace

TS_BODY_NEAR(div_floor, "tt", 't', 0, (TS_NUMBERS), is_near_quotient(a, b), div_floor_near(a, b),
             return div_floor(a, b);)
TS_OP({
    .schema = "_div_floor(Tensor self, Tensor|Scalar other) -> Tensor",
    .kind = Kind::kPointwise,
    .forms = kFunction,
    .check = check_divisor,
    .body = &div_floor_body,
    .backward = zeros_backward,
});

TS_BODY(div_trunc, "tt", 't', 0, (TS_NUMBERS), return div_trunc(a, b);)
TS_OP({
    .schema = "_div_trunc(Tensor self, Tensor|Scalar other) -> Tensor",
    .kind = Kind::kPointwise,
    .forms = kFunction,
    .check = check_divisor,
    .body = &div_trunc_body,
    .backward = zeros_backward,
});

TS_OP({
    .schema = "floor_divide(Tensor self, Tensor|Scalar other) -> Tensor",
    .doc = "self / other, rounded down.",
    .example = "torch.floor_divide(torch.tensor([7, -7]), 2)",
    .kind = Kind::kPointwise,
    .forms = kFunction | kMethod | kInplace | kOut,
    .check = check_divisor,
    .body = &div_floor_body,
    .backward = no_derivative,
    .operators = "__floordiv__ __ifloordiv__",
    .samples = {{"T(3, 4), T(3, 4)"}, {"T(3, 4), 2"}},
});
TS_OP({
    .schema = "floor_divide(Number self, Tensor|Scalar other) -> Tensor",
    .doc = "self / other, rounded down.",
    .example = "torch.floor_divide(7, torch.tensor([2, -2]))",
    .kind = Kind::kPointwise,
    .forms = kFunction | kOut,
    .hidden = true,
    .check = check_divisor,
    .body = &div_floor_body,
    .backward = no_derivative,
    .operators = "__rfloordiv__",
    .samples = {{"7.03, T(3, 4)"}},
});

TS_BODY_NEAR(remainder, "tt", 't', 0, (TS_NUMBERS), is_near_quotient(a, b), modulo_near(a, b),
             return modulo(a, b);)
TS_OP({
    .schema = "remainder(Tensor self, Tensor|Scalar other) -> Tensor",
    .doc = "What division rounded down leaves: it has the sign of other, as Python's % has.",
    .example = "torch.remainder(torch.tensor([7, -7]), 3)",
    .kind = Kind::kPointwise,
    .forms = kFunction | kMethod | kInplace | kOut,
    .check = check_divisor,
    .body = &remainder_body,
    .saves = "self:other other",
    .backward = [](Backward& b) { rest_backward(b, op::_div_floor); },
    .numbers = Numbers::kRound,
    .operators = "__mod__ __imod__",
    .samples = {{"T(3, 4), T(3, 4)"}, {"T(3, 4), 2.5"}},
});
TS_OP({
    .schema = "remainder(Number self, Tensor other) -> Tensor",
    .doc = "What division rounded down leaves.",
    .example = "torch.remainder(7, torch.tensor([3, -3]))",
    .kind = Kind::kPointwise,
    .forms = kFunction,
    .check = check_divisor,
    .body = &remainder_body,
    .saves = "other",
    .backward = [](Backward& b) { rest_backward(b, op::_div_floor); },
    .numbers = Numbers::kRound,
    .operators = "__rmod__",
    .samples = {{"7.03125, T(3, 4)"}},
});

TS_BODY_NEAR(fmod, "tt", 't', 0, (TS_NUMBERS), is_near_quotient(a, b), fmod_near(a, b),
             return fmod(a, b);)
TS_OP({
    .schema = "fmod(Tensor self, Tensor|Scalar other) -> Tensor",
    .doc = "What division rounded towards zero leaves: it has the sign of self, as C's fmod has.",
    .example = "torch.fmod(torch.tensor([7, -7]), 3)",
    .kind = Kind::kPointwise,
    .forms = kFunction | kMethod | kInplace | kOut,
    .check = check_divisor,
    .body = &fmod_body,
    .saves = "self:other other",
    .backward = [](Backward& b) { rest_backward(b, op::_div_trunc); },
    .numbers = Numbers::kRound,
    .samples = {{"T(3, 4), T(3, 4)"}, {"T(3, 4), 2.5"}},
});

TS_BODY(gcd, "tt", 't', 0, (int64_t), return gcd(a, b);)
TS_OP({
    .schema = "gcd(Tensor self, Tensor other) -> Tensor",
    .doc = "The greatest common divisor of integers.",
    .example = "torch.gcd(torch.tensor([12, 7]), torch.tensor([18, 21]))",
    .kind = Kind::kPointwise,
    .forms = kFunction | kMethod | kInplace | kOut,
    .check = refuse_bool,
    .body = &gcd_body,
    .not_differentiable = true,
    .samples = {{"I([12, -7], 99), I([18, 21], 99)"}},
});

TS_BODY(lcm, "tt", 't', 0, (int64_t), return lcm(a, b);)
TS_OP({
    .schema = "lcm(Tensor self, Tensor other) -> Tensor",
    .doc = "The least common multiple of integers.",
    .example = "torch.lcm(torch.tensor([4, 7]), torch.tensor([6, 21]))",
    .kind = Kind::kPointwise,
    .forms = kFunction | kMethod | kInplace | kOut,
    .check = refuse_bool,
    .body = &lcm_body,
    .not_differentiable = true,
    .samples = {{"I([4, -7], 99), I([6, 21], 99)"}},
});

}  // namespace tessera
