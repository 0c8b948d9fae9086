// Tensors side by side.
#include "tessera/driver/current.h"
#include "tessera/gen/copy.h"
#include "tessera/gen/creation.h"
#include "tessera/gen/join.h"
#include "tessera/gen/pad.h"
#include "tessera/gen/view.h"
#include "tessera/ops/in_dtype.h"

namespace tessera {

namespace {

using Tensors = std::span<const TensorBase>;

// A vector without elements joins anything: PyTorch's old rule.
bool counts(const TensorBase& t) { return t.dim() != 1 || t.numel() != 0; }

MemoryFormat common_format(Tensors tensors) {
  MemoryFormat format = suggested_format(tensors[0]);
  for (const TensorBase& t : tensors)
    if (suggested_format(t) != format) return MemoryFormat::kContiguous;
  return format;
}

Dims joined_shape(Tensors tensors, const TensorBase& first, size_t dim) {
  Dims shape = first.sizes();
  shape[dim] = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const TensorBase& t = tensors[i];
    if (!counts(t)) continue;
    TS_CHECK(t.dim() == first.dim(), "Tensors must have same number of dimensions: got ",
             first.dim(), " and ", t.dim());
    for (size_t d = 0; d < shape.size(); ++d)
      TS_CHECK(d == dim || t.sizes()[d] == shape[d],
               "Sizes of tensors must match except in dimension ", dim, ". Expected size ",
               shape[d], " but got size ", t.sizes()[d], " for tensor number ", i, " in the list.");
    shape[dim] += t.sizes()[dim];
  }
  return shape;
}

// Laid out otherwise than the output, and long: a copy of its own walks both in blocks.
bool is_turned(const TensorBase& t, const TensorBase& out) {
  constexpr int64_t kLong = 1 << 14;
  if (t.numel() < kLong || out.dim() < 2) return false;
  for (int d = 0; d < t.dim(); ++d)
    if (t.sizes()[d] > 1 && out.strides()[d] == 1) return t.strides()[d] != 1;
  return false;
}

// Where the device has a kernel for it all inputs go in one pass; else each is copied to its place.
void join_into(const TensorBase& out, const std::vector<TensorBase>& parts, size_t dim) {
  if (out.numel() == 0 || out.device().is_meta()) return;
  bool turned = std::any_of(parts.begin(), parts.end(),
                            [&](const TensorBase& t) { return is_turned(t, out); });
  // The CPU's kernel moves runs: elements that go here and there one by one are copied by strides.
  constexpr int64_t kShortRun = 64;
  const bool short_runs =
      out.device().is_cpu() && std::all_of(parts.begin(), parts.end(), [&](const TensorBase& t) {
        return t.sizes()[dim] * out.strides()[dim] * static_cast<int64_t>(itemsize(out.dtype())) <
               kShortRun;
      });
  if (!turned && !short_runs && has_kernel(out.device(), "cat")) {
    // The kernel writes row-major: other layouts are that in another order of dimensions.
    Dims order;
    for (int d = 0; d < out.dim(); ++d) order.push_back(d);
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      return out.strides()[static_cast<size_t>(a)] > out.strides()[static_cast<size_t>(b)];
    });
    auto permuted = [&](const TensorBase& t) {
      if (out.is_contiguous()) return t;
      Dims sizes, strides;
      for (int64_t d : order) {
        sizes.push_back(t.sizes()[static_cast<size_t>(d)]);
        strides.push_back(t.strides()[static_cast<size_t>(d)]);
      }
      return alias(t, sizes, strides, t.storage_offset());
    };
    int64_t at = static_cast<int64_t>(dim);
    if (!out.is_contiguous()) at = std::find(order.begin(), order.end(), at) - order.begin();
    std::vector<TensorBase> in;
    for (const TensorBase& t : parts) in.push_back(permuted(t));
    TensorBase to = permuted(out);
    launch("cat", {&to, 1}, in, {&at, 1});
    return;
  }
  int64_t at = 0;
  for (const TensorBase& t : parts) {
    Dims shape = t.sizes();
    copy_into(alias(out, shape, out.strides(), out.storage_offset() + at * out.strides()[dim]), t,
              false);
    at += shape[dim];
  }
  out.storage().version.store(0, std::memory_order_relaxed);
}

