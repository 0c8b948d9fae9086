// Rprop, which looks at signs only, and averaged gradient descent.
#include <algorithm>
#include <cmath>

#include "tessera/gen/binary.h"
#include "tessera/gen/optim.h"
#include "tessera/gen/unary.h"
#include "tessera/ops/loops.h"
#include "tessera/ops/optim/steps.h"

namespace tessera {

// The size of a step: larger where two gradients have the same sign, smaller where they differ.
TS_BODY(rprop_scale, "ttt", 't', 2, (TS_FLOATS), T product = b * c;
        return a * select(product > T(0), s1, select(product < T(0), s0, T(1)));)
TS_OP({
    .schema = "_rprop_scale(Tensor self, Tensor grad, Tensor before, float eta_minus, "
              "float eta_plus) -> Tensor",
    .kind = Kind::kPointwise,
    .types = TypeRule::kSame,
    .forms = kFunction | kInplace,
    .body = &rprop_scale_body,
    .not_differentiable = true,
});
TS_BODY(rprop_keep_within, "t", 't', 2, (TS_FLOATS), T low = select(a < s0, s0, a);
        return select(low > s1, s1, low);)
TS_OP({
    .schema = "_rprop_keep_within(Tensor self, float low, float high) -> Tensor",
    .kind = Kind::kPointwise,
    .types = TypeRule::kSame,
    .forms = kFunction | kInplace,
    .body = &rprop_keep_within_body,
    .not_differentiable = true,
});
// The gradient, and 0 where its sign has changed.
TS_BODY(rprop_effective, "tt", 't', 0, (TS_FLOATS), return select(a * b < T(0), T(0), a);)
TS_OP({
    .schema = "_rprop_effective(Tensor grad, Tensor before) -> Tensor",
    .kind = Kind::kPointwise,
    .types = TypeRule::kSame,
    .forms = kFunction,
    .body = &rprop_effective_body,
    .not_differentiable = true,
});
TS_BODY(rprop_descend, "ttt", 't', 0, (TS_FLOATS),
        return a - c * select(b > T(0), T(1), select(b < T(0), T(-1), T(0)));)
TS_OP({
    .schema = "_rprop_descend(Tensor self, Tensor grad, Tensor size) -> Tensor",
    .kind = Kind::kPointwise,
    .types = TypeRule::kSame,
    .forms = kFunction | kInplace,
    .body = &rprop_descend_body,
    .not_differentiable = true,
});

TS_OP({
    .schema = "_rprop_step_(Tensor[] params, Tensor[] grads, Tensor[] prevs, "
              "Tensor[] step_sizes, Tensor[] steps, *, float eta_minus, float eta_plus, "
              "float size_min, float size_max, bool maximize=False) -> Tensor",
    .doc = "One step of Rprop over all parameters.",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      if (optim::any_complex(c)) return optim::step_of_reals(c);
      auto params = c.tensors(0);
      optim::check_lists(c, {1, 2, 3, 4});
      for (size_t i = 0; i < params.size(); ++i) {
        optim::count_step(c.tensors(4)[i]);
        TensorBase g = optim::gradient(c.tensors(1)[i], params[i], c.flag(9), 0);
        const TensorBase& before = c.tensors(2)[i];
        const TensorBase& size = c.tensors(3)[i];
        op::_rprop_scale_(size, g, before, c.number(5), c.number(6));
        op::_rprop_keep_within_(size, c.number(7), c.number(8));
        TensorBase effective = op::_rprop_effective(g, before);
        op::_rprop_descend_(params[i], effective, size);
        copy_into(before, effective, false);
      }
      return params.empty() ? TensorBase() : params[0];
    },
});

TS_BODY(asgd_descend, "tt", 't', 2, (TS_FLOATS), return a * s0 - s1 * b;)
TS_OP({
    .schema = "_asgd_descend(Tensor self, Tensor grad, float keep, float size) -> Tensor",
    .kind = Kind::kPointwise,
    .types = TypeRule::kSame,
    .forms = kFunction | kInplace,
    .body = &asgd_descend_body,
    .not_differentiable = true,
});
TS_BODY(asgd_average, "tt", 't', 1, (TS_FLOATS), return a + (b - a) * s0;)
TS_OP({
    .schema = "_asgd_average(Tensor self, Tensor param, float share) -> Tensor",
    .kind = Kind::kPointwise,
    .types = TypeRule::kSame,
    .forms = kFunction | kInplace,
    .body = &asgd_average_body,
    .not_differentiable = true,
});

TS_OP({
    .schema = "_asgd_step_(Tensor[] params, Tensor[] grads, Tensor[] axs, Tensor[] etas, "
              "Tensor[] mus, Tensor[] steps, *, float lr, float lambd, float alpha, float t0, "
              "float weight_decay=0.0, bool maximize=False) -> Tensor",
    .doc = "One step of averaged stochastic gradient descent over all parameters.",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      if (optim::any_complex(c)) return optim::step_of_reals(c);
      auto params = c.tensors(0);
      optim::check_lists(c, {1, 2, 3, 4, 5});
      double lr = c.number(6), lambd = c.number(7), alpha = c.number(8), t0 = c.number(9);
      for (size_t i = 0; i < params.size(); ++i) {
        const TensorBase& p = params[i];
        double step = optim::count_step(c.tensors(5)[i]);
        TensorBase g = optim::gradient(c.tensors(1)[i], p, c.flag(11), c.number(10));
        double eta = optim::read_number(c.tensors(3)[i]), mu = optim::read_number(c.tensors(4)[i]);
        op::_asgd_descend_(p, g, 1 - lambd * eta, eta);
        if (mu == 1)
          copy_into(c.tensors(2)[i], p, false);
        else
          op::_asgd_average_(c.tensors(2)[i], p, mu);
        optim::write_number(c.tensors(3)[i], lr / std::pow(1 + lambd * lr * step, alpha));
        optim::write_number(c.tensors(4)[i], 1 / std::max(1.0, step - t0));
      }
      return params.empty() ? TensorBase() : params[0];
    },
});

}  // namespace tessera
