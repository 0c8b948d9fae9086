// The grid that grid_sampler reads by, from affine maps.
#include "tessera/gen/binary.h"
#include "tessera/gen/copy.h"
#include "tessera/gen/creation.h"
#include "tessera/gen/join.h"
#include "tessera/gen/linalg.h"
#include "tessera/gen/resample.h"
#include "tessera/gen/view.h"
#include "tessera/ops/call.h"
#include "tessera/ops/in_dtype.h"

namespace tessera {

namespace {

// From -1 to 1, at the corners or in the middle of pixels; along dimension d of n, last first.
TensorBase axis(const TensorBase& theta, int64_t size, bool corners, const Dims& grid, int d) {
  Dims shape(grid.size(), 1);
  shape[static_cast<size_t>(d)] = size;
  TensorBase t = size <= 1 ? op::zeros({&size, 1}, theta.dtype(), theta.device())
                           : op::linspace(Value(Scalar(-1)), Value(Scalar(1)), size, theta.dtype(),
                                          theta.device());
  if (!corners && size > 1)
    t = op::mul(t, Scalar(static_cast<double>(size - 1) / static_cast<double>(size)));
  t = in_dtype(t, theta.dtype());  // of integers
  return op::expand(op::view(t, shape.span()), grid.span());
}

}  // namespace

TS_OP({
    .schema = "affine_grid_generator(Tensor theta, int[] size, bool align_corners) -> Tensor",
    .doc = "Where each pixel of an output of this size (N, C, ..., H, W) comes from, under the "
           "affine maps theta: places from -1 to 1, for grid_sampler.",
    .example = "torch.affine_grid_generator(torch.eye(2, 3)[None], [1, 1, 2, 2], True)",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& theta = c.tensor(0);
      const Dims size = c.ints(1);
      const int n = size.ndim() - 2;
      TS_CHECK(n == 2 || n == 3,
               "AffineGridGenerator needs 4d (spatial) or 5d (volumetric) inputs.");
      TS_CHECK(theta.dim() == 3 && theta.size(0) == size[0] && theta.size(1) == n &&
                   theta.size(2) == n + 1,
               "Expected a batch of ", n, "D affine matrices of shape Nx", n, "x", n + 1,
               " for size ", size, ". Got ", theta.sizes(), ".");
      Dims grid;
      for (int d = 2; d < size.ndim(); ++d) grid.push_back(size[static_cast<size_t>(d)]);
      std::vector<TensorBase> axes;
      int64_t points = 1;
      for (int d = n - 1; d >= 0; --d) {
        axes.push_back(axis(theta, grid[static_cast<size_t>(d)], c.flag(2), grid, d));
        points *= grid[static_cast<size_t>(d)];
      }
      axes.push_back(op::ones(grid.span(), theta.dtype(), theta.device()));
      const Dims flat{points, n + 1};
      TensorBase base = op::reshape(op::stack(axes, -1), flat.span());
      TensorBase out = op::matmul(base, op::transpose(theta, 1, 2));
      Dims shape{size[0]};
      for (int64_t s : grid) shape.push_back(s);
      shape.push_back(n);
      return op::view(out, shape.span());
    },
    .samples = {{"T(2, 2, 3), [2, 1, 3, 4], False"}, {"T(1, 3, 4), [1, 2, 2, 1, 3], True"}},
});

}  // namespace tessera
