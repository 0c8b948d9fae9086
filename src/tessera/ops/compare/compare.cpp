// Questions about numbers, and about tensors.
#include "tessera/gen/copy.h"
#include "tessera/gen/reduce.h"
#include "tessera/ops/gradient.h"
#include "tessera/ops/loops.h"

namespace tessera {

TS_BODY(isnan, "t", 'b', 0, (TS_NUMBERS, TS_COMPLEX), return isnan(a);)
TS_OP({
    .schema = "isnan(Tensor self) -> Tensor",
    .doc = "True where an element is nan.",
    .example = "torch.isnan(torch.tensor([1.0, float('inf'), float('nan')]))",
    .kind = Kind::kPointwise,
    .types = TypeRule::kCompare,
    .forms = kFunction | kMethod,
    .body = &isnan_body,
    .not_differentiable = true,
    .samples = {{"T(3, 4)"}},
});

TS_BODY(isinf, "t", 'b', 0, (TS_NUMBERS, TS_COMPLEX), return isinf(a);)
TS_OP({
    .schema = "isinf(Tensor self) -> Tensor",
    .doc = "True where an element is infinite.",
    .example = "torch.isinf(torch.tensor([1.0, float('inf'), float('nan')]))",
    .kind = Kind::kPointwise,
    .types = TypeRule::kCompare,
    .forms = kFunction | kMethod,
    .body = &isinf_body,
    .not_differentiable = true,
    .samples = {{"T(3, 4)"}},
});

TS_BODY(isfinite, "t", 'b', 0, (TS_NUMBERS, TS_COMPLEX), return isfinite(a);)
TS_OP({
    .schema = "isfinite(Tensor self) -> Tensor",
    .doc = "True where an element is neither infinite nor nan.",
    .example = "torch.isfinite(torch.tensor([1.0, float('inf'), float('nan')]))",
    .kind = Kind::kPointwise,
    .types = TypeRule::kCompare,
    .forms = kFunction | kMethod,
    .body = &isfinite_body,
    .not_differentiable = true,
    .samples = {{"T(3, 4)"}},
});

TS_BODY(isposinf, "t", 'b', 0, (TS_NUMBERS), return isinf(a) && a > T(0);)
TS_OP({
    .schema = "isposinf(Tensor self) -> Tensor",
    .doc = "True where an element is positive infinity.",
    .example = "torch.isposinf(torch.tensor([1.0, float('inf'), float('nan')]))",
    .kind = Kind::kPointwise,
    .types = TypeRule::kCompare,
    .forms = kFunction | kMethod | kOut,
    .check =
        [](const Call& c) {
          TS_CHECK(!is_complex(c.dtype_of(0)), "isposinf does not support complex inputs.");
        },
    .body = &isposinf_body,
    .exact_out = true,
    .not_differentiable = true,
    .samples = {{"T(3, 4)"}},
});

TS_BODY(isneginf, "t", 'b', 0, (TS_NUMBERS), return isinf(a) && a < T(0);)
TS_OP({
    .schema = "isneginf(Tensor self) -> Tensor",
    .doc = "True where an element is negative infinity.",
    .example = "torch.isneginf(torch.tensor([1.0, float('inf'), float('nan')]))",
    .kind = Kind::kPointwise,
    .types = TypeRule::kCompare,
    .forms = kFunction | kMethod | kOut,
    .check =
        [](const Call& c) {
          TS_CHECK(!is_complex(c.dtype_of(0)), "isneginf does not support complex inputs.");
        },
    .body = &isneginf_body,
    .exact_out = true,
    .not_differentiable = true,
    .samples = {{"T(3, 4)"}},
});

TS_BODY(
    isreal, "t", 'b', 0, (TS_NUMBERS, TS_COMPLEX),
    if constexpr (is_complex_v<T>) { return a.im == R(0); } else { return true; })
TS_OP({
    .schema = "isreal(Tensor self) -> Tensor",
    .doc = "True where an element has no imaginary part.",
    .example = "torch.isreal(torch.tensor([1 + 0j, 1j]))",
    .kind = Kind::kPointwise,
    .types = TypeRule::kCompare,
    .body = &isreal_body,
    .not_differentiable = true,
    .samples = {{"T(3, 4)"}},
});

TS_OP({
    .schema = "isclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, "
              "bool equal_nan=False) -> Tensor",
    .doc = "True where self is within atol + rtol * abs(other) of other.",
    .example = "torch.isclose(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.1]))",
    .run = [](const Call& c) -> Outputs {
      const TensorBase &self = c.tensor(0), &other = c.tensor(1);
      double rtol = c.number(2), atol = c.number(3);
      TS_CHECK(self.dtype() == other.dtype(), dtype_title(self.dtype()), " did not match ",
               dtype_title(other.dtype()));
      TS_CHECK(rtol >= 0, "rtol must be greater than or equal to zero, but got ", rtol);
      TS_CHECK(atol >= 0, "atol must be greater than or equal to zero, but got ", atol);
      TensorBase close = op::eq(self, other);
      bool integral = is_integral(self.dtype(), true);
      if (c.flag(4) && !integral)
        close = op::logical_or(close, op::logical_and(op::isnan(self), op::isnan(other)));
      if (rtol == 0 && atol == 0) return close;
      // Differences of integers wrap: they are taken as floats.
      auto number = [&](const TensorBase& t) {
        return integral ? op::_to_dtype(t, default_dtype()) : t;
      };
      TensorBase b = number(other);
      TensorBase allowed = op::add(op::abs(op::mul(b, rtol)), atol);
      TensorBase error = op::abs(op::sub(number(self), b));
      return op::logical_or(close, op::logical_and(op::isfinite(error), op::le(error, allowed)));
    },
    .not_differentiable = true,
    .samples = {{"T(3, 4), T(3, 4)"}, {"T(3, 4), T(3, 4), 0.5, 0.25, equal_nan=True"}},
});

TS_OP({
    .schema = "allclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, "
              "bool equal_nan=False) -> bool",
    .doc = "Is every element of self within atol + rtol * abs(other) of other's?",
    .example = "torch.allclose(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.0]))",
    .run = [](const Call& c) -> Outputs {
      return op::all(op::isclose(c.tensor(0), c.tensor(1), c.number(2), c.number(3), c.flag(4)));
    },
    .not_differentiable = true,
    .samples = {{"T(3, 4), T(3, 4)"}},
});

TS_OP({
    .schema = "equal(Tensor self, Tensor other) -> bool",
    .doc = "Are shape and all elements the same?",
    .example = "torch.equal(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.0]))",
    .run = [](const Call& c) -> Outputs {
      check_same_device(c.op, c.args);
      if (c.tensor(0).sizes() == c.tensor(1).sizes())
        return op::all(op::eq(c.tensor(0), c.tensor(1)));
      return op::full({}, Scalar(false), DType::kBool);
    },
    .not_differentiable = true,
    .samples = {{"T(3, 4), T(3, 4)"}, {"T(3, 4), T(4)"}},
});

}  // namespace tessera
