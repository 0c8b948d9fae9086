// Different values and rows. Python's torch.unique and torch.unique_consecutive choose among these
// (python/tessera/_indexing.py).
#include "tessera/gen/copy.h"
#include "tessera/gen/creation.h"
#include "tessera/gen/index.h"
#include "tessera/gen/view.h"
#include "tessera/ops/call.h"

namespace tessera {

namespace {

// As PyTorch: the result seems to have a gradient, and backward raises.
void refuse_gradient(Backward&) {
  raise(ErrorKind::kNotImplemented, "the derivative of unique is not implemented");
}

// What the kernels fill: n elements or rows in, as many groups as there are out.
struct Found {
  TensorBase first, inverse, counts;
};

Found find_groups(const char* kernel, const TensorBase& x, int64_t n, bool inverse, bool counts,
                  std::span<const int64_t> ints) {
  TS_CHECK_IMPLEMENTED(!x.device().is_meta(),
                       "how many different values there are is not known on the meta device");
  auto room = [&](int64_t size) { return new_empty({size}, DType::kInt64, x.device()); };
  TensorBase out[] = {room(n), room(inverse ? n : 0), room(counts ? n : 0), room(1)};
  launch(kernel, out, {&x, 1}, ints);
  int64_t groups = host_scalar(out[3]).to_int();
  auto front = [&](const TensorBase& t) {
    return op::_contiguous_copy(alias(t, {groups}, {1}, 0));
  };
  return {front(out[0]), out[1], counts ? front(out[2]) : out[2]};
}

void check_ordered(const TensorBase& t) {
  TS_CHECK_IMPLEMENTED(!is_complex(t.dtype()), "\"unique\" not implemented for ", t.dtype());
}

TensorBase no_indices(const TensorBase& self) {
  return new_empty({0}, DType::kInt64, self.device());
}

// Rows of a matrix that has `dim` in front, and all the rest as one.
Outputs unique_along(const TensorBase& self, int dim, bool sorted, bool inverse, bool counts) {
  const size_t d = static_cast<size_t>(dim);
  int64_t n = self.sizes()[d], rest = 1;
  int zero_sizes = 0;
  for (int64_t size : self.sizes()) zero_sizes += size == 0;
  if (n == 0) {
    TS_CHECK(zero_sizes == 1,
             "Number of zero sized dimensions is more than one, so unique cannot be applied ");
    return std::vector<TensorBase>{new_empty(self.sizes(), self.dtype(), self.device()),
                                   no_indices(self), no_indices(self)};
  }
  TS_CHECK(zero_sizes == 0,
           "There are 0 sized dimensions, and they aren't selected, so unique cannot be applied");
  Dims order = {dim};
  for (int i = 0; i < self.dim(); ++i)
    if (i != dim) {
      order.push_back(i);
      rest *= self.sizes()[i];
    }
  TensorBase rows = op::contiguous(op::permute(self, order.span()));
  rows = alias(rows, {n, rest}, {rest, 1}, rows.storage_offset());
  int64_t sort = sorted;
  Found found = find_groups("unique_rows", rows, n, inverse, counts, {&sort, 1});
  return std::vector<TensorBase>{op::index_select(self, dim, found.first), found.inverse,
                                 found.counts};
}

}  // namespace

TS_OP({
    .schema = "_unique2(Tensor self, bool sorted=True, bool return_inverse=False, "
              "bool return_counts=False) -> (Tensor, Tensor, Tensor)",
    .kind = Kind::kKernel,
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& self = c.tensor(0);
      check_ordered(self);
      TensorBase flat = op::contiguous(self);
      flat = alias(flat, {self.numel()}, {1}, flat.storage_offset());
      Found found = find_groups("unique_values", flat, self.numel(), c.flag(2), c.flag(3), {});
      TensorBase inverse = found.inverse;
      if (c.flag(2)) inverse = alias(inverse, self.sizes(), contiguous_strides(self.sizes()), 0);
      return std::vector<TensorBase>{op::index_select(flat, 0, found.first), inverse, found.counts};
    },
    .backward = refuse_gradient,
});

TS_OP({
    .schema = "_unique_dim(Tensor self, int dim, bool sorted=True, bool return_inverse=False, "
              "bool return_counts=False) -> (Tensor, Tensor, Tensor)",
    .kind = Kind::kKernel,
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& self = c.tensor(0);
      check_ordered(self);
      int dim = wrap_dim(c.integer(1), self.dim());
      if (self.dim() == 0) return op::_unique2(self, c.flag(2), c.flag(3), c.flag(4));
      return unique_along(self, dim, true, c.flag(3), c.flag(4));
    },
    .backward = refuse_gradient,
});

TS_OP({
    .schema = "_unique_consecutive(Tensor self, bool return_inverse=False, "
              "bool return_counts=False, int? dim=None) -> (Tensor, Tensor, Tensor)",
    .kind = Kind::kKernel,
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& self = c.tensor(0);
      bool inverse = c.flag(1), counts = c.flag(2);
      if (c.has(3) && !(self.dim() == 1 && wrap_dim(c.integer(3), 1) == 0))
        return unique_along(self, wrap_dim(c.integer(3), self.dim()), false, inverse, counts);
      TensorBase flat = op::contiguous(self);
      int64_t n = self.numel(), unsorted = 0;
      flat = alias(flat, {n, 1}, {1, 1}, flat.storage_offset());
      Found found = find_groups("unique_rows", flat, n, inverse, counts, {&unsorted, 1});
      if (inverse)
        found.inverse = alias(found.inverse, self.sizes(), contiguous_strides(self.sizes()), 0);
      flat = alias(flat, {n}, {1}, flat.storage_offset());
      return std::vector<TensorBase>{op::index_select(flat, 0, found.first), found.inverse,
                                     found.counts};
    },
    .backward = refuse_gradient,
});

}  // namespace tessera