void check_stack(Tensors tensors, const char* name) {
  TS_CHECK(!tensors.empty(), name, " expects a non-empty TensorList");
}

std::vector<TensorBase> each_at_least(const Call& c, int dims) {
  check_stack(c.tensors(0), c.op.name.c_str());
  return dims == 1   ? op::atleast_1d(c.tensors(0))
         : dims == 2 ? op::atleast_2d(c.tensors(0))
                     : op::atleast_3d(c.tensors(0));
}

}  // namespace

TS_OP({
    .schema = "cat(Tensor[] tensors, int dim=0) -> Tensor",
    .also = "concat concatenate",
    .doc = "The tensors one after the other along a dimension.",
    .example = "torch.cat([torch.ones(2), torch.zeros(1)])",
    .kind = Kind::kKernel,
    .forms = kFunction | kOut,
    .run = [](const Call& c) -> Outputs {
      Tensors tensors = c.tensors(0);
      TS_CHECK_VALUE(!tensors.empty(), "torch.cat(): expected a non-empty list of Tensors");
      for (size_t i = 0; i < tensors.size(); ++i)
        TS_CHECK(tensors[i].dim() > 0, "zero-dimensional tensor (at position ", i,
                 ") cannot be concatenated");
      check_same_device(c.op, c.args);
      DType dtype = common_dtype(tensors);
      const TensorBase* first = nullptr;
      for (const TensorBase& t : tensors)
        if (!first && counts(t)) first = &t;
      size_t dim = static_cast<size_t>(wrap_dim(c.integer(1), (first ? *first : tensors[0]).dim()));
      if (!first) return new_empty({0}, dtype, tensors[0].device());
      Dims shape = joined_shape(tensors, *first, dim);
      checked_numel(shape, dtype);
      std::vector<TensorBase> parts;
      for (const TensorBase& t : tensors)
        if (counts(t)) parts.push_back(in_dtype(t, dtype));
      TensorBase out =
          new_empty_strided(shape, strides_in(shape, common_format(parts)), dtype, first->device());
      join_into(out, parts, dim);
      return out;
    },
    .backward =
        [](Backward& b) {
          int64_t at = 0;
          int n = b.list_size(0);
          for (int k = 0; k < n; ++k) {
            const Dims& shape = b.shape(0, k);
            if (shape.size() == 1 && shape[0] == 0) {
              if (b.wants(0, k)) b.set(0, k, op::new_zeros(b.grad, shape.span()));
              continue;
            }
            int64_t size = shape[static_cast<size_t>(wrap_dim(b.integer(1), shape.ndim()))];
            if (b.wants(0, k)) b.set(0, k, op::narrow(b.grad, b.integer(1), at, size));
            at += size;
          }
        },
    .samples = {{"[T(2, 3), T(1, 3)]"}, {"[T(2, 3), T(2, 1), T(2, 0)], 1"}, {"[T(2), T(0)]"}},
});

