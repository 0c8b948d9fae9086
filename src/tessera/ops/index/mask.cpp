// Elements where a mask is true.
#include "tessera/ops/index/mask.h"
#include "tessera/ops/in_dtype.h"

#include "tessera/gen/copy.h"
#include "tessera/gen/creation.h"
#include "tessera/gen/index.h"
#include "tessera/gen/ternary.h"
#include "tessera/gen/view.h"
#include "tessera/ops/index/layout.h"
#include "tessera/ops/index/positions.h"
#include "tessera/ops/loops.h"

namespace tessera {

TS_BODY(masked_fill, "tbt", 't', 0, (TS_ALL, TS_COMPLEX), return select(b, c, a);)

void fill_masked(const Op& op, const TensorBase& out, const TensorBase& mask,
                 const TensorBase& value) {
  Value sources[] = {Value(out), Value(mask), Value(value)};
  pointwise_into(op, masked_fill_body, sources, out.dtype(), out);
}

TS_OP({
    .schema = "masked_fill(Tensor self, Tensor mask, Tensor|Scalar value) -> Tensor",
    .doc = "self with value where mask is true.",
    .example = "torch.ones(3).masked_fill(torch.tensor([True, False, True]), 0)",
    .kind = Kind::kPointwise,
    .types = TypeRule::kSame,
    .forms = kFunction | kMethod | kInplace,
    .check =
        [](const Call& c) {
          const TensorBase &self = c.tensor(0), &mask = c.tensor(1);
          TS_CHECK(mask.dtype() == DType::kBool,
                   "masked_fill_ only supports boolean masks, but got mask with dtype ",
                   mask.dtype());
          if (!c.args[2].is_tensor()) return check_fits(c.scalar(2), self.dtype());
          const TensorBase& value = c.tensor(2);
          TS_CHECK(value.dim() == 0,
                   "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with ",
                   value.dim(), " dimension(s).");
          if (is_complex(value.dtype())) check_fits(Scalar(c128(0, 1)), self.dtype());
        },
    .body = &masked_fill_body,
    .saves = "mask",
    .backward =
        [](Backward& b) {
          if (b.wants(0)) b.set(0, op::masked_fill(b.grad, b.tensor(1), Value(Scalar(0))));
          if (b.wants(2)) b.set(2, op::where(b.tensor(1), b.grad, Scalar(0)));
        },
    .samples = {{"T(3, 4), B(3, 4), 2.5"}, {"T(3, 4), B(4), T()"}, {"T(4), B(3, 1), 1"}},
});

namespace {

TensorBase expanded(const TensorBase& t, const Dims& shape) {
  if (t.sizes() == shape) return t;
  return alias(t, shape, broadcast_strides(t.sizes(), t.strides(), shape), t.storage_offset());
}

}  // namespace

TS_OP({
    .schema = "masked_select(Tensor self, Tensor mask) -> Tensor",
    .doc = "The elements where mask is true, in one dimension.",
    .example = "torch.masked_select(torch.tensor([1, 2, 3]), torch.tensor([True, False, True]))",
    .kind = Kind::kKernel,
    .forms = kFunction | kMethod | kOut,
    .run = [](const Call& c) -> Outputs {
      const TensorBase &self = c.tensor(0), &mask = c.tensor(1);
      TS_CHECK(mask.dtype() == DType::kBool, "masked_select: expected BoolTensor for mask");
      check_same_device(c.op, c.args);
      Dims shape = broadcast_shapes(self.sizes(), mask.sizes());
      TensorBase where = expanded(mask, shape);
      Positions found = count_positions(where);
      TensorBase out = new_empty({found.count}, self.dtype(), self.device());
      TensorBase in[] = {expanded(self, shape), where, found.starts};
      if (found.count > 0) launch("masked_select", {&out, 1}, in, {&kPositionBlock, 1});
      return out;
    },
    .saves = "mask",
    .backward =
        [](Backward& b) {
          TensorBase mask = b.tensor(1);
          Dims shape = broadcast_shapes(b.shape(0), mask.sizes());
          TensorBase whole = op::new_zeros(b.grad, shape.span());
          mask = in_dtype(mask, DType::kBool);
          b.set(0, op::masked_scatter_(whole, mask, b.grad));
        },
    .exact_out = true,
    .samples = {{"T(3, 4), B(3, 4)"}, {"T(4), B(3, 1)"}, {"T(3, 4), B(4)"}},
});

TS_OP({
    .schema = "masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor",
    .doc = "self with the elements of source, one after the other, where mask is true.",
    .example = "torch.zeros(3).masked_scatter(torch.tensor([True, False, True]), torch.ones(2))",
    .kind = Kind::kKernel,
    .forms = kFunction | kMethod | kInplace,
    .run = [](const Call& c) -> Outputs {
      const TensorBase &self = c.tensor(0), &mask = c.tensor(1), &source = c.tensor(2);
      TS_CHECK(self.dtype() == source.dtype(),
               "masked_scatter: expected self and source to have same dtypes but got",
               dtype_title(self.dtype()), " and ", dtype_title(source.dtype()));
      TS_CHECK(mask.dtype() == DType::kBool,
               "masked_scatter_ only supports boolean masks, but got mask with dtype ",
               dtype_title(mask.dtype()));
      check_same_device(c.op, c.args);
      Dims shape = broadcast_shapes(self.sizes(), mask.sizes());
      TS_CHECK(!c.inplace || shape == self.sizes(), "output with shape ", self.sizes(),
               " doesn't match the broadcast shape ", shape);
      TensorBase out =
          shape == self.sizes() ? target(c) : op::_contiguous_copy(expanded(self, shape));
      TensorBase where = expanded(apart_from(out, mask), shape);
      if (out.numel() == 0 || out.device().is_meta()) return out;
      Positions found = count_positions(where);
      TS_CHECK(found.count <= source.numel(),
               "masked_scatter: expected self and source to have at least as many elements in the "
               "source as there are ones in the mask: number of elements of source < number of "
               "ones in mask (",
               source.numel(), " < ", found.count, ")");
      TensorBase in[] = {where, op::contiguous(apart_from(out, source)), found.starts};
      if (found.count > 0) launch("masked_scatter", {&out, 1}, in, {&kPositionBlock, 1});
      return out;
    },
    .saves = "mask",
    .backward =
        [](Backward& b) {
          if (b.wants(0)) b.set(0, op::masked_fill(b.grad, b.tensor(1), Value(Scalar(0))));
          if (!b.wants(2)) return;
          // The first elements of source were used, in order; the others were not.
          TensorBase used = op::masked_select(b.grad, b.tensor(1));
          int64_t numel = 1;
          for (int64_t n : b.shape(2)) numel *= n;
          TensorBase all = op::new_zeros(b.grad, std::span<const int64_t>(&numel, 1));
          op::copy_(op::slice(all, 0, 0, used.numel()), used);
          b.set(2, op::reshape(all, b.shape(2).span()));
        },
    .updates_self = true,
    .samples = {{"T(3, 4), B(3, 4), T(12)"}, {"T(3, 4), B(4), T(3, 5)"}},
});

}  // namespace tessera
