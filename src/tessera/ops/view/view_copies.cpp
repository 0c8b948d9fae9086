// Views, copied at once: what a program calls whose results must not share memory.
#include "tessera/gen/copy.h"
#include "tessera/gen/view.h"

namespace tessera {

namespace {

TensorBase copied(const TensorBase& view) { return op::clone(view, MemoryFormat::kContiguous); }

Outputs copied(const std::vector<TensorBase>& views) {
  std::vector<TensorBase> out;
  for (const TensorBase& v : views) out.push_back(copied(v));
  return out;
}

std::optional<int64_t> maybe_int(const Call& c, int i) {
  return c.has(i) ? std::optional<int64_t>(c.integer(i)) : std::nullopt;
}

}  // namespace

TS_OP({
    .schema = "alias_copy(Tensor self) -> Tensor",
    .doc = "A copy; the copying form of a plain alias.",
    .example = "torch.alias_copy(torch.ones(2))",
    .forms = kFunction | kOut,
    .run = [](const Call& c) -> Outputs {
      return op::clone(c.tensor(0), MemoryFormat::kContiguous);
    },
    .samples = {{"T(3, 4)"}},
});

TS_OP({
    .schema = "detach_copy(Tensor self) -> Tensor",
    .doc = "A copy outside the graph.",
    .example = "torch.detach_copy(torch.ones(2))",
    .forms = kFunction | kOut,
    .run = [](const Call& c) -> Outputs {
      return op::clone(op::detach(c.tensor(0)), MemoryFormat::kContiguous);
    },
    .not_differentiable = true,
    .reference = "self",
    .samples = {{"T(3, 4)"}},
});

TS_OP({
    .schema = "as_strided_copy(Tensor self, int[] size, int[] stride, int? storage_offset=None) -> "
              "Tensor",
    .doc = "as_strided, copied.",
    .example = "torch.as_strided_copy(torch.arange(6), (2, 2), (2, 1))",
    .forms = kFunction | kOut,
    .run = [](const Call& c) -> Outputs {
      return copied(
          op::as_strided(c.tensor(0), c.ints(1).span(), c.ints(2).span(), maybe_int(c, 3)));
    },
});

TS_OP({
    .schema = "diagonal_copy(Tensor self, int offset=0, int dim1=0, int dim2=1) -> Tensor",
    .doc = "diagonal, copied.",
    .example = "torch.diagonal_copy(torch.ones(2, 2))",
    .forms = kFunction | kOut,
    .run = [](const Call& c) -> Outputs {
      return copied(op::diagonal(c.tensor(0), c.integer(1), c.integer(2), c.integer(3)));
    },
    .samples = {{"T(3, 4)"}},
});

TS_OP({
    .schema = "expand_copy(Tensor self, int[] size, *, bool implicit=False) -> Tensor",
    .doc = "expand, copied.",
    .example = "torch.expand_copy(torch.ones(2, 1), (2, 2))",
    .forms = kFunction | kOut,
    .run = [](const Call& c) -> Outputs {
      return copied(op::expand(c.tensor(0), c.ints(1).span()));
    },
    .samples = {{"T(3, 1), (3, 4)"}},
});

TS_OP({
    .schema = "narrow_copy(Tensor self, int dim, int start, int length) -> Tensor",
    .doc = "narrow, copied.",
    .example = "torch.narrow_copy(torch.arange(4), 0, 1, 2)",
    .forms = kFunction | kOut,
    .run = [](const Call& c) -> Outputs {
      const int64_t dim = c.integer(1), dims = c.tensor(0).dim();
      TS_CHECK(dim < dims, "narrow_copy(): expected dim < ", dims, ", but got ", dim);
      return copied(op::narrow(c.tensor(0), dim, c.integer(2), c.integer(3)));
    },
    .samples = {{"T(5, 4), 0, 1, 3"}},
});

TS_OP({
    .schema = "permute_copy(Tensor self, int[] dims) -> Tensor",
    .doc = "permute, copied.",
    .example = "torch.permute_copy(torch.ones(2, 3), (1, 0))",
    .forms = kFunction | kOut,
    .run = [](const Call& c) -> Outputs {
      return copied(op::permute(c.tensor(0), c.ints(1).span()));
    },
    .samples = {{"T(2, 3, 4), (2, 0, 1)"}},
});

TS_OP({
    .schema = "select_copy(Tensor self, int dim, int index) -> Tensor",
    .doc = "select, copied.",
    .example = "torch.select_copy(torch.ones(2, 3), 0, 1)",
    .forms = kFunction | kOut,
    .run = [](const Call& c) -> Outputs {
      return copied(op::select(c.tensor(0), c.integer(1), c.integer(2)));
    },
    .samples = {{"T(2, 3), 0, 1"}},
});

TS_OP({
    .schema =
        "slice_copy(Tensor self, int dim=0, int? start=None, int? end=None, int step=1) -> Tensor",
    .doc = "slice, copied.",
    .example = "torch.slice_copy(torch.arange(4), 0, 1, 3)",
    .forms = kFunction | kOut,
    .run = [](const Call& c) -> Outputs {
      return copied(
          op::slice(c.tensor(0), c.integer(1), maybe_int(c, 2), maybe_int(c, 3), c.integer(4)));
    },
    .samples = {{"T(5, 4), 0, 1, 2"}},
});

TS_OP({
    .schema = "squeeze_copy(Tensor self) -> Tensor",
    .doc = "squeeze, copied.",
    .example = "torch.squeeze_copy(torch.ones(2, 1))",
    .forms = kFunction | kOut,
    .run = [](const Call& c) -> Outputs { return copied(op::squeeze(c.tensor(0))); },
    .samples = {{"T(3, 1)"}},
});

TS_OP({
    .schema = "squeeze_copy(Tensor self, int dim) -> Tensor",
    .doc = "squeeze, copied.",
    .example = "torch.squeeze_copy(torch.ones(2, 1), 1)",
    .forms = kFunction | kOut,
    .run = [](const Call& c) -> Outputs { return copied(op::squeeze(c.tensor(0), c.integer(1))); },
    .samples = {{"T(3, 1), 1"}},
});

TS_OP({
    .schema = "squeeze_copy(Tensor self, int[] dim) -> Tensor",
    .doc = "squeeze, copied.",
    .example = "torch.squeeze_copy(torch.ones(2, 1), (0, 1))",
    .forms = kFunction | kOut,
    .run = [](const Call& c) -> Outputs {
      return copied(op::squeeze(c.tensor(0), c.ints(1).span()));
    },
});

TS_OP({
    .schema = "t_copy(Tensor self) -> Tensor",
    .doc = "t, copied.",
    .example = "torch.t_copy(torch.ones(2, 3)).shape",
    .forms = kFunction | kOut,
    .run = [](const Call& c) -> Outputs { return copied(op::t(c.tensor(0))); },
    .samples = {{"T(3, 4)"}},
});

TS_OP({
    .schema = "transpose_copy(Tensor self, int dim0, int dim1) -> Tensor",
    .doc = "transpose, copied.",
    .example = "torch.transpose_copy(torch.ones(2, 3), 0, 1).shape",
    .forms = kFunction | kOut,
    .run = [](const Call& c) -> Outputs {
      return copied(op::transpose(c.tensor(0), c.integer(1), c.integer(2)));
    },
    .samples = {{"T(3, 4), 0, 1"}},
});

TS_OP({
    .schema = "unfold_copy(Tensor self, int dimension, int size, int step) -> Tensor",
    .doc = "The windows along a dimension, copied.",
    .example = "torch.unfold_copy(torch.arange(4), 0, 2, 1)",
    .forms = kFunction | kOut,
    .run = [](const Call& c) -> Outputs {
      return copied(op::unfold(c.tensor(0), c.integer(1), c.integer(2), c.integer(3)));
    },
    .samples = {{"T(7), 0, 3, 2"}},
});

TS_OP({
    .schema = "unsqueeze_copy(Tensor self, int dim) -> Tensor",
    .doc = "unsqueeze, copied.",
    .example = "torch.unsqueeze_copy(torch.ones(2), 0).shape",
    .forms = kFunction | kOut,
    .run = [](const Call& c) -> Outputs {
      return copied(op::unsqueeze(c.tensor(0), c.integer(1)));
    },
    .samples = {{"T(3), 0"}},
});

TS_OP({
    .schema = "view_copy(Tensor self, int[] size) -> Tensor",
    .doc = "view, copied.",
    .example = "torch.view_copy(torch.ones(2, 3), (6,))",
    .forms = kFunction | kOut,
    .run = [](const Call& c) -> Outputs {
      TensorBase out = op::reshape(c.tensor(0), c.ints(1).span());
      return &out.storage() == &c.tensor(0).storage() ? copied(out) : out;
    },
    .samples = {{"T(3, 4), (4, 3)"}},
});

TS_OP({
    .schema = "view_copy(Tensor self, dtype dtype) -> Tensor",
    .doc = "view as another dtype, copied.",
    .example = "torch.view_copy(torch.ones(2), torch.int32)",
    .forms = kFunction | kOut,
    .run = [](const Call& c) -> Outputs { return copied(op::view(c.tensor(0), c.args[1].dtype)); },
});

TS_OP({
    .schema = "split_copy(Tensor self, int split_size, int dim=0) -> Tensor[]",
    .doc = "split, copied.",
    .example = "torch.split_copy(torch.arange(5), 2)",
    .forms = kFunction | kOut,
    .run = [](const Call& c) -> Outputs {
      return copied(op::split(c.tensor(0), c.integer(1), c.integer(2)));
    },
    .samples = {{"T(5, 4), 2"}},
});

TS_OP({
    .schema = "split_with_sizes_copy(Tensor self, int[] split_sizes, int dim=0) -> Tensor[]",
    .doc = "split_with_sizes, copied.",
    .example = "torch.split_with_sizes_copy(torch.arange(5), [2, 3])",
    .forms = kFunction | kOut,
    .run = [](const Call& c) -> Outputs {
      return copied(op::split_with_sizes(c.tensor(0), c.ints(1).span(), c.integer(2)));
    },
    .samples = {{"T(5, 4), [2, 3]"}},
});

TS_OP({
    .schema = "unbind_copy(Tensor self, int dim=0) -> Tensor[]",
    .doc = "unbind, copied.",
    .example = "torch.unbind_copy(torch.ones(2, 2))",
    .forms = kFunction | kOut,
    .run = [](const Call& c) -> Outputs { return copied(op::unbind(c.tensor(0), c.integer(1))); },
    .samples = {{"T(3, 4), 1"}},
});

}  // namespace tessera
