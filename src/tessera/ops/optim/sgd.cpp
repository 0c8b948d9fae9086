#include "tessera/gen/binary.h"
#include "tessera/ops/optim/steps.h"

namespace tessera {

// Composed of in-place pointwise operators: deferred, the step of one parameter is one kernel.
TS_OP({
    .schema = "_sgd_step_(Tensor[] params, Tensor[] grads, Tensor[] momenta, *, float lr, "
              "float momentum=0.0, float dampening=0.0, float weight_decay=0.0, "
              "bool nesterov=False, bool maximize=False, bool first=False) -> Tensor",
    .doc = "One step of stochastic gradient descent over all parameters; momenta is empty without "
           "momentum, and first says that they hold nothing yet.",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      if (optim::any_complex(c)) return optim::step_of_reals(c);
      auto params = c.tensors(0);
      optim::check_lists(c, {1, 2});
      double lr = c.number(3), momentum = c.number(4), dampening = c.number(5);
      for (size_t i = 0; i < params.size(); ++i) {
        const TensorBase& p = params[i];
        TensorBase g = optim::gradient(c.tensors(1)[i], p, c.flag(8), c.number(6));
        if (momentum != 0 && !c.tensors(2).empty()) {
          const TensorBase& buffer = c.tensors(2)[i];
          if (c.flag(9)) {
            copy_into(buffer, g, false);
          } else {
            op::mul_(buffer, Scalar(momentum));
            op::add_(buffer, g, Scalar(1 - dampening));
          }
          g = c.flag(7) ? op::add(g, buffer, Scalar(momentum)) : buffer;
        }
        op::add_(p, g, Scalar(-lr));
      }
      return params.empty() ? TensorBase() : params[0];
    },
});

}  // namespace tessera