TS_OP({
    .schema = "stack(Tensor[] tensors, int dim=0) -> Tensor",
    .doc = "Tensors of one shape along a new dimension.",
    .example = "torch.stack([torch.ones(2), torch.zeros(2)])",
    .forms = kFunction | kOut,
    .run = [](const Call& c) -> Outputs {
      Tensors tensors = c.tensors(0);
      check_stack(tensors, "stack");
      int64_t dim = wrap_dim(c.integer(1), tensors[0].dim() + 1);
      for (size_t i = 0; i < tensors.size(); ++i)
        TS_CHECK(tensors[i].sizes() == tensors[0].sizes(),
                 "stack expects each tensor to be equal size, but got ", tensors[0].sizes(),
                 " at entry 0 and ", tensors[i].sizes(), " at entry ", i);
      Dims shape = tensors[0].sizes();
      if (dim < shape.ndim() && tensors[0].numel() > 0) {
        // One after the other along the dimension that comes next, seen as two: the layout stays.
        TensorBase joined = op::cat(tensors, dim);
        size_t at = static_cast<size_t>(dim);
        Dims strides = joined.strides();
        strides.insert(at, strides[at] * shape[at]);
        shape.insert(at, static_cast<int64_t>(tensors.size()));
        return alias(joined, shape, strides, joined.storage_offset());
      }
      std::vector<TensorBase> parts;
      for (const TensorBase& t : tensors) parts.push_back(op::unsqueeze(t, dim));
      return op::cat(parts, dim);
    },
    .backward =
        [](Backward& b) {
          for (int k = 0; k < b.list_size(0); ++k)
            if (b.wants(0, k)) b.set(0, k, op::select(b.grad, b.integer(1), k));
        },
    .samples = {{"[T(2, 3), T(2, 3)]"}, {"[T(2, 3), T(2, 3)], -1"}, {"[T(), T()]"}},
});

TS_OP({
    .schema = "hstack(Tensor[] tensors) -> Tensor",
    .doc = "The tensors one after the other along the second dimension, vectors along their only "
           "one.",
    .example = "torch.hstack([torch.ones(2), torch.zeros(1)])",
    .forms = kFunction | kOut,
    .run = [](const Call& c) -> Outputs {
      std::vector<TensorBase> parts = each_at_least(c, 1);
      return op::cat(parts, parts[0].dim() == 1 ? 0 : 1);
    },
    .samples = {{"[T(2), T(3), T()]"}, {"[T(2, 3), T(2, 1)]"}},
});

TS_OP({
    .schema = "vstack(Tensor[] tensors) -> Tensor",
    .also = "row_stack",
    .doc = "The tensors one after the other along the first dimension, vectors as rows.",
    .example = "torch.vstack([torch.ones(2), torch.zeros(2)])",
    .forms = kFunction | kOut,
    .run = [](const Call& c) -> Outputs { return op::cat(each_at_least(c, 2), 0); },
    .samples = {{"[T(3), T(3)]"}, {"[T(2, 3), T(1, 3)]"}},
});

TS_OP({
    .schema = "dstack(Tensor[] tensors) -> Tensor",
    .doc = "The tensors one after the other along the third dimension.",
    .example = "torch.dstack([torch.ones(2), torch.zeros(2)])",
    .forms = kFunction | kOut,
    .run = [](const Call& c) -> Outputs { return op::cat(each_at_least(c, 3), 2); },
    .samples = {{"[T(3), T(3)]"}, {"[T(2, 3), T(2, 3)]"}},
});

TS_OP({
    .schema = "column_stack(Tensor[] tensors) -> Tensor",
    .doc = "The tensors one after the other along the second dimension, vectors as columns.",
    .example = "torch.column_stack([torch.ones(2), torch.zeros(2)])",
    .forms = kFunction | kOut,
    .run = [](const Call& c) -> Outputs {
      check_stack(c.tensors(0), "column_stack");
      std::vector<TensorBase> parts;
      for (const TensorBase& t : c.tensors(0))
        parts.push_back(t.dim() <= 1 ? op::reshape(t, Dims{t.numel(), 1}.span()) : t);
      return op::hstack(parts);
    },
    .samples = {{"[T(3), T(3)]"}, {"[T(2, 3), T(2)]"}},
});

