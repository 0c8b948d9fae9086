// Trigonometric and hyperbolic functions, and their inverses.
#include "tessera/ops/gradient.h"
#include "tessera/ops/loops.h"

namespace tessera {

TS_BODY_NEAR(sin, "t", 't', 0, (TS_FLOATS, TS_COMPLEX), is_near_angle(a), sin_near(a),
             return sin(a);)
TS_OP({
    .schema = "sin(Tensor self) -> Tensor",
    .doc = "The sine of each element, in radians.",
    .example = "torch.sin(torch.tensor([0.0, 1.0]))",
    .kind = Kind::kPointwise,
    .types = TypeRule::kPromoteFloat,
    .forms = kFunction | kMethod | kInplace | kOut,
    .body = &sin_body,
    .saves = "self",
    .backward = [](Backward& b) { b.set(0, grad::times(b.grad, op::cos(b.tensor(0)))); },
    .samples = {{"T(3, 4)"}, {"T()"}},
});

TS_BODY_NEAR(cos, "t", 't', 0, (TS_FLOATS, TS_COMPLEX), is_near_angle(a), cos_near(a),
             return cos(a);)
TS_OP({
    .schema = "cos(Tensor self) -> Tensor",
    .doc = "The cosine of each element, in radians.",
    .example = "torch.cos(torch.tensor([0.0, 1.0]))",
    .kind = Kind::kPointwise,
    .types = TypeRule::kPromoteFloat,
    .forms = kFunction | kMethod | kInplace | kOut,
    .body = &cos_body,
    .saves = "self",
    .backward = [](Backward& b) { b.set(0, grad::times(op::neg(b.grad), op::sin(b.tensor(0)))); },
    .samples = {{"T(3, 4)"}, {"T()"}},
});

TS_BODY_NEAR(tan, "t", 't', 0, (TS_FLOATS, TS_COMPLEX), is_near_angle(a), tan_near(a),
             return tan(a);)
TS_OP({
    .schema = "tan(Tensor self) -> Tensor",
    .doc = "The tangent of each element, in radians.",
    .example = "torch.tan(torch.tensor([0.0, 1.0]))",
    .kind = Kind::kPointwise,
    .types = TypeRule::kPromoteFloat,
    .forms = kFunction | kMethod | kInplace | kOut,
    .body = &tan_body,
    .saves = "result",
    .backward =
        [](Backward& b) { b.set(0, grad::times(b.grad, op::add(grad::square(b.result), 1))); },
    .autocast = Autocast::kFloat32Gpu,
    .samples = {{"U(3, 4)"}, {"U()"}},
});

TS_BODY(asin, "t", 't', 0, (TS_FLOATS, TS_COMPLEX), return asin(a);)
TS_OP({
    .schema = "asin(Tensor self) -> Tensor",
    .also = "arcsin",
    .doc = "The angle between -pi/2 and pi/2 with this sine.",
    .example = "torch.asin(torch.tensor([0.0, 1.0]))",
    .kind = Kind::kPointwise,
    .types = TypeRule::kPromoteFloat,
    .forms = kFunction | kMethod | kInplace | kOut,
    .body = &asin_body,
    .saves = "self",
    .backward =
        [](Backward& b) {
          b.set(0, grad::times(b.grad, op::rsqrt(grad::one_minus(grad::square(b.tensor(0))))));
        },
    .autocast = Autocast::kFloat32Gpu,
    .samples = {{"U(3, 4)"}, {"U()"}},
});

TS_BODY(acos, "t", 't', 0, (TS_FLOATS, TS_COMPLEX), return acos(a);)
TS_OP({
    .schema = "acos(Tensor self) -> Tensor",
    .also = "arccos",
    .doc = "The angle between 0 and pi with this cosine.",
    .example = "torch.acos(torch.tensor([0.0, 1.0]))",
    .kind = Kind::kPointwise,
    .types = TypeRule::kPromoteFloat,
    .forms = kFunction | kMethod | kInplace | kOut,
    .body = &acos_body,
    .saves = "self",
    .backward =
        [](Backward& b) {
          b.set(0, grad::times(op::neg(b.grad),
                               op::rsqrt(grad::one_minus(grad::square(b.tensor(0))))));
        },
    .autocast = Autocast::kFloat32Gpu,
    .samples = {{"U(3, 4)"}, {"U()"}},
});

TS_BODY(atan, "t", 't', 0, (TS_FLOATS, TS_COMPLEX), return atan(a);)
TS_OP({
    .schema = "atan(Tensor self) -> Tensor",
    .also = "arctan",
    .doc = "The angle between -pi/2 and pi/2 with this tangent.",
    .example = "torch.atan(torch.tensor([0.0, 1.0]))",
    .kind = Kind::kPointwise,
    .types = TypeRule::kPromoteFloat,
    .forms = kFunction | kMethod | kInplace | kOut,
    .body = &atan_body,
    .saves = "self",
    .backward =
        [](Backward& b) { b.set(0, grad::over(b.grad, op::add(grad::square(b.tensor(0)), 1))); },
    .samples = {{"T(3, 4)"}, {"T()"}},
});

TS_BODY(sinh, "t", 't', 0, (TS_FLOATS, TS_COMPLEX), return sinh(a);)
TS_OP({
    .schema = "sinh(Tensor self) -> Tensor",
    .doc = "The hyperbolic sine of each element.",
    .example = "torch.sinh(torch.tensor([0.0, 1.0]))",
    .kind = Kind::kPointwise,
    .types = TypeRule::kPromoteFloat,
    .forms = kFunction | kMethod | kInplace | kOut,
    .body = &sinh_body,
    .saves = "self",
    .backward = [](Backward& b) { b.set(0, grad::times(b.grad, op::cosh(b.tensor(0)))); },
    .autocast = Autocast::kFloat32Gpu,
    .samples = {{"T(3, 4)"}, {"T()"}},
});

TS_BODY(cosh, "t", 't', 0, (TS_FLOATS, TS_COMPLEX), return cosh(a);)
TS_OP({
    .schema = "cosh(Tensor self) -> Tensor",
    .doc = "The hyperbolic cosine of each element.",
    .example = "torch.cosh(torch.tensor([0.0, 1.0]))",
    .kind = Kind::kPointwise,
    .types = TypeRule::kPromoteFloat,
    .forms = kFunction | kMethod | kInplace | kOut,
    .body = &cosh_body,
    .saves = "self",
    .backward = [](Backward& b) { b.set(0, grad::times(b.grad, op::sinh(b.tensor(0)))); },
    .autocast = Autocast::kFloat32Gpu,
    .samples = {{"T(3, 4)"}, {"T()"}},
});

TS_BODY(asinh, "t", 't', 0, (TS_FLOATS, TS_COMPLEX), return asinh(a);)
TS_OP({
    .schema = "asinh(Tensor self) -> Tensor",
    .also = "arcsinh",
    .doc = "The inverse of the hyperbolic sine.",
    .example = "torch.asinh(torch.tensor([0.0, 1.0]))",
    .kind = Kind::kPointwise,
    .types = TypeRule::kPromoteFloat,
    .forms = kFunction | kMethod | kInplace | kOut,
    .body = &asinh_body,
    .saves = "self",
    .backward =
        [](Backward& b) {
          b.set(0, grad::times(b.grad, op::rsqrt(op::add(grad::square(b.tensor(0)), 1))));
        },
    .samples = {{"T(3, 4)"}, {"T()"}},
});

TS_BODY(acosh, "t", 't', 0, (TS_FLOATS, TS_COMPLEX), return acosh(a);)
TS_OP({
    .schema = "acosh(Tensor self) -> Tensor",
    .also = "arccosh",
    .doc = "The inverse of the hyperbolic cosine; nan below 1.",
    .example = "torch.acosh(torch.tensor([1.0, 2.0]))",
    .kind = Kind::kPointwise,
    .types = TypeRule::kPromoteFloat,
    .forms = kFunction | kMethod | kInplace | kOut,
    .body = &acosh_body,
    .saves = "self",
    .backward =
        [](Backward& b) {
          const TensorBase& x = b.tensor(0);
          // sqrt(x + 1) sqrt(x - 1) is no sqrt(x x - 1) where x is complex.
          TensorBase slope = is_complex(x.dtype())
                                 ? op::mul(op::rsqrt(op::add(x, 1)), op::rsqrt(op::sub(x, 1)))
                                 : op::rsqrt(op::sub(grad::square(x), 1));
          b.set(0, grad::times(b.grad, slope));
        },
    .samples = {{"V([1.5, 2.0, 4.0])"}},
});

TS_BODY(atanh, "t", 't', 0, (TS_FLOATS, TS_COMPLEX), return atanh(a);)
TS_OP({
    .schema = "atanh(Tensor self) -> Tensor",
    .also = "arctanh",
    .doc = "The inverse of the hyperbolic tangent.",
    .example = "torch.atanh(torch.tensor([0.0, 0.5]))",
    .kind = Kind::kPointwise,
    .types = TypeRule::kPromoteFloat,
    .forms = kFunction | kMethod | kInplace | kOut,
    .body = &atanh_body,
    .saves = "self",
    .backward =
        [](Backward& b) {
          b.set(0, grad::over(b.grad, grad::one_minus(grad::square(b.tensor(0)))));
        },
    .samples = {{"U(3, 4)"}, {"U()"}},
});

TS_BODY(tanh, "t", 't', 0, (TS_FLOATS, TS_COMPLEX), return tanh(a);)
TS_OP({
    .schema = "tanh(Tensor self) -> Tensor",
    .also = "nn.functional.tanh",
    .doc = "The hyperbolic tangent of each element.",
    .example = "torch.tanh(torch.tensor([0.0, 1.0]))",
    .kind = Kind::kPointwise,
    .types = TypeRule::kPromoteFloat,
    .forms = kFunction | kMethod | kInplace | kOut,
    .body = &tanh_body,
    .saves = "result",
    .backward =
        [](Backward& b) {
          if (is_complex(b.result.dtype()))
            b.set(0, grad::times(b.grad, grad::one_minus(grad::square(b.result))));
          else
            b.set(0, op::_tanh_backward(b.grad, b.result));
        },
    .samples = {{"T(3, 4)"}, {"T()"}, {"T(0, 3)"}},
});

TS_BODY(tanh_backward, "tt", 't', 0, (TS_FLOATS), return a * (T(1) - b * b);)
TS_OP({
    .schema = "_tanh_backward(Tensor grad, Tensor result) -> Tensor",
    .kind = Kind::kPointwise,
    .forms = kFunction,
    .body = &tanh_backward_body,
    .saves = "grad:result result",
    .backward =
        [](Backward& b) {
          const TensorBase& y = b.tensor(1);
          if (b.wants(0)) b.set(0, op::_tanh_backward(b.grad, y));
          if (b.wants(1)) b.set(1, op::mul(op::mul(b.grad, b.tensor(0)), op::mul(y, -2)));
        },
});

namespace {

// (pi x cos(pi x) - sin(pi x)) / (pi x^2)
TensorBase sinc_slope(const TensorBase& t) {
  TensorBase x = op::mul(t, 3.14159265358979323846), area = op::mul(x, t);
  TensorBase slope = op::div(op::sub(op::mul(x, op::cos(x)), op::sin(x)), area);
  return op::where(op::eq(area, 0), 0, slope);
}

}  // namespace

TS_BODY_NEAR(sinc, "t", 't', 0, (TS_FLOATS, TS_COMPLEX), is_near_turn(a), sinc_near(a),
             T x = a * T(3.14159265358979323846);
             return select(a == T(0), T(1), sin(x) / x);)
TS_OP({
    .schema = "sinc(Tensor self) -> Tensor",
    .also = "special.sinc",
    .doc = "sin(pi x) / (pi x), and 1 at 0.",
    .example = "torch.sinc(torch.tensor([0.0, 0.5]))",
    .kind = Kind::kPointwise,
    .types = TypeRule::kPromoteFloat,
    .forms = kFunction | kMethod | kInplace | kOut,
    .body = &sinc_body,
    .saves = "self",
    .backward =
        [](Backward& b) {
          if (is_complex(b.tensor(0).dtype()))
            b.set(0, grad::times(b.grad, sinc_slope(b.tensor(0))));
          else
            b.set(0, op::_sinc_backward(b.grad, b.tensor(0)));
        },
    .samples = {{"T(3, 4)"}, {"U()"}},
});

TS_BODY(sinc_backward, "tt", 't', 0, (TS_FLOATS), T x = b * T(3.14159265358979323846);
        return select(b == T(0), T(0), a*((x * cos(x) - sin(x)) / (x * b)));)
TS_OP({
    .schema = "_sinc_backward(Tensor grad, Tensor self) -> Tensor",
    .kind = Kind::kPointwise,
    .types = TypeRule::kPromoteFloat,
    .forms = kFunction,
    .body = &sinc_backward_body,
    .saves = "grad:self self",
    .backward =
        [](Backward& b) {
          const TensorBase& x = b.tensor(1);
          if (b.wants(0)) b.set(0, op::_sinc_backward(b.grad, x));
          if (!b.wants(1)) return;
          // sinc'' = -pi^2 sinc - 2 sinc' / x, and a third of it at 0
          constexpr double kPiSquared = 9.86960440108935861883;
          TensorBase twice = op::mul(op::div(sinc_slope(x), x), 2);
          TensorBase bend = op::neg(op::add(op::mul(op::sinc(x), kPiSquared), twice));
          bend = op::where(op::eq(x, 0), -kPiSquared / 3, bend);
          b.set(1, op::mul(op::mul(b.grad, b.tensor(0)), bend));
        },
});

TS_BODY(deg2rad, "t", 't', 0, (TS_FLOATS), return a * T(0.017453292519943295769);)
TS_OP({
    .schema = "deg2rad(Tensor self) -> Tensor",
    .doc = "Degrees to radians.",
    .example = "torch.deg2rad(torch.tensor([180.0, 90.0]))",
    .kind = Kind::kPointwise,
    .types = TypeRule::kPromoteFloat,
    .forms = kFunction | kMethod | kInplace | kOut,
    .body = &deg2rad_body,
    .backward = [](Backward& b) { b.set(0, op::deg2rad(b.grad)); },
    .samples = {{"T(3, 4)"}, {"T()"}},
});

TS_BODY(rad2deg, "t", 't', 0, (TS_FLOATS), return a * T(57.295779513082320877);)
TS_OP({
    .schema = "rad2deg(Tensor self) -> Tensor",
    .doc = "Radians to degrees.",
    .example = "torch.rad2deg(torch.tensor([3.141592, 0.0]))",
    .kind = Kind::kPointwise,
    .types = TypeRule::kPromoteFloat,
    .forms = kFunction | kMethod | kInplace | kOut,
    .body = &rad2deg_body,
    .backward = [](Backward& b) { b.set(0, op::rad2deg(b.grad)); },
    .samples = {{"T(3, 4)"}, {"T()"}},
});

}  // namespace tessera
