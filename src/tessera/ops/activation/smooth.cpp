// Smooth activations.
#include "tessera/gen/activation.h"
#include "tessera/ops/gradient.h"
#include "tessera/ops/logistic.h"

namespace tessera {

TS_BODY(silu, "t", 't', 0, (TS_FLOATS, TS_COMPLEX), return a / (T(1) + exp(negate(a)));)
TS_OP({
    .schema = "nn.functional.silu(Tensor self) -> Tensor",
    .doc = "x * sigmoid(x), also known as swish.",
    .example = "torch.nn.functional.silu(torch.tensor([-1.0, 0.0, 1.0]))",
    .kind = Kind::kPointwise,
    .forms = kFunction | kInplace,
    .body = &silu_body,
    .saves = "self",
    .backward =
        [](Backward& b) {
          const TensorBase& x = b.tensor(0);
          if (!is_complex(x.dtype())) return b.set(0, op::_silu_backward(b.grad, x));
          TensorBase s = op::sigmoid(x);
          TensorBase slope = op::mul(s, op::add(op::mul(x, grad::one_minus(s)), 1));
          b.set(0, grad::times(b.grad, slope));
        },
    .samples = {{"T(3, 4)"}},
});
TS_BODY(silu_backward, "tt", 't', 0, (TS_FLOATS), T s = logistic(b);
        return a * s * (T(1) + b * (T(1) - s));)
TS_OP({
    .schema = "_silu_backward(Tensor grad, Tensor self) -> Tensor",
    .kind = Kind::kPointwise,
    .forms = kFunction,
    .body = &silu_backward_body,
    .saves = "grad:self self",
    .backward =
        [](Backward& b) {
          const TensorBase& x = b.tensor(1);
          if (b.wants(0)) b.set(0, op::_silu_backward(b.grad, x));
          if (!b.wants(1)) return;
          // s (1 - s) (2 + x (1 - 2 s))
          TensorBase s = op::sigmoid(x);
          TensorBase curve = op::add(op::mul(x, op::add(op::mul(s, -2), 1)), 2);
          TensorBase bend = op::mul(op::mul(s, grad::one_minus(s)), curve);
          b.set(1, op::mul(op::mul(b.grad, b.tensor(0)), bend));
        },
});

TS_BODY(mish, "t", 't', 0, (TS_FLOATS), return a * tanh(log1p(exp(a)));)
TS_OP({
    .schema = "nn.functional.mish(Tensor self) -> Tensor",
    .doc = "x * tanh(softplus(x)).",
    .example = "torch.nn.functional.mish(torch.tensor([-1.0, 0.0, 1.0]))",
    .kind = Kind::kPointwise,
    .forms = kFunction | kInplace,
    .body = &mish_body,
    .saves = "self",
    .backward = [](Backward& b) { b.set(0, op::_mish_backward(b.grad, b.tensor(0))); },
    .samples = {{"T(3, 4)"}},
});
TS_BODY(mish_backward, "tt", 't', 0, (TS_FLOATS), T s = logistic(b); T t = tanh(log1p(exp(b)));
        return a * (t + b * s * (T(1) - t * t));)
TS_OP({
    .schema = "_mish_backward(Tensor grad, Tensor self) -> Tensor",
    .kind = Kind::kPointwise,
    .forms = kFunction,
    .body = &mish_backward_body,
    .saves = "grad:self self",
    .backward =
        [](Backward& b) {
          const TensorBase& x = b.tensor(1);
          if (b.wants(0)) b.set(0, op::_mish_backward(b.grad, x));
          if (!b.wants(1)) return;
          // With s = sigmoid(x), t = tanh(softplus(x)), u = 1 - t^2:
          // u s (2 + x (1 - s - 2 s t))
          TensorBase s = op::sigmoid(x), t = op::tanh(op::softplus(x));
          TensorBase u = grad::one_minus(grad::square(t));
          TensorBase inner = op::sub(grad::one_minus(s), op::mul(op::mul(s, t), 2));
          TensorBase bend = op::mul(op::mul(u, s), op::add(op::mul(x, inner), 2));
          b.set(1, op::mul(op::mul(b.grad, b.tensor(0)), bend));
        },
});

TS_BODY(softplus, "t", 't', 2, (TS_FLOATS), T x = a * s0;
        return select(x > s1, a, log1p(exp(x)) / s0);)
TS_OP({
    .schema = "nn.functional.softplus(Tensor self, float beta=1.0, float threshold=20.0) -> Tensor",
    .doc = "log(1 + exp(beta x)) / beta; x itself where beta x is above the threshold.",
    .example = "torch.nn.functional.softplus(torch.tensor([-1.0, 0.0, 30.0]))",
    .kind = Kind::kPointwise,
    .forms = kFunction | kOut,
    .body = &softplus_body,
    .saves = "self",
    .backward =
        [](Backward& b) {
          b.set(0, op::_softplus_backward(b.grad, b.tensor(0), b.number(1), b.number(2)));
        },
    .autocast = Autocast::kFloat32Gpu,
    .samples = {{"T(3, 4)"}, {"T(3, 4), 2.0, 1.03"}},
});
TS_BODY(softplus_backward, "tt", 't', 2, (TS_FLOATS), T x = b * s0; T z = exp(x);
        return select(x > s1 || a != a, a, a* z / (z + T(1)));)
TS_OP({
    .schema = "_softplus_backward(Tensor grad, Tensor self, float beta, float threshold) -> Tensor",
    .kind = Kind::kPointwise,
    .forms = kFunction,
    .body = &softplus_backward_body,
    .saves = "grad:self self",
    .backward =
        [](Backward& b) {
          const TensorBase& x = b.tensor(1);
          double beta = b.number(2), threshold = b.number(3);
          if (b.wants(0)) b.set(0, op::_softplus_backward(b.grad, x, beta, threshold));
          if (!b.wants(1)) return;
          TensorBase scaled = op::mul(x, beta), s = op::sigmoid(scaled);
          TensorBase bend = op::mul(op::mul(s, grad::one_minus(s)), beta);
          TensorBase g = op::mul(op::mul(b.grad, b.tensor(0)), bend);
          b.set(1, op::where(op::gt(scaled, threshold), 0, g));
        },
});

TS_BODY(logsigmoid, "t", 't', 0, (TS_FLOATS), T low = select((a < T(0)) | (a != a), a, T(0));
        return low - log1p(exp(negate(abs(a))));)
TS_OP({
    .schema = "nn.functional.logsigmoid(Tensor self) -> Tensor",
    .doc = "log(sigmoid(x)), exact where sigmoid(x) would vanish.",
    .example = "torch.nn.functional.logsigmoid(torch.tensor([-100.0, 0.0, 1.0]))",
    .kind = Kind::kPointwise,
    .forms = kFunction | kOut,
    .body = &logsigmoid_body,
    .saves = "self",
    .backward = [](Backward& b) { b.set(0, op::_logsigmoid_backward(b.grad, b.tensor(0))); },
    .samples = {{"T(3, 4)"}},
});
TS_BODY(logsigmoid_backward, "tt", 't', 0, (TS_FLOATS), T z = exp(negate(abs(b)));
        T part = z / (T(1) + z); return select(a != a, a, a* select(b < T(0), T(1) - part, part));)
TS_OP({
    .schema = "_logsigmoid_backward(Tensor grad, Tensor self) -> Tensor",
    .kind = Kind::kPointwise,
    .forms = kFunction,
    .body = &logsigmoid_backward_body,
    .saves = "grad:self self",
    .backward =
        [](Backward& b) {
          const TensorBase& x = b.tensor(1);
          if (b.wants(0)) b.set(0, op::_logsigmoid_backward(b.grad, x));
          if (!b.wants(1)) return;
          TensorBase s = op::sigmoid(x), bend = op::mul(op::sub(s, 1), s);
          b.set(1, op::mul(op::mul(b.grad, b.tensor(0)), bend));
        },
});

TS_BODY(hardswish, "t", 't', 0, (TS_FLOATS), T x = a + T(3); x = select(x < T(0), T(0), x);
        return a * select(x > T(6), T(6), x) / T(6);)
TS_OP({
    .schema = "nn.functional.hardswish(Tensor self) -> Tensor",
    .doc = "x * hardsigmoid(x).",
    .example = "torch.nn.functional.hardswish(torch.tensor([-4.0, 0.0, 1.5]))",
    .kind = Kind::kPointwise,
    .forms = kFunction | kInplace,
    .body = &hardswish_body,
    .saves = "self",
    .backward = [](Backward& b) { b.set(0, op::_hardswish_backward(b.grad, b.tensor(0))); },
    .samples = {{"T(3, 4)"}},
});
TS_BODY(hardswish_backward, "tt", 't', 0, (TS_FLOATS), T slope = a * (b / T(3) + T(0.5));
        return select(b <= T(-3), T(0), select(b < T(3), slope, a));)
TS_OP({
    .schema = "_hardswish_backward(Tensor grad, Tensor self) -> Tensor",
    .kind = Kind::kPointwise,
    .forms = kFunction,
    .body = &hardswish_backward_body,
    .saves = "grad:self self",
    .backward =
        [](Backward& b) {
          const TensorBase& x = b.tensor(1);
          if (b.wants(0)) b.set(0, op::_hardswish_backward(b.grad, x));
          if (!b.wants(1)) return;
          TensorBase curved = op::logical_and(op::gt(x, -3), op::lt(x, 3));
          TensorBase g = op::div(op::mul(b.grad, b.tensor(0)), 3);
          b.set(1, op::where(curved, g, 0));
        },
});

TS_OP({
    .schema = "nn.functional.softsign(Tensor self) -> Tensor",
    .doc = "x / (1 + |x|).",
    .example = "torch.nn.functional.softsign(torch.tensor([-1.0, 0.0, 3.0]))",
    .run = [](const Call& c) -> Outputs {
      return op::div(c.tensor(0), op::add(op::abs(c.tensor(0)), 1));
    },
    .samples = {{"T(3, 4)"}},
});

TS_OP({
    .schema = "nn.functional.tanhshrink(Tensor self) -> Tensor",
    .doc = "x - tanh(x).",
    .example = "torch.nn.functional.tanhshrink(torch.tensor([-1.0, 0.0, 3.0]))",
    .run = [](const Call& c) -> Outputs { return op::sub(c.tensor(0), op::tanh(c.tensor(0))); },
    .samples = {{"T(3, 4)"}},
});

}  // namespace tessera