TS_OP({
    .schema = "block_diag(Tensor... tensors) -> Tensor",
    .doc = "A matrix with the tensors as blocks along its diagonal and zeros elsewhere.",
    .example = "torch.block_diag(torch.ones(2, 2), torch.tensor([[3.0]]))",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      Tensors tensors = c.tensors(0);
      if (tensors.empty()) return new_empty({1, 0}, default_dtype(), Device{});
      check_same_device(c.op, c.args);
      int64_t rows = 0, cols = 0;
      std::vector<TensorBase> blocks;
      for (size_t i = 0; i < tensors.size(); ++i) {
        TS_CHECK(tensors[i].dim() <= 2,
                 "torch.block_diag: Input tensors must have 2 or fewer dimensions. Input ", i,
                 " has ", tensors[i].dim(), " dimensions");
        blocks.push_back(op::atleast_2d(tensors[i]));
        rows += blocks[i].sizes()[0];
        cols += blocks[i].sizes()[1];
      }
      TensorBase out =
          op::zeros(Dims{rows, cols}.span(), common_dtype(tensors), tensors[0].device());
      int64_t row = 0, col = 0;
      for (const TensorBase& block : blocks) {
        copy_into(alias(out, block.sizes(), out.strides(), row * cols + col), block, false);
        row += block.sizes()[0];
        col += block.sizes()[1];
      }
      return out;
    },
    .backward =
        [](Backward& b) {
          int64_t row = 0, col = 0;
          for (int k = 0; k < b.list_size(0); ++k) {
            const Dims& shape = b.shape(0, k);
            int64_t rows = shape.size() == 2 ? shape[0] : 1;
            int64_t cols = shape.empty() ? 1 : shape.back();
            if (b.wants(0, k)) {
              TensorBase block = op::narrow(op::narrow(b.grad, 0, row, rows), 1, col, cols);
              b.set(0, k, op::reshape(block, shape.span()));
            }
            row += rows;
            col += cols;
          }
        },
    .samples = {{"T(2, 3), T(1, 2)"}, {"T(2), T(), T(2, 2)"}},
});

TS_OP({
    .schema = "_chunk_cat(Tensor[] tensors, int dim, int num_chunks) -> Tensor",
    .doc = "Each tensor filled up with zeros to a multiple of num_chunks along a dimension and cut "
           "into so many chunks; the chunks of all tensors side by side.",
    .example = "torch._chunk_cat([torch.ones(3), torch.zeros(2)], 0, 2)",
    .forms = kFunction | kOut,
    .run = [](const Call& c) -> Outputs {
      Tensors tensors = c.tensors(0);
      int64_t chunks = c.integer(2);
      TS_CHECK(!tensors.empty(), "_chunk_cat expects a non-empty input tensor list");
      TS_CHECK(chunks >= 1, "_chunk_cat expects positive num_chunks");
      bool same_dims = true;
      for (const TensorBase& t : tensors) {
        TS_CHECK(t.numel() > 0, "_chunk_cat expects non-empty tensor");
        TS_CHECK(t.dtype() == tensors[0].dtype(),
                 "_chunk_cat expects all input tensors with the same dtype");
        same_dims &= t.dim() == tensors[0].dim();
      }
      int64_t dim = c.integer(1);
      TS_CHECK(same_dims || dim >= 0,
               "_chunk_cat expects non-negative dim when input tensors have different ndims");
      if (same_dims) dim = wrap_dim(dim, tensors[0].dim());
      size_t d = static_cast<size_t>(dim);
      std::vector<TensorBase> parts;
      for (const TensorBase& t : tensors) {
        TS_CHECK(dim < t.dim(), "_chunk_cat expects dim < ndim for all input tensors");
        for (size_t i = 0; i < d; ++i)
          TS_CHECK(t.sizes()[i] == tensors[0].sizes()[i],
                   "_chunk_cat expects same sizes of 0,...,dim-1 dimensions for all tensors");
        int64_t missing = (chunks - t.sizes()[d] % chunks) % chunks;
        Dims pad(2 * (t.sizes().size() - d), 0);
        pad[pad.size() - 1] = missing;
        Dims shape(t.sizes().span().first(d));
        shape.push_back(chunks);
        shape.push_back(-1);
        parts.push_back(
            op::reshape(missing ? op::constant_pad_nd(t, pad.span()) : t, shape.span()));
      }
      return op::cat(parts, dim + 1);
    },
    .samples = {{"[T(3), T(2)], 0, 2"}, {"[T(2, 3), T(2, 2)], 1, 2"}},
});

}  // namespace tessera
