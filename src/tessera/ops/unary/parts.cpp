// Signs, rounding, and the parts of a number.
#include "tessera/gen/copy.h"
#include "tessera/ops/gradient.h"
#include "tessera/ops/loops.h"

namespace tessera {

// By the sign bit, on NaN too: a compiler is free to do otherwise with a minus.
TS_BODY(neg, "t", 't', 0, (TS_NUMBERS, TS_COMPLEX), return negate(a);)
TS_OP({
    .schema = "neg(Tensor self) -> Tensor",
    .also = "negative",
    .doc = "Each element with its sign changed.",
    .example = "torch.neg(torch.tensor([1.0, -2.0]))",
    .kind = Kind::kPointwise,
    .forms = kFunction | kMethod | kInplace | kOut,
    .check =
        [](const Call& c) {
          TS_CHECK(
              c.dtype_of(0) != DType::kBool,
              "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to "
              "invert a mask, use the `~` or `logical_not()` operator instead.");
        },
    .body = &neg_body,
    .backward = [](Backward& b) { b.set(0, op::neg(b.grad)); },
    .operators = "__neg__",
    .samples = {{"T(3, 4)"}, {"T()"}},
});

TS_OP({
    .schema = "positive(Tensor self) -> Tensor",
    .doc = "The tensor itself.",
    .example = "torch.positive(torch.tensor([1.0, -2.0]))",
    .run = [](const Call& c) -> Outputs {
      TS_CHECK(c.dtype_of(0) != DType::kBool,
               "The `+` operator, on a bool tensor is not supported.");
      return c.tensor(0);
    },
    .operators = "__pos__",
    .samples = {{"T(3, 4)"}},
});

TS_BODY(abs, "t", 'r', 0, (TS_NUMBERS, TS_COMPLEX), return abs(a);)
TS_OP({
    .schema = "abs(Tensor self) -> Tensor",
    .also = "absolute",
    .doc = "The size of each element, without its sign or direction.",
    .example = "torch.abs(torch.tensor([1.0, -2.0]))",
    .kind = Kind::kPointwise,
    .forms = kFunction | kMethod | kInplace | kOut,
    .check = refuse_bool,
    .body = &abs_body,
    .saves = "self",
    .backward = [](Backward& b) { b.set(0, op::mul(b.grad, op::sgn(b.tensor(0)))); },
    .operators = "__abs__",
    .samples = {{"T(3, 4)"}, {"T()"}},
});

TS_BODY(sign, "t", 't', 0, (TS_NUMBERS), return sign(a);)
TS_OP({
    .schema = "sign(Tensor self) -> Tensor",
    .doc = "-1, 0 or 1 by the sign of each element.",
    .example = "torch.sign(torch.tensor([3.0, 0.0, -2.0]))",
    .kind = Kind::kPointwise,
    .forms = kFunction | kMethod | kInplace | kOut,
    .check =
        [](const Call& c) {
          TS_CHECK(!is_complex(c.dtype_of(0)),
                   "Unlike NumPy, torch.sign is not intended to support complex numbers. Please "
                   "use torch.sgn instead.");
        },
    .body = &sign_body,
    .backward = grad::zero,
    .samples = {{"T(3, 4)"}, {"T()"}},
});

TS_BODY(
    sgn, "t", 't', 0, (TS_NUMBERS, TS_COMPLEX),
    if constexpr (is_complex_v<T>) {
      R size = abs(a);
      return size == R(0) ? T(0) : T(a.re / size, a.im / size);
    } else { return sign(a); })
TS_OP({
    .schema = "sgn(Tensor self) -> Tensor",
    .doc = "Each element divided by its size; 0 stays 0. sign() that knows complex numbers.",
    .example = "torch.sgn(torch.tensor([3 + 4j, 0j]))",
    .kind = Kind::kPointwise,
    .forms = kFunction | kMethod | kInplace | kOut,
    .body = &sgn_body,
    .saves = "self result",
    .backward =
        [](Backward& b) {
          const TensorBase &x = b.tensor(0), &s = b.result;
          if (!is_complex(x.dtype())) return grad::zero(b);
          // What is left of g at a right angle to x, over the size of x.
          TensorBase size = op::abs(x);
          TensorBase along = op::mul(op::real(op::div(b.grad, s)), s);
          TensorBase g = op::div(op::sub(b.grad, along), size);
          b.set(0, op::where(op::eq(size, 0), 0, g));
        },
    .samples = {{"T(3, 4)"}, {"T()"}},
});

TS_BODY(signbit, "t", 'b', 0, (TS_NUMBERS), return signbit(a);)
TS_OP({
    .schema = "signbit(Tensor self) -> Tensor",
    .doc = "True where the sign bit is set: of -0.0 too.",
    .example = "torch.signbit(torch.tensor([1.0, -2.0, -0.0]))",
    .kind = Kind::kPointwise,
    .types = TypeRule::kCompare,
    .forms = kFunction | kMethod | kOut,
    .check =
        [](const Call& c) {
          TS_CHECK(!is_complex(c.dtype_of(0)), "signbit is not implemented for complex tensors.");
        },
    .body = &signbit_body,
    .exact_out = true,
    .not_differentiable = true,
    .samples = {{"T(3, 4)"}},
});

TS_BODY(ceil, "t", 't', 0, (TS_NUMBERS), return ceil(a);)
TS_OP({
    .schema = "ceil(Tensor self) -> Tensor",
    .doc = "The smallest integer that is not below each element.",
    .example = "torch.ceil(torch.tensor([1.2, -1.2]))",
    .kind = Kind::kPointwise,
    .forms = kFunction | kMethod | kInplace | kOut,
    .check = refuse_bool,
    .body = &ceil_body,
    .backward = grad::zero,
    .samples = {{"T(3, 4)"}, {"T()"}},
});

TS_BODY(floor, "t", 't', 0, (TS_NUMBERS), return floor(a);)
TS_OP({
    .schema = "floor(Tensor self) -> Tensor",
    .doc = "The largest integer that is not above each element.",
    .example = "torch.floor(torch.tensor([1.2, -1.2]))",
    .kind = Kind::kPointwise,
    .forms = kFunction | kMethod | kInplace | kOut,
    .check = refuse_bool,
    .body = &floor_body,
    .backward = grad::zero,
    .samples = {{"T(3, 4)"}, {"T()"}},
});

TS_BODY(trunc, "t", 't', 0, (TS_NUMBERS), return trunc(a);)
TS_OP({
    .schema = "trunc(Tensor self) -> Tensor",
    .also = "fix",
    .doc = "The integer part of each element.",
    .example = "torch.trunc(torch.tensor([1.2, -1.2]))",
    .kind = Kind::kPointwise,
    .forms = kFunction | kMethod | kInplace | kOut,
    .check = refuse_bool,
    .body = &trunc_body,
    .backward = grad::zero,
    .samples = {{"T(3, 4)"}, {"T()"}},
});

TS_BODY(frac, "t", 't', 0, (TS_FLOATS), return a - trunc(a);)
TS_OP({
    .schema = "frac(Tensor self) -> Tensor",
    .doc = "What is left of each element without its integer part.",
    .example = "torch.frac(torch.tensor([1.25, -1.25]))",
    .kind = Kind::kPointwise,
    .forms = kFunction | kMethod | kInplace | kOut,
    .body = &frac_body,
    .backward = [](Backward& b) { b.set(0, b.grad); },
    .samples = {{"T(3, 4)"}, {"T()"}},
});

TS_BODY(round, "t", 't', 0, (TS_NUMBERS), return rint(a);)
TS_OP({
    .schema = "round(Tensor self) -> Tensor",
    .also = "special.round",
    .doc = "The nearest integer, of two equally near ones the even one; or so many decimals.",
    .example = "torch.round(torch.tensor([0.5, 1.5, -1.2]))",
    .kind = Kind::kPointwise,
    .forms = kFunction | kMethod | kInplace | kOut,
    .check = refuse_bool,
    .body = &round_body,
    .backward = grad::zero,
    .samples = {{"T(3, 4)"}, {"T()"}},
});

TS_OP({
    .schema = "round(Tensor self, *, int decimals) -> Tensor",
    .also = "special.round",
    .doc = "Rounded to so many digits after the point; before it where there are fewer than none.",
    .example = "torch.round(torch.tensor([0.125, 1.25]), decimals=1)",
    .forms = kFunction | kMethod | kInplace | kOut,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& self = c.tensor(0);
      int64_t decimals = c.integer(1);
      if (decimals == 0) return op::round(self);
      TS_CHECK_IMPLEMENTED(is_floating(self.dtype()), "\"round_cpu\" not implemented for '",
                           dtype_title(self.dtype()), "'");
      double power = std::pow(10.0, std::abs(static_cast<double>(decimals)));
      // With 16 bits the product would be rounded to a half, or be infinite.
      const bool widened = is_reduced_floating(self.dtype());
      const TensorBase x = widened ? op::_to_dtype(self, DType::kFloat32) : self;
      const TensorBase rounded = decimals > 0 ? op::div(op::round(op::mul(x, power)), power)
                                              : op::mul(op::round(op::div(x, power)), power);
      return widened ? op::_to_dtype(rounded, self.dtype()) : rounded;
    },
    .samples = {{"V([0.12, 1.37]), decimals=1"}, {"V([123.0, -468.0]), decimals=-1"}},
});

