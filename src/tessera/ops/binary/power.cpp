#include "tessera/gen/copy.h"
#include "tessera/ops/gradient.h"
#include "tessera/ops/in_dtype.h"
#include "tessera/ops/loops.h"

namespace tessera {

TS_BODY(pow, "tt", 't', 0, (TS_NUMBERS, TS_COMPLEX), return pow(a, b);)
// Exponents with a shorter way, as PyTorch takes it.
TS_BODY(pow_zero, "tt", 't', 0, (TS_NUMBERS, TS_COMPLEX), return T(1);)
TS_BODY(pow_one, "tt", 't', 0, (TS_NUMBERS, TS_COMPLEX), return a;)
TS_BODY(pow_square, "tt", 't', 0, (TS_NUMBERS, TS_COMPLEX), return a * a;)
TS_BODY(pow_cube, "tt", 't', 0, (TS_NUMBERS, TS_COMPLEX), return a * a * a;)
TS_BODY(pow_half, "tt", 't', 0, (TS_FLOATS, TS_COMPLEX), return sqrt(a);)
TS_BODY(pow_minus_half, "tt", 't', 0, (TS_FLOATS, TS_COMPLEX), return T(1) / sqrt(a);)
TS_BODY(pow_minus_one, "tt", 't', 0, (TS_FLOATS, TS_COMPLEX), return T(1) / a;)
TS_BODY(pow_minus_two, "tt", 't', 0, (TS_FLOATS, TS_COMPLEX), return T(1) / (a * a);)

namespace {

const PointwiseBody* choose_power(Args args) {
  const Value& exponent = args[1];
  if (!exponent.is_scalar() || exponent.scalar.is_complex()) return &pow_body;
  double e = exponent.scalar.to_double();
  struct Short {
    double exponent;
    const PointwiseBody* body;
  };
  static const Short ways[] = {
      {0, &pow_zero_body},       {1, &pow_one_body},        {2, &pow_square_body},
      {3, &pow_cube_body},       {0.5, &pow_half_body},     {-0.5, &pow_minus_half_body},
      {-1, &pow_minus_one_body}, {-2, &pow_minus_two_body},
  };
  for (const Short& s : ways)
    if (s.exponent == e) return s.body;
  return &pow_body;
}

void check_power(const Call& c) {
  const Value& exponent = c.args[1];
  bool integral = is_integral(c.dtype_of(0), true);
  TS_CHECK(!integral || !c.args[0].is_tensor() || !exponent.is_scalar() ||
               exponent.scalar.is_double() || exponent.scalar.i >= 0,
           "Integers to negative integer powers are not allowed.");
  if (exponent.is_scalar() && is_integral(result_type(c.args), false))
    check_fits(exponent.scalar, result_type(c.args));
  if (!exponent.is_scalar()) refuse_bool(c);  // to the power of True or False a bool stays one
}

// exponent * self^(exponent - 1)
TensorBase slope_by_base(const TensorBase& self, const Value& exponent) {
  if (exponent.is_tensor()) {
    const TensorBase& e = *exponent.tensor;
    TensorBase slope = op::mul(op::pow(self, op::sub(e, 1)), e);
    return op::where(op::eq(e, 0), 0, slope);
  }
  Scalar e = exponent.scalar;
  if (e.is_complex()) return op::mul(op::pow(self, Scalar(c128(e.d - 1, e.im))), e);
  if (e.to_double() == 2) return op::mul(self, 2);
  Scalar less = e.is_double() ? Scalar(e.d - 1) : Scalar(e.to_int() - 1);
  return op::mul(op::pow(self, less), e);
}

Scalar log_of(Scalar s) {
  if (!s.is_complex()) return std::log(s.to_double());
  std::complex<double> l = std::log(std::complex<double>(s.d, s.im));
  return c128(l.real(), l.imag());
}

bool is_zero(const Value& v) { return v.is_scalar() && v.scalar.is_zero(); }

// Where 0 is taken to a power that is not negative, the result does not depend on it.
TensorBase no_negative_power(const TensorBase& exponent) {
  if (!is_complex(exponent.dtype())) return op::ge(exponent, 0);
  return op::logical_and(op::eq(op::imag(exponent), 0), op::ge(op::real(exponent), 0));
}

}  // namespace

TS_OP({
    .schema = "pow(Tensor self, Tensor|Scalar exponent) -> Tensor",
    .doc = "self to the power of exponent, element by element.",
    .example = "torch.pow(torch.tensor([1.0, 2.0, 3.0]), 2)",
    .kind = Kind::kPointwise,
    .forms = kFunction | kMethod | kInplace | kOut,
    .check = check_power,
    .choose = choose_power,
    .saves = "self exponent",
    .backward =
        [](Backward& b) {
          const TensorBase& self = b.tensor(0);
          const Value& exponent = b.args[1];
          if (b.wants(0))
            b.set(0, is_zero(exponent) ? op::zeros_like(self)
                                       : grad::times(b.grad, slope_by_base(self, exponent)));
          if (!b.wants(1)) return;
          const TensorBase& e = b.tensor(1);
          TensorBase slope = op::mul(op::pow(self, exponent), op::log(self));
          TensorBase flat = op::logical_and(op::eq(self, 0), no_negative_power(e));
          b.set(1, grad::times(b.grad, op::where(flat, 0, slope)));
        },
    .autocast = Autocast::kFloat32Gpu,
    .operators = "__pow__ __ipow__",
    .samples = {{"P(3, 4), T(3, 4)"}, {"T(3, 4), 2"}, {"P(3, 4), 1.5"}, {"T(3, 4), 3"}},
});
TS_OP({
    .schema = "pow(Number self, Tensor exponent) -> Tensor",
    .doc = "self to the power of exponent.",
    .example = "torch.pow(2, torch.tensor([1.0, 2.0, 3.0]))",
    .kind = Kind::kPointwise,
    .forms = kFunction | kOut,
    .check = check_power,
    .body = &pow_body,
    .saves = "result exponent",
    .backward =
        [](Backward& b) {
          Scalar self = b.scalar(0);
          TensorBase g = grad::times(b.grad, op::mul(b.result, log_of(self)));
          b.set(1, self.is_zero() ? op::where(no_negative_power(b.tensor(1)), 0, g) : g);
        },
    .autocast = Autocast::kFloat32Gpu,
    .operators = "__rpow__",
    .samples = {{"2, T(3, 4)"}, {"1.5, T(3, 4)"}},
});

namespace {

// float64 or complex128, by the arguments.
DType widest(const Call& c) {
  return is_complex(result_type(c.args)) ? DType::kComplex128 : DType::kFloat64;
}

}  // namespace

TS_OP({
    .schema = "float_power(Tensor self, Tensor|Scalar exponent) -> Tensor",
    .doc = "self to the power of exponent, in float64 or complex128.",
    .example = "torch.float_power(torch.tensor([1, 2, 3]), -1)",
    .forms = kFunction | kMethod | kInplace | kOut,
    .run = [](const Call& c) -> Outputs {
      DType t = widest(c);
      TensorBase self = in_dtype(c.tensor(0), t);
      if (c.args[1].is_scalar()) {
        Scalar e = c.scalar(1);
        return op::pow(self, e.is_complex() ? e : Scalar(e.to_double()));
      }
      return op::pow(self, in_dtype(c.tensor(1), t));
    },
    .exact_out = true,
    .samples = {{"P(3, 4), T(3, 4)"}, {"P(3, 4), 2"}},
});
TS_OP({
    .schema = "float_power(Scalar self, Tensor exponent) -> Tensor",
    .doc = "self to the power of exponent, in float64 or complex128.",
    .example = "torch.float_power(2, torch.tensor([1, -1]))",
    .forms = kFunction | kOut,
    .run = [](const Call& c) -> Outputs {
      Scalar self = c.scalar(0);
      return op::pow(self.is_complex() ? self : Scalar(self.to_double()),
                     in_dtype(c.tensor(1), widest(c)));
    },
    .exact_out = true,
    .samples = {{"2, T(3, 4)"}},
});

}  // namespace tessera
