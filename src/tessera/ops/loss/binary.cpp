#include "tessera/gen/binary.h"
#include "reduction.h"
#include "tessera/gen/bitwise.h"
#include "tessera/gen/loss.h"
#include "tessera/gen/reduce.h"
#include "tessera/gen/ternary.h"
#include "tessera/gen/unary.h"
#include "tessera/ops/loops.h"

namespace tessera {

// Logarithms of probabilities are held at -100, as in PyTorch.
TS_BODY(bce, "tt", 't', 0, (TS_FLOATS),
        return (b - T(1)) * max(log1p(negate(a)), T(-100)) - b * max(log(a), T(-100));)
TS_OP({
    .schema = "_bce(Tensor self, Tensor target) -> Tensor",
    .kind = Kind::kPointwise,
    .forms = kFunction,
    .body = &bce_body,
    .saves = "self target",
    .backward =
        [](Backward& b) {
          const TensorBase &x = b.tensor(0), &t = b.tensor(1);
          if (b.wants(0)) b.set(0, op::_bce_backward(b.grad, x, t));
          if (!b.wants(1)) return;
          TensorBase odds = op::sub(op::clamp(op::log1p(op::neg(x)), Scalar(-100)),
                                    op::clamp(op::log(x), Scalar(-100)));
          b.set(1, op::mul(b.grad, odds));
        },
});
TS_BODY(bce_backward, "ttt", 't', 0, (TS_FLOATS),
        return a * (b - c) / max((T(1) - b) * b, T(1e-12));)
TS_OP({
    .schema = "_bce_backward(Tensor grad, Tensor self, Tensor target) -> Tensor",
    .kind = Kind::kPointwise,
    .forms = kFunction,
    .body = &bce_backward_body,
    .saves = "grad self target",
    .backward =
        [](Backward& b) {
          const TensorBase &x = b.tensor(1), &t = b.tensor(2);
          if (b.wants(0)) b.set(0, op::_bce_backward(b.grad, x, t));
          if (!b.wants(1) && !b.wants(2)) return;
          TensorBase spread = op::clamp(op::mul(op::rsub(x, 1), x), Scalar(1e-12));
          TensorBase g = op::mul(b.grad, b.tensor(0));
          if (b.wants(1)) {  // (x^2 - 2 x t + t) / (x (1 - x))^2
            TensorBase top = op::add(op::mul(x, op::sub(x, op::mul(t, 2))), t);
            b.set(1, op::mul(g, op::div(op::div(top, spread), spread)));
          }
          if (b.wants(2)) b.set(2, op::neg(op::div(g, spread)));
        },
});

TS_OP({
    .schema = "nn.functional.binary_cross_entropy(Tensor input, Tensor target, Tensor? "
              "weight=None, bool? size_average=None, bool? reduce=None, str reduction=\"mean\") -> "
              "Tensor",
    .doc = "The cross entropy of probabilities of being 1 against targets between 0 and 1.",
    .example = "torch.nn.functional.binary_cross_entropy(torch.tensor([0.8]), torch.tensor([1.0]))",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase &x = c.tensor(0), &t = c.tensor(1);
      const Reduction how = reduction_of(c, 3, 4, 5);
      TS_CHECK_VALUE(x.sizes() == t.sizes(), "Using a target size (", t.sizes(),
                     ") that is different to the input size (", x.sizes(),
                     ") is deprecated. Please ensure they have the same size.");
      TS_CHECK(x.dtype() == t.dtype(), "Found dtype ", dtype_title(t.dtype()), " but expected ",
               dtype_title(x.dtype()));
      TS_CHECK_IMPLEMENTED(is_floating(x.dtype()), "\"binary_cross_entropy\" not implemented for '",
                           dtype_title(x.dtype()), "'");
      if (x.device().is_cpu() && x.numel() > 0)
        TS_CHECK(host_scalar(op::all(op::logical_and(op::ge(x, 0), op::le(x, 1)))).to_int() != 0,
                 "all elements of input should be between 0 and 1");
      TensorBase losses = op::_bce(x, t);
      if (c.has(2)) losses = op::mul(losses, c.tensor(2));
      return reduced(losses, how);
    },
    .autocast = {Cast::kRefuse, Cast::kFloat32},
    .raises_on_data = true,
});

// log(1 + exp(-x)), without overflow.
TS_BODY(neg_log_sigmoid, "t", 't', 0, (TS_FLOATS),
        return max(negate(a), T(0)) + log1p(exp(negate(abs(a))));)
TS_OP({
    .schema = "_neg_log_sigmoid(Tensor self) -> Tensor",
    .kind = Kind::kPointwise,
    .forms = kFunction,
    .body = &neg_log_sigmoid_body,
    .saves = "self",
    .backward =
        [](Backward& b) { b.set(0, op::neg(op::mul(b.grad, op::sigmoid(op::neg(b.tensor(0)))))); },
});

// (1 - t) x + log(1 + exp(-x)).
TS_BODY(bce_logits, "tt", 't', 0, (TS_FLOATS),
        return (T(1) - b) * a + (max(negate(a), T(0)) + log1p(exp(negate(abs(a)))));)
TS_OP({
    .schema = "_bce_logits(Tensor self, Tensor target) -> Tensor",
    .kind = Kind::kPointwise,
    .forms = kFunction,
    .body = &bce_logits_body,
    .saves = "self target:self",
    .backward =
        [](Backward& b) {
          const TensorBase& x = b.tensor(0);
          if (b.wants(0)) b.set(0, op::mul(b.grad, op::sub(op::sigmoid(x), b.tensor(1))));
          if (b.wants(1)) b.set(1, op::neg(op::mul(b.grad, x)));
        },
});

