// The same elements in another order along dimensions.
#include "tessera/gen/copy.h"
#include "tessera/gen/rearrange.h"
#include "tessera/gen/view.h"

namespace tessera {

namespace {

// The marked dimensions read from their ends. Negative strides stay within this file: the result
// is copied at once.
TensorBase reversed(const TensorBase& t, uint64_t marked) {
  Dims strides = t.strides();
  int64_t offset = t.storage_offset();
  for (int d = 0; d < t.dim(); ++d) {
    if (!(marked >> d & 1) || t.sizes()[d] == 0) continue;
    offset += (t.sizes()[d] - 1) * strides[d];
    strides[d] = -strides[d];
  }
  return alias(t, t.sizes(), strides, offset);
}

void roll_into(const TensorBase& out, const TensorBase& in, std::span<const int64_t> shifts,
               std::span<const int64_t> dims) {
  if (in.numel() == 0) return;
  if (dims.empty()) {
    copy_into(out, in, false);
    return;
  }
  // Along each dimension two pieces change places.
  size_t d = static_cast<size_t>(dims[0]);
  int64_t size = in.sizes()[d];
  int64_t shift = ((shifts[0] % size) + size) % size;
  auto piece = [&](const TensorBase& t, int64_t from, int64_t n) {
    Dims sizes = t.sizes();
    sizes[d] = n;
    return alias(t, sizes, t.strides(), t.storage_offset() + from * t.strides()[d]);
  };
  if (shift > 0)
    roll_into(piece(out, 0, shift), piece(in, size - shift, shift), shifts.subspan(1),
              dims.subspan(1));
  roll_into(piece(out, shift, size - shift), piece(in, 0, size - shift), shifts.subspan(1),
            dims.subspan(1));
}

}  // namespace

TS_OP({
    .schema = "flip(Tensor self, int... dims) -> Tensor",
    .doc = "The elements in reverse order along dimensions.",
    .example = "torch.flip(torch.arange(4).view(2, 2), (0, 1))",
    .kind = Kind::kKernel,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& t = c.tensor(0);
      uint64_t marked = 0;
      for (int64_t d : c.ints(1)) {
        int at = wrap_dim(d, t.dim());
        TS_CHECK(!(marked >> at & 1), "dim ", at, " appears multiple times in the list of dims");
        marked |= uint64_t{1} << at;
      }
      TensorBase out = unallocated_like(t, t.dtype());
      copy_into(out, reversed(t, marked), false);
      out.storage().version.store(0, std::memory_order_relaxed);
      return out;
    },
    .backward = [](Backward& b) { b.set(0, op::flip(b.grad, b.ints(1).span())); },
    .samples = {{"T(3, 4), (0,)"}, {"T(3, 4), (0, 1)"}, {"T(2, 0), (0,)"}, {"T(), (0,)"}},
});

TS_OP({
    .schema = "fliplr(Tensor self) -> Tensor",
    .doc = "The columns in reverse order.",
    .example = "torch.fliplr(torch.arange(4).view(2, 2))",
    .run = [](const Call& c) -> Outputs {
      TS_CHECK(c.tensor(0).dim() >= 2, "Input must be >= 2-d.");
      return op::flip(c.tensor(0), Dims{1}.span());
    },
    .samples = {{"T(3, 4)"}},
});

TS_OP({
    .schema = "flipud(Tensor self) -> Tensor",
    .doc = "The rows in reverse order.",
    .example = "torch.flipud(torch.arange(4).view(2, 2))",
    .run = [](const Call& c) -> Outputs {
      TS_CHECK(c.tensor(0).dim() >= 1, "Input must be >= 1-d.");
      return op::flip(c.tensor(0), Dims{0}.span());
    },
    .samples = {{"T(3, 4)"}},
});

