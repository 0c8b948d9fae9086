// Optimizers that divide by a mean or a sum of squares: RMSprop, Adagrad, Adadelta.
#include "tessera/gen/binary.h"
#include "tessera/gen/optim.h"
#include "tessera/ops/loops.h"
#include "tessera/ops/optim/steps.h"

namespace tessera {

// self * keep + grad / (sqrt(square - mean^2) + eps), where mean is 0 unless it is centered.
TS_BODY(optim_add_ratio, "ttt", 't', 2, (TS_FLOATS), return a * s0 + b / (sqrt(c) + s1);)
TS_OP({
    .schema = "_optim_add_ratio(Tensor self, Tensor grad, Tensor square, float keep, "
              "float eps) -> Tensor",
    .kind = Kind::kPointwise,
    .types = TypeRule::kSame,
    .forms = kFunction | kInplace,
    .body = &optim_add_ratio_body,
    .not_differentiable = true,
});
TS_BODY(optim_add_centered, "tttt", 't', 3, (TS_FLOATS),
        return a * s0 + s1 * b / (sqrt(c - d * d) + s2);)
TS_OP({
    .schema = "_optim_add_centered(Tensor self, Tensor grad, Tensor square, Tensor mean, "
              "float keep, float size, float eps) -> Tensor",
    .kind = Kind::kPointwise,
    .types = TypeRule::kSame,
    .forms = kFunction | kInplace,
    .body = &optim_add_centered_body,
    .not_differentiable = true,
});

TS_OP({
    .schema = "_rmsprop_step_(Tensor[] params, Tensor[] grads, Tensor[] square_avgs, "
              "Tensor[] grad_avgs, Tensor[] momenta, Tensor[] steps, *, float lr, float alpha, "
              "float eps, float weight_decay=0.0, float momentum=0.0, "
              "bool maximize=False) -> Tensor",
    .doc = "One step of RMSprop over all parameters; grad_avgs is empty unless it is centered, "
           "momenta without momentum.",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      if (optim::any_complex(c)) return optim::step_of_reals(c);
      auto params = c.tensors(0);
      optim::check_lists(c, {1, 2, 3, 4, 5});
      double lr = c.number(6), alpha = c.number(7), eps = c.number(8), momentum = c.number(10);
      bool centered = !c.tensors(3).empty();
      for (size_t i = 0; i < params.size(); ++i) {
        const TensorBase& p = params[i];
        optim::count_step(c.tensors(5)[i]);
        TensorBase g = optim::gradient(c.tensors(1)[i], p, c.flag(11), c.number(9));
        const TensorBase& square = c.tensors(2)[i];
        op::_optim_add_square_(square, g, alpha, 1 - alpha);
        if (centered) op::_optim_toward_(c.tensors(3)[i], g, 1 - alpha);
        if (!c.tensors(4).empty()) {
          const TensorBase& buffer = c.tensors(4)[i];
          if (centered)
            op::_optim_add_centered_(buffer, g, square, c.tensors(3)[i], momentum, 1, eps);
          else
            op::_optim_add_ratio_(buffer, g, square, momentum, eps);
          op::add_(p, buffer, Scalar(-lr));
        } else if (centered) {
          op::_optim_add_centered_(p, g, square, c.tensors(3)[i], 1, -lr, eps);
        } else {
          op::_optim_descend_(p, g, square, lr, 1, eps);
        }
      }
      return params.empty() ? TensorBase() : params[0];
    },
});

TS_OP({
    .schema = "_adagrad_step_(Tensor[] params, Tensor[] grads, Tensor[] sums, Tensor[] steps, *, "
              "float lr, float lr_decay, float eps, float weight_decay=0.0, "
              "bool maximize=False) -> Tensor",
    .doc = "One step of Adagrad over all parameters.",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      if (optim::any_complex(c)) return optim::step_of_reals(c);
      auto params = c.tensors(0);
      optim::check_lists(c, {1, 2, 3});
      for (size_t i = 0; i < params.size(); ++i) {
        double step = optim::count_step(c.tensors(3)[i]);
        TensorBase g = optim::gradient(c.tensors(1)[i], params[i], c.flag(8), c.number(7));
        op::_optim_add_square_(c.tensors(2)[i], g, 1, 1);
        double size = c.number(4) / (1 + (step - 1) * c.number(5));
        op::_optim_descend_(params[i], g, c.tensors(2)[i], size, 1, c.number(6));
      }
      return params.empty() ? TensorBase() : params[0];
    },
});

TS_BODY(optim_delta, "ttt", 't', 1, (TS_FLOATS), return sqrt(a + s0) / sqrt(b + s0) * c;)
TS_OP({
    .schema = "_optim_delta(Tensor deltas, Tensor square, Tensor grad, float eps) -> Tensor",
    .kind = Kind::kPointwise,
    .types = TypeRule::kSame,
    .forms = kFunction,
    .body = &optim_delta_body,
    .not_differentiable = true,
});

TS_OP({
    .schema = "_adadelta_step_(Tensor[] params, Tensor[] grads, Tensor[] square_avgs, "
              "Tensor[] acc_deltas, Tensor[] steps, *, float lr, float rho, float eps, "
              "float weight_decay=0.0, bool maximize=False) -> Tensor",
    .doc = "One step of Adadelta over all parameters.",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      if (optim::any_complex(c)) return optim::step_of_reals(c);
      auto params = c.tensors(0);
      optim::check_lists(c, {1, 2, 3, 4});
      double rho = c.number(6);
      for (size_t i = 0; i < params.size(); ++i) {
        optim::count_step(c.tensors(4)[i]);
        TensorBase g = optim::gradient(c.tensors(1)[i], params[i], c.flag(9), c.number(8));
        const TensorBase& square = c.tensors(2)[i];
        const TensorBase& deltas = c.tensors(3)[i];
        op::_optim_add_square_(square, g, rho, 1 - rho);
        TensorBase delta = op::_optim_delta(deltas, square, g, c.number(7));
        op::_optim_add_square_(deltas, delta, rho, 1 - rho);
        op::add_(params[i], delta, Scalar(-c.number(5)));
      }
      return params.empty() ? TensorBase() : params[0];
    },
});

}  // namespace tessera
