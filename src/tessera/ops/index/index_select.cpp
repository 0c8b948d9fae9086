#include "tessera/gen/binary.h"
#include "tessera/gen/copy.h"
#include "tessera/gen/creation.h"
#include "tessera/gen/index.h"

namespace tessera {

namespace {

void check_index(const Op& op, const TensorBase& index) {
  TS_CHECK_INDEX(index.dim() <= 1, op.name, "(): Index is supposed to be a vector");
  TS_CHECK(index.dtype() == DType::kInt64 || index.dtype() == DType::kInt32, op.name,
           "(): Expected dtype int32 or int64 for index");
}

}  // namespace

TS_OP({
    .schema = "index_select(Tensor self, int dim, Tensor index) -> Tensor",
    .doc = "The positions named by index along a dimension.",
    .example = "torch.index_select(torch.tensor([10, 20, 30]), 0, torch.tensor([2, 0]))",
    .kind = Kind::kKernel,
    .forms = kFunction | kMethod | kOut,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& self = c.tensor(0);
      const TensorBase& index = c.tensor(2);
      check_same_device(c.op, c.args);
      check_index(c.op, index);
      int64_t dim = wrap_dim(c.integer(1), self.dim());
      Dims shape = self.sizes();
      if (self.dim() > 0)
        shape[static_cast<size_t>(dim)] = index.numel();
      else
        TS_CHECK(index.numel() == 1, "index_select(): Index to scalar can have only 1 value, got ",
                 index.numel(), " value(s)");
      TensorBase out = new_empty(shape, self.dtype(), self.device());
      if (out.numel() == 0) return out;
      TensorBase in[] = {self, index};
      if (self.dim() == 0) in[0] = alias(self, {1}, {1}, self.storage_offset());
      TensorBase to = self.dim() == 0 ? alias(out, {1}, {1}, 0) : out;
      launch("index_select", {&to, 1}, in, {&dim, 1});
      return out;
    },
    .saves = "index",
    .backward =
        [](Backward& b) {
          TensorBase whole = op::new_zeros(b.grad, b.shape(0).span());
          b.set(0, op::index_add(whole, b.integer(1), b.tensor(2), b.grad));
        },
    .samples = {{"T(5, 4), 0, I([0, 4, 2], 5)"},
                {"T(5, 4), 1, I([3, 3], 4)"},
                {"T(5, 4), 0, I([], 5)"},
                {"T(), 0, I([0], 1)"}},
});

TS_OP({
    .schema = "index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> "
              "Tensor",
    .doc = "self with alpha * source added at the positions named by index along a dimension.",
    .example = "torch.zeros(3).index_add(0, torch.tensor([0, 0]), torch.ones(2))",
    .kind = Kind::kKernel,
    .forms = kFunction | kMethod | kInplace | kOut,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& self = c.tensor(0);
      const TensorBase& index = c.tensor(2);
      const TensorBase& source = c.tensor(3);
      check_same_device(c.op, c.args);
      check_index(c.op, index);
      TS_CHECK(self.dtype() == source.dtype(),
               "index_add_(): self and source expected to have the same dtype, but got (self) ",
               self.dtype(), " and (source) ", source.dtype());
      int64_t dim = wrap_dim(c.integer(1), self.dim());
      Dims shape = self.sizes();
      if (self.dim() > 0) shape[static_cast<size_t>(dim)] = index.numel();
      TS_CHECK(source.sizes() == shape || (self.dim() == 0 && source.numel() == 1),
               "index_add_(): source of shape ", source.sizes(), " does not fit ", index.numel(),
               " indices into dimension ", dim, " of a tensor of shape ", self.sizes());
      TensorBase out = op::clone(self);
      if (source.numel() == 0) return out;
      double alpha = c.number(4);
      auto at_least_1d = [](const TensorBase& t) {
        return t.dim() ? t : alias(t, {1}, {1}, t.storage_offset());
      };
      TensorBase in[] = {index, at_least_1d(source)};
      TensorBase to = at_least_1d(out);
      launch("index_add", {&to, 1}, in, {&dim, 1}, {&alpha, 1});
      return out;
    },
    .saves = "index",
    .backward =
        [](Backward& b) {
          b.set(0, b.grad);
          if (!b.wants(3)) return;
          TensorBase g = op::index_select(b.grad, b.integer(1), b.tensor(2));
          b.set(3, b.scalar(4).to_double() == 1 ? g : op::mul(g, b.scalar(4)));
        },
    .samples = {{"T(5, 4), 0, I([0, 4, 0], 5), T(3, 4)"}, {"T(5), 0, I([1], 5), T(1), alpha=2"}},
});

}  // namespace tessera
