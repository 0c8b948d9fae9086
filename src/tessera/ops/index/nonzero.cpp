#include "tessera/gen/copy.h"
#include "tessera/gen/creation.h"
#include "tessera/gen/index.h"
#include "tessera/gen/view.h"
#include "tessera/ops/index/positions.h"

namespace tessera {

Positions count_positions(const TensorBase& t) {
  TS_CHECK_IMPLEMENTED(!t.device().is_meta(),
                       "the number of elements that are not zero is not known on the meta device");
  int64_t blocks = (t.numel() + kPositionBlock - 1) / kPositionBlock;
  TensorBase starts = new_empty({blocks + 1}, DType::kInt64, t.device());
  launch("count_nonzero_blocks", {&starts, 1}, {&t, 1}, {&kPositionBlock, 1});
  return {starts, host_scalar(alias(starts, {}, {}, blocks)).to_int()};
}

TS_OP({
    .schema = "nonzero(Tensor self) -> Tensor",
    .doc = "The positions of all elements that are not zero, a row of coordinates each.",
    .example = "torch.nonzero(torch.tensor([[0, 1], [2, 0]]))",
    .kind = Kind::kKernel,
    .forms = kFunction | kMethod | kOut,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& self = c.tensor(0);
      Positions found = count_positions(self);
      TensorBase out = new_empty({found.count, self.dim()}, DType::kInt64, self.device());
      TensorBase in[] = {self, found.starts};
      if (out.numel() > 0) launch("nonzero", {&out, 1}, in, {&kPositionBlock, 1});
      return out;
    },
    .exact_out = true,
    .not_differentiable = true,
    .samples = {{"B(3, 4)"}, {"T(5)"}, {"B(2, 0)"}},
});

// Positions in row-major order, as one number each.
TS_OP({
    .schema = "_flat_nonzero(Tensor self) -> Tensor",
    .kind = Kind::kKernel,
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& self = c.tensor(0);
      Positions found = count_positions(self);
      TensorBase out = new_empty({found.count}, DType::kInt64, self.device());
      TensorBase in[] = {self, found.starts};
      if (found.count > 0) launch("nonzero", {&out, 1}, in, {&kPositionBlock, 1});
      return out;
    },
    .not_differentiable = true,
});

// A tensor of coordinates for each dimension: what torch.where and nonzero(as_tuple=True) give.
TS_OP({
    .schema = "_nonzero_numpy(Tensor self) -> Tensor[]",
    .kind = Kind::kKernel,
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      TensorBase self = c.tensor(0);
      if (self.dim() == 0) self = alias(self, {1}, {1}, self.storage_offset());
      TensorBase rows = op::nonzero(self);
      std::vector<TensorBase> columns;
      for (int d = 0; d < self.dim(); ++d)
        columns.push_back(alias(rows, {rows.sizes()[0]}, {self.dim()}, d));
      return columns;
    },
    .not_differentiable = true,
});

TS_OP({
    .schema = "nonzero_static(Tensor self, *, int size, int fill_value=-1) -> Tensor",
    .doc = "The first positions of elements that are not zero: exactly `size` rows, the rest of "
           "them filled.",
    .example = "torch.nonzero_static(torch.tensor([0, 3, 0, 5]), size=3)",
    .kind = Kind::kKernel,
    .forms = kFunction | kMethod | kOut,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& self = c.tensor(0);
      int64_t size = c.integer(1);
      TS_CHECK(size >= 0, "nonzero_static: 'size' must be an non-negative integer");
      TensorBase out = new_empty({size, self.dim()}, DType::kInt64, self.device());
      fill(out, Scalar(c.integer(2)));
      if (out.device().is_meta() || out.numel() == 0) return out;
      TensorBase found = op::nonzero(self);
      int64_t rows = std::min(size, found.sizes()[0]);
      auto first = [&](const TensorBase& t) {
        return alias(t, {rows, self.dim()}, t.strides(), t.storage_offset());
      };
      copy_into(first(out), first(found), false);
      return out;
    },
    .not_differentiable = true,
    .samples = {{"B(3, 4), size=2"}, {"B(3, 4), size=20, fill_value=7"}},
});

TS_OP({
    .schema = "argwhere(Tensor self) -> Tensor",
    .doc = "The positions of all elements that are not zero, a row of coordinates each.",
    .example = "torch.argwhere(torch.tensor([[0, 1], [2, 0]]))",
    .run = [](const Call& c) -> Outputs { return op::nonzero(c.tensor(0)); },
    .not_differentiable = true,
    .samples = {{"B(3, 4)"}},
});

}  // namespace tessera
