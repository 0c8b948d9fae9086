// Views of a range or of one position along a dimension.
#include "tessera/gen/copy.h"
#include "tessera/gen/creation.h"
#include "tessera/gen/view.h"

namespace tessera {

namespace {

struct Range {
  int64_t start, length;
};

// Python's slice, negative and out-of-range ends included.
Range slice_range(int64_t size, const Value& start, const Value& end, int64_t step) {
  auto bound = [size](const Value& v, int64_t otherwise) {
    if (v.is_none()) return otherwise;
    int64_t i = v.scalar.to_int();
    if (i < 0) i += size;
    return std::clamp<int64_t>(i, 0, size);
  };
  int64_t from = bound(start, 0);
  int64_t to = bound(end, size);
  return {from, to > from ? (to - from + step - 1) / step : 0};
}

TensorBase narrowed(const TensorBase& t, int64_t dim, int64_t start, int64_t length) {
  TS_CHECK(t.dim() > 0, "narrow() cannot be applied to a 0-dim tensor.");
  TS_CHECK(length >= 0, "narrow(): length must be non-negative.");
  int64_t size = t.size(dim);
  TS_CHECK_INDEX(start >= -size && start <= size,
                 "start out of range (expected to be in range of [", -size, ", ", size,
                 "], but got ", start, ")");
  if (start < 0) start += size;
  TS_CHECK(start <= size - length, "start (", start, ") + length (", length,
           ") exceeds dimension size (", size, ").");
  return op::slice(t, dim, start, start + length, 1);
}

}  // namespace

TS_OP({
    .schema = "slice(Tensor self, int dim=0, int? start=None, int? end=None, int step=1) -> Tensor",
    .doc =
        "A view of every step-th element between two bounds along a dimension: x[start:end:step].",
    .example = "torch.tensor([1, 2, 3, 4])[1:3]",
    .kind = Kind::kView,
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& t = c.tensor(0);
      TS_CHECK_INDEX(t.dim() > 0, "slice() cannot be applied to a 0-dim tensor.");
      int d = wrap_dim(c.integer(1), t.dim());
      int64_t step = c.integer(4);
      TS_CHECK_VALUE(step > 0, "step must be greater than zero");
      Range r = slice_range(t.sizes()[d], c.args[2], c.args[3], step);
      Dims sizes = t.sizes(), strides = t.strides();
      int64_t offset = t.storage_offset() + r.start * strides[d];
      sizes[d] = r.length;
      strides[d] *= step;
      return alias(t, sizes, strides, offset);
    },
    .backward =
        [](Backward& b) {
          TensorBase whole = op::new_zeros(b.grad, b.shape(0).span());
          auto bound = [&](int i) {
            return b.has(i) ? std::optional<int64_t>(b.integer(i)) : std::nullopt;
          };
          op::copy_(op::slice(whole, b.integer(1), bound(2), bound(3), b.integer(4)), b.grad);
          b.set(0, whole);
        },
    .samples = {{"T(5, 4), 0, 1, 4"},
                {"T(5, 4), 1, None, None, 2"},
                {"T(5), 0, -3, -1"},
                {"T(5), 0, 4, 2"}},
});

TS_OP({
    .schema = "select(Tensor self, int dim, int index) -> Tensor",
    .doc = "A view of one position along a dimension, without that dimension: x[index].",
    .example = "torch.select(torch.tensor([[1, 2], [3, 4]]), 0, 1)",
    .kind = Kind::kView,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& t = c.tensor(0);
      TS_CHECK_INDEX(t.dim() > 0, "select() cannot be applied to a 0-dim tensor.");
      size_t d = static_cast<size_t>(wrap_dim(c.integer(1), t.dim()));
      int64_t size = t.sizes()[d];
      int64_t i = c.integer(2);
      TS_CHECK_INDEX(i >= -size && i < size, "select(): index ", i,
                     " out of range for tensor of size ", t.sizes(), " at dimension ", d);
      if (i < 0) i += size;
      Dims sizes = t.sizes(), strides = t.strides();
      int64_t offset = t.storage_offset() + i * strides[d];
      sizes.erase(d);
      strides.erase(d);
      return alias(t, sizes, strides, offset);
    },
    .backward =
        [](Backward& b) {
          TensorBase whole = op::new_zeros(b.grad, b.shape(0).span());
          op::copy_(op::select(whole, b.integer(1), b.integer(2)), b.grad);
          b.set(0, whole);
        },
    .samples = {{"T(5, 4), 0, 1"}, {"T(5, 4), 1, -1"}, {"T(3), 0, 2"}},
});

TS_OP({
    .schema = "narrow(Tensor self, int dim, int start, int length) -> Tensor",
    .doc = "A view of `length` elements along a dimension, from start on.",
    .example = "torch.narrow(torch.tensor([1, 2, 3, 4]), 0, 1, 2)",
    .run = [](const Call& c) -> Outputs {
      return narrowed(c.tensor(0), c.integer(1), c.integer(2), c.integer(3));
    },
    .samples = {{"T(5, 4), 0, 1, 3"}, {"T(5, 4), 1, -2, 2"}, {"T(5), 0, 5, 0"}},
});

TS_OP({
    .schema = "narrow(Tensor self, int dim, Tensor start, int length) -> Tensor",
    .doc = "A view of `length` elements along a dimension, from start on.",
    .example = "torch.narrow(torch.tensor([1, 2, 3, 4]), 0, torch.tensor(1), 2)",
    .run = [](const Call& c) -> Outputs {
      const TensorBase& start = c.tensor(2);
      TS_CHECK(start.dim() == 0 && is_integral(start.dtype(), false),
               "start must be an 0-dim integral Tensor.");
      return narrowed(c.tensor(0), c.integer(1), host_ints(start)[0], c.integer(3));
    },
});

}  // namespace tessera
