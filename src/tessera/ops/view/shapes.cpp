// Views in another shape.
#include "tessera/ops/view/shapes.h"

#include "tessera/gen/copy.h"
#include "tessera/gen/reduce.h"
#include "tessera/gen/view.h"

namespace tessera {

bool view_strides(const TensorBase& t, const Dims& shape, Dims& out) {
  out = contiguous_strides(shape);
  if (t.is_contiguous() || t.numel() == 0) return true;
  // Runs of old dimensions that step through memory as one are matched with runs of new ones.
  int d = shape.ndim() - 1;
  int64_t run = 1, covered = 1, base = t.strides().back();
  for (int s = t.dim() - 1; s >= 0; --s) {
    run *= t.sizes()[s];
    bool ends = s == 0 || (t.sizes()[s - 1] != 1 && t.strides()[s - 1] != run * base);
    if (!ends) continue;
    while (d >= 0 && (covered < run || shape[d] == 1)) {
      out[d] = covered * base;
      covered *= shape[d];
      --d;
    }
    if (covered != run) return false;
    if (s > 0) {
      base = t.strides()[s - 1];
      run = covered = 1;
    }
  }
  return d == -1;
}

Dims complete_shape(const TensorBase& t, Dims shape) {
  int64_t known = 1;
  int open = -1;
  for (int d = 0; d < shape.ndim(); ++d) {
    if (shape[d] == -1) {
      TS_CHECK(open < 0, "only one dimension can be inferred");
      open = d;
    } else {
      TS_CHECK(shape[d] >= 0, "invalid shape dimension ", shape[d]);
      TS_CHECK(!__builtin_mul_overflow(known, shape[d], &known), "shape '", shape,
               "' is invalid for input of size ", t.numel());
    }
  }
  TS_CHECK(open < 0 || known != 0 || t.numel() != 0,
           "cannot reshape tensor of 0 elements into shape ", shape,
           " because the unspecified dimension size -1 can be any value and is ambiguous");
  bool fits = open < 0 ? known == t.numel() : known != 0 && t.numel() % known == 0;
  TS_CHECK(fits, "shape '", shape, "' is invalid for input of size ", t.numel());
  if (open >= 0) shape[open] = t.numel() / known;
  return shape;
}

namespace {

// The same bytes read as elements of another size: the last dimension grows or shrinks.
TensorBase viewed_as(const TensorBase& t, DType dtype) {
  int64_t from = static_cast<int64_t>(itemsize(t.dtype()));
  int64_t to = static_cast<int64_t>(itemsize(dtype));
  if (from == to) return alias_as(t, dtype, t.sizes(), t.strides(), t.storage_offset());
  std::string what = cat(" to view ", dtype_title(t.dtype()), " as ", dtype_title(dtype),
                         " (different element sizes)");
  TS_CHECK(t.dim() != 0, "self.dim() cannot be 0", what);
  Dims sizes = t.sizes(), strides = t.strides();
  size_t last = sizes.size() - 1;
  TS_CHECK(strides[last] == 1, "self.stride(-1) must be 1", what, ", but got ", strides[last]);
  if (to < from) {
    int64_t parts = from / to;
    for (int64_t& s : strides) s *= parts;
    strides[last] = 1;
    sizes[last] *= parts;
    return alias_as(t, dtype, sizes, strides, t.storage_offset() * parts);
  }
  int64_t parts = to / from;
  TS_CHECK(sizes[last] % parts == 0, "self.size(-1) must be divisible by ", parts, what,
           ", but got ", sizes[last]);
  TS_CHECK(t.storage_offset() % parts == 0, "self.storage_offset() must be divisible by ", parts,
           what, ", but got ", t.storage_offset());
  for (size_t d = 0; d < last; ++d) {
    TS_CHECK(strides[d] % parts == 0, "self.stride(", d, ") must be divisible by ", parts, what,
             ", but got ", strides[d]);
    strides[d] /= parts;
  }
  sizes[last] /= parts;
  return alias_as(t, dtype, sizes, strides, t.storage_offset() / parts);
}

}  // namespace

TS_OP({
    .schema = "view(Tensor self, int... size) -> Tensor",
    .doc = "A view in another shape; raises where that would need a copy.",
    .example = "torch.ones(2, 3).view(3, 2).shape",
    .kind = Kind::kView,
    .forms = kMethod,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& t = c.tensor(0);
      Dims shape = complete_shape(t, c.ints(1)), strides;
      TS_CHECK(view_strides(t, shape, strides),
               "view size is not compatible with input tensor's size and stride (at least one "
               "dimension spans across two contiguous subspaces). Use .reshape(...) instead.");
      return alias(t, shape, strides, t.storage_offset());
    },
    .backward = [](Backward& b) { b.set(0, op::reshape(b.grad, b.shape(0).span())); },
    .samples = {{"T(3, 4), (4, 3)"}, {"T(3, 4), (-1,)"}},
});

