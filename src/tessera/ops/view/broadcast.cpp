// Several tensors brought to one shape or to a number of dimensions.
#include "tessera/gen/view.h"

namespace tessera {

namespace {

TensorBase at_least(const TensorBase& t, int dims) {
  if (t.dim() >= dims) return t;
  if (t.dim() == 0) return op::reshape(t, Dims(static_cast<size_t>(dims), 1).span());
  TensorBase out = t.dim() == 1 && dims >= 2 ? op::unsqueeze(t, 0) : t;
  return dims == 3 ? op::unsqueeze(out, -1) : out;
}

Outputs all_at_least(const Call& c, int dims) {
  std::vector<TensorBase> out;
  for (const TensorBase& t : c.tensors(0)) out.push_back(at_least(t, dims));
  return out;
}

}  // namespace

TS_OP({
    .schema = "atleast_1d(Tensor self) -> Tensor",
    .doc = "The tensor, a number as a vector.",
    .example = "torch.atleast_1d(torch.tensor(2.0))",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs { return at_least(c.tensor(0), 1); },
    .samples = {{"T()"}, {"T(3)"}},
});
TS_OP({
    .schema = "atleast_1d(Tensor... tensors) -> Tensor[]",
    .doc = "The tensors, numbers as vectors.",
    .example = "torch.atleast_1d(torch.tensor(2.0), torch.ones(2))",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs { return all_at_least(c, 1); },
});

TS_OP({
    .schema = "atleast_2d(Tensor self) -> Tensor",
    .doc = "The tensor with at least two dimensions: a vector becomes a row.",
    .example = "torch.atleast_2d(torch.ones(3)).shape",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs { return at_least(c.tensor(0), 2); },
    .samples = {{"T()"}, {"T(3)"}, {"T(2, 3)"}},
});
TS_OP({
    .schema = "atleast_2d(Tensor... tensors) -> Tensor[]",
    .doc = "The tensors with at least two dimensions.",
    .example = "torch.atleast_2d(torch.tensor(2.0), torch.ones(2))",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs { return all_at_least(c, 2); },
});

TS_OP({
    .schema = "atleast_3d(Tensor self) -> Tensor",
    .doc = "The tensor with at least three dimensions: a vector becomes (1, n, 1).",
    .example = "torch.atleast_3d(torch.ones(3)).shape",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs { return at_least(c.tensor(0), 3); },
    .samples = {{"T()"}, {"T(3)"}, {"T(2, 3)"}},
});
TS_OP({
    .schema = "atleast_3d(Tensor... tensors) -> Tensor[]",
    .doc = "The tensors with at least three dimensions.",
    .example = "torch.atleast_3d(torch.tensor(2.0), torch.ones(2))",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs { return all_at_least(c, 3); },
});

TS_OP({
    .schema = "broadcast_tensors(Tensor... tensors) -> Tensor[]",
    .doc = "Views of all tensors in the shape that they broadcast to.",
    .example = "torch.broadcast_tensors(torch.ones(3, 1), torch.zeros(2))",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      Dims shape;
      for (const TensorBase& t : c.tensors(0)) shape = broadcast_shapes(shape, t.sizes());
      std::vector<TensorBase> out;
      for (const TensorBase& t : c.tensors(0)) out.push_back(op::expand(t, shape.span()));
      return out;
    },
    .samples = {{"T(3, 1), T(2)"}},
});

TS_OP({
    .schema = "meshgrid(Tensor... tensors, *, str? indexing=None) -> Tensor[]",
    .doc = "Coordinates of a grid: each vector repeated, as a view, along all the others. With "
           "indexing=\"xy\" the first two dimensions are exchanged.",
    .example = "torch.meshgrid(torch.tensor([1, 2]), torch.tensor([3, 4, 5]), indexing='ij')",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      std::span<const TensorBase> given = c.tensors(0);
      TS_CHECK(!given.empty(), "meshgrid expects a non-empty TensorList");
      std::string_view indexing = c.has(1) ? c.text(1) : "ij";
      TS_CHECK(
          indexing == "ij" || indexing == "xy",
          "torch.meshgrid: indexing must be one of \"xy\" or \"ij\", but received: ", indexing);
      Dims shape;
      for (const TensorBase& t : given) {
        TS_CHECK(t.dim() <= 1,
                 "torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: ", t.dim(),
                 "-D tensor of shape ", t.sizes());
        TS_CHECK(t.dtype() == given[0].dtype(),
                 "torch.meshgrid expects all tensors to have the same dtype");
        TS_CHECK(t.device() == given[0].device(),
                 "torch.meshgrid expects all tensors to have the same device");
        shape.push_back(t.numel());
      }
      bool swap = indexing == "xy" && given.size() >= 2;
      std::vector<TensorBase> out;
      for (size_t i = 0; i < given.size(); ++i) {
        Dims one(shape.size(), 1);
        one[i] = shape[i];
        TensorBase grid = op::expand(op::view(given[i], one.span()), shape.span());
        out.push_back(swap ? op::transpose(grid, 0, 1) : grid);
      }
      return out;
    },
    .samples = {{"T(2), T(3)"}, {"T(2), T(3), indexing='xy'"}},
});

}  // namespace tessera
