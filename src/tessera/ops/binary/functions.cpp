// Functions of two numbers.
#include "tessera/ops/gradient.h"
#include "tessera/ops/loops.h"

namespace tessera {

TS_BODY(atan2, "tt", 't', 0, (TS_FLOATS), return atan2(a, b);)
TS_OP({
    .schema = "atan2(Tensor self, Tensor other) -> Tensor",
    .also = "arctan2",
    .doc = "The angle of the point (other, self), between -pi and pi.",
    .example = "torch.atan2(torch.tensor([1.0, -1.0]), torch.tensor([1.0, -1.0]))",
    .kind = Kind::kPointwise,
    .types = TypeRule::kPromoteFloat,
    .forms = kFunction | kMethod | kInplace | kOut,
    .body = &atan2_body,
    .saves = "self other",
    .backward =
        [](Backward& b) {
          const TensorBase &y = b.tensor(0), &x = b.tensor(1);
          TensorBase g = op::div(b.grad, op::add(grad::square(y), grad::square(x)));
          if (b.wants(0)) b.set(0, op::mul(g, x));
          if (b.wants(1)) b.set(1, op::mul(op::neg(g), y));
        },
    .autocast = Autocast::kPromoteGpu,
    .samples = {{"T(3, 4), T(3, 4)"}, {"T(3, 4), T(4)"}},
});

TS_BODY(hypot, "tt", 't', 0, (TS_FLOATS), return hypot(a, b);)
TS_OP({
    .schema = "hypot(Tensor self, Tensor other) -> Tensor",
    .doc = "sqrt(self^2 + other^2), which overflows only where the result does.",
    .example = "torch.hypot(torch.tensor([3.0]), torch.tensor([4.0]))",
    .kind = Kind::kPointwise,
    .forms = kFunction | kMethod | kInplace | kOut,
    .body = &hypot_body,
    .saves = "self:self other:other result",
    .backward =
        [](Backward& b) {
          if (b.wants(0)) b.set(0, op::mul(b.grad, op::div(b.tensor(0), b.result)));
          if (b.wants(1)) b.set(1, op::mul(b.grad, op::div(b.tensor(1), b.result)));
        },
    .samples = {{"T(3, 4), T(3, 4)"}, {"T(3, 4), T(4)"}},
});

TS_BODY(copysign, "tt", 't', 0, (TS_FLOATS), return copysign(a, b);)
TS_OP({
    .schema = "copysign(Tensor self, Tensor|Scalar other) -> Tensor",
    .doc = "The size of self with the sign of other.",
    .example = "torch.copysign(torch.tensor([1.0, -2.0]), -1)",
    .kind = Kind::kPointwise,
    .types = TypeRule::kPromoteFloat,
    .forms = kFunction | kMethod | kInplace | kOut,
    .body = &copysign_body,
    .saves = "self:self result",
    .backward =
        [](Backward& b) {
          if (b.wants(0)) {
            TensorBase ratio = op::div(b.result, b.tensor(0));
            b.set(0, op::mul(b.grad, op::where(op::eq(b.tensor(0), 0), 0, ratio)));
          }
          if (b.wants(1)) b.set(1, op::zeros_like(b.grad));
        },
    .samples = {{"T(3, 4), T(3, 4)"}, {"T(3, 4), -1"}},
});

TS_BODY(nextafter, "tt", 't', 0, (TS_FLOATS),
        return select(a != a, a, select(b != b, b, next_after(a, b)));)
TS_BODY(nextafter_float16, "tt", 't', 0, (float), return next_float16(a, b);)
TS_BODY(nextafter_bfloat16, "tt", 't', 0, (float), return next_bfloat16(a, b);)
TS_OP({
    .schema = "nextafter(Tensor self, Tensor other) -> Tensor",
    .doc = "The number beside self in the direction of other.",
    .example = "torch.nextafter(torch.tensor([1.0]), torch.tensor([2.0]))",
    .kind = Kind::kPointwise,
    .forms = kFunction | kMethod | kInplace | kOut,
    .choose = [](Args args) -> const PointwiseBody* {
      DType t = result_type(args);
      if (t == DType::kFloat16) return &nextafter_float16_body;
      return t == DType::kBFloat16 ? &nextafter_bfloat16_body : &nextafter_body;
    },
    .backward =
        [](Backward&) {
          raise(ErrorKind::kNotImplemented, "the derivative for 'nextafter' is not implemented.");
        },
    .samples = {{"T(3, 4), T(3, 4)"}},
});

TS_BODY(heaviside, "tt", 't', 0, (TS_NUMBERS), return select(a == T(0), b, T(a > T(0)));)
TS_OP({
    .schema = "heaviside(Tensor self, Tensor values) -> Tensor",
    .doc = "0 where self is negative, 1 where it is positive, and values where it is 0.",
    .example = "torch.heaviside(torch.tensor([-1.0, 0.0, 2.0]), torch.tensor([0.5]))",
    .kind = Kind::kPointwise,
    .forms = kFunction | kMethod | kInplace | kOut,
    .check =
        [](const Call& c) {
          TS_CHECK(!is_complex(c.dtype_of(0)) && !is_complex(c.dtype_of(1)),
                   "heaviside is not yet implemented for complex tensors.");
          TS_CHECK(c.dtype_of(0) == c.dtype_of(1),
                   "heaviside is not yet implemented for tensors with different dtypes.");
        },
    .body = &heaviside_body,
    .backward =
        [](Backward&) {
          raise(ErrorKind::kNotImplemented, "derivative for aten::heaviside is not implemented");
        },
    .samples = {{"T(3, 4), T(4)"}},
});

// By the larger real part; where both are infinite the difference says nothing.
TS_BODY(
    logaddexp, "tt", 't', 0, (TS_FLOATS, TS_COMPLEX),
    if constexpr (is_complex_v<T>) {
      bool first = a.re >= b.re || a.re != a.re;
      T high = first ? a : b;
      T low = first ? b : a;
      R nan = std::numeric_limits<R>::quiet_NaN();
      if (low.re != low.re || low.im != low.im || high.re != high.re || high.im != high.im)
        return T(nan, nan);
      if (high.re == low.re && isinf(high.re))
        return high.re < R(0) ? low : log(exp(low) + exp(high));
      return high + log1p(exp(low - high));
    } else {
      // A NaN goes through as it is: the sum of two would be either, as the compiler likes.
      T high = max_nan(a, b);
      T apart = a == b ? T(0) : a - b;  // of equal infinities too
      T sum = high + log1p(exp(negate(abs(apart))));
      return select(high != high, high, sum);
    })
TS_OP({
    .schema = "logaddexp(Tensor self, Tensor other) -> Tensor",
    .doc = "log(exp(self) + exp(other)), which overflows only where the result does.",
    .example = "torch.logaddexp(torch.tensor([1000.0]), torch.tensor([1000.0]))",
    .kind = Kind::kPointwise,
    .forms = kFunction | kMethod | kOut,
    .body = &logaddexp_body,
    .saves = "self other",
    .backward =
        [](Backward& b) {
          const TensorBase &x = b.tensor(0), &y = b.tensor(1);
          if (b.wants(0)) b.set(0, grad::over(b.grad, op::add(op::exp(op::sub(y, x)), 1)));
          if (b.wants(1)) b.set(1, grad::over(b.grad, op::add(op::exp(op::sub(x, y)), 1)));
        },
    .samples = {{"T(3, 4), T(3, 4)"}, {"T(3, 4), T(4)"}},
});

TS_BODY(logaddexp2, "tt", 't', 0, (TS_FLOATS), T high = max_nan(a, b);
        T apart = a == b ? T(0) : a - b;
        T sum = high + log1p(exp2(negate(abs(apart)))) * T(1.44269504088896340736);
        return select(high != high, high, sum);)
TS_OP({
    .schema = "logaddexp2(Tensor self, Tensor other) -> Tensor",
    .doc = "log2(2^self + 2^other), which overflows only where the result does.",
    .example = "torch.logaddexp2(torch.tensor([1000.0]), torch.tensor([1000.0]))",
    .kind = Kind::kPointwise,
    .forms = kFunction | kMethod | kOut,
    .body = &logaddexp2_body,
    .saves = "self other",
    .backward =
        [](Backward& b) {
          const TensorBase &x = b.tensor(0), &y = b.tensor(1);
          if (b.wants(0)) b.set(0, op::div(b.grad, op::add(op::exp2(op::sub(y, x)), 1)));
          if (b.wants(1)) b.set(1, op::div(b.grad, op::add(op::exp2(op::sub(x, y)), 1)));
        },
    .samples = {{"T(3, 4), T(3, 4)"}, {"T(3, 4), T(4)"}},
});

namespace {

void xlogy_backward(Backward& b) {
  const Value &x = b.args[0], &y = b.args[1];
  if (b.wants(0)) {
    const TensorBase& self = b.tensor(0);
    TensorBase flat = op::eq(self, 0), g;
    if (y.is_tensor()) {
      flat = op::logical_and(flat, op::le(*y.tensor, 0));
      g = op::mul(b.grad, op::log(*y.tensor));
    } else {
      double number = y.scalar.to_double();
      g = op::mul(b.grad, std::log(number));
      if (number > 0) return b.set(0, g);  // other is a number: nothing else to do
    }
    b.set(0, op::where(flat, 0, g));
  }
  if (b.wants(1)) b.set(1, op::div(op::mul(b.grad, x), b.tensor(1)));
}

}  // namespace

TS_BODY(xlogy, "tt", 't', 0, (TS_FLOATS), T y = select(a == T(0), T(0), a* log(b));
        return select(b != b, b, select(a != a, a, y));)
TS_OP({
    .schema = "xlogy(Tensor self, Tensor|Scalar other) -> Tensor",
    .also = "special.xlogy",
    .doc = "self * log(other), and 0 where self is 0.",
    .example = "torch.xlogy(torch.tensor([0.0, 2.0]), torch.tensor([0.0, 3.0]))",
    .kind = Kind::kPointwise,
    .types = TypeRule::kPromoteFloat,
    .forms = kFunction | kMethod | kInplace | kOut,
    .body = &xlogy_body,
    .saves = "self other",
    .backward = xlogy_backward,
    .samples = {{"T(3, 4), P(3, 4)"}, {"T(3, 4), 2.5"}},
});
TS_OP({
    .schema = "xlogy(Number self, Tensor other) -> Tensor",
    .also = "special.xlogy",
    .doc = "self * log(other).",
    .example = "torch.xlogy(2, torch.tensor([1.0, 3.0]))",
    .kind = Kind::kPointwise,
    .types = TypeRule::kPromoteFloat,
    .forms = kFunction | kOut,
    .body = &xlogy_body,
    .saves = "other",
    .backward = xlogy_backward,
    .samples = {{"2, P(3, 4)"}},
});

}  // namespace tessera
