// Functions of probabilities and errors, and what becomes of numbers that are none.
#include "tessera/base/half.h"
#include "tessera/gen/copy.h"
#include "tessera/ops/gradient.h"
#include "tessera/ops/logistic.h"

namespace tessera {

TS_BODY(sigmoid, "t", 't', 0, (TS_FLOATS, TS_COMPLEX), return logistic(a);)
TS_OP({
    .schema = "sigmoid(Tensor self) -> Tensor",
    .also = "nn.functional.sigmoid special.expit",
    .doc = "1 / (1 + exp(-x)): each element brought between 0 and 1.",
    .example = "torch.sigmoid(torch.tensor([-1.0, 0.0, 2.0]))",
    .kind = Kind::kPointwise,
    .types = TypeRule::kPromoteFloat,
    .forms = kFunction | kMethod | kInplace | kOut,
    .body = &sigmoid_body,
    .saves = "result",
    .backward =
        [](Backward& b) {
          if (is_complex(b.result.dtype()))
            b.set(0, grad::times(b.grad, op::mul(grad::one_minus(b.result), b.result)));
          else
            b.set(0, op::_sigmoid_backward(b.grad, b.result));
        },
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

namespace {

// The slope of erf.
TensorBase bell(const TensorBase& x) {
  return op::mul(op::exp(op::neg(grad::square(x))), 1.12837916709551257390);
}

}  // namespace

TS_BODY(erf, "t", 't', 0, (TS_FLOATS), return erf(a);)
TS_OP({
    .schema = "erf(Tensor self) -> Tensor",
    .also = "special.erf",
    .doc = "The error function of each element.",
    .example = "torch.erf(torch.tensor([0.0, 1.0]))",
    .kind = Kind::kPointwise,
    .types = TypeRule::kPromoteFloat,
    .forms = kFunction | kMethod | kInplace | kOut,
    .body = &erf_body,
    .saves = "self",
    .backward = [](Backward& b) { b.set(0, op::mul(b.grad, bell(b.tensor(0)))); },
    .samples = {{"T(3, 4)"}, {"T()"}},
});

TS_BODY(erfc, "t", 't', 0, (TS_FLOATS), return erfc(a);)
TS_OP({
    .schema = "erfc(Tensor self) -> Tensor",
    .also = "special.erfc",
    .doc = "1 - erf(x), exact for large x.",
    .example = "torch.erfc(torch.tensor([0.0, 4.0]))",
    .kind = Kind::kPointwise,
    .types = TypeRule::kPromoteFloat,
    .forms = kFunction | kMethod | kInplace | kOut,
    .body = &erfc_body,
    .saves = "self",
    .backward = [](Backward& b) { b.set(0, op::mul(op::neg(b.grad), bell(b.tensor(0)))); },
    .samples = {{"T(3, 4)"}, {"T()"}},
});

TS_BODY(logit, "t", 't', 0, (TS_FLOATS), return log(a / (T(1) - a));)
TS_BODY(logit_clamped, "t", 't', 1, (TS_FLOATS), T top = T(1) - s0; T x = select(a > top, top, a);
        x = select(a < s0, s0, x); return log(x / (T(1) - x));)
TS_BODY(logit_backward, "tt", 't', 0, (TS_FLOATS), T slope = a / (b * (T(1) - b));
        T edge = a * std::numeric_limits<T>::infinity();
        T g = select(b == T(0) || b == T(1), edge, slope);
        return select(b < T(0) || b > T(1), std::numeric_limits<T>::quiet_NaN(), g);)
TS_BODY(logit_clamped_backward, "tt", 't', 1, (TS_FLOATS),
        return select(b < s0 || b > T(1) - s0, T(0), a / (b * (T(1) - b)));)
TS_OP({
    .schema = "logit(Tensor self, float? eps=None) -> Tensor",
    .also = "special.logit",
    .doc = "log(x / (1 - x)), the inverse of sigmoid; with eps, x is brought into [eps, 1 - eps].",
    .example = "torch.logit(torch.tensor([0.25, 0.5]))",
    .kind = Kind::kPointwise,
    .types = TypeRule::kPromoteFloat,
    .forms = kFunction | kMethod | kInplace | kOut,
    .choose = [](Args args) -> const PointwiseBody* {
      bool plain = args[1].is_none() || args[1].scalar.to_double() < 0;
      return plain ? &logit_body : &logit_clamped_body;
    },
    .saves = "self",
    .backward =
        [](Backward& b) {
          std::optional<double> eps;
          if (b.has(1)) eps = b.number(1);
          b.set(0, op::_logit_backward(b.grad, b.tensor(0), eps));
        },
    .samples = {{"P(3, 4), 0.25"}, {"V([0.25, 0.5])"}},
});
TS_OP({
    .schema = "_logit_backward(Tensor grad, Tensor self, float? eps) -> Tensor",
    .kind = Kind::kPointwise,
    .types = TypeRule::kPromoteFloat,
    .forms = kFunction,
    .choose = [](Args args) -> const PointwiseBody* {
      bool plain = args[2].is_none() || args[2].scalar.to_double() < 0;
      return plain ? &logit_backward_body : &logit_clamped_backward_body;
    },
    .saves = "grad:self self",
    .backward =
        [](Backward& b) {
          const TensorBase& x = b.tensor(1);
          std::optional<double> eps;
          if (b.has(2)) eps = b.number(2);
          if (b.wants(0)) b.set(0, op::_logit_backward(b.grad, x, eps));
          if (!b.wants(1)) return;
          // slope' = slope^2 (2 x - 1) where slope = 1 / (x (1 - x))
          TensorBase slope = op::_logit_backward(op::ones_like(x), x, eps);
          TensorBase bend = op::mul(grad::square(slope), op::sub(op::mul(x, 2), 1));
          b.set(1, op::mul(op::mul(b.grad, b.tensor(0)), bend));
        },
});

TS_BODY(nan_to_num, "t", 't', 3, (TS_FLOATS), T x = select(a != a, s0, a);
        x = select(x == std::numeric_limits<T>::infinity(), s1, x);
        return select(a == -std::numeric_limits<T>::infinity(), s2, x);)
TS_OP({
    .schema = "_nan_to_num(Tensor self, float nan, float posinf, float neginf) -> Tensor",
    .kind = Kind::kPointwise,
    .forms = kFunction,
    .body = &nan_to_num_body,
    .saves = "self",
    .backward = [](Backward& b) { b.set(0, op::where(op::isfinite(b.tensor(0)), b.grad, 0)); },
});

namespace {

double largest(DType t) {
  switch (t) {
    case DType::kFloat16:
      return 65504;
    case DType::kBFloat16:
      return bfloat16_to_float(0x7f7f);
    case DType::kFloat64:
      return std::numeric_limits<double>::max();
    default:
      return std::numeric_limits<float>::max();
  }
}

}  // namespace

TS_OP({
    .schema = "nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) "
              "-> Tensor",
    .doc = "nan becomes 0 and the infinities the dtype's largest and lowest number, or what is "
           "given for them.",
    .example = "torch.nan_to_num(torch.tensor([float('nan'), float('inf'), 1.0]))",
    .forms = kFunction | kMethod | kInplace | kOut,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& self = c.tensor(0);
      DType t = real_dtype(self.dtype());
      if (is_integral(t, true)) return op::clone(self);
      double most = largest(t);
      auto given = [&](int i, double otherwise) { return c.has(i) ? c.number(i) : otherwise; };
      auto fix = [&](const TensorBase& x) {
        return op::_nan_to_num(x, given(1, 0), given(2, most), given(3, -most));
      };
      if (!is_complex(self.dtype())) return fix(self);
      return op::complex(fix(op::real(self)), fix(op::imag(self)));
    },
    .samples = {{"T(3, 4)"}, {"T(3, 4), 1.0, 2.0, 3.0"}},
});

}  // namespace tessera
