#include "tessera/gen/activation.h"
#include "tessera/ops/gradient.h"
#include "tessera/ops/loops.h"

namespace tessera {

// 1/sqrt(2), sqrt(2/pi), 1/sqrt(2 pi), as PyTorch writes them.
TS_BODY(gelu_erf, "t", 't', 0, (TS_FLOATS),
        return a * T(0.5) * (T(1) + erf(a * T(0.70710678118654752440)));)
TS_BODY(gelu_tanh, "t", 't', 0, (TS_FLOATS),
        T inner = T(0.79788456080286535588) * (a + T(0.044715) * (a * a * a));
        return T(0.5) * a * (T(1) + tanh(inner));)
TS_BODY(gelu_erf_backward, "tt", 't', 0, (TS_FLOATS),
        T cdf = T(0.5) * (T(1) + erf(b * T(0.70710678118654752440)));
        T pdf = T(0.39894228040143267794) * exp(b * b * T(-0.5)); return a * (cdf + b * pdf);)
TS_BODY(gelu_tanh_backward, "tt", 't', 0, (TS_FLOATS), T square = b * b;
        T inner = T(0.79788456080286535588) * (b + T(0.044715) * (square * b)); T t = tanh(inner);
        T left = T(0.5) * b; T right = T(1) + t;
        T slope = T(0.79788456080286535588) * (T(1) + T(3) * T(0.044715) * square);
        return a * (T(0.5) * right + left * (T(1) - t * t) * slope);)

namespace {

bool tanh_form(const Value& approximate) {
  if (approximate.string == "tanh") return true;
  TS_CHECK(approximate.string == "none", "approximate argument must be either none or tanh.");
  return false;
}

// The second derivative of gelu at x.
TensorBase bend_of(const TensorBase& x, bool approximated) {
  constexpr double kBeta = 0.79788456080286535588, kKappa = 0.044715;
  TensorBase square = grad::square(x);
  if (!approximated) {  // pdf(x) (2 - x^2)
    TensorBase pdf = op::mul(op::exp(op::mul(square, -0.5)), 0.39894228040143267794);
    return op::mul(pdf, op::rsub(square, 2));
  }
  // With t = tanh(u), u = beta (x + kappa x^3): u' (1 - t^2) (1 - x t u') + x u'' (1 - t^2) / 2
  TensorBase u = op::mul(op::mul(x, op::add(op::mul(square, kKappa), 1)), kBeta);
  TensorBase first = op::mul(op::add(op::mul(square, 3 * kKappa), 1), kBeta);
  TensorBase half_second = op::mul(square, 3 * kKappa * kBeta);  // x u'' / 2
  TensorBase t = op::tanh(u);
  TensorBase curve = op::mul(first, grad::one_minus(op::mul(op::mul(x, t), first)));
  return op::mul(grad::one_minus(grad::square(t)), op::add(curve, half_second));
}

}  // namespace

TS_OP({
    .schema = "nn.functional.gelu(Tensor self, *, str approximate=\"none\") -> Tensor",
    .doc = "x times the normal distribution's cumulative function of x; approximate='tanh' for its "
           "usual approximation.",
    .example = "torch.nn.functional.gelu(torch.tensor([-1.0, 0.0, 1.0]))",
    .kind = Kind::kPointwise,
    .forms = kFunction | kOut,
    .choose = [](Args args) -> const PointwiseBody* {
      return tanh_form(args[1]) ? &gelu_tanh_body : &gelu_erf_body;
    },
    .saves = "self",
    .backward =
        [](Backward& b) { b.set(0, op::_gelu_backward(b.grad, b.tensor(0), b.args[1].string)); },
    .samples = {{"T(3, 4)"}, {"T(3, 4), approximate='tanh'"}, {"T()"}},
});

TS_OP({
    .schema = "_gelu_backward(Tensor grad, Tensor self, *, str approximate=\"none\") -> Tensor",
    .kind = Kind::kPointwise,
    .forms = kFunction,
    .choose = [](Args args) -> const PointwiseBody* {
      return tanh_form(args[2]) ? &gelu_tanh_backward_body : &gelu_erf_backward_body;
    },
    .saves = "grad:self self",
    .backward =
        [](Backward& b) {
          const TensorBase& x = b.tensor(1);
          if (b.wants(0)) b.set(0, op::_gelu_backward(b.grad, x, b.text(2)));
          if (!b.wants(1)) return;
          TensorBase bend = bend_of(x, b.text(2) == "tanh");
          b.set(1, op::mul(op::mul(b.grad, b.tensor(0)), bend));
        },
});

}  // namespace tessera
