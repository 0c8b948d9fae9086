#include "dims.h"
#include "tessera/gen/binary.h"
#include "tessera/gen/copy.h"
#include "tessera/gen/reduce.h"
#include "tessera/ops/reduce_loops.h"

namespace tessera {

TS_REDUCE(amax, (TS_ALL),
          select(std::is_floating_point_v<T>, T(-std::numeric_limits<T>::infinity()),
                 std::numeric_limits<T>::lowest()),
          a, max_nan(x, y), x)
TS_REDUCE(amin, (TS_ALL),
          select(std::is_floating_point_v<T>, T(std::numeric_limits<T>::infinity()),
                 std::numeric_limits<T>::max()),
          a, min_nan(x, y), x)

namespace {

Outputs extremum(const Call& c, const ReduceBody& body) {
  const TensorBase& self = c.tensor(0);
  Dims dims = reduced_dims(c, 1, self.dim());
  if (self.numel() == 0) {
    TS_CHECK(c.has(1) && !c.args[1].ints.empty(), c.op.name,
             "(): Expected reduction dim to be specified for input.numel() == 0. Specify the "
             "reduction dim with the 'dim' argument.");
    for (int64_t d : dims)
      TS_CHECK_INDEX(self.sizes()[static_cast<size_t>(d)] != 0, c.op.name,
                     "(): Expected reduction dim ", d, " to have non-zero size.");
  }
  return reduce(body, self, dims, c.flag(2), self.dtype());
}

// Shared evenly among the elements that have the extreme value.
void extremum_backward(Backward& b) {
  const Dims& shape = b.shape(0);
  Dims dims = dims_of(b, 1, shape.ndim());
  TensorBase g = with_reduced_dims(b.grad, dims, b.flag(2), shape);
  TensorBase top = with_reduced_dims(b.result, dims, b.flag(2), shape);
  TensorBase mask = op::_to_dtype(op::eq(b.tensor(0), top), b.grad.dtype());
  TensorBase count = op::sum(mask, dims.span(), true, std::nullopt);
  b.set(0, op::mul(op::div(g, count), mask));
}

}  // namespace

TS_OP({
    .schema = "amax(Tensor self, int[1] dim=(), bool keepdim=False) -> Tensor",
    .doc = "The largest element, or those along the given dimensions. Equal ones share the "
           "gradient.",
    .example = "torch.amax(torch.tensor([[1.0, 5.0], [3.0, 4.0]]), dim=1)",
    .kind = Kind::kReduction,
    .forms = kFunction | kMethod | kOut,
    .run = [](const Call& c) { return extremum(c, amax_reduce); },
    .saves = "self result",
    .backward = extremum_backward,
    .exact_out = true,
    .samples = {{"T(3, 4)"}, {"T(3, 4), 0"}, {"T(3, 4), [0, 1], keepdim=True"}, {"T()"}},
});

TS_OP({
    .schema = "amin(Tensor self, int[1] dim=(), bool keepdim=False) -> Tensor",
    .doc = "The smallest element, or those along the given dimensions. Equal ones share the "
           "gradient.",
    .example = "torch.amin(torch.tensor([[1.0, 5.0], [3.0, 4.0]]), dim=1)",
    .kind = Kind::kReduction,
    .forms = kFunction | kMethod | kOut,
    .run = [](const Call& c) { return extremum(c, amin_reduce); },
    .saves = "self result",
    .backward = extremum_backward,
    .exact_out = true,
    .samples = {{"T(3, 4)"}, {"T(3, 4), 0"}, {"T(3, 4), [0, 1], keepdim=True"}, {"T()"}},
});

}  // namespace tessera