TS_OP({
    .schema = "view(Tensor self, dtype dtype) -> Tensor",
    .doc = "The same memory read as elements of another dtype.",
    .example = "torch.tensor([1.0]).view(torch.int32)",
    .forms = kMethod,
    .run = [](const Call& c) -> Outputs { return viewed_as(c.tensor(0), c.args[1].dtype); },
    .not_differentiable = true,
});

TS_OP({
    .schema = "view_as(Tensor self, Tensor other) -> Tensor",
    .doc = "A view in the shape of another tensor.",
    .example = "torch.arange(6).view_as(torch.ones(2, 3))",
    .forms = kMethod,
    .run = [](const Call& c) -> Outputs {
      return op::view(c.tensor(0), c.tensor(1).sizes().span());
    },
    .samples = {{"T(3, 4), B(4, 3)"}},
});

TS_OP({
    .schema = "reshape(Tensor self, int... shape) -> Tensor",
    .doc = "The same elements in another shape: a view where possible, else a copy.",
    .example = "torch.reshape(torch.ones(2, 3), (3, 2)).shape",
    .run = [](const Call& c) -> Outputs {
      const TensorBase& t = c.tensor(0);
      Dims shape = complete_shape(t, c.ints(1)), strides;
      if (view_strides(t, shape, strides)) return op::view(t, shape.span());
      return op::view(op::contiguous(t), shape.span());
    },
    .samples = {{"T(3, 4), (4, 3)"}, {"T(3, 4), (2, -1)"}},
});

TS_OP({
    .schema = "reshape_as(Tensor self, Tensor other) -> Tensor",
    .doc = "The same elements in the shape of another tensor.",
    .example = "torch.arange(6).reshape_as(torch.ones(2, 3))",
    .forms = kMethod,
    .run = [](const Call& c) -> Outputs {
      return op::reshape(c.tensor(0), c.tensor(1).sizes().span());
    },
    .samples = {{"T(3, 4), B(4, 3)"}},
});

TS_OP({
    .schema = "flatten(Tensor self, int start_dim=0, int end_dim=-1) -> Tensor",
    .doc = "Several dimensions made one; a number becomes a vector of one element.",
    .example = "torch.flatten(torch.ones(2, 3, 4), 1).shape",
    .run = [](const Call& c) -> Outputs {
      const TensorBase& t = c.tensor(0);
      int first = wrap_dim(c.integer(1), t.dim()), last = wrap_dim(c.integer(2), t.dim());
      TS_CHECK(first <= last, "flatten() has invalid args: start_dim cannot come after end_dim");
      if (t.dim() == 0) return op::reshape(t, Dims{1}.span());
      if (first == last) return t;
      Dims shape;
      int64_t together = 1;
      for (int d = 0; d < t.dim(); ++d) {
        if (d < first || d > last) {
          shape.push_back(t.sizes()[d]);
          continue;
        }
        together *= t.sizes()[d];
        if (d == last) shape.push_back(together);
      }
      return op::reshape(t, shape.span());
    },
    .samples = {{"T(2, 3, 4)"}, {"T(2, 3, 4), 1"}, {"T(2, 3, 4), 0, 1"}, {"T()"}},
});

