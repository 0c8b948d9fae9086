#include <algorithm>
#include <cmath>
#include <limits>

#include "tessera/gen/binary.h"
#include "tessera/gen/linalg.h"
#include "tessera/gen/optim.h"
#include "tessera/gen/reduce.h"
#include "tessera/ops/loops.h"
#include "tessera/ops/optim/steps.h"

namespace tessera {

// The gradient over the root of its variance, which is self / scale but not below eps squared.
TS_BODY(adafactor_update, "ttt", 't', 1, (TS_FLOATS), T variance = a / select(b < s0, s0, b);
        return c / sqrt(select(variance < s0 * s0, s0* s0, variance));)
TS_OP({
    .schema = "_adafactor_update(Tensor self, Tensor scale, Tensor grad, float eps) -> Tensor",
    .kind = Kind::kPointwise,
    .types = TypeRule::kSame,
    .forms = kFunction,
    .body = &adafactor_update_body,
    .not_differentiable = true,
});
TS_BODY(adafactor_plain, "tt", 't', 1, (TS_FLOATS),
        return b / sqrt(select(a < s0 * s0, s0* s0, a));)
TS_OP({
    .schema = "_adafactor_plain(Tensor self, Tensor grad, float eps) -> Tensor",
    .kind = Kind::kPointwise,
    .types = TypeRule::kSame,
    .forms = kFunction,
    .body = &adafactor_plain_body,
    .not_differentiable = true,
});
// By how much the parameter moves: its own size times the rate, less where the update is large.
TS_BODY(adafactor_size, "tt", 't', 3, (TS_FLOATS), T own = sqrt(a); T large = sqrt(b) / s2;
        return select(own < s0, s0, own) * s1 / select(large < T(1), T(1), large);)
TS_OP({
    .schema = "_adafactor_size(Tensor self, Tensor update, float eps, float rate, "
              "float threshold) -> Tensor",
    .kind = Kind::kPointwise,
    .types = TypeRule::kSame,
    .forms = kFunction,
    .body = &adafactor_size_body,
    .not_differentiable = true,
});

namespace {

// The mean of squares, of all elements or along one dimension, which stays.
TensorBase mean_square(const TensorBase& t) { return op::mean(op::mul(t, t)); }
TensorBase mean_square(const TensorBase& t, int64_t dim) {
  return op::mean(op::mul(t, t), std::span<const int64_t>(&dim, 1), true);
}

double smallest_difference(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return std::numeric_limits<double>::epsilon();
    case DType::kFloat16:
      return 0x1p-10;
    case DType::kBFloat16:
      return 0x1p-7;
    default:
      return std::numeric_limits<float>::epsilon();
  }
}

}  // namespace

TS_OP({
    .schema = "_adafactor_step_(Tensor[] params, Tensor[] grads, Tensor[] rows, "
              "Tensor[] columns, Tensor[] steps, *, float lr, float beta2_decay, float eps1, "
              "float eps2, float d, float weight_decay=0.0, bool maximize=False) -> Tensor",
    .doc = "One step of Adafactor over all parameters. Of a parameter with less than two "
           "dimensions rows and columns are both its variance; eps1 below 0 means the dtype's.",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      auto params = c.tensors(0);
      optim::check_lists(c, {1, 2, 3, 4});
      double lr = c.number(5);
      for (size_t i = 0; i < params.size(); ++i) {
        const TensorBase& p = params[i];
        double step = optim::count_step(c.tensors(4)[i]);
        TensorBase g = optim::gradient(c.tensors(1)[i], p, c.flag(11), 0);
        double share = std::pow(step, c.number(6));
        double eps1 = c.number(7) < 0 ? smallest_difference(p.dtype()) : c.number(7);
        TensorBase own = mean_square(p);
        if (c.number(10) != 0) op::mul_(p, Scalar(1 - lr * c.number(10)));
        const TensorBase& rows = c.tensors(2)[i];
        const TensorBase& columns = c.tensors(3)[i];
        TensorBase update;
        if (p.dim() > 1) {
          op::_optim_toward_(rows, mean_square(g, -1), share);
          op::_optim_toward_(columns, mean_square(g, -2), share);
          int64_t dim = -2;
          TensorBase scale = op::mean(rows, std::span<const int64_t>(&dim, 1), true);
          update = op::_adafactor_update(op::matmul(rows, columns), scale, g, eps1);
        } else {
          op::_optim_toward_(rows, op::mul(g, g), share);
          update = op::_adafactor_plain(rows, g, eps1);
        }
        double rate = std::min(lr, 1 / std::sqrt(step));
        TensorBase size =
            op::_adafactor_size(own, mean_square(update), c.number(8), rate, c.number(9));
        op::add_(p, op::mul(update, size), Scalar(-1.0));
      }
      return params.empty() ? TensorBase() : params[0];
    },
});

}  // namespace tessera
