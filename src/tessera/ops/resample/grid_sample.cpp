// Values of an input at the places a grid names.
#include "tessera/gen/copy.h"
#include "tessera/gen/resample.h"
#include "tessera/ops/in_dtype.h"
#include "tessera/ops/valid.h"

namespace tessera {

namespace {

void check(const Op& op, const TensorBase& input, const TensorBase& grid, int64_t mode,
           int64_t padding) {
  int n = input.dim() - 2;
  TS_CHECK(mode >= 0 && mode <= 2, op.name, "(): expected interpolation_mode to be 0, 1 or 2, got ",
           mode);
  TS_CHECK(padding >= 0 && padding <= 2, op.name, "(): expected padding_mode to be 0, 1 or 2, got ",
           padding);
  TS_CHECK(n == 2 || n == 3, op.name,
           "(): expected 4D or 5D input and grid with same number of "
           "dimensions, but got input with sizes ",
           input.sizes(), " and grid with sizes ", grid.sizes());
  TS_CHECK(
      grid.dim() == input.dim(), op.name,
      "(): expected 4D or 5D input and grid with same number of dimensions, but got input with "
      "sizes ",
      input.sizes(), " and grid with sizes ", grid.sizes());
  TS_CHECK(input.sizes()[0] == grid.sizes()[0], op.name,
           "(): expected grid and input to have same batch size, but got input with sizes ",
           input.sizes(), " and grid with sizes ", grid.sizes());
  TS_CHECK(grid.sizes()[n + 1] == n, op.name, "(): expected grid to have size ", n,
           " in last dimension, but got grid with sizes ", grid.sizes());
  TS_CHECK(input.dtype() == grid.dtype(), op.name,
           "(): expected input and grid to have same dtype, but input has ", input.dtype(),
           " and grid has ", grid.dtype());
  for (int d = 2; d < input.dim(); ++d)
    TS_CHECK(input.sizes()[d] > 0, op.name,
             "(): expected input to have non-empty spatial dimensions, but input has sizes ",
             input.sizes(), " with dimension ", d, " being empty");
  TS_CHECK(mode != 2 || n == 2, op.name, "(): bicubic interpolation only supports 4D input");
}

DType compute_dtype(DType t) { return t == DType::kFloat64 ? t : DType::kFloat32; }

TensorBase wide(const TensorBase& t) {
  return op::contiguous(in_dtype(t, compute_dtype(t.dtype())));
}

Outputs sample(const Call& c) {
  const TensorBase &input = c.tensor(0), &grid = c.tensor(1);
  check_same_device(c.op, c.args);
  check(c.op, input, grid, c.integer(2), c.integer(3));
  TS_CHECK_IMPLEMENTED(is_floating(input.dtype()), "\"", c.op.name, "\" not implemented for ",
                       input.dtype());
  Dims size{input.sizes()[0], input.sizes()[1]};
  for (int d = 1; d + 1 < grid.dim(); ++d) size.push_back(grid.sizes()[d]);
  TensorBase out = new_empty(size, compute_dtype(input.dtype()), input.device());
  if (out.numel() > 0) {
    TensorBase inputs[] = {wide(input), wide(grid)};
    int64_t ints[] = {c.integer(2), c.integer(3), c.flag(4)};
    launch("grid_sample", {&out, 1}, inputs, ints);
  }
  return in_dtype(out, input.dtype());
}

void sample_backward(Backward& b) {
  Outputs g = op::_grid_sample_backward(b.grad, b.tensor(0), b.tensor(1), b.integer(2),
                                        b.integer(3), b.flag(4));
  b.set(0, g[0]);
  b.set(1, g[1]);
}

}  // namespace

// Modes: 0 linear, 1 nearest, 2 cubic. Padding: 0 zeros, 1 border, 2 reflection.
TS_OP({
    .schema = "grid_sampler(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, "
              "bool align_corners) -> Tensor",
    .also = "grid_sampler_2d grid_sampler_3d",
    .doc = "Values of input at the places grid names, from -1 to 1 in each dimension.",
    .example = "torch.grid_sampler(torch.ones(1, 1, 2, 2), torch.zeros(1, 1, 1, 2), 0, 0, False)",
    .kind = Kind::kKernel,
    .forms = kFunction,
    .run = sample,
    .saves = "input grid",
    .backward = sample_backward,
    .autocast = {Cast::kPromote, Cast::kFloat32},
    .samples = {{"T(1, 2, 3, 3), U(1, 2, 2, 2), 0, 0, False"}},
});

TS_OP({
    .schema = "_grid_sample_backward(Tensor grad, Tensor input, Tensor grid, "
              "int interpolation_mode, int padding_mode, bool align_corners) -> (Tensor, Tensor)",
    .kind = Kind::kKernel,
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase &input = c.tensor(1), &grid = c.tensor(2);
      check(c.op, input, grid, c.integer(3), c.integer(4));
      check_floating(c, 0);
      check_floating(c, 1);
      Dims expected = grid.sizes();
      expected.insert(1, input.size(1));
      expected.resize(expected.size() - 1);
      check_shape(c, 0, expected.span());
      DType t = compute_dtype(input.dtype());
      TensorBase outs[] = {new_empty(input.sizes(), t, input.device()),
                           new_empty(grid.sizes(), t, input.device())};
      fill(outs[0], Scalar(0));
      fill(outs[1], Scalar(0));
      if (c.tensor(0).numel() > 0) {
        TensorBase inputs[] = {wide(c.tensor(0)), wide(input), wide(grid)};
        int64_t ints[] = {c.integer(3), c.integer(4), c.flag(5)};
        launch("grid_sample_backward", outs, inputs, ints);
      }
      return Outputs(in_dtype(outs[0], input.dtype()), in_dtype(outs[1], grid.dtype()));
    },
    .backward =
        [](Backward&) {
          raise(ErrorKind::kNotImplemented,
                "derivative for aten::grid_sampler_2d_backward is not implemented");
        },
});

}  // namespace tessera
