#include "reduction.h"
#include "tessera/gen/binary.h"
#include "tessera/gen/creation.h"
#include "tessera/gen/distance.h"
#include "tessera/gen/index.h"
#include "tessera/gen/loss.h"
#include "tessera/gen/reduce.h"
#include "tessera/gen/ternary.h"
#include "tessera/gen/unary.h"
#include "tessera/gen/view.h"
#include "tessera/ops/loops.h"

namespace tessera {

namespace {

// With weights the mean is the weighted one.
TensorBase weighted(const Call& c, TensorBase losses, int weight, Reduction how) {
  if (!c.has(weight)) return reduced(losses, how);
  TS_CHECK_VALUE(c.tensor(weight).sizes() == c.tensor(0).sizes(),
                 "Weights and input must have the same size.");
  losses = op::mul(losses, c.tensor(weight));
  if (how != Reduction::kMean) return reduced(losses, how);
  return op::div(op::sum(losses), op::sum(c.tensor(weight)));
}

}  // namespace

TS_OP({
    .schema = "nn.functional.mse_loss(Tensor input, Tensor target, bool? size_average=None, bool? "
              "reduce=None, str reduction=\"mean\", Tensor? weight=None) -> Tensor",
    .doc = "The squares of the differences, or their mean or sum.",
    .example = "torch.nn.functional.mse_loss(torch.tensor([1.0, 2.0]), torch.tensor([0.0, 0.0]))",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      TensorBase d = op::sub(c.tensor(0), c.tensor(1));
      return weighted(c, op::mul(d, d), 5, reduction_of(c, 2, 3, 4));
    },
    .autocast = Autocast::kFloat32,
    .samples = {{"T(3, 4), T(3, 4)"}, {"T(3, 4), T(3, 4), reduction='none'"}},
});

TS_OP({
    .schema = "nn.functional.l1_loss(Tensor input, Tensor target, bool? size_average=None, bool? "
              "reduce=None, str reduction=\"mean\", Tensor? weight=None) -> Tensor",
    .doc = "The sizes of the differences, or their mean or sum.",
    .example = "torch.nn.functional.l1_loss(torch.tensor([1.0, 2.0]), torch.tensor([0.0, 0.0]))",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      TensorBase d = op::sub(c.tensor(0), c.tensor(1));
      return weighted(c, op::abs(d), 5, reduction_of(c, 2, 3, 4));
    },
    .autocast = Autocast::kFloat32,
    .samples = {{"T(3, 4), T(3, 4)"}, {"T(3, 4), T(3, 4), reduction='sum'"}},
});

// Quadratic up to s0, then linear: delta * (|d| - delta / 2).
TS_BODY(huber, "t", 't', 1, (TS_FLOATS), T z = abs(a);
        return select(z <= s0, T(0.5) * z * z, s0*(z - T(0.5) * s0));)
TS_OP({
    .schema = "_huber(Tensor self, Scalar delta) -> Tensor",
    .kind = Kind::kPointwise,
    .forms = kFunction,
    .body = &huber_body,
    .saves = "self",
    .backward =
        [](Backward& b) {
          const double delta = b.number(1);
          b.set(0, op::mul(b.grad, op::clamp(b.tensor(0), Scalar(-delta), Scalar(delta))));
        },
});
TS_OP({
    .schema = "nn.functional.huber_loss(Tensor input, Tensor target, str reduction=\"mean\", float "
              "delta=1.0, Tensor? weight=None) -> Tensor",
    .doc = "Half the square of a difference up to delta, then linear.",
    .example = "torch.nn.functional.huber_loss(torch.tensor([0.5, 4.0]), torch.tensor([0.0, 0.0]))",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      TS_CHECK(c.number(3) > 0, "huber_loss does not support non-positive values for delta.");
      TensorBase losses = op::_huber(op::sub(c.tensor(0), c.tensor(1)), c.scalar(3));
      if (c.has(4)) {
        TS_CHECK_VALUE(c.tensor(4).sizes() == c.tensor(0).sizes(),
                       "Weights and input must have the same size.");
        losses = op::mul(losses, c.tensor(4));
      }
      return reduced(losses, reduction_named(c.text(2)));
    },
    .autocast = Autocast::kFloat32,
    .samples = {{"T(3, 4), T(3, 4)"}, {"T(3, 4), T(3, 4), 'none', 2.0"}},
});

TS_BODY(smooth_l1, "t", 't', 1, (TS_FLOATS), T z = abs(a);
        return select(z < s0, T(0.5) * z * z / s0, z - T(0.5) * s0);)
