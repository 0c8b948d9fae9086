// Views by strides: any, the diagonal's, and windows along a dimension.
#include "tessera/gen/binary.h"
#include "tessera/gen/copy.h"
#include "tessera/gen/creation.h"
#include "tessera/gen/index.h"
#include "tessera/gen/view.h"
#include "tessera/ops/valid.h"

namespace tessera {

namespace {

// Positions in a line of memory that a geometry names, as a vector of indices.
TensorBase positions(const Dims& sizes, const Dims& strides, int64_t offset, int64_t length,
                     Device device) {
  TensorBase line = op::arange(length, DType::kInt64, device);
  return op::reshape(alias(line, sizes, strides, offset), Dims{-1}.span());
}

// Note [The gradient of as_strided]
// The result's gradient is added into a line of memory that both geometries lie in, and what the
// input sees of that line is the input's gradient; where several of its elements share a place,
// each gets its part.
TensorBase as_strided_gradient(const TensorBase& grad, const Dims& in_sizes, const Dims& in_strides,
                               const Dims& sizes, const Dims& strides, int64_t offset) {
  int64_t in_offset = std::max<int64_t>(-offset, 0);
  offset = std::max<int64_t>(offset, 0);
  int64_t item = static_cast<int64_t>(itemsize(grad.dtype()));
  int64_t length = std::max(bytes_reached(in_sizes, in_strides, in_offset, grad.dtype()),
                            bytes_reached(sizes, strides, offset, grad.dtype())) /
                   item;
  TensorBase line = op::new_zeros(grad, Dims{length}.span());
  if (grad.numel() == 0) return op::new_zeros(grad, in_sizes.span());
  if (has_internal_overlap(sizes, strides)) {
    TensorBase at = positions(sizes, strides, offset, length, grad.device());
    line = op::index_add(line, 0, at, op::reshape(grad, Dims{-1}.span()));
  } else {
    line = op::as_strided_scatter(line, grad, sizes.span(), strides.span(), offset);
  }
  if (has_internal_overlap(in_sizes, in_strides)) {
    TensorBase at = positions(in_sizes, in_strides, in_offset, length, grad.device());
    TensorBase ones = op::ones(at.sizes().span(), grad.dtype(), grad.device());
    TensorBase count = op::index_add(op::zeros_like(line), 0, at, ones);
    line = op::div(line, count);
  }
  return op::as_strided(line, in_sizes.span(), in_strides.span(), in_offset);
}

}  // namespace

TS_OP({
    .schema = "as_strided(Tensor self, int[] size, int[] stride, int? storage_offset=None) -> "
              "Tensor",
    .doc = "A view by size, strides and place in the storage, whatever the tensor's own are.",
    .example = "torch.as_strided(torch.arange(6), (2, 2), (2, 1))",
    .run = [](const Call& c) -> Outputs {
      const TensorBase& t = c.tensor(0);
      Dims sizes = c.ints(1), strides = c.ints(2);
      int64_t offset = c.has(3) ? c.integer(3) : t.storage_offset();
      check_in_storage(t.storage(), sizes, strides, offset, t.dtype());
      return op::_as_strided(t, sizes.span(), strides.span(), offset - t.storage_offset(),
                             t.strides().span());
    },
});

// The offset is counted from that of self, so that the view can be made again of another tensor;
// from_stride are the strides of self.
TS_OP({
    .schema = "_as_strided(Tensor self, int[] size, int[] stride, int offset, int[] from_stride) "
              "-> Tensor",
    .kind = Kind::kView,
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& t = c.tensor(0);
      int64_t offset;
      TS_CHECK(!__builtin_add_overflow(t.storage_offset(), c.integer(3), &offset), c.op.name,
               "(): storage offset ", c.integer(3), " is out of range");
      check_in_storage(t.storage(), c.ints(1), c.ints(2), offset, t.dtype());
      check_length(c, 4, t.sizes().size());
      return alias(t, c.ints(1), c.ints(2), offset);
    },
    .backward =
        [](Backward& b) {
          b.set(0, as_strided_gradient(b.grad, b.shape(0), b.ints(4), b.ints(1), b.ints(2),
                                       b.integer(3)));
        },
});

TS_OP({
    .schema = "diagonal(Tensor self, int offset=0, int dim1=0, int dim2=1) -> Tensor",
    .doc = "A view of the diagonal of two dimensions, as the last one.",
    .example = "torch.diagonal(torch.arange(9).view(3, 3), 1)",
    .kind = Kind::kView,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& t = c.tensor(0);
      size_t a = static_cast<size_t>(wrap_dim(c.integer(2), t.dim()));
      size_t b = static_cast<size_t>(wrap_dim(c.integer(3), t.dim()));
      TS_CHECK(a != b, "diagonal dimensions cannot be identical ", c.integer(2), ", ",
               c.integer(3));
      int64_t k = c.integer(1);
      int64_t length = k >= 0 ? std::min(t.sizes()[a], t.sizes()[b] - k)
                              : std::min(t.sizes()[a] + k, t.sizes()[b]);
      Dims sizes, strides;
      for (size_t d = 0; d < t.sizes().size(); ++d) {
        if (d == a || d == b) continue;
        sizes.push_back(t.sizes()[d]);
        strides.push_back(t.strides()[d]);
      }
      sizes.push_back(std::max<int64_t>(length, 0));
      strides.push_back(t.strides()[a] + t.strides()[b]);
      int64_t at = t.storage_offset();
      if (length > 0) at += k >= 0 ? k * t.strides()[b] : -k * t.strides()[a];
      return alias(t, sizes, strides, at);
    },
    .backward =
        [](Backward& b) {
          TensorBase whole = op::new_zeros(b.grad, b.shape(0).span());
          op::copy_(op::diagonal(whole, b.integer(1), b.integer(2), b.integer(3)), b.grad);
          b.set(0, whole);
        },
    .samples = {{"T(3, 4)"}, {"T(3, 4), -1"}, {"T(2, 3, 4), 1, 0, 2"}, {"T(3, 3), 5"}},
});

}  // namespace tessera
