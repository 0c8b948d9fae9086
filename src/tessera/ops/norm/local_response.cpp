#include "tessera/gen/binary.h"
#include "tessera/gen/pad.h"
#include "tessera/gen/pool.h"
#include "tessera/gen/view.h"
#include "tessera/ops/call.h"

namespace tessera {

TS_OP({
    .schema = "nn.functional.local_response_norm(Tensor input, int size, float alpha=0.0001, float "
              "beta=0.75, float k=1.0) -> Tensor",
    .doc = "Divides each element by (k + alpha * mean of squares)^beta, the mean over `size` "
           "neighbouring channels.",
    .example = "torch.nn.functional.local_response_norm(torch.ones(1, 3, 2), 2).shape",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& x = c.tensor(0);
      const int64_t size = c.integer(1);
      TS_CHECK_VALUE(x.dim() >= 3, "Expected 3D or higher dimensionality input (got ", x.dim(),
                     " dimensions)");
      if (x.numel() == 0) return x;
      // As one channel whose rows are the channels, so that a pool of rows is the mean.
      const int64_t inner = x.numel() / (x.size(0) * x.size(1));
      Dims rows{x.size(0), 1, x.size(1), inner}, kernel{size, 1}, step{1};
      Dims around{0, 0, size / 2, (size - 1) / 2};
      TensorBase squares = op::reshape(op::mul(x, x), rows.span());
      TensorBase mean = op::avg_pool2d(op::pad(squares, around.span()), kernel.span(), step.span());
      mean = op::reshape(mean, x.sizes().span());
      return op::div(x, op::pow(op::add(op::mul(mean, c.scalar(2)), c.scalar(4)), c.scalar(3)));
    },
    .samples = {{"T(2, 5, 3), 2"}, {"T(1, 4, 2, 3), 3, 0.1, 0.5, 2.0"}},
});

}  // namespace tessera
