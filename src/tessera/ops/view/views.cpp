#include "tessera/gen/copy.h"
#include "tessera/gen/view.h"

namespace tessera {

TS_OP({
    .schema = "transpose(Tensor self, int dim0, int dim1) -> Tensor",
    .doc = "A view with two dimensions exchanged.",
    .example = "torch.transpose(torch.ones(2, 3), 0, 1).shape",
    .kind = Kind::kView,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& t = c.tensor(0);
      int a = wrap_dim(c.integer(1), t.dim());
      int b = wrap_dim(c.integer(2), t.dim());
      Dims sizes = t.sizes(), strides = t.strides();
      if (t.dim() > 0) {
        std::swap(sizes[a], sizes[b]);
        std::swap(strides[a], strides[b]);
      }
      return alias(t, sizes, strides, t.storage_offset());
    },
    .backward = [](Backward& b) { b.set(0, op::transpose(b.grad, b.integer(1), b.integer(2))); },
    .samples = {{"T(3, 4), 0, 1"}, {"T(2, 3, 4), 0, -1"}, {"T(), 0, 0"}},
});

TS_OP({
    .schema = "t(Tensor self) -> Tensor",
    .doc = "A matrix's transpose, as a view; a vector or number stays as it is.",
    .example = "torch.ones(2, 3).t().shape",
    .run = [](const Call& c) -> Outputs {
      const TensorBase& t = c.tensor(0);
      TS_CHECK(t.dim() <= 2, "t() expects a tensor with <= 2 dimensions, but self is ", t.dim(),
               "D");
      return t.dim() == 2 ? op::transpose(t, 0, 1) : op::expand(t, t.sizes().span());
    },
    .samples = {{"T(3, 4)"}, {"T(3)"}},
});

TS_OP({
    .schema = "permute(Tensor self, int... dims) -> Tensor",
    .doc = "A view with the dimensions in another order.",
    .example = "torch.permute(torch.ones(2, 3, 4), (2, 0, 1)).shape",
    .kind = Kind::kView,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& t = c.tensor(0);
      Dims order = c.ints(1);
      TS_CHECK(order.ndim() == t.dim(),
               "permute(sparse_coo): number of dimensions in the tensor "
               "input does not match the length of the desired ordering of dimensions i.e. "
               "input.dim() = ",
               t.dim(), " is not equal to len(dims) = ", order.ndim());
      Dims sizes, strides;
      uint64_t seen = 0;
      for (int64_t& d : order) {
        d = wrap_dim(d, t.dim());
        TS_CHECK(!(seen >> d & 1), "permute(): duplicate dims are not allowed.");
        seen |= uint64_t{1} << d;
        sizes.push_back(t.sizes()[d]);
        strides.push_back(t.strides()[d]);
      }
      return alias(t, sizes, strides, t.storage_offset());
    },
    .backward =
        [](Backward& b) {
          Dims order = b.ints(1);
          Dims inverse(order.size());
          for (size_t i = 0; i < order.size(); ++i)
            inverse[wrap_dim(order[i], order.ndim())] = static_cast<int64_t>(i);
          b.set(0, op::permute(b.grad, inverse.span()));
        },
    .samples = {{"T(2, 3, 4), (2, 0, 1)"}},
});

TS_OP({
    .schema = "unsqueeze(Tensor self, int dim) -> Tensor",
    .doc = "A view with a dimension of size one put in.",
    .example = "torch.unsqueeze(torch.ones(3), 0).shape",
    .kind = Kind::kView,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& t = c.tensor(0);
      size_t d = static_cast<size_t>(wrap_dim(c.integer(1), t.dim() + 1));
      Dims sizes = t.sizes(), strides = t.strides();
      int64_t stride = d < sizes.size() ? sizes[d] * strides[d] : 1;
      sizes.insert(d, 1);
      strides.insert(d, stride);
      return alias(t, sizes, strides, t.storage_offset());
    },
    .backward = [](Backward& b) { b.set(0, op::squeeze(b.grad, b.integer(1))); },
    .samples = {{"T(3, 4), 0"}, {"T(3, 4), -1"}, {"T(), 0"}},
});

TS_OP({
    .schema = "squeeze(Tensor self, int dim) -> Tensor",
    .doc = "A view without the dimension, if that has size one.",
    .example = "torch.squeeze(torch.ones(3, 1), 1).shape",
    .kind = Kind::kView,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& t = c.tensor(0);
      size_t d = static_cast<size_t>(wrap_dim(c.integer(1), t.dim()));
      Dims sizes = t.sizes(), strides = t.strides();
      if (t.dim() > 0 && sizes[d] == 1) {
        sizes.erase(d);
        strides.erase(d);
      }
      return alias(t, sizes, strides, t.storage_offset());
    },
    .backward = [](Backward& b) { b.set(0, op::reshape(b.grad, b.shape(0).span())); },
    .samples = {{"T(3, 1, 4), 1"}, {"T(3, 4), 0"}},
});

TS_OP({
    .schema = "expand(Tensor self, int... size) -> Tensor",
    .doc = "A view in which dimensions of size one are repeated without memory.",
    .example = "torch.ones(3, 1).expand(3, 4).shape",
    .kind = Kind::kView,
    .forms = kMethod,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& t = c.tensor(0);
      Dims to = c.ints(1);
      int lead = to.ndim() - t.dim();
      TS_CHECK(lead >= 0, "expand: the number of sizes provided (", to.ndim(),
               ") must be greater or equal to the number of dimensions in the tensor (", t.dim(),
               ")");
      Dims strides(to.size());
      for (int d = 0; d < to.ndim(); ++d) {
        int64_t have = d < lead ? 1 : t.sizes()[d - lead];
        if (to[d] == -1) {
          TS_CHECK(d >= lead,
                   "The expanded size of the tensor (-1) isn't allowed in a leading, "
                   "non-existing dimension ",
                   d);
          to[d] = have;
        }
        TS_CHECK(to[d] >= 0 && (have == to[d] || have == 1), "The expanded size of the tensor (",
                 to[d], ") must match the existing size (", have, ") at non-singleton dimension ",
                 d, ".  Target sizes: ", to, ".  Tensor sizes: ", t.sizes());
        strides[d] = d >= lead && have == to[d] ? t.strides()[d - lead] : 0;
      }
      return alias(t, to, strides, t.storage_offset());
    },
    .backward = [](Backward& b) { b.set(0, b.grad); },  // the engine sums what was repeated
    .samples = {{"T(3, 1), (3, 4)"}, {"T(3), (2, 3)"}, {"T(3, 1), (-1, 4)"}},
});

namespace {

// Strides that show `t` in the new shape without a copy; false if there are none.
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

// Fills in a -1.
Dims complete_shape(const TensorBase& t, Dims shape) {
  int64_t known = 1;
  int open = -1;
  for (int d = 0; d < shape.ndim(); ++d) {
    if (shape[d] == -1) {
      TS_CHECK(open < 0, "only one dimension can be inferred");
      open = d;
    } else {
      TS_CHECK(shape[d] >= 0, "invalid shape dimension ", shape[d]);
      known *= shape[d];
    }
  }
  bool fits = open < 0 ? known == t.numel() : known != 0 && t.numel() % known == 0;
  TS_CHECK(fits, "shape '", shape, "' is invalid for input of size ", t.numel());
  if (open >= 0) shape[open] = t.numel() / known;
  return shape;
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

}  // namespace tessera
