// Activations of straight pieces.
#include "tessera/base/half.h"
#include "tessera/gen/activation.h"
#include "tessera/ops/gradient.h"
#include "tessera/ops/loops.h"

namespace tessera {

namespace {

// A parameter in the dtype of the elements that it is compared with.
double in_elements(const Call& c, double value) {
  const DType t = c.tensor(0).dtype();
  const float f = static_cast<float>(value);
  if (t == DType::kFloat16) return half_to_float(float_to_half(f));
  if (t == DType::kBFloat16) return bfloat16_to_float(float_to_bfloat16(f));
  return value;
}

}  // namespace

TS_BODY(relu, "t", 't', 0, (TS_NUMBERS), return select(a <= T(0), T(0), a);)
TS_OP({
    .schema = "relu(Tensor self) -> Tensor",
    .also = "nn.functional.relu",
    .doc = "Each element, or 0 where it is negative.",
    .example = "torch.relu(torch.tensor([-1.0, 2.0]))",
    .kind = Kind::kPointwise,
    .forms = kFunction | kMethod | kInplace | kOut,
    .check =
        [](const Call& c) {
          TS_CHECK(c.dtype_of(0) != DType::kBool, "Boolean inputs not supported for relu");
        },
    .body = &relu_body,
    .saves = "result",
    .backward = [](Backward& b) { b.set(0, op::_relu_backward(b.grad, b.result)); },
    .samples = {{"T(3, 4)"}, {"T()"}},
});

TS_BODY(relu_backward, "tt", 't', 0, (TS_FLOATS), return select(b <= T(0), T(0), a);)
TS_OP({
    .schema = "_relu_backward(Tensor grad, Tensor result) -> Tensor",
    .kind = Kind::kPointwise,
    .forms = kFunction,
    .body = &relu_backward_body,
    .saves = "result",
    .backward = [](Backward& b) { b.set(0, op::_relu_backward(b.grad, b.tensor(1))); },
    .aten = "threshold_backward",
});

TS_BODY(threshold, "t", 't', 2, (TS_NUMBERS), return select(a <= s0, s1, a);)
TS_OP({
    .schema = "threshold(Tensor self, float threshold, float value) -> Tensor",
    .also = "nn.functional.threshold",
    .doc = "Each element that is above the threshold, value in place of others.",
    .example = "torch.threshold(torch.tensor([-1.0, 2.0]), 0.5, 9.0)",
    .kind = Kind::kPointwise,
    .forms = kFunction | kInplace | kOut,
    .check = refuse_bool,
    .body = &threshold_body,
    .saves = "self",
    .backward =
        [](Backward& b) { b.set(0, op::_threshold_backward(b.grad, b.tensor(0), b.number(1))); },
    .samples = {{"T(3, 4), 0.53, 9.0"}},
});
TS_BODY(threshold_backward, "tt", 't', 1, (TS_FLOATS), return select(b <= s0, T(0), a);)
TS_OP({
    .schema = "_threshold_backward(Tensor grad, Tensor self, float threshold) -> Tensor",
    .kind = Kind::kPointwise,
    .forms = kFunction,
    .body = &threshold_backward_body,
    .saves = "self",
    .backward =
        [](Backward& b) {
          if (b.wants(0)) b.set(0, op::_threshold_backward(b.grad, b.tensor(1), b.number(2)));
        },
});

TS_BODY(leaky_relu, "t", 't', 1, (TS_FLOATS), return select(a > T(0), a, a* s0);)
TS_OP({
    .schema = "nn.functional.leaky_relu(Tensor self, float negative_slope=0.01) -> Tensor",
    .doc = "Each element, times negative_slope where it is negative.",
    .example = "torch.nn.functional.leaky_relu(torch.tensor([-1.0, 2.0]), 0.1)",
    .kind = Kind::kPointwise,
    .forms = kFunction | kInplace,
    .body = &leaky_relu_body,
    .saves = "self",
    .backward =
        [](Backward& b) {
          TS_CHECK(!b.in_place || b.number(1) >= 0,
                   "In-place leakyReLu backward calculation is triggered with a negative slope "
                   "which is not supported. This is caused by calling in-place forward function "
                   "with a negative slope, please call out-of-place version instead. File an issue "
                   "at https://github.com/pytorch/pytorch if you do require supporting in-place "
                   "leakRelu backward calculation with negative slope");
          b.set(0, op::_leaky_relu_backward(b.grad, b.tensor(0), b.number(1)));
        },
    .samples = {{"T(3, 4)"}, {"T(3, 4), 0.25"}},
});
TS_BODY(leaky_relu_backward, "tt", 't', 1, (TS_FLOATS), return select(b > T(0), a, a* s0);)
TS_OP({
    .schema = "_leaky_relu_backward(Tensor grad, Tensor self, float negative_slope) -> Tensor",
    .kind = Kind::kPointwise,
    .forms = kFunction,
    .body = &leaky_relu_backward_body,
    .saves = "self",
    .backward =
        [](Backward& b) {
          if (b.wants(0)) b.set(0, op::_leaky_relu_backward(b.grad, b.tensor(1), b.number(2)));
        },
});

// Bounds of integers are cut to integers, as PyTorch does.
TS_BODY(hardtanh, "t", 't', 2, (TS_NUMBERS), T x = select(a < s0, s0, a);
        return select(x > s1, s1, x);)
TS_OP({
    .schema = "nn.functional.hardtanh(Tensor self, float min_val=-1.0, float max_val=1.0) -> "
              "Tensor",
    .doc = "Each element, but at least min_val and at most max_val.",
    .example = "torch.nn.functional.hardtanh(torch.tensor([-2.0, 0.5, 3.0]))",
    .kind = Kind::kPointwise,
    .forms = kFunction | kInplace,
    .check =
        [](const Call& c) {
          TS_CHECK_VALUE(c.number(1) <= c.number(2), "min_val cannot be greater than max_val");
          TS_CHECK(c.dtype_of(0) != DType::kBool, "Bool inputs not supported for hardtanh");
          TS_CHECK(c.dtype_of(0) != DType::kUInt8 || (c.number(1) >= 0 && c.number(2) >= 0),
                   "cannot do hardtanh on an unsigned type with negative limits");
        },
    .body = &hardtanh_body,
    .saves = "self",
    .backward =
        [](Backward& b) {
          b.set(0, op::_hardtanh_backward(b.grad, b.tensor(0), b.number(1), b.number(2)));
        },
    .samples = {{"T(3, 4)"}, {"T(3, 4), -2.03, 0.53"}},
});
TS_OP({
    .schema = "nn.functional.relu6(Tensor self) -> Tensor",
    .doc = "Each element, but at least 0 and at most 6.",
    .example = "torch.nn.functional.relu6(torch.tensor([-2.0, 0.5, 9.0]))",
    .forms = kFunction | kInplace,
    .run = [](const Call& c) -> Outputs { return op::hardtanh(c.tensor(0), 0.0, 6.0); },
    .samples = {{"T(3, 4)"}},
});
TS_BODY(hardtanh_backward, "tt", 't', 2, (TS_FLOATS),
        return select((b <= s0) | (b >= s1), T(0), a);)
TS_OP({
    .schema = "_hardtanh_backward(Tensor grad, Tensor self, float min_val, float max_val) -> "
              "Tensor",
    .kind = Kind::kPointwise,
    .forms = kFunction,
    .body = &hardtanh_backward_body,
    .saves = "self",
    .backward =
        [](Backward& b) {
          if (b.wants(0))
            b.set(0, op::_hardtanh_backward(b.grad, b.tensor(1), b.number(2), b.number(3)));
        },
});

TS_BODY(hardsigmoid, "t", 't', 0, (TS_FLOATS), T x = a + T(3); x = select(x < T(0), T(0), x);
        return select(x > T(6), T(6), x) / T(6);)
TS_OP({
    .schema = "nn.functional.hardsigmoid(Tensor self) -> Tensor",
    .doc = "x / 6 + 1 / 2, but at least 0 and at most 1.",
    .example = "torch.nn.functional.hardsigmoid(torch.tensor([-4.0, 0.0, 1.5]))",
    .kind = Kind::kPointwise,
    .forms = kFunction | kInplace,
    .body = &hardsigmoid_body,
    .saves = "self",
    .backward = [](Backward& b) { b.set(0, op::_hardsigmoid_backward(b.grad, b.tensor(0))); },
    .samples = {{"T(3, 4)"}},
});
TS_BODY(hardsigmoid_backward, "tt", 't', 0, (TS_FLOATS),
        return select((b > T(-3)) & (b < T(3)), a / T(6), T(0));)
TS_OP({
    .schema = "_hardsigmoid_backward(Tensor grad, Tensor self) -> Tensor",
    .kind = Kind::kPointwise,
    .forms = kFunction,
    .body = &hardsigmoid_backward_body,
    .saves = "self",
    .backward =
        [](Backward& b) {
          if (b.wants(0)) b.set(0, op::_hardsigmoid_backward(b.grad, b.tensor(1)));
        },
});

TS_BODY(hardshrink, "t", 't', 1, (TS_FLOATS),
        return select((a >= negate(s0)) & (a <= s0), T(0), a);)
TS_OP({
    .schema = "hardshrink(Tensor self, float lambd=0.5) -> Tensor",
    .also = "nn.functional.hardshrink",
    .doc = "Each element, 0 where it is within lambd of 0.",
    .example = "torch.hardshrink(torch.tensor([-1.0, 0.25, 2.0]))",
    .forms = kFunction | kMethod | kOut,
    .run = [](const Call& c) -> Outputs {
      return op::_hardshrink(c.tensor(0), in_elements(c, c.number(1)));
    },
    .samples = {{"T(3, 4)"}, {"T(3, 4), 1.03"}},
});
TS_OP({
    .schema = "_hardshrink(Tensor self, float lambd) -> Tensor",
    .kind = Kind::kPointwise,
    .forms = kFunction,
    .body = &hardshrink_body,
    .saves = "self",
    .backward =
        [](Backward& b) { b.set(0, op::_shrink_backward(b.grad, b.tensor(0), b.number(1))); },
    .aten = "hardshrink",
});

TS_BODY(softshrink, "t", 't', 1, (TS_FLOATS), T inside = a * T(0);
        return select(a > s0, a - s0, select(a < negate(s0), a + s0, inside));)
TS_OP({
    .schema = "nn.functional.softshrink(Tensor self, float lambd=0.5) -> Tensor",
    .doc = "Each element brought nearer to 0 by lambd, 0 where it is within lambd of it.",
    .example = "torch.nn.functional.softshrink(torch.tensor([-1.0, 0.25, 2.0]))",
    .forms = kFunction | kOut,
    .run = [](const Call& c) -> Outputs {
      TS_CHECK(c.number(1) >= 0, "lambda must be greater or equal to 0, but found to be ",
               c.number(1), ".");
      return op::_softshrink(c.tensor(0), in_elements(c, c.number(1)));
    },
    .samples = {{"T(3, 4)"}, {"T(3, 4), 1.03"}},
});
TS_OP({
    .schema = "_softshrink(Tensor self, float lambd) -> Tensor",
    .kind = Kind::kPointwise,
    .forms = kFunction,
    .body = &softshrink_body,
    .saves = "self",
    .backward =
        [](Backward& b) { b.set(0, op::_shrink_backward(b.grad, b.tensor(0), b.number(1))); },
    .aten = "softshrink",
});
TS_BODY(shrink_backward, "tt", 't', 1, (TS_FLOATS),
        return select((b >= negate(s0)) & (b <= s0), T(0), a);)
TS_OP({
    .schema = "_shrink_backward(Tensor grad, Tensor self, float lambd) -> Tensor",
    .kind = Kind::kPointwise,
    .forms = kFunction,
    .body = &shrink_backward_body,
    .saves = "self",
    .backward =
        [](Backward& b) {
          if (b.wants(0)) b.set(0, op::_shrink_backward(b.grad, b.tensor(1), b.number(2)));
        },
});

}  // namespace tessera
