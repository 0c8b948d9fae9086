// Views with dimensions of size one put in, left out or repeated.
#include "tessera/gen/view.h"

namespace tessera {

namespace {

// Without the dimensions of size one that are marked.
TensorBase squeezed(const TensorBase& t, uint64_t marked) {
  Dims sizes, strides;
  for (int d = 0; d < t.dim(); ++d) {
    if ((marked >> d & 1) && t.sizes()[d] == 1) continue;
    sizes.push_back(t.sizes()[d]);
    strides.push_back(t.strides()[d]);
  }
  return alias(t, sizes, strides, t.storage_offset());
}

void squeeze_backward(Backward& b) { b.set(0, op::reshape(b.grad, b.shape(0).span())); }

}  // namespace

TS_OP({
    .schema = "unsqueeze(Tensor self, int dim) -> Tensor",
    .doc = "A view with a dimension of size one put in.",
    .example = "torch.unsqueeze(torch.ones(3), 0).shape",
    .kind = Kind::kView,
    .forms = kFunction | kMethod | kInplace,
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
    .schema = "squeeze(Tensor self) -> Tensor",
    .doc = "A view without the dimensions of size one; of all, of one, or of several.",
    .example = "torch.squeeze(torch.ones(1, 3, 1)).shape",
    .kind = Kind::kView,
    .forms = kFunction | kMethod | kInplace,
    .run = [](const Call& c) -> Outputs { return squeezed(c.tensor(0), ~uint64_t{0}); },
    .backward = squeeze_backward,
    .samples = {{"T(3, 1, 4)"}, {"T(1, 1)"}},
});

TS_OP({
    .schema = "squeeze(Tensor self, int dim) -> Tensor",
    .doc = "A view without the dimension, if that has size one.",
    .example = "torch.squeeze(torch.ones(3, 1), 1).shape",
    .kind = Kind::kView,
    .forms = kFunction | kMethod | kInplace,
    .run = [](const Call& c) -> Outputs {
      return squeezed(c.tensor(0), uint64_t{1} << wrap_dim(c.integer(1), c.tensor(0).dim()));
    },
    .backward = squeeze_backward,
    .samples = {{"T(3, 1, 4), 1"}, {"T(3, 4), 0"}},
});

TS_OP({
    .schema = "squeeze(Tensor self, int[] dim) -> Tensor",
    .doc = "A view without those of the dimensions that have size one.",
    .example = "torch.squeeze(torch.ones(1, 3, 1), (0, 2)).shape",
    .kind = Kind::kView,
    .forms = kFunction | kMethod | kInplace,
    .run = [](const Call& c) -> Outputs {
      uint64_t marked = 0;
      for (int64_t d : c.ints(1)) {
        int at = wrap_dim(d, c.tensor(0).dim());
        TS_CHECK(!(marked >> at & 1), "dim ", at, " appears multiple times in the list of dims");
        marked |= uint64_t{1} << at;
      }
      return squeezed(c.tensor(0), marked);
    },
    .backward = squeeze_backward,
});

TS_OP({
    .schema = "expand(Tensor self, int... size, *, bool implicit=False) -> Tensor",
    .doc = "A view in which dimensions of size one are repeated without memory.",
    .example = "torch.ones(3, 1).expand(3, 4).shape",
    .kind = Kind::kView,
    .forms = kMethod,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& t = c.tensor(0);
      Dims to = c.ints(1);
      int lead = to.ndim() - t.dim();
      TS_CHECK(lead >= 0, "expand(): the number of sizes provided (", to.ndim(),
               ") must be greater or equal to the number of dimensions in the tensor (", t.dim(),
               ")");
      Dims strides(to.size());
      for (int d = to.ndim() - 1; d >= 0; --d) {
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
                 d, ".  Target sizes: ", c.ints(1), ".  Tensor sizes: ", t.sizes());
        const bool repeated = have != to[d] || t.dim() == 0;
        strides[d] = repeated ? 0 : d >= lead ? t.strides()[d - lead] : to[d + 1] * strides[d + 1];
      }
      checked_numel(to, t.dtype());
      return alias(t, to, strides, t.storage_offset());
    },
    .backward = [](Backward& b) { b.set(0, b.grad); },  // the engine sums what was repeated
    .samples = {{"T(3, 1), (3, 4)"}, {"T(3), (2, 3)"}, {"T(3, 1), (-1, 4)"}},
});

TS_OP({
    .schema = "expand_as(Tensor self, Tensor other) -> Tensor",
    .doc = "A view expanded to the shape of another tensor.",
    .example = "torch.ones(3, 1).expand_as(torch.zeros(3, 4)).shape",
    .forms = kMethod,
    .run = [](const Call& c) -> Outputs {
      return op::expand(c.tensor(0), c.tensor(1).sizes().span());
    },
    .samples = {{"T(3, 1), B(3, 4)"}},
});

TS_OP({
    .schema = "broadcast_to(Tensor self, int[] size) -> Tensor",
    .doc = "A view expanded to a shape.",
    .example = "torch.broadcast_to(torch.ones(3), (2, 3))",
    .run = [](const Call& c) -> Outputs { return op::expand(c.tensor(0), c.ints(1).span()); },
    .samples = {{"T(3), (2, 3)"}, {"T(3, 1), (3, 4)"}},
});

TS_OP({
    .schema = "detach(Tensor self) -> Tensor",
    .doc = "The same memory, outside the graph.",
    .example = "torch.detach(torch.ones(2, requires_grad=True))",
    .run = [](const Call& c) -> Outputs {
      const TensorBase& t = c.tensor(0);
      TensorBase out = alias(t, t.sizes(), t.strides(), t.storage_offset());
      detach_inference(out);
      return out;
    },
    .not_differentiable = true,
    .samples = {{"T(3, 4)"}},
});

}  // namespace tessera