TS_OP({
    .schema = "_smooth_l1(Tensor self, Scalar beta) -> Tensor",
    .kind = Kind::kPointwise,
    .forms = kFunction,
    .body = &smooth_l1_body,
    .saves = "self",
    .backward =
        [](Backward& b) {
          TensorBase slope = op::div(b.tensor(0), b.scalar(1));
          b.set(0, op::mul(b.grad, op::clamp(slope, Scalar(-1), Scalar(1))));
        },
});
TS_OP({
    .schema = "nn.functional.smooth_l1_loss(Tensor input, Tensor target, bool? size_average=None, "
              "bool? reduce=None, str reduction=\"mean\", float beta=1.0) -> Tensor",
    .doc = "Half the square of a difference over beta up to beta, then its size less beta / 2.",
    .example = "torch.nn.functional.smooth_l1_loss(torch.tensor([0.5, 4.0]), torch.tensor([0.0, "
               "0.0]))",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      TS_CHECK(c.number(5) >= 0, "smooth_l1_loss does not support negative values for beta.");
      TensorBase d = op::sub(c.tensor(0), c.tensor(1));
      TensorBase losses = c.number(5) == 0 ? op::abs(d) : op::_smooth_l1(d, c.scalar(5));
      return reduced(losses, reduction_of(c, 2, 3, 4));
    },
    .autocast = Autocast::kFloat32,
    .samples = {{"T(3, 4), T(3, 4)"}, {"T(3, 4), T(3, 4), reduction='none', beta=2.0"}},
});

TS_OP({
    .schema = "nn.functional.poisson_nll_loss(Tensor input, Tensor target, bool log_input=True, "
              "bool full=False, bool? size_average=None, float eps=1e-08, bool? reduce=None, str "
              "reduction=\"mean\") -> Tensor",
    .doc = "The negative log likelihood of counts under Poisson distributions of the given rates "
           "(or their logarithms).",
    .example = "torch.nn.functional.poisson_nll_loss(torch.tensor([0.5]), torch.tensor([2.0]))",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase &x = c.tensor(0), &t = c.tensor(1);
      TensorBase losses;
      if (c.flag(2))
        losses = op::sub(op::exp(x), op::mul(t, x));
      else
        losses = op::sub(x, op::mul(t, op::log(op::add(x, c.scalar(5)))));
      if (c.flag(3)) {  // Stirling's approximation of log(target!)
        TensorBase log_term = op::mul(op::log(op::mul(t, Scalar(6.283185307179586))), 0.5);
        TensorBase s = op::add(op::sub(op::mul(t, op::log(t)), t), log_term);
        losses = op::add(losses, op::masked_fill(s, op::le(t, 1), Scalar(0)));
      }
      return reduced(losses, reduction_of(c, 4, 6, 7));
    },
    .autocast = Autocast::kFloat32,
    .samples = {{"U(3, 4), P(3, 4)"}, {"P(3, 4), P(3, 4), False, False, reduction='sum'"}},
});

TS_OP({
    .schema = "nn.functional.gaussian_nll_loss(Tensor input, Tensor target, Tensor|Scalar var, "
              "bool full=False, float eps=1e-06, str reduction=\"mean\") -> Tensor",
    .doc = "The negative log likelihood of targets under normal distributions of the given means "
           "and variances.",
    .example = "torch.nn.functional.gaussian_nll_loss(torch.tensor([0.5]), torch.tensor([1.0]), "
               "torch.tensor([2.0]))",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase &x = c.tensor(0), &t = c.tensor(1);
      TensorBase var;
      if (c.args[2].is_tensor()) {
        var = c.tensor(2);
        Dims short_shape = x.sizes();
        if (!short_shape.empty()) short_shape.erase(short_shape.size() - 1);
        if (var.sizes() != x.sizes()) {
          if (var.sizes() == short_shape && x.dim() > 0) {
            var = op::unsqueeze(var, -1);
          } else {
            int64_t differing = 0;
            for (int d = 0; d < x.dim() && x.dim() == var.dim(); ++d)
              if (x.size(d) != var.size(d)) differing += var.size(d);
            TS_CHECK_VALUE(x.dim() == var.dim() && differing == 1, "var is of incorrect size");
          }
        }
        TS_CHECK_VALUE(host_scalar(op::any(op::lt(var, 0))).to_int() == 0,
                       "var has negative entry/entries");
      } else {
        TS_CHECK_VALUE(c.number(2) >= 0, "var has negative entry/entries");
        var = op::mul(op::ones_like(x), c.scalar(2));
      }
      const std::string_view name = c.text(5);
      TS_CHECK_VALUE(name == "none" || name == "mean" || name == "sum", name, " is not valid");
      var = op::_at_least(var, c.scalar(4));
      TensorBase d = op::sub(x, t);
      TensorBase losses = op::mul(op::add(op::log(var), op::div(op::mul(d, d), var)), 0.5);
      if (c.flag(3)) losses = op::add(losses, Scalar(0.9189385332046727));
      return reduced(losses, reduction_named(name));
    },
    .samples = {{"T(3, 4), T(3, 4), P(3, 4)"}, {"T(3, 4), T(3, 4), P(3), True, reduction='none'"}},
});

}  // namespace tessera
