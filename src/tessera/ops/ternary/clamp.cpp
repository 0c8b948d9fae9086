// Numbers brought between bounds.
#include "tessera/ops/gradient.h"
#include "tessera/ops/loops.h"

namespace tessera {

// nan stays, and a bound that is nan gives it.
TS_BODY(clamp_min, "tt", 't', 0, (TS_NUMBERS), return select((b > a) | (b != b), b, a);)
TS_BODY(clamp_max, "tt", 't', 0, (TS_NUMBERS), return select((b < a) | (b != b), b, a);)
TS_BODY(clamp, "ttt", 't', 0, (TS_NUMBERS), T x = select((b > a) | (b != b), b, a);
        return select((c < x) | (c != c), c, x);)

// The gradient of what lies between its bounds.
TS_BODY(above_backward, "ttt", 't', 0, (TS_FLOATS), return select(b >= c, a, T(0));)
TS_BODY(below_backward, "ttt", 't', 0, (TS_FLOATS), return select(b <= c, a, T(0));)
TS_BODY(between_backward, "tttt", 't', 0, (TS_FLOATS), return select((b >= c) & (b <= d), a, T(0));)

namespace {

// A bound that leaves no number of the dtype is refused; `most` says that it is the upper one.
void check_bound(const Call& c, int i, bool most) {
  if (!c.args[i].is_scalar()) return;
  DType t = result_type(c.args);
  if (!is_integral(t, false)) return check_fits(c.scalar(i), t);
  IntRange range = int_range(t);
  int64_t bound = c.integer(i);
  TS_CHECK(most ? bound >= range.low : bound <= range.high, "Clamp ", most ? "max" : "min",
           " value ", bound, " is outside the representable range of ", dtype_title(t));
}

void refuse_complex(const Call& c) {
  TS_CHECK(!is_complex(result_type(c.args)), "clamp is not supported for complex types");
}

void check_bounds(const Call& c) {
  TS_CHECK(c.has(1) || c.has(2), "torch.clamp: At least one of 'min' or 'max' must not be None");
  refuse_complex(c);
  refuse_bool(c);
  check_bound(c, 1, false);
  check_bound(c, 2, true);
}

}  // namespace

TS_OP({
    .schema = "clamp(Tensor self, Tensor|Scalar? min=None, Tensor|Scalar? max=None) -> Tensor",
    .also = "clip",
    .doc = "Each element, but at least min and at most max.",
    .example = "torch.clamp(torch.tensor([-2.0, 0.5, 3.0]), -1, 1)",
    .kind = Kind::kPointwise,
    .forms = kFunction | kMethod | kInplace | kOut,
    .check = check_bounds,
    .choose = [](Args args) -> const PointwiseBody* {
      if (args[1].is_none()) return &clamp_max_body;
      return args[2].is_none() ? &clamp_min_body : &clamp_body;
    },
    .saves = "self min max",
    .backward =
        [](Backward& b) {
          const TensorBase &g = b.grad, &x = b.tensor(0);
          const Value &low = b.args[1], &high = b.args[2];
          if (b.wants(0)) b.set(0, op::_clamp_backward(g, x, low, high));
          // A bound has the gradient where it is the result; max is the last to say.
          if (b.wants(1)) {
            TensorBase chosen = op::lt(x, low);
            if (b.has(2)) chosen = op::logical_and(chosen, op::lt(b.tensor(1), high));
            b.set(1, op::where(chosen, g, 0));
          }
          if (b.wants(2)) {
            TensorBase chosen = op::gt(x, high);
            if (b.has(1)) chosen = op::logical_or(chosen, op::lt(b.tensor(2), low));
            b.set(2, op::where(chosen, g, 0));
          }
        },
    .numbers = Numbers::kBound,
    .samples = {{"T(3, 4), -1.03, 1.03"}, {"T(3, 4), None, 1.03"}, {"T(3, 4), U(4), 2.03"}},
});

TS_OP({
    .schema = "_clamp_backward(Tensor grad, Tensor self, Tensor|Scalar? min, Tensor|Scalar? max) "
              "-> Tensor",
    .kind = Kind::kPointwise,
    .forms = kFunction,
    .check =
        [](const Call& c) {
          TS_CHECK(c.has(2) || c.has(3), "_clamp_backward(): expected min, max or both");
        },
    .choose = [](Args args) -> const PointwiseBody* {
      if (args[2].is_none()) return &below_backward_body;
      return args[3].is_none() ? &above_backward_body : &between_backward_body;
    },
    .saves = "self min max",
    .backward =
        [](Backward& b) {
          if (b.wants(0)) b.set(0, op::_clamp_backward(b.grad, b.tensor(1), b.args[2], b.args[3]));
        },
});

TS_OP({
    .schema = "clamp_min(Tensor self, Tensor|Scalar min) -> Tensor",
    .doc = "Each element, but at least min.",
    .example = "torch.clamp_min(torch.tensor([-2.0, 0.5]), 0)",
    .kind = Kind::kPointwise,
    .forms = kFunction | kMethod | kInplace | kOut,
    .check =
        [](const Call& c) {
          refuse_complex(c);
          check_bound(c, 1, false);
        },
    .body = &clamp_min_body,
    .saves = "self min",
    .backward =
        [](Backward& b) {
          const TensorBase& x = b.tensor(0);
          if (b.wants(0)) b.set(0, op::_clamp_backward(b.grad, x, b.args[1], Value()));
          if (b.wants(1)) b.set(1, op::where(op::lt(x, b.args[1]), b.grad, 0));
        },
    .numbers = Numbers::kBound,
    .samples = {{"T(3, 4), 0.53"}, {"T(3, 4), T(4)"}},
});

TS_OP({
    .schema = "clamp_max(Tensor self, Tensor|Scalar max) -> Tensor",
    .doc = "Each element, but at most max.",
    .example = "torch.clamp_max(torch.tensor([-2.0, 0.5]), 0)",
    .kind = Kind::kPointwise,
    .forms = kFunction | kMethod | kInplace | kOut,
    .check =
        [](const Call& c) {
          refuse_complex(c);
          check_bound(c, 1, true);
        },
    .body = &clamp_max_body,
    .saves = "self max",
    .backward =
        [](Backward& b) {
          const TensorBase& x = b.tensor(0);
          if (b.wants(0)) b.set(0, op::_clamp_backward(b.grad, x, Value(), b.args[1]));
          if (b.wants(1)) b.set(1, op::where(op::gt(x, b.args[1]), b.grad, 0));
        },
    .numbers = Numbers::kBound,
    .samples = {{"T(3, 4), 0.53"}, {"T(3, 4), T(4)"}},
});

}  // namespace tessera