TS_OP({
    .schema = "nn.functional.binary_cross_entropy_with_logits(Tensor input, Tensor target, Tensor? "
              "weight=None, bool? size_average=None, bool? reduce=None, str reduction=\"mean\", "
              "Tensor? pos_weight=None) -> Tensor",
    .doc = "The cross entropy of the sigmoids of the input against targets between 0 and 1.",
    .example = "torch.nn.functional.binary_cross_entropy_with_logits(torch.tensor([0.8]), "
               "torch.tensor([1.0]))",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase &x = c.tensor(0), &t = c.tensor(1);
      const Reduction how = reduction_of(c, 3, 4, 5);
      TS_CHECK_VALUE(x.sizes() == t.sizes(), "Target size (", t.sizes(),
                     ") must be the same as input size (", x.sizes(), ")");
      TS_CHECK_IMPLEMENTED(t.dtype() != DType::kBool,
                           "Subtraction, the `-` operator, with two bool tensors is not supported. "
                           "Use the `^` or `logical_xor()` operator instead.");
      TS_CHECK(is_differentiable(t.dtype()) || !is_differentiable(x.dtype()), "result type ",
               dtype_title(x.dtype()), " can't be cast to the desired output type ",
               dtype_title(t.dtype()));
      TS_CHECK_IMPLEMENTED(is_differentiable(x.dtype()),
                           "\"log_sigmoid_cpu\" not implemented for '", dtype_title(x.dtype()),
                           "'");
      TensorBase losses;
      if (c.has(6)) {
        TensorBase factor = op::add(op::mul(op::sub(c.tensor(6), 1), t), 1);
        losses = op::add(op::mul(op::rsub(t, 1), x), op::mul(factor, op::_neg_log_sigmoid(x)));
      } else {
        losses = op::_bce_logits(x, t);
      }
      if (c.has(2)) losses = op::mul(losses, c.tensor(2));
      return reduced(losses, how);
    },
    .autocast = Autocast::kFloat32,
    .samples = {{"T(3, 4), U(3, 4)"}, {"T(3, 4), U(3, 4), P(4), pos_weight=P(4)"}},
});

TS_OP({
    .schema = "nn.functional.multilabel_soft_margin_loss(Tensor input, Tensor target, Tensor? "
              "weight=None, bool? size_average=None, bool? reduce=None, str reduction=\"mean\") -> "
              "Tensor",
    .doc = "The mean over the last dimension of the cross entropies of sigmoids.",
    .example = "torch.nn.functional.multilabel_soft_margin_loss(torch.tensor([[0.8, -1.0]]), "
               "torch.tensor([[1.0, 0.0]]))",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& x = c.tensor(0);
      const Reduction how = reduction_of(c, 3, 4, 5);
      TensorBase losses = op::_bce_logits(x, c.tensor(1));
      if (c.has(2)) losses = op::mul(losses, c.tensor(2));
      const int64_t last = -1;
      return reduced(op::mean(losses, std::span(&last, 1)), how);
    },
    .autocast = Autocast::kFloat32Gpu,
    .samples = {{"T(3, 4), U(3, 4)"}},
});

TS_OP({
    .schema = "nn.functional.soft_margin_loss(Tensor input, Tensor target, bool? "
              "size_average=None, bool? reduce=None, str reduction=\"mean\") -> Tensor",
    .doc = "log(1 + exp(-target * input)), of targets 1 and -1.",
    .example = "torch.nn.functional.soft_margin_loss(torch.tensor([0.8]), torch.tensor([1.0]))",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      return reduced(op::_neg_log_sigmoid(op::mul(c.tensor(1), c.tensor(0))),
                     reduction_of(c, 2, 3, 4));
    },
    .autocast = Autocast::kFloat32,
    .samples = {{"T(3, 4), U(3, 4)"}},
});

TS_OP({
    .schema = "nn.functional.kl_div(Tensor input, Tensor target, bool? size_average=None, bool? "
              "reduce=None, str reduction=\"mean\", bool log_target=False) -> Tensor",
    .doc = "The Kullback-Leibler divergence of logarithms of probabilities from target "
           "probabilities (or their logarithms).",
    .example = "torch.nn.functional.kl_div(torch.tensor([-1.0]), torch.tensor([0.5]), "
               "reduction='sum')",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase &x = c.tensor(0), &t = c.tensor(1);
      TS_CHECK(is_differentiable(x.dtype()) && is_differentiable(t.dtype()),
               "kl_div: Integral inputs not supported.");
      const bool batch = !c.has(2) && !c.has(3) && c.text(4) == "batchmean";
      const Reduction how = batch ? Reduction::kSum : reduction_of(c, 2, 3, 4);
      TensorBase losses =
          c.flag(5) ? op::mul(op::exp(t), op::sub(t, x)) : op::sub(op::xlogy(t, t), op::mul(t, x));
      TensorBase out = reduced(losses, how);
      return batch && x.dim() > 0 ? op::div(out, Scalar(x.size(0))) : out;
    },
    .autocast = Autocast::kFloat32,
    .samples = {{"T(3, 4), P(3, 4)"}, {"T(3, 4), T(3, 4), reduction='batchmean', log_target=True"}},
});

}  // namespace tessera
