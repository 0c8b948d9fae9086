// Elements repeated.
#include "tessera/gen/copy.h"
#include "tessera/gen/index.h"
#include "tessera/gen/rearrange.h"
#include "tessera/gen/reduce.h"
#include "tessera/gen/view.h"

namespace tessera {

namespace {

// Each position of `repeats` as often as it says.
TensorBase positions(const TensorBase& repeats, const Value& output_size) {
  TS_CHECK(repeats.dim() == 1, "repeat_interleave only accept 1D vector as repeat");
  TS_CHECK(repeats.dtype() == DType::kInt64 || repeats.dtype() == DType::kInt32,
           "repeats has to be Long or Int tensor");
  Dims counts = host_ints(repeats);
  int64_t total = 0;
  for (int64_t n : counts) {
    TS_CHECK(n >= 0, "repeats can not be negative");
    total += n;
  }
  TS_CHECK(output_size.is_none() || output_size.scalar.to_int() == total,
           "allocated size does not match required size");
  TensorBase out = new_empty({total}, DType::kInt64, Device{});
  int64_t* to = reinterpret_cast<int64_t*>(out.raw());
  for (size_t i = 0; i < counts.size(); ++i)
    to = std::fill_n(to, counts[i], static_cast<int64_t>(i));
  return repeats.device().is_cpu() ? out : op::_to_device(out, repeats.device());
}

// self flattened where no dimension is named, and the dimension.
TensorBase along(const Call& c, int arg, int64_t& dim) {
  TensorBase t = c.tensor(0);
  if (!c.has(arg)) {
    dim = 0;
    return op::flatten(t);
  }
  dim = wrap_dim(c.integer(arg), t.dim());
  return t.dim() == 0 ? op::flatten(t) : t;
}

TensorBase each_repeated(const TensorBase& t, int64_t dim, int64_t times) {
  TS_CHECK(times >= 0, "Repeats must be non-negative");
  Dims shape = t.sizes();
  shape.insert(static_cast<size_t>(dim) + 1, times);
  TensorBase wide = op::expand(op::unsqueeze(t, dim + 1), shape.span());
  return op::flatten(op::clone(wide, MemoryFormat::kContiguous), dim, dim + 1);
}

}  // namespace

TS_OP({
    .schema = "repeat(Tensor self, int... repeats) -> Tensor",
    .doc = "The tensor put side by side with itself so often along each dimension.",
    .example = "torch.tensor([1, 2]).repeat(2, 2)",
    .kind = Kind::kKernel,
    .forms = kMethod,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& t = c.tensor(0);
      Dims times = c.ints(1);
      TS_CHECK(times.ndim() >= t.dim(),
               "Number of dimensions of repeat dims can not be smaller than number of dimensions "
               "of tensor");
      // Seen as [times, size] for each dimension, it is a copy of a broadcast input.
      int lead = times.ndim() - t.dim();
      Dims shape, wide, from;
      for (int d = 0; d < times.ndim(); ++d) {
        int64_t size = d < lead ? 1 : t.sizes()[d - lead];
        TS_CHECK(times[d] >= 0, "Trying to create tensor with negative dimension ",
                 times[d] * size);
        shape.push_back(times[d] * size);
        wide.push_back(times[d]);
        wide.push_back(size);
        from.push_back(0);
        from.push_back(d < lead ? 0 : t.strides()[d - lead]);
      }
      TensorBase out = new_empty(shape, t.dtype(), t.device());
      if (out.numel() == 0) return out;
      copy_into(alias(out, wide, contiguous_strides(wide), 0),
                alias(t, wide, from, t.storage_offset()), false);
      out.storage().version.store(0, std::memory_order_relaxed);
      return out;
    },
    .backward =
        [](Backward& b) {
          Dims times = b.ints(1), wide, summed;
          int lead = times.ndim() - b.shape(0).ndim();
          for (int d = 0; d < times.ndim(); ++d) {
            wide.push_back(times[d]);
            wide.push_back(d < lead ? 1 : b.shape(0)[d - lead]);
            summed.push_back(2 * d);
          }
          TensorBase g = op::reshape(b.grad, wide.span());
          if (!summed.empty()) g = op::sum(g, summed.span(), false, std::nullopt);
          b.set(0, op::reshape(g, b.shape(0).span()));
        },
    .samples = {{"T(2, 3), (2, 1)"}, {"T(2), (2, 3)"}, {"T(), (2,)"}, {"T(2), (0,)"}},
});

