#include "tessera/gen/unary.h"
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

}  // namespace

TS_OP({
    .schema = "gelu(Tensor self, *, str approximate=\"none\") -> Tensor",
    .doc = "x times the normal distribution's cumulative function of x; approximate='tanh' for its "
           "usual approximation.",
    .example = "torch.nn.functional.gelu(torch.tensor([-1.0, 0.0, 1.0]))",
    .kind = Kind::kPointwise,
    .forms = kFunction,
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
    .saves = "grad self",
    .backward =
        [](Backward& b) {
          std::string_view form = b.args[2].string;
          if (b.wants(0)) b.set(0, op::_gelu_backward(b.grad, b.tensor(1), form));
          TS_CHECK_IMPLEMENTED(!b.wants(1), "the second derivative of gelu");
        },
});

}  // namespace tessera
