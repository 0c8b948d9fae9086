// Copies of a tensor in which a view has other values.
#include "tessera/gen/copy.h"
#include "tessera/gen/creation.h"
#include "tessera/gen/view.h"
#include "tessera/ops/valid.h"

namespace tessera {

namespace {

// `place` is a view of `whole`, a fresh copy of self.
TensorBase put(const Call& c, const TensorBase& whole, const TensorBase& place) {
  const TensorBase& src = c.tensor(1);
  TS_CHECK(place.sizes() == src.sizes(),
           "expected src to have a size equal to the slice of self. src size = ", src.sizes(),
           ", slice size = ", place.sizes());
  op::copy_(place, src);
  return whole;
}

std::optional<int64_t> bound(const Call& c, int i) {
  return c.has(i) ? std::optional<int64_t>(c.integer(i)) : std::nullopt;
}
std::optional<int64_t> bound(const Backward& b, int i) {
  return b.has(i) ? std::optional<int64_t>(b.integer(i)) : std::nullopt;
}
TensorBase zeros_of_src(const Backward& b) { return op::new_zeros(b.grad, b.shape(1).span()); }

}  // namespace

TS_OP({
    .schema = "select_scatter(Tensor self, Tensor src, int dim, int index) -> Tensor",
    .doc = "A copy of self with src at one position along a dimension.",
    .example = "torch.select_scatter(torch.zeros(2, 2), torch.ones(2), 0, 0)",
    .run = [](const Call& c) -> Outputs {
      TensorBase whole = op::clone(c.tensor(0));
      return put(c, whole, op::select(whole, c.integer(2), c.integer(3)));
    },
    .backward =
        [](Backward& b) {
          int64_t dim = b.integer(2), index = b.integer(3);
          if (b.wants(0)) b.set(0, op::select_scatter(b.grad, zeros_of_src(b), dim, index));
          if (b.wants(1)) b.set(1, op::select(b.grad, dim, index));
        },
    .samples = {{"T(3, 4), T(4), 0, 1"}, {"T(3, 4), T(3), 1, -1"}},
});

TS_OP({
    .schema = "slice_scatter(Tensor self, Tensor src, int dim=0, int? start=None, int? end=None, "
              "int step=1) -> Tensor",
    .doc = "A copy of self with src in a slice along a dimension.",
    .example = "torch.slice_scatter(torch.zeros(4), torch.ones(2), 0, 1, 3)",
    .run = [](const Call& c) -> Outputs {
      TensorBase whole = op::clone(c.tensor(0));
      return put(c, whole, op::slice(whole, c.integer(2), bound(c, 3), bound(c, 4), c.integer(5)));
    },
    .backward =
        [](Backward& b) {
          int64_t dim = b.integer(2), step = b.integer(5);
          if (b.wants(0))
            b.set(0,
                  op::slice_scatter(b.grad, zeros_of_src(b), dim, bound(b, 3), bound(b, 4), step));
          if (b.wants(1)) b.set(1, op::slice(b.grad, dim, bound(b, 3), bound(b, 4), step));
        },
    .samples = {{"T(5, 4), T(2, 4), 0, 1, 3"}, {"T(5, 4), T(5, 2), 1, None, None, 2"}},
});

TS_OP({
    .schema = "diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> "
              "Tensor",
    .doc = "A copy of self with src on the diagonal of two dimensions.",
    .example = "torch.diagonal_scatter(torch.zeros(3, 3), torch.ones(2), 1)",
    .run = [](const Call& c) -> Outputs {
      TensorBase whole = op::clone(c.tensor(0));
      return put(c, whole, op::diagonal(whole, c.integer(2), c.integer(3), c.integer(4)));
    },
    .backward =
        [](Backward& b) {
          int64_t k = b.integer(2), dim1 = b.integer(3), dim2 = b.integer(4);
          if (b.wants(0)) b.set(0, op::diagonal_scatter(b.grad, zeros_of_src(b), k, dim1, dim2));
          if (b.wants(1)) b.set(1, op::diagonal(b.grad, k, dim1, dim2));
        },
    .samples = {{"T(3, 4), T(3)"}, {"T(3, 4), T(2), -1"}, {"T(2, 3, 3), T(2, 2), 1, 1, 2"}},
});

TS_OP({
    .schema = "as_strided_scatter(Tensor self, Tensor src, int[] size, int[] stride, int? "
              "storage_offset=None) -> Tensor",
    .doc = "A copy of self with src in the places that size, strides and offset name.",
    .example = "torch.as_strided_scatter(torch.zeros(3, 3), torch.ones(2), (2,), (4,), 1)",
    .run = [](const Call& c) -> Outputs {
      const TensorBase& self = c.tensor(0);
      Dims sizes = c.ints(2), strides = c.ints(3);
      int64_t offset = c.has(4) ? c.integer(4) : self.storage_offset();
      check_in_storage(self.storage(), sizes, strides, offset, self.dtype());
      TS_CHECK(!has_internal_overlap(sizes, strides), "as_strided_scatter: sizes ", sizes,
               " and strides ", strides, " name some places more than once");
      int64_t length = static_cast<int64_t>(self.storage().nbytes / itemsize(self.dtype()));
      return op::_as_strided_scatter(self, c.tensor(1), sizes.span(), strides.span(), offset,
                                     self.strides().span(), self.storage_offset(), length);
    },
});

// from_stride, from_offset and length: the geometry of self, and of the storage it lies in.
TS_OP({
    .schema = "_as_strided_scatter(Tensor self, Tensor src, int[] size, int[] stride, int offset, "
              "int[] from_stride, int from_offset, int length) -> Tensor",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      // The places may lie anywhere in the storage: all of it is copied.
      const TensorBase& self = c.tensor(0);
      check_in_storage(self.storage(), Dims{c.integer(7)}, Dims{1}, 0, self.dtype());
      // The same length holds both geometries: they are checked against the copy.
      TensorBase line = op::clone(alias(self, {c.integer(7)}, {1}, 0));
      check_in_storage(line.storage(), self.sizes(), self.strides(), self.storage_offset(),
                       self.dtype());
      check_in_storage(line.storage(), c.ints(2), c.ints(3), c.integer(4), self.dtype());
      check_length(c, 5, self.sizes().size());
      TensorBase whole = alias(line, self.sizes(), self.strides(), self.storage_offset());
      return put(c, whole, alias(line, c.ints(2), c.ints(3), c.integer(4)));
    },
    .backward =
        [](Backward& b) {
          // The gradient in the geometry of self.
          TensorBase line = op::new_zeros(b.grad, Dims{b.integer(7)}.span());
          line = op::as_strided_scatter(line, b.grad, b.shape(0).span(), b.ints(5).span(),
                                        b.integer(6));
          if (b.wants(1))
            b.set(1, op::as_strided(line, b.ints(2).span(), b.ints(3).span(), b.integer(4)));
          if (!b.wants(0)) return;
          line = op::as_strided_scatter(line, zeros_of_src(b), b.ints(2).span(), b.ints(3).span(),
                                        b.integer(4));
          b.set(0, op::as_strided(line, b.shape(0).span(), b.ints(5).span(), b.integer(6)));
        },
});

}  // namespace tessera
