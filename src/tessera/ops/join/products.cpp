// All pairs and choices of elements.
#include "tessera/gen/binary.h"
#include "tessera/gen/index.h"
#include "tessera/gen/join.h"
#include "tessera/gen/view.h"
#include "tessera/ops/call.h"

namespace tessera {

namespace {

// Positions of all choices of r out of n, in order; by repeating, the same may be taken again.
TensorBase choices(int64_t n, int64_t r, bool repeating, Device device) {
  std::vector<int64_t> found;
  std::vector<int64_t> at(static_cast<size_t>(r));
  int64_t step = repeating ? 0 : 1;
  for (int64_t i = 0; i < r; ++i) at[static_cast<size_t>(i)] = i * step;
  bool more = n > 0 && (repeating || r <= n);
  while (more) {
    found.insert(found.end(), at.begin(), at.end());
    // The last place that can still go up; those after it follow.
    int64_t i = r - 1;
    while (i >= 0 && at[static_cast<size_t>(i)] == n - 1 - (repeating ? 0 : r - 1 - i)) --i;
    more = i >= 0;
    if (!more) break;
    int64_t value = at[static_cast<size_t>(i)] + 1;
    for (int64_t k = i; k < r; ++k) at[static_cast<size_t>(k)] = value + (k - i) * step;
  }
  TensorBase out = new_empty({static_cast<int64_t>(found.size())}, DType::kInt64, Device{});
  std::copy(found.begin(), found.end(), reinterpret_cast<int64_t*>(out.raw()));
  if (device.is_cpu()) return out;
  TensorBase there = new_empty(out.sizes(), out.dtype(), device);
  copy_into(there, out, false);
  return there;
}

}  // namespace

TS_OP({
    .schema = "cartesian_prod(Tensor... tensors) -> Tensor",
    .doc = "All combinations of one element of each vector, as rows.",
    .example = "torch.cartesian_prod(torch.tensor([1, 2]), torch.tensor([3, 4]))",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      std::span<const TensorBase> tensors = c.tensors(0);
      TS_CHECK(!tensors.empty(), "meshgrid expects a non-empty TensorList");
      for (const TensorBase& t : tensors)
        TS_CHECK(t.dim() == 1, "Expect a 1D vector, but got shape ", t.sizes());
      if (tensors.size() == 1) return tensors[0];
      std::vector<TensorBase> columns;
      for (const TensorBase& grid : op::meshgrid(tensors, "ij"))
        columns.push_back(op::flatten(grid));
      return op::stack(columns, 1);
    },
    .samples = {{"T(2), T(3)"}, {"T(2)"}},
});

TS_OP({
    .schema = "combinations(Tensor input, int r=2, bool with_replacement=False) -> Tensor",
    .doc = "All choices of r elements of a vector, in order, as rows.",
    .example = "torch.combinations(torch.tensor([1, 2, 3]))",
    .run = [](const Call& c) -> Outputs {
      const TensorBase& t = c.tensor(0);
      int64_t r = c.integer(1);
      TS_CHECK(t.dim() == 1, "Expect a 1D vector, but got shape ", t.sizes());
      TS_CHECK(r >= 0, "Expect a non-negative number, but got ", r);
      if (r == 0) return new_empty({0}, t.dtype(), t.device());
      TensorBase at = choices(t.numel(), r, c.flag(2), t.device());
      return op::reshape(op::index_select(t, 0, at), Dims{at.numel() / r, r}.span());
    },
    .samples = {{"T(3)"}, {"T(3), 2, True"}, {"T(4), 3"}, {"T(2), 3"}},
});

TS_OP({
    .schema = "kron(Tensor self, Tensor other) -> Tensor",
    .doc = "The Kronecker product: other repeated, multiplied by each element of self.",
    .example = "torch.kron(torch.eye(2), torch.ones(1, 2))",
    .forms = kFunction | kMethod | kOut,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& a = c.tensor(0);
      const TensorBase& b = c.tensor(1);
      int dims = std::max(a.dim(), b.dim());
      Dims as, bs, shape;
      for (int d = 0; d < dims; ++d) {
        int i = d - (dims - a.dim()), j = d - (dims - b.dim());
        int64_t n = i < 0 ? 1 : a.sizes()[static_cast<size_t>(i)];
        int64_t m = j < 0 ? 1 : b.sizes()[static_cast<size_t>(j)];
        as.push_back(n);
        as.push_back(1);
        bs.push_back(1);
        bs.push_back(m);
        shape.push_back(n * m);
      }
      return op::reshape(op::mul(op::reshape(a, as.span()), op::reshape(b, bs.span())),
                         shape.span());
    },
    .samples = {{"T(2, 3), T(3, 1)"}, {"T(2), T(2, 2)"}},
});

}  // namespace tessera
