// Adam and those that differ from it by a term.
#include <algorithm>
#include <cmath>

#include "tessera/gen/binary.h"
#include "tessera/gen/copy.h"
#include "tessera/gen/optim.h"
#include "tessera/gen/unary.h"
#include "tessera/ops/loops.h"
#include "tessera/ops/optim/steps.h"

namespace tessera {

namespace {

// Both moments, each of which forgets by its beta.
void update_moments(const TensorBase& mean, const TensorBase& square, const TensorBase& g,
                    double beta1, double beta2) {
  op::_optim_toward_(mean, g, 1 - beta1);
  op::_optim_add_square_(square, g, beta2, 1 - beta2);
}

// The gradient, with the decay in it; or the decayed parameter.
TensorBase decayed(const TensorBase& grad, const TensorBase& p, bool maximize, double decay,
                   bool decoupled, double lr) {
  if (decoupled && decay != 0) op::mul_(p, Scalar(1 - lr * decay));
  return optim::gradient(grad, p, maximize, decoupled ? 0 : decay);
}

// Is the count of steps on the parameter's device (capturable=True)? Then the host never looks at
// it, and a captured step counts at each replay.
bool counts_on_device(const TensorBase& step, const TensorBase& p) {
  return step.device().is_cuda() && step.device() == p.device() && is_floating(step.dtype()) &&
         (p.dtype() == DType::kFloat32 || p.dtype() == DType::kFloat64);
}

// _optim_descend_ with factors of the count, in double until they meet the parameter.
void descend_on_device(const TensorBase& p, const TensorBase& mean, const TensorBase& square,
                       const TensorBase& step, double lr, double beta1, double beta2, double eps) {
  TensorBase n = op::_to_dtype(step, DType::kFloat64);
  auto rest = [&](double beta) { return op::rsub(op::pow(Scalar(beta), n), Scalar(1)); };
  TensorBase size = op::_to_dtype(op::div(Scalar(lr), rest(beta1)), p.dtype());
  TensorBase root = op::_to_dtype(op::sqrt(rest(beta2)), p.dtype());
  TensorBase under = op::add(op::div(op::sqrt(square), root), Scalar(eps));
  op::sub_(p, op::div(op::mul(mean, size), under));
}

TensorBase first_of(std::span<const TensorBase> params) {
  return params.empty() ? TensorBase() : params[0];
}

}  // namespace

TS_BODY(optim_larger, "tt", 't', 0, (TS_FLOATS), return max_nan(a, b);)
TS_OP({
    .schema = "_optim_larger(Tensor self, Tensor other) -> Tensor",
    .kind = Kind::kPointwise,
    .types = TypeRule::kSame,
    .forms = kFunction | kInplace,
    .body = &optim_larger_body,
    .not_differentiable = true,
});

TS_OP({
    .schema = "_adam_step_(Tensor[] params, Tensor[] grads, Tensor[] exp_avgs, "
              "Tensor[] exp_avg_sqs, Tensor[] max_exp_avg_sqs, Tensor[] steps, *, float lr, "
              "float beta1, float beta2, float eps, float weight_decay=0.0, "
              "bool decoupled=False, bool maximize=False) -> Tensor",
    .doc = "One step of Adam over all parameters; with decoupled, of AdamW. max_exp_avg_sqs is "
           "empty without amsgrad.",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      if (optim::any_complex(c)) return optim::step_of_reals(c);
      auto params = c.tensors(0);
      optim::check_lists(c, {1, 2, 3, 4, 5});
      double lr = c.number(6), beta1 = c.number(7), beta2 = c.number(8), eps = c.number(9);
      for (size_t i = 0; i < params.size(); ++i) {
        const TensorBase& p = params[i];
        const TensorBase& count = c.tensors(5)[i];
        const bool on_device = counts_on_device(count, p);
        double step = 0;
        if (on_device)
          op::add_(count, Scalar(1));
        else
          step = optim::count_step(count);
        TensorBase g = decayed(c.tensors(1)[i], p, c.flag(12), c.number(10), c.flag(11), lr);
        const TensorBase& mean = c.tensors(2)[i];
        TensorBase square = c.tensors(3)[i];
        update_moments(mean, square, g, beta1, beta2);
        if (!c.tensors(4).empty()) square = op::_optim_larger_(c.tensors(4)[i], square);
        if (on_device) {
          descend_on_device(p, mean, square, count, lr, beta1, beta2, eps);
          continue;
        }
        double size = lr / (1 - std::pow(beta1, step));
        op::_optim_descend_(p, mean, square, size, std::sqrt(1 - std::pow(beta2, step)), eps);
      }
      return first_of(params);
    },
});

TS_BODY(optim_infinity, "tt", 't', 2, (TS_FLOATS), return max_nan(a * s0, abs(b) + s1);)
TS_OP({
    .schema = "_optim_infinity(Tensor self, Tensor grad, float keep, float eps) -> Tensor",
    .kind = Kind::kPointwise,
    .types = TypeRule::kSame,
    .forms = kFunction | kInplace,
    .body = &optim_infinity_body,
    .not_differentiable = true,
});
TS_BODY(optim_ratio, "ttt", 't', 1, (TS_FLOATS), return a - s0 * b / c;)
TS_OP({
    .schema = "_optim_ratio(Tensor self, Tensor over, Tensor under, float size) -> Tensor",
    .kind = Kind::kPointwise,
    .types = TypeRule::kSame,
    .forms = kFunction | kInplace,
    .body = &optim_ratio_body,
    .not_differentiable = true,
});

