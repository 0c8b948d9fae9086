// Exponentials, logarithms and roots.
#include "tessera/ops/gradient.h"
#include "tessera/ops/loops.h"

namespace tessera {

namespace {
constexpr double kLn2 = 0.693147180559945309417, kLn10 = 2.302585092994045684018;
}

TS_BODY(exp, "t", 't', 0, (TS_FLOATS, TS_COMPLEX), return exp(a);)
TS_OP({
    .schema = "exp(Tensor self) -> Tensor",
    .doc = "The exponential of each element.",
    .example = "torch.exp(torch.tensor([0.0, 1.0]))",
    .kind = Kind::kPointwise,
    .types = TypeRule::kPromoteFloat,
    .forms = kFunction | kMethod | kInplace | kOut,
    .body = &exp_body,
    .saves = "result",
    .backward = [](Backward& b) { b.set(0, grad::times(b.grad, b.result)); },
    .autocast = Autocast::kFloat32Gpu,
    .samples = {{"T(3, 4)"}, {"T()"}, {"T(0, 3)"}},
});

TS_BODY(exp2, "t", 't', 0, (TS_FLOATS, TS_COMPLEX), return exp2(a);)
TS_OP({
    .schema = "exp2(Tensor self) -> Tensor",
    .also = "special.exp2",
    .doc = "Two to the power of each element.",
    .example = "torch.exp2(torch.tensor([0.0, 3.0]))",
    .kind = Kind::kPointwise,
    .types = TypeRule::kPromoteFloat,
    .forms = kFunction | kMethod | kInplace | kOut,
    .body = &exp2_body,
    .saves = "result",
    .backward = [](Backward& b) { b.set(0, grad::times(b.grad, op::mul(b.result, kLn2))); },
    .samples = {{"T(3, 4)"}, {"T()"}},
});

TS_BODY(expm1, "t", 't', 0, (TS_FLOATS, TS_COMPLEX), return expm1(a);)
TS_OP({
    .schema = "expm1(Tensor self) -> Tensor",
    .also = "special.expm1",
    .doc = "exp(x) - 1, exact for small x.",
    .example = "torch.expm1(torch.tensor([0.0, 1e-6]))",
    .kind = Kind::kPointwise,
    .types = TypeRule::kPromoteFloat,
    .forms = kFunction | kMethod | kInplace | kOut,
    .body = &expm1_body,
    .saves = "result",
    .backward = [](Backward& b) { b.set(0, grad::times(b.grad, op::add(b.result, 1))); },
    .autocast = Autocast::kFloat32Gpu,
    .samples = {{"T(3, 4)"}, {"T()"}},
});

TS_BODY(log, "t", 't', 0, (TS_FLOATS, TS_COMPLEX), return log(a);)
TS_OP({
    .schema = "log(Tensor self) -> Tensor",
    .doc = "The natural logarithm of each element.",
    .example = "torch.log(torch.tensor([1.0, 2.0]))",
    .kind = Kind::kPointwise,
    .types = TypeRule::kPromoteFloat,
    .forms = kFunction | kMethod | kInplace | kOut,
    .body = &log_body,
    .saves = "self",
    .backward = [](Backward& b) { b.set(0, grad::over(b.grad, b.tensor(0))); },
    .autocast = Autocast::kFloat32Gpu,
    .samples = {{"P(3, 4)"}, {"P()"}},
});

TS_BODY(log2, "t", 't', 0, (TS_FLOATS, TS_COMPLEX), return log2(a);)
TS_OP({
    .schema = "log2(Tensor self) -> Tensor",
    .doc = "The logarithm to base 2 of each element.",
    .example = "torch.log2(torch.tensor([1.0, 8.0]))",
    .kind = Kind::kPointwise,
    .types = TypeRule::kPromoteFloat,
    .forms = kFunction | kMethod | kInplace | kOut,
    .body = &log2_body,
    .saves = "self",
    .backward = [](Backward& b) { b.set(0, grad::over(b.grad, op::mul(b.tensor(0), kLn2))); },
    .autocast = Autocast::kFloat32Gpu,
    .samples = {{"P(3, 4)"}, {"P()"}},
});

TS_BODY(log10, "t", 't', 0, (TS_FLOATS, TS_COMPLEX), return log10(a);)
TS_OP({
    .schema = "log10(Tensor self) -> Tensor",
    .doc = "The logarithm to base 10 of each element.",
    .example = "torch.log10(torch.tensor([1.0, 100.0]))",
    .kind = Kind::kPointwise,
    .types = TypeRule::kPromoteFloat,
    .forms = kFunction | kMethod | kInplace | kOut,
    .body = &log10_body,
    .saves = "self",
    .backward = [](Backward& b) { b.set(0, grad::over(b.grad, op::mul(b.tensor(0), kLn10))); },
    .autocast = Autocast::kFloat32Gpu,
    .samples = {{"P(3, 4)"}, {"P()"}},
});

TS_BODY(log1p, "t", 't', 0, (TS_FLOATS, TS_COMPLEX), return log1p(a);)
TS_OP({
    .schema = "log1p(Tensor self) -> Tensor",
    .also = "special.log1p",
    .doc = "log(1 + x), exact for small x.",
    .example = "torch.log1p(torch.tensor([0.0, 1e-6]))",
    .kind = Kind::kPointwise,
    .types = TypeRule::kPromoteFloat,
    .forms = kFunction | kMethod | kInplace | kOut,
    .body = &log1p_body,
    .saves = "self",
    .backward = [](Backward& b) { b.set(0, grad::over(b.grad, op::add(b.tensor(0), 1))); },
    .autocast = Autocast::kFloat32Gpu,
    .samples = {{"P(3, 4)"}, {"U()"}},
});

TS_BODY(sqrt, "t", 't', 0, (TS_FLOATS, TS_COMPLEX), return sqrt(a);)
TS_OP({
    .schema = "sqrt(Tensor self) -> Tensor",
    .doc = "The square root of each element.",
    .example = "torch.sqrt(torch.tensor([4.0, 2.0]))",
    .kind = Kind::kPointwise,
    .types = TypeRule::kPromoteFloat,
    .forms = kFunction | kMethod | kInplace | kOut,
    .body = &sqrt_body,
    .saves = "result",
    .backward = [](Backward& b) { b.set(0, grad::over(b.grad, op::mul(b.result, 2))); },
    .samples = {{"P(3, 4)"}, {"P()"}, {"P(0, 3)"}},
});

TS_BODY(rsqrt, "t", 't', 0, (TS_FLOATS, TS_COMPLEX), return T(1) / sqrt(a);)
TS_OP({
    .schema = "rsqrt(Tensor self) -> Tensor",
    .doc = "One over the square root of each element.",
    .example = "torch.rsqrt(torch.tensor([4.0, 2.0]))",
    .kind = Kind::kPointwise,
    .types = TypeRule::kPromoteFloat,
    .forms = kFunction | kMethod | kInplace | kOut,
    .body = &rsqrt_body,
    .saves = "result",
    .backward =
        [](Backward& b) {
          TensorBase cube = op::mul(grad::square(b.result), b.result);
          b.set(0, grad::times(op::mul(b.grad, -0.5), cube));
        },
    .autocast = Autocast::kFloat32Gpu,
    .samples = {{"P(3, 4)"}, {"P()"}},
});

TS_OP({
    .schema = "square(Tensor self) -> Tensor",
    .doc = "Each element times itself.",
    .example = "torch.square(torch.tensor([3.0, -2.0]))",
    .forms = kFunction | kMethod | kInplace | kOut,
    .run = [](const Call& c) -> Outputs { return op::pow(c.tensor(0), 2); },
    .autocast = Autocast::kFloat32Gpu,
    .samples = {{"T(3, 4)"}, {"T()"}},
});

TS_BODY(reciprocal, "t", 't', 0, (TS_FLOATS, TS_COMPLEX), return T(1) / a;)
TS_OP({
    .schema = "reciprocal(Tensor self) -> Tensor",
    .doc = "One over each element.",
    .example = "torch.reciprocal(torch.tensor([4.0, -2.0]))",
    .kind = Kind::kPointwise,
    .types = TypeRule::kPromoteFloat,
    .forms = kFunction | kMethod | kInplace | kOut,
    .body = &reciprocal_body,
    .saves = "result",
    .backward = [](Backward& b) { b.set(0, grad::times(op::neg(b.grad), grad::square(b.result))); },
    .autocast = Autocast::kFloat32Gpu,
    .samples = {{"T(3, 4)"}, {"T()"}},
});

}  // namespace tessera