TS_OP({
    .schema = "tile(Tensor self, int... dims) -> Tensor",
    .doc = "The tensor put side by side with itself so often along its last dimensions.",
    .example = "torch.tile(torch.tensor([1, 2]), (2,))",
    .run = [](const Call& c) -> Outputs {
      Dims times = c.ints(1);
      while (times.ndim() < c.tensor(0).dim()) times.insert(0, 1);
      return op::repeat(c.tensor(0), times.span());
    },
    .samples = {{"T(2, 3), (2,)"}, {"T(2), (2, 3)"}},
});

TS_OP({
    .schema = "repeat_interleave(Tensor self, int repeats, int? dim=None, *, int? "
              "output_size=None) -> Tensor",
    .doc = "Each element repeated, one after the other, along a dimension or of all elements in a "
           "row.",
    .example = "torch.repeat_interleave(torch.tensor([1, 2]), 2)",
    .run = [](const Call& c) -> Outputs {
      int64_t dim;
      TensorBase t = along(c, 2, dim);
      int64_t size = t.sizes()[static_cast<size_t>(dim)] * c.integer(1);
      TS_CHECK(!c.has(3) || c.integer(3) == size,
               "repeat_interleave: Invalid output_size, expected ", size, " but got ",
               c.has(3) ? c.integer(3) : 0);
      return each_repeated(t, dim, c.integer(1));
    },
    .samples = {{"T(2, 3), 2"}, {"T(2, 3), 3, 1"}, {"T(), 2"}},
});
TS_OP({
    .schema = "repeat_interleave(Tensor self, Tensor repeats, int? dim=None, *, int? "
              "output_size=None) -> Tensor",
    .doc = "Each element repeated as often as `repeats` says for it.",
    .example = "torch.repeat_interleave(torch.tensor([1, 2]), torch.tensor([3, 1]))",
    .run = [](const Call& c) -> Outputs {
      int64_t dim;
      TensorBase t = along(c, 2, dim);
      TensorBase repeats = c.tensor(1);
      TS_CHECK(repeats.dim() <= 1, "repeats must be 0-dim or 1-dim tensor");
      int64_t size = t.sizes()[static_cast<size_t>(dim)];
      if (repeats.numel() == 1 && (repeats.dim() == 0 || size != 1))
        repeats = op::expand(op::reshape(repeats, Dims{1}.span()), Dims{size}.span());
      TS_CHECK(repeats.numel() == size,
               "repeats must have the same size as input along dim, but got repeats.size(0) = ",
               repeats.numel(), " and input.size(", dim, ") = ", size);
      return op::index_select(t, dim, positions(repeats, c.args[3]));
    },
    .samples = {{"T(2, 3), I([2, 0], 5), 0"}, {"T(3), I([1, 2, 3], 5)"}},
});
TS_OP({
    .schema = "repeat_interleave(Tensor repeats, *, int? output_size=None) -> Tensor",
    .doc = "Each position as often as `repeats` says.",
    .example = "torch.repeat_interleave(torch.tensor([2, 1]))",
    .run = [](const Call& c) -> Outputs {
      TensorBase at = positions(c.tensor(0), c.args[1]);
      DType t = c.tensor(0).dtype();
      return t == DType::kInt64 ? at : op::_to_dtype(at, t);
    },
    .not_differentiable = true,
});

}  // namespace tessera