TS_OP({
    .schema = "_adamax_step_(Tensor[] params, Tensor[] grads, Tensor[] exp_avgs, "
              "Tensor[] exp_infs, Tensor[] steps, *, float lr, float beta1, float beta2, "
              "float eps, float weight_decay=0.0, bool maximize=False) -> Tensor",
    .doc = "One step of Adamax over all parameters.",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      if (optim::any_complex(c)) return optim::step_of_reals(c);
      auto params = c.tensors(0);
      optim::check_lists(c, {1, 2, 3, 4});
      double lr = c.number(5), beta1 = c.number(6);
      for (size_t i = 0; i < params.size(); ++i) {
        double step = optim::count_step(c.tensors(4)[i]);
        TensorBase g = optim::gradient(c.tensors(1)[i], params[i], c.flag(10), c.number(9));
        const TensorBase& mean = c.tensors(2)[i];
        const TensorBase& infinity = c.tensors(3)[i];
        op::_optim_toward_(mean, g, 1 - beta1);
        op::_optim_infinity_(infinity, g, c.number(7), c.number(8));
        op::_optim_ratio_(params[i], mean, infinity, lr / (1 - std::pow(beta1, step)));
      }
      return first_of(params);
    },
});

// self - (of_grad * grad + of_mean * mean) / (sqrt(square) + eps).
TS_BODY(optim_nesterov, "tttt", 't', 3, (TS_FLOATS), return a - (s0 * b + s1 * c) / (sqrt(d) + s2);)
TS_OP({
    .schema = "_optim_nesterov(Tensor self, Tensor grad, Tensor mean, Tensor square, "
              "float of_grad, float of_mean, float eps) -> Tensor",
    .kind = Kind::kPointwise,
    .types = TypeRule::kSame,
    .forms = kFunction | kInplace,
    .body = &optim_nesterov_body,
    .not_differentiable = true,
});

TS_OP({
    .schema = "_nadam_step_(Tensor[] params, Tensor[] grads, Tensor[] exp_avgs, "
              "Tensor[] exp_avg_sqs, Tensor[] mu_products, Tensor[] steps, *, float lr, "
              "float beta1, float beta2, float eps, float weight_decay=0.0, "
              "float momentum_decay=0.004, bool decoupled=False, bool maximize=False) -> Tensor",
    .doc = "One step of NAdam over all parameters.",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      if (optim::any_complex(c)) return optim::step_of_reals(c);
      auto params = c.tensors(0);
      optim::check_lists(c, {1, 2, 3, 4, 5});
      double lr = c.number(6), beta1 = c.number(7), beta2 = c.number(8), eps = c.number(9);
      double momentum_decay = c.number(11);
      auto momentum = [&](double step) {
        return beta1 * (1 - 0.5 * std::pow(0.96, step * momentum_decay));
      };
      for (size_t i = 0; i < params.size(); ++i) {
        const TensorBase& p = params[i];
        double step = optim::count_step(c.tensors(5)[i]);
        TensorBase g = decayed(c.tensors(1)[i], p, c.flag(13), c.number(10), c.flag(12), lr);
        double mu = momentum(step), next_mu = momentum(step + 1);
        double product = optim::scale_number(c.tensors(4)[i], mu);
        const TensorBase& mean = c.tensors(2)[i];
        const TensorBase& square = c.tensors(3)[i];
        update_moments(mean, square, g, beta1, beta2);
        // sqrt(square / b) + eps = (sqrt(square) + eps * root) / root, with root = sqrt(b).
        double root = std::sqrt(1 - std::pow(beta2, step));
        double of_grad = lr * (1 - mu) / (1 - product) * root;
        double of_mean = lr * next_mu / (1 - product * next_mu) * root;
        op::_optim_nesterov_(p, g, mean, square, of_grad, of_mean, eps * root);
      }
      return first_of(params);
    },
});

TS_OP({
    .schema = "_radam_step_(Tensor[] params, Tensor[] grads, Tensor[] exp_avgs, "
              "Tensor[] exp_avg_sqs, Tensor[] steps, *, float lr, float beta1, float beta2, "
              "float eps, float weight_decay=0.0, bool decoupled=False, "
              "bool maximize=False) -> Tensor",
    .doc = "One step of RAdam over all parameters.",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      if (optim::any_complex(c)) return optim::step_of_reals(c);
      auto params = c.tensors(0);
      optim::check_lists(c, {1, 2, 3, 4});
      double lr = c.number(5), beta1 = c.number(6), beta2 = c.number(7), eps = c.number(8);
      double limit = 2 / (1 - beta2) - 1;
      for (size_t i = 0; i < params.size(); ++i) {
        const TensorBase& p = params[i];
        double step = optim::count_step(c.tensors(4)[i]);
        TensorBase g = decayed(c.tensors(1)[i], p, c.flag(11), c.number(9), c.flag(10), lr);
        const TensorBase& mean = c.tensors(2)[i];
        const TensorBase& square = c.tensors(3)[i];
        update_moments(mean, square, g, beta1, beta2);
        double power = std::pow(beta2, step);
        double size = lr / (1 - std::pow(beta1, step));
        // How many samples the mean of squares stands for; below 5 its variance is not known.
        double length = limit - 2 * step * power / (1 - power);
        if (length <= 5) {
          op::add_(p, mean, Scalar(-size));
          continue;
        }
        double rect =
            std::sqrt((length - 4) * (length - 2) * limit / ((limit - 4) * (limit - 2) * length));
        op::_optim_descend_(p, mean, square, size * rect * std::sqrt(1 - power), 1, eps);
      }
      return first_of(params);
    },
});

}  // namespace tessera