TS_BODY(frexp_mantissa, "t", 't', 0, (TS_FLOATS), return frexp_mantissa(a);)
TS_OP({
    .schema = "_frexp_mantissa(Tensor self) -> Tensor",
    .kind = Kind::kPointwise,
    .forms = kFunction,
    .body = &frexp_mantissa_body,
    .not_differentiable = true,
});
TS_BODY(frexp_exponent, "t", 't', 0, (TS_FLOATS), return frexp_exponent(a);)
TS_OP({
    .schema = "_frexp_exponent(Tensor self) -> Tensor",
    .kind = Kind::kPointwise,
    .forms = kFunction,
    .body = &frexp_exponent_body,
    .not_differentiable = true,
});
TS_OP({
    .schema = "frexp(Tensor self) -> (Tensor mantissa, Tensor exponent)",
    .doc = "Each element as mantissa * 2 ** exponent, the mantissa of [0.5, 1).",
    .example = "torch.frexp(torch.tensor([6.0, -0.75]))",
    .forms = kFunction | kMethod | kOut,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& self = c.tensor(0);
      TS_CHECK(is_floating(self.dtype()), "torch.frexp() only supports floating-point dtypes");
      return {op::_frexp_mantissa(self), op::_to_dtype(op::_frexp_exponent(self), DType::kInt32)};
    },
    .saves = "exponent",
    .backward =
        [](Backward& b) {
          bool wide = b.grad.dtype() == DType::kFloat64;
          TensorBase e = op::_to_dtype(b.results[1], wide ? DType::kFloat64 : DType::kFloat32);
          b.set(0, op::div(b.grad, op::exp2(e)));
        },
    .samples = {{"U(3)"}},
});

}  // namespace tessera
