#include "tessera/gen/index.h"
#include "tessera/gen/ternary.h"
#include "tessera/ops/loops.h"

namespace tessera {

TS_BODY(where, "btt", 't', 0, (TS_ALL, TS_COMPLEX), return select(a, b, c);)
TS_OP({
    .schema = "where(Tensor condition, Tensor|Scalar self, Tensor|Scalar other) -> Tensor",
    .doc = "self where the condition is true, other where it is not.",
    .example = "torch.where(torch.tensor([True, False]), torch.tensor([1.0, 2.0]), 0.0)",
    .kind = Kind::kPointwise,
    .forms = kFunction | kOut,
    .check =
        [](const Call& c) {
          DType t = c.dtype_of(0);
          TS_CHECK(t == DType::kBool || t == DType::kUInt8,
                   "where expected condition to be a boolean tensor, but got a tensor with dtype ",
                   dtype_title(t));
        },
    .body = &where_body,
    .saves = "condition",
    .backward =
        [](Backward& b) {
          if (b.wants(1)) b.set(1, op::where(b.tensor(0), b.grad, 0));
          if (b.wants(2)) b.set(2, op::where(b.tensor(0), 0, b.grad));
        },
    .numbers = Numbers::kFit,
    .exact_out = true,
    .samples = {{"B(3, 4), T(3, 4), T(3, 4)"}, {"B(4), T(3, 1), 2.0"}, {"B(3, 4), 1.0, T()"}},
});

TS_OP({
    .schema = "where(Tensor condition) -> Tensor[]",
    .doc = "The coordinates of all elements that are not zero, a tensor for each dimension.",
    .example = "torch.where(torch.tensor([[0, 1], [2, 0]]))",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs { return op::_nonzero_numpy(c.tensor(0)); },
    .not_differentiable = true,
    .samples = {{"B(3, 4)"}},
});

}  // namespace tessera
