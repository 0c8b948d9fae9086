// Elements by their number in row-major order.
#include "tessera/gen/copy.h"
#include "tessera/gen/creation.h"
#include "tessera/gen/index.h"
#include "tessera/gen/view.h"
#include "tessera/ops/index/layout.h"

namespace tessera {

namespace {

TensorBase flat(const TensorBase& t) { return alias(t, {t.numel()}, {1}, t.storage_offset()); }

}  // namespace

TS_OP({
    .schema = "take(Tensor self, Tensor index) -> Tensor",
    .doc = "The elements that index names, counted in row-major order.",
    .example = "torch.take(torch.tensor([[1, 2], [3, 4]]), torch.tensor([3, 0]))",
    .kind = Kind::kKernel,
    .forms = kFunction | kMethod | kOut,
    .run = [](const Call& c) -> Outputs {
      const TensorBase &self = c.tensor(0), &index = c.tensor(1);
      TS_CHECK(index.dtype() == DType::kInt64, "take(): Expected a long tensor for index, but got ",
               index.dtype());
      check_same_device(c.op, c.args);
      TS_CHECK_INDEX(self.numel() > 0 || index.numel() == 0,
                     "take(): tried to take from an empty tensor");
      TensorBase out = new_empty(index.sizes(), self.dtype(), self.device());
      if (index.numel() == 0) return out;
      TensorBase in[] = {flat(op::contiguous(self)), index};
      int64_t ints[] = {0, 1, static_cast<int64_t>(IndexError::kTake), 0};
      launch("index_read", {&out, 1}, in, ints);
      return out;
    },
    .saves = "index",
    .backward =
        [](Backward& b) {
          TensorBase whole = op::new_zeros(b.grad, b.shape(0).span());
          b.set(0, op::put_(whole, b.tensor(1), b.grad, true));
        },
    .exact_out = true,
    .samples = {{"T(3, 4), I([[0, -1], [5, 5]], 12)"}, {"T(), I([0], 1)"}},
});

TS_OP({
    .schema = "put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor",
    .doc = "self with the elements of source where index names, counted in row-major order; with "
           "accumulate they are added.",
    .example = "torch.zeros(2, 2).put(torch.tensor([3, 0]), torch.tensor([1.0, 2.0]))",
    .kind = Kind::kKernel,
    .forms = kFunction | kMethod | kInplace,
    .run = [](const Call& c) -> Outputs {
      const TensorBase &self = c.tensor(0), &index = c.tensor(1), &source = c.tensor(2);
      TS_CHECK(index.dtype() == DType::kInt64, "put_(): Expected a long tensor for index, but got ",
               index.dtype());
      TS_CHECK(self.dtype() == source.dtype(),
               "put_(): self and source expected to have the same dtype, but got self.dtype = ",
               self.dtype(), " and source.dtype = ", source.dtype());
      check_same_device(c.op, c.args);
      TS_CHECK_INDEX(source.numel() == index.numel(),
                     "put_(): Expected source and index to have the same number of elements, but "
                     "got source.numel() = ",
                     source.numel(), ", index.numel() = ", index.numel());
      TS_CHECK_INDEX(self.numel() > 0 || index.numel() == 0,
                     "put_(): Tried to put elements into an empty tensor");
      TensorBase out = target(c);
      if (index.numel() == 0) return out;
      TensorBase dense = op::contiguous(out);
      Combine combine = c.flag(3) ? Combine::kAdd : Combine::kAssign;
      write_along(flat(dense), 0, flat(op::contiguous(apart_from(out, index))),
                  flat(op::contiguous(apart_from(out, source))), combine, IndexError::kTake);
      if (!dense.is_same(out)) copy_into(out, dense, false);
      return out;
    },
    .saves = "index",
    .backward =
        [](Backward& b) {
          if (b.wants(0))
            b.set(0, b.flag(3) ? b.grad
                               : op::put(b.grad, b.tensor(1),
                                         op::new_zeros(b.grad, b.shape(2).span()), false));
          if (b.wants(2)) b.set(2, op::reshape(op::take(b.grad, b.tensor(1)), b.shape(2).span()));
        },
    .updates_self = true,
    .samples = {{"T(3, 4), I([[0, -1], [5, 2]], 12), T(2, 2)"},
                {"T(3, 4), I([1, 1], 12), T(2), True"}},
});

}  // namespace tessera
