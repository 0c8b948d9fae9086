// The larger and the smaller of two.
#include "tessera/ops/gradient.h"
#include "tessera/ops/loops.h"

namespace tessera {

namespace {

void refuse_complex(const Call& c) {
  TS_CHECK(!is_complex(result_type(c.args)), c.op.name, " not implemented for complex tensors.");
}

}  // namespace

TS_BODY(maximum, "tt", 't', 0, (TS_NUMBERS), return select((a > b) | (a != a), a, b);)
TS_OP({
    .schema = "maximum(Tensor self, Tensor other) -> Tensor",
    .doc = "The larger of two elements; nan where one of them is.",
    .example = "torch.maximum(torch.tensor([1, 5]), torch.tensor([2, 3]))",
    .kind = Kind::kPointwise,
    .forms = kFunction | kMethod | kOut,
    .check = refuse_complex,
    .body = &maximum_body,
    .saves = "self other",
    .backward =
        [](Backward& b) {
          const TensorBase &x = b.tensor(0), &y = b.tensor(1);
          if (b.wants(0)) b.set(0, op::_larger_backward(b.grad, x, y));
          if (b.wants(1)) b.set(1, op::_larger_backward(b.grad, y, x));
        },
    .samples = {{"T(3, 4), T(3, 4)"}, {"T(3, 4), T(4)"}},
});

TS_BODY(minimum, "tt", 't', 0, (TS_NUMBERS), return select((a < b) | (a != a), a, b);)
TS_OP({
    .schema = "minimum(Tensor self, Tensor other) -> Tensor",
    .doc = "The smaller of two elements; nan where one of them is.",
    .example = "torch.minimum(torch.tensor([1, 5]), torch.tensor([2, 3]))",
    .kind = Kind::kPointwise,
    .forms = kFunction | kMethod | kOut,
    .check = refuse_complex,
    .body = &minimum_body,
    .saves = "self other",
    .backward =
        [](Backward& b) {
          const TensorBase &x = b.tensor(0), &y = b.tensor(1);
          if (b.wants(0)) b.set(0, op::_larger_backward(b.grad, y, x));
          if (b.wants(1)) b.set(1, op::_larger_backward(b.grad, x, y));
        },
    .samples = {{"T(3, 4), T(3, 4)"}, {"T(3, 4), T(4)"}},
});

// The gradient goes to the larger of two, half to each of two equal ones. It is that of `a` in
// maximum(a, b), and of `b` in minimum(a, b).
TS_BODY(larger_backward, "ttt", 't', 0, (TS_FLOATS),
        return select(b == c, a / T(2), select(b < c, T(0), a));)
TS_OP({
    .schema = "_larger_backward(Tensor grad, Tensor self, Tensor other) -> Tensor",
    .kind = Kind::kPointwise,
    .forms = kFunction,
    .body = &larger_backward_body,
    .saves = "self other",
    .backward =
        [](Backward& b) {
          if (b.wants(0)) b.set(0, op::_larger_backward(b.grad, b.tensor(1), b.tensor(2)));
        },
});

TS_BODY(fmax, "tt", 't', 0, (TS_NUMBERS), return select((a >= b) | (b != b), a, b);)
TS_OP({
    .schema = "fmax(Tensor self, Tensor other) -> Tensor",
    .doc = "The larger of two elements, the other one where one is nan.",
    .example = "torch.fmax(torch.tensor([1.0, float('nan')]), torch.tensor([2.0, 3.0]))",
    .kind = Kind::kPointwise,
    .forms = kFunction | kMethod | kOut,
    .check = refuse_complex,
    .body = &fmax_body,
    .saves = "self other",
    .backward =
        [](Backward& b) {
          const TensorBase &x = b.tensor(0), &y = b.tensor(1);
          TensorBase first = op::_fmax_first(x, y);
          if (b.wants(0)) b.set(0, op::where(first, b.grad, 0));
          if (b.wants(1)) b.set(1, op::where(first, 0, b.grad));
        },
    .samples = {{"T(3, 4), T(3, 4)"}, {"T(3, 4), T(4)"}},
});

TS_BODY(fmin, "tt", 't', 0, (TS_NUMBERS), return select((a <= b) | (b != b), a, b);)
TS_OP({
    .schema = "fmin(Tensor self, Tensor other) -> Tensor",
    .doc = "The smaller of two elements, the other one where one is nan.",
    .example = "torch.fmin(torch.tensor([1.0, float('nan')]), torch.tensor([2.0, 3.0]))",
    .kind = Kind::kPointwise,
    .forms = kFunction | kMethod | kOut,
    .check = refuse_complex,
    .body = &fmin_body,
    .saves = "self other",
    .backward =
        [](Backward& b) {
          const TensorBase &x = b.tensor(0), &y = b.tensor(1);
          TensorBase first = op::_fmin_first(x, y);
          if (b.wants(0)) b.set(0, op::where(first, b.grad, 0));
          if (b.wants(1)) b.set(1, op::where(first, 0, b.grad));
        },
    .samples = {{"T(3, 4), T(3, 4)"}, {"T(3, 4), T(4)"}},
});

// Which of the two they took.
TS_BODY(fmax_first, "tt", 'b', 0, (TS_NUMBERS), return (a >= b) | (b != b);)
TS_OP({
    .schema = "_fmax_first(Tensor self, Tensor other) -> Tensor",
    .kind = Kind::kPointwise,
    .types = TypeRule::kCompare,
    .forms = kFunction,
    .body = &fmax_first_body,
    .not_differentiable = true,
});
TS_BODY(fmin_first, "tt", 'b', 0, (TS_NUMBERS), return (a <= b) | (b != b);)
TS_OP({
    .schema = "_fmin_first(Tensor self, Tensor other) -> Tensor",
    .kind = Kind::kPointwise,
    .types = TypeRule::kCompare,
    .forms = kFunction,
    .body = &fmin_first_body,
    .not_differentiable = true,
});

}  // namespace tessera
