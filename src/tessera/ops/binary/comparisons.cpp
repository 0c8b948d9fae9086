#include "tessera/ops/call.h"
#include "tessera/ops/loops.h"

namespace tessera {

TS_BODY(eq, "tt", 'b', 0, (TS_ALL, TS_COMPLEX), return a == b;)
TS_OP({
    .schema = "eq(Tensor self, Tensor|Scalar other) -> Tensor",
    .doc = "True where the elements are equal.",
    .example = "torch.eq(torch.tensor([1, 2]), 2)",
    .kind = Kind::kPointwise,
    .types = TypeRule::kCompare,
    .forms = kFunction | kMethod | kInplace | kOut,
    .body = &eq_body,
    .not_differentiable = true,
    .operators = "__eq__",
    .samples = {{"T(3, 4), T(3, 4)"}, {"T(3, 4), 1"}},
});

TS_BODY(ne, "tt", 'b', 0, (TS_ALL, TS_COMPLEX), return !(a == b);)
TS_OP({
    .schema = "ne(Tensor self, Tensor|Scalar other) -> Tensor",
    .also = "not_equal",
    .doc = "True where the elements differ.",
    .example = "torch.ne(torch.tensor([1, 2]), 2)",
    .kind = Kind::kPointwise,
    .types = TypeRule::kCompare,
    .forms = kFunction | kMethod | kInplace | kOut,
    .body = &ne_body,
    .not_differentiable = true,
    .operators = "__ne__",
    .samples = {{"T(3, 4), T(3, 4)"}, {"T(3, 4), 1"}},
});

TS_BODY(lt, "tt", 'b', 0, (TS_ALL), return a < b;)
TS_OP({
    .schema = "lt(Tensor self, Tensor|Scalar other) -> Tensor",
    .also = "less",
    .doc = "True where self is below other.",
    .example = "torch.lt(torch.tensor([1, 2]), 2)",
    .kind = Kind::kPointwise,
    .types = TypeRule::kCompare,
    .forms = kFunction | kMethod | kInplace | kOut,
    .body = &lt_body,
    .not_differentiable = true,
    .operators = "__lt__",
    .samples = {{"T(3, 4), T(3, 4)"}, {"T(3, 4), 1"}},
});

TS_BODY(le, "tt", 'b', 0, (TS_ALL), return a <= b;)
TS_OP({
    .schema = "le(Tensor self, Tensor|Scalar other) -> Tensor",
    .also = "less_equal",
    .doc = "True where self is not above other.",
    .example = "torch.le(torch.tensor([1, 2]), 2)",
    .kind = Kind::kPointwise,
    .types = TypeRule::kCompare,
    .forms = kFunction | kMethod | kInplace | kOut,
    .body = &le_body,
    .not_differentiable = true,
    .operators = "__le__",
    .samples = {{"T(3, 4), T(3, 4)"}, {"T(3, 4), 1"}},
});

TS_BODY(gt, "tt", 'b', 0, (TS_ALL), return a > b;)
TS_OP({
    .schema = "gt(Tensor self, Tensor|Scalar other) -> Tensor",
    .also = "greater",
    .doc = "True where self is above other.",
    .example = "torch.gt(torch.tensor([1, 2]), 2)",
    .kind = Kind::kPointwise,
    .types = TypeRule::kCompare,
    .forms = kFunction | kMethod | kInplace | kOut,
    .body = &gt_body,
    .not_differentiable = true,
    .operators = "__gt__",
    .samples = {{"T(3, 4), T(3, 4)"}, {"T(3, 4), 1"}},
});

TS_BODY(ge, "tt", 'b', 0, (TS_ALL), return a >= b;)
TS_OP({
    .schema = "ge(Tensor self, Tensor|Scalar other) -> Tensor",
    .also = "greater_equal",
    .doc = "True where self is not below other.",
    .example = "torch.ge(torch.tensor([1, 2]), 2)",
    .kind = Kind::kPointwise,
    .types = TypeRule::kCompare,
    .forms = kFunction | kMethod | kInplace | kOut,
    .body = &ge_body,
    .not_differentiable = true,
    .operators = "__ge__",
    .samples = {{"T(3, 4), T(3, 4)"}, {"T(3, 4), 1"}},
});

}  // namespace tessera
