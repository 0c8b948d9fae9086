// Sums with a product or quotient, and interpolation.
#include "tessera/ops/gradient.h"
#include "tessera/ops/loops.h"

namespace tessera {

namespace {

TensorBase scaled(const TensorBase& g, Scalar value) {
  bool one = !value.is_complex() && value.to_double() == 1;
  return one ? g : op::mul(g, grad::conj(value));
}

}  // namespace

TS_BODY(addcmul, "ttt", 't', 1, (TS_NUMBERS, TS_COMPLEX), return a + s0 * b * c;)
TS_OP({
    .schema = "addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
    .doc = "self + value * tensor1 * tensor2.",
    .example = "torch.addcmul(torch.zeros(2), torch.ones(2), torch.ones(2), value=3)",
    .kind = Kind::kPointwise,
    .forms = kFunction | kMethod | kInplace | kOut,
    .check = refuse_bool,
    .body = &addcmul_body,
    .saves = "tensor1:tensor2 tensor2:tensor1",
    .backward =
        [](Backward& b) {
          if (b.wants(0)) b.set(0, b.grad);
          if (!b.wants(1) && !b.wants(2)) return;
          TensorBase g = scaled(b.grad, b.scalar(3));
          if (b.wants(1)) b.set(1, grad::times(g, b.tensor(2)));
          if (b.wants(2)) b.set(2, grad::times(g, b.tensor(1)));
        },
    .autocast = Autocast::kPromoteGpu,
    .samples = {{"T(3, 4), T(3, 4), T(3, 4)"}, {"T(3, 4), T(4), T(3, 1), value=2"}},
});
TS_OP({
    .schema = "addcmul(Tensor self, Scalar value, Tensor tensor1, Tensor tensor2) -> Tensor",
    .doc = "self + value * tensor1 * tensor2: PyTorch's old order of arguments.",
    .example = "torch.addcmul(torch.zeros(2), 3, torch.ones(2), torch.ones(2))",
    .forms = kFunction | kMethod | kInplace | kOut,
    .hidden = true,
    .run = [](const Call& c) -> Outputs {
      return op::addcmul(c.tensor(0), c.tensor(2), c.tensor(3), c.scalar(1));
    },
    .autocast = Autocast::kPromoteGpu,
    .samples = {{"T(3, 4), 2, T(3, 4), T(3, 4)"}},
});

TS_BODY(addcdiv, "ttt", 't', 1, (TS_FLOATS, TS_COMPLEX), return a + s0 * b / c;)
TS_OP({
    .schema = "addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
    .doc = "self + value * tensor1 / tensor2.",
    .example = "torch.addcdiv(torch.zeros(2), torch.ones(2), torch.ones(2), value=3)",
    .kind = Kind::kPointwise,
    .forms = kFunction | kMethod | kInplace | kOut,
    .check =
        [](const Call& c) {
          TS_CHECK(!is_integral(c.dtype_of(1), true) || !is_integral(c.dtype_of(2), true),
                   "Integer division with addcdiv is no longer supported, and in a future  release "
                   "addcdiv will perform a true division of tensor1 and tensor2. The historic "
                   "addcdiv behavior can be implemented as (input + value * torch.trunc(tensor1 / "
                   "tensor2)).to(input.dtype) for integer inputs and as (input + value * tensor1 / "
                   "tensor2) for float inputs.");
        },
    .body = &addcdiv_body,
    .saves = "tensor1:tensor2 tensor2",
    .backward =
        [](Backward& b) {
          if (b.wants(0)) b.set(0, b.grad);
          if (!b.wants(1) && !b.wants(2)) return;
          const TensorBase& divisor = b.tensor(2);
          TensorBase g = scaled(b.grad, b.scalar(3));
          if (b.wants(1)) b.set(1, grad::over(g, divisor));
          if (!b.wants(2)) return;
          TensorBase slope = op::div(b.tensor(1), grad::square(divisor));
          b.set(2, grad::times(op::neg(g), slope));
        },
    .autocast = Autocast::kPromoteGpu,
    .samples = {{"T(3, 4), T(3, 4), T(3, 4)"}, {"T(3, 4), T(4), T(3, 1), value=2"}},
});
TS_OP({
    .schema = "addcdiv(Tensor self, Scalar value, Tensor tensor1, Tensor tensor2) -> Tensor",
    .doc = "self + value * tensor1 / tensor2: PyTorch's old order of arguments.",
    .example = "torch.addcdiv(torch.zeros(2), 3, torch.ones(2), torch.ones(2))",
    .forms = kFunction | kMethod | kInplace | kOut,
    .hidden = true,
    .run = [](const Call& c) -> Outputs {
      return op::addcdiv(c.tensor(0), c.tensor(2), c.tensor(3), c.scalar(1));
    },
    .autocast = Autocast::kPromoteGpu,
    .samples = {{"T(3, 4), 2, T(3, 4), T(3, 4)"}},
});

// From the nearer end, so that weights 0 and 1 give the ends exactly.
TS_BODY(lerp, "ttt", 't', 0, (TS_FLOATS, TS_COMPLEX), T way = b - a;
        return select(abs(c) < R(0.5), a + c * way, b - way * (T(1) - c));)
TS_OP({
    .schema = "lerp(Tensor self, Tensor end, Tensor|Scalar weight) -> Tensor",
    .doc = "self + weight * (end - self).",
    .example = "torch.lerp(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 6.0]), 0.25)",
    .kind = Kind::kPointwise,
    .forms = kFunction | kMethod | kInplace | kOut,
    .check =
        [](const Call& c) {
          DType t = c.dtype_of(0);
          auto same = [&](int i) {
            TS_CHECK(c.dtype_of(i) == t, "expected dtype ", dtype_name(t), " for `",
                     c.op.args[static_cast<size_t>(i)].name, "` but got dtype ",
                     dtype_name(c.dtype_of(i)));
          };
          same(1);
          TS_CHECK_IMPLEMENTED(is_differentiable(t), "\"lerp\" not implemented for '",
                               dtype_title(t), "'");
          if (c.args[2].is_tensor()) {  // of one element: a number, as it counts in promotion
            if (c.args[2].tensor->dim() > 0) same(2);
            return;
          }
          check_fits(c.scalar(2), is_reduced_floating(t) ? DType::kFloat32 : t);
        },
    .body = &lerp_body,
    .saves = "self:weight end:weight weight",
    .backward =
        [](Backward& b) {
          const Value& weight = b.args[2];
          if (b.wants(0)) {
            if (weight.is_tensor())
              b.set(0, grad::times(b.grad, grad::one_minus(*weight.tensor)));
            else
              b.set(0, op::sub(b.grad, grad::times(b.grad, weight)));
          }
          if (b.wants(1)) b.set(1, grad::times(b.grad, weight));
          if (b.wants(2)) b.set(2, grad::times(b.grad, op::sub(b.tensor(1), b.tensor(0))));
        },
    .samples = {{"T(3, 4), T(3, 4), 0.25"}, {"T(3, 4), T(4), U(3, 4)"}},
});

}  // namespace tessera
