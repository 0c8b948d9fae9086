// ELU and its relatives: straight above zero, an exponential below.
#include "tessera/gen/activation.h"
#include "tessera/ops/gradient.h"
#include "tessera/ops/loops.h"

namespace tessera {

namespace {
constexpr double kSeluAlpha = 1.6732632423543772848170429916717;
constexpr double kSeluScale = 1.0507009873554804934193349852946;

// Refused as in PyTorch, although the value before the write is still there.
void check_slope(const Backward& b, double alpha) {
  TS_CHECK(!b.in_place || alpha >= 0,
           "In-place elu backward calculation is triggered with a negative slope which is not "
           "supported. This is caused by calling in-place forward function with a negative slope, "
           "please call out-of-place version instead.");
}
}  // namespace

TS_BODY(elu, "t", 't', 1, (TS_FLOATS), return select(a <= T(0), expm1(a) * s0, a);)
TS_OP({
    .schema = "nn.functional.elu(Tensor self, float alpha=1.0) -> Tensor",
    .doc = "Each element, alpha * (exp(x) - 1) where it is negative.",
    .example = "torch.nn.functional.elu(torch.tensor([-1.0, 0.0, 2.0]))",
    .kind = Kind::kPointwise,
    .forms = kFunction | kInplace | kOut,
    .body = &elu_body,
    .saves = "self",
    .backward =
        [](Backward& b) {
          check_slope(b, b.number(1));
          b.set(0, op::_elu_backward(b.grad, b.tensor(0), b.number(1), 1.0, 1.0));
        },
    .samples = {{"T(3, 4)"}, {"T(3, 4), 1.5"}},
});
// s0 alpha, s1 the scale of all, s2 that of the exponent
TS_BODY(elu_backward, "tt", 't', 3, (TS_FLOATS),
        return select(b <= T(0), a* s2*(s0* s1) * exp(b * s2), a* s1);)
TS_OP({
    .schema = "_elu_backward(Tensor grad, Tensor self, float alpha, float scale, "
              "float input_scale) -> Tensor",
    .kind = Kind::kPointwise,
    .forms = kFunction,
    .body = &elu_backward_body,
    .saves = "grad:self self",
    .backward =
        [](Backward& b) {
          const TensorBase& x = b.tensor(1);
          double alpha = b.number(2), scale = b.number(3), inner = b.number(4);
          if (b.wants(0)) b.set(0, op::_elu_backward(b.grad, x, alpha, scale, inner));
          if (!b.wants(1)) return;
          TensorBase bend = op::mul(op::exp(op::mul(x, inner)), alpha * scale * inner * inner);
          TensorBase g = op::mul(op::mul(b.grad, b.tensor(0)), bend);
          b.set(1, op::where(op::le(x, 0), g, 0));
        },
});

TS_BODY(selu, "t", 't', 0, (TS_FLOATS), T alpha = T(1.6732632423543772848170429916717);
        T scale = T(1.0507009873554804934193349852946);
        return select(a <= T(0), expm1(a) * (alpha * scale), a* scale);)
TS_OP({
    .schema = "selu(Tensor self) -> Tensor",
    .also = "nn.functional.selu",
    .doc = "elu with the scales that keep mean 0 and variance 1.",
    .example = "torch.selu(torch.tensor([-1.0, 0.0, 2.0]))",
    .kind = Kind::kPointwise,
    .forms = kFunction | kInplace,
    .body = &selu_body,
    .saves = "self",
    .backward =
        [](Backward& b) {
          b.set(0, op::_elu_backward(b.grad, b.tensor(0), kSeluAlpha, kSeluScale, 1.0));
        },
    .samples = {{"T(3, 4)"}},
});

TS_BODY(celu, "t", 't', 1, (TS_FLOATS), return select(a <= T(0), expm1(a / s0) * s0, a);)
TS_OP({
    .schema = "celu(Tensor self, float alpha=1.0) -> Tensor",
    .also = "nn.functional.celu",
    .doc = "Each element, alpha * (exp(x / alpha) - 1) where it is negative.",
    .example = "torch.celu(torch.tensor([-1.0, 0.0, 2.0]), 1.5)",
    .kind = Kind::kPointwise,
    .forms = kFunction | kInplace,
    .check =
        [](const Call& c) {
          TS_CHECK(c.number(1) != 0, "ZeroDivisionError: alpha cannot be 0 for CELU");
        },
    .body = &celu_body,
    .saves = "self",
    .backward =
        [](Backward& b) {
          double alpha = b.number(1);
          check_slope(b, alpha);
          b.set(0, op::_elu_backward(b.grad, b.tensor(0), alpha, 1.0, 1.0 / alpha));
        },
    .samples = {{"T(3, 4)"}, {"T(3, 4), 1.5"}},
});

}  // namespace tessera