TS_OP({
    .schema = "unflatten(Tensor self, int dim, int[] sizes) -> Tensor",
    .doc = "A view with one dimension cut into several.",
    .example = "torch.unflatten(torch.ones(2, 6), 1, (2, -1)).shape",
    .run = [](const Call& c) -> Outputs {
      const TensorBase& t = c.tensor(0);
      TS_CHECK(!c.ints(2).empty(), "unflatten: sizes must be non-empty");
      size_t dim = static_cast<size_t>(wrap_dim(c.integer(1), t.dim()));
      int64_t size = t.dim() > 0 ? t.sizes()[dim] : 1, known = 1;
      Dims pieces = c.ints(2);
      int open = -1;
      for (int i = 0; i < pieces.ndim(); ++i) {
        if (pieces[i] == -1) {
          TS_CHECK(open < 0, "only one dimension can be inferred");
          open = i;
        } else {
          TS_CHECK(pieces[i] >= 0, "invalid shape dimension ", pieces[i]);
          known *= pieces[i];
        }
      }
      bool fits = open < 0 ? known == size : known != 0 && size % known == 0;
      TS_CHECK(fits, "unflatten: Provided sizes ", pieces, " don't multiply up to the size of dim ",
               dim, " (", size, ") in the input tensor");
      if (open >= 0) pieces[open] = size / known;
      Dims shape;
      for (size_t d = 0; d < t.sizes().size(); ++d) {
        if (d != dim) shape.push_back(t.sizes()[d]);
        if (d == dim)
          for (int64_t n : pieces) shape.push_back(n);
      }
      if (t.dim() == 0) shape = pieces;
      return op::view(t, shape.span());
    },
    .samples = {{"T(2, 6), 1, (2, -1)"}, {"T(4, 3), 0, (2, 2)"}},
});

TS_OP({
    .schema = "ravel(Tensor self) -> Tensor",
    .doc = "All elements in one dimension: a view where possible, else a copy.",
    .example = "torch.ravel(torch.ones(2, 3)).shape",
    .run = [](const Call& c) -> Outputs {
      return op::view(op::contiguous(c.tensor(0)), Dims{-1}.span());
    },
    .samples = {{"T(2, 3)"}, {"T()"}},
});

TS_OP({
    .schema = "sum_to_size(Tensor self, int... size) -> Tensor",
    .doc = "The sum over what would have been broadcast from the size.",
    .example = "torch.ones(2, 3).sum_to_size(1, 3)",
    .forms = kMethod,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& t = c.tensor(0);
      Dims size = c.ints(1), summed;
      int lead = t.dim() - size.ndim();
      bool fits = lead >= 0;
      for (int d = 0; fits && d < t.dim(); ++d) {
        int64_t want = d < lead ? 1 : size[d - lead];
        fits = want == t.sizes()[d] || want == 1;
        if (d < lead || (want == 1 && t.sizes()[d] != 1)) summed.push_back(d);
      }
      TS_CHECK(fits, "size {", size, "} is not expandable to size {", t.sizes(), "}.");
      if (size.empty()) return op::sum(t);
      if (summed.empty()) return t;
      return op::view(op::sum(t, summed.span(), true), size.span());
    },
    .samples = {{"T(2, 3), (1, 3)"}, {"T(2, 3), (3,)"}, {"T(2, 3), (2, 3)"}},
});

TS_OP({
    .schema = "is_same_size(Tensor self, Tensor other) -> bool",
    .doc = "Have both tensors the same shape?",
    .example = "torch.is_same_size(torch.ones(2), torch.zeros(2))",
    .run = [](const Call& c) -> Outputs {
      TensorBase out = new_empty({}, DType::kBool, Device{});
      *out.raw() = c.tensor(0).sizes() == c.tensor(1).sizes();
      return out;
    },
    .not_differentiable = true,
});

}  // namespace tessera
