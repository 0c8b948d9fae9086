#include "tessera/gen/binary.h"
#include "tessera/gen/unary.h"

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
      auto params = c.tensors(0);
      auto grads = c.tensors(1);
      auto momenta = c.tensors(2);
      double lr = c.number(3), momentum = c.number(4), dampening = c.number(5);
      double decay = c.number(6);
      TS_CHECK(
          params.size() == grads.size() && (momenta.empty() || momenta.size() == params.size()),
          "_sgd_step_: ", params.size(), " parameters, ", grads.size(), " gradients, ",
          momenta.size(), " momenta");
      for (size_t i = 0; i < params.size(); ++i) {
        const TensorBase& p = params[i];
        TensorBase g = c.flag(8) ? op::neg(grads[i]) : grads[i];
        if (decay != 0) g = op::add(g, p, Scalar(decay));
        if (momentum != 0 && !momenta.empty()) {
          const TensorBase& buffer = momenta[i];
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