TS_OP({
    .schema = "rot90(Tensor self, int k=1, int[]? dims=None) -> Tensor",
    .doc = "Rotated by quarter turns in the plane of two dimensions, from the first to the second.",
    .example = "torch.rot90(torch.arange(4).view(2, 2), 1, (0, 1))",
    .run = [](const Call& c) -> Outputs {
      const TensorBase& t = c.tensor(0);
      Dims dims = c.has(2) ? c.ints(2) : Dims{0, 1};
      TS_CHECK(dims.size() == 2, "expected total rotation dims == 2, but got dims = ", dims.size());
      TS_CHECK(t.dim() >= 2, "expected total dims >= 2, but got total dims = ", t.dim());
      TS_CHECK(dims[0] != dims[1] && std::abs(dims[0] - dims[1]) != t.dim(),
               "expected rotation dims to be different, but got dim0 = ", dims[0],
               " and dim1 = ", dims[1]);
      for (size_t i = 0; i < 2; ++i)
        TS_CHECK(dims[i] < t.dim() && dims[i] >= -t.dim(), "Rotation dim", i, " out of range, dim",
                 i, " = ", dims[i]);
      int64_t turns = ((c.integer(1) % 4) + 4) % 4;
      switch (turns) {
        case 1:
          return op::transpose(op::flip(t, Dims{dims[1]}.span()), dims[0], dims[1]);
        case 2:
          return op::flip(t, dims.span());
        case 3:
          return op::transpose(op::flip(t, Dims{dims[0]}.span()), dims[0], dims[1]);
        default:
          return op::clone(t, MemoryFormat::kContiguous);
      }
    },
    .samples = {{"T(3, 4)"}, {"T(3, 4), 2, (0, 1)"}, {"T(2, 3, 2), -1, (1, 2)"}, {"T(2, 2), 4"}},
});

TS_OP({
    .schema = "roll(Tensor self, int[1] shifts, int[1] dims=()) -> Tensor",
    .doc = "The elements moved on along dimensions; what leaves at the end comes in at the front. "
           "Without dimensions, along all elements in a row.",
    .example = "torch.roll(torch.arange(5), 2)",
    .run = [](const Call& c) -> Outputs {
      const TensorBase& t = c.tensor(0);
      Dims shifts = c.ints(1), dims;
      TS_CHECK(!shifts.empty(), "`shifts` required");
      TS_CHECK(c.ints(2).size() == shifts.size() || (c.ints(2).empty() && shifts.size() == 1),
               "shifts and dimensions must align. shifts: ", shifts.size(),
               ", dims:", c.ints(2).size());
      for (int64_t d : c.ints(2)) {
        TS_CHECK_INDEX(t.dim() > 0, "Dimension specified as ", d, " but tensor has no dimensions");
        dims.push_back(wrap_dim(d, t.dim()));
      }
      if (dims.empty()) {
        TensorBase flat = op::reshape(t, Dims{-1}.span());
        TensorBase out = new_unallocated(t.sizes(), t.dtype(), t.device());
        int64_t all = t.dim() == 0 ? 0 : shifts[0], dim = 0;
        roll_into(alias(out, flat.sizes(), {1}, 0), flat, {&all, 1}, {&dim, 1});
        if (t.numel() == 0) allocate(out.storage());
        out.storage().version.store(0, std::memory_order_relaxed);
        return out;
      }
      // The same dimension may be named more than once.
      Dims total, unique;
      for (size_t i = 0; i < dims.size(); ++i) {
        size_t at = 0;
        while (at < unique.size() && unique[at] != dims[i]) ++at;
        if (at == unique.size()) {
          unique.push_back(dims[i]);
          total.push_back(0);
        }
        int64_t size = std::max<int64_t>(t.sizes()[static_cast<size_t>(dims[i])], 1);
        total[at] = (total[at] + shifts[i] % size) % size;
      }
      TensorBase out = new_empty(t.sizes(), t.dtype(), t.device());
      roll_into(out, t, total, unique);
      out.storage().version.store(0, std::memory_order_relaxed);
      return out;
    },
    .backward =
        [](Backward& b) {
          Dims back = b.ints(1);
          for (int64_t& s : back) s = -s;
          b.set(0, op::roll(b.grad, back.span(), b.ints(2).span()));
        },
    .samples = {{"T(3, 4), 2"}, {"T(3, 4), -1, 0"}, {"T(3, 4), (1, 2), (0, 1)"}, {"T(0, 3), 1, 0"}},
});

}  // namespace tessera
