// Bessel functions and Airy's.
#include "tessera/gen/binary.h"
#include "tessera/gen/special.h"
#include "tessera/gen/unary.h"
#include "tessera/ops/loops.h"
#include "tessera/ops/special/bessel.h"
#include "tessera/ops/special/float_bessel.h"

namespace tessera {

TS_BODY_NEAR(i0_special, "t", 't', 0, (TS_FLOATS), is_near_always(), i0(a),
             return T(special::i0(double(a)));)
TS_OP({
    .schema = "i0(Tensor self) -> Tensor",
    .also = "special.i0",
    .doc = "The modified Bessel function of the first kind of order 0.",
    .example = "torch.i0(torch.tensor([0.0, 1.0]))",
    .kind = Kind::kPointwise,
    .types = TypeRule::kPromoteFloat,
    .forms = kFunction | kMethod | kInplace | kOut,
    .body = &i0_special_body,
    .saves = "self",
    .backward = [](Backward& b) { b.set(0, op::mul(b.grad, op::special_i1(b.tensor(0)))); },
    .samples = {{"T(3, 4)"}},
});

TS_BODY_NEAR(i0e_special, "t", 't', 0, (TS_FLOATS), is_near_always(), i0e(a),
             return T(special::i0e(double(a)));)
TS_OP({
    .schema = "special.i0e(Tensor self) -> Tensor",
    .doc = "i0 times exp(-abs(x)).",
    .example = "torch.special.i0e(torch.tensor([0.0, 1.0]))",
    .kind = Kind::kPointwise,
    .types = TypeRule::kPromoteFloat,
    .forms = kFunction | kOut,
    .body = &i0e_special_body,
    .saves = "self result",
    .backward =
        [](Backward& b) {
          b.set(0, op::mul(b.grad, op::sub(op::special_i1e(b.tensor(0)),
                                           op::mul(op::sgn(b.tensor(0)), b.result))));
        },
    .samples = {{"T(3, 4)"}},
});

TS_BODY_NEAR(i1_special, "t", 't', 0, (TS_FLOATS), is_near_always(), i1(a),
             return T(special::i1(double(a)));)
TS_OP({
    .schema = "special.i1(Tensor self) -> Tensor",
    .doc = "The modified Bessel function of the first kind of order 1.",
    .example = "torch.special.i1(torch.tensor([0.0, 1.0]))",
    .kind = Kind::kPointwise,
    .types = TypeRule::kPromoteFloat,
    .forms = kFunction | kOut,
    .body = &i1_special_body,
    .saves = "self",
    .backward = [](Backward& b) { b.set(0, op::mul(b.grad, op::_i1_slope(b.tensor(0)))); },
    .samples = {{"T(3, 4)"}},
});

TS_BODY_NEAR(i1e_special, "t", 't', 0, (TS_FLOATS), is_near_always(), i1e(a),
             return T(special::i1e(double(a)));)
TS_OP({
    .schema = "special.i1e(Tensor self) -> Tensor",
    .doc = "i1 times exp(-abs(x)).",
    .example = "torch.special.i1e(torch.tensor([0.0, 1.0]))",
    .kind = Kind::kPointwise,
    .types = TypeRule::kPromoteFloat,
    .forms = kFunction | kOut,
    .body = &i1e_special_body,
    .saves = "self result",
    .backward =
        [](Backward& b) {
          b.set(0, op::mul(b.grad, op::sub(op::_i1e_slope(b.tensor(0)),
                                           op::mul(op::sgn(b.tensor(0)), b.result))));
        },
    .samples = {{"T(3, 4)"}},
});

// i0 - i1 / x, which is a half at 0.
TS_BODY(i1_slope, "t", 't', 0, (TS_FLOATS),
        return T(abs(a) < T(1e-4) ? 0.5
                                  : special::i0(double(a)) - special::i1(double(a)) / double(a));)
TS_OP({
    .schema = "_i1_slope(Tensor self) -> Tensor",
    .kind = Kind::kPointwise,
    .types = TypeRule::kPromoteFloat,
    .forms = kFunction,
    .body = &i1_slope_body,
    .saves = "self result",
    .backward =
        [](Backward& b) {
          // i1 - (i1' - i1 / x) / x
          const TensorBase& x = b.tensor(0);
          TensorBase i1 = op::special_i1(x);
          b.set(0, op::mul(b.grad, op::sub(i1, op::div(op::sub(b.result, op::div(i1, x)), x))));
        },
});
TS_BODY(i1e_slope, "t", 't', 0, (TS_FLOATS),
        return T(abs(a) < T(1e-4) ? 0.5
                                  : special::i0e(double(a)) - special::i1e(double(a)) / double(a));)
TS_OP({
    .schema = "_i1e_slope(Tensor self) -> Tensor",
    .kind = Kind::kPointwise,
    .types = TypeRule::kPromoteFloat,
    .forms = kFunction,
    .body = &i1e_slope_body,
    .saves = "self result",
    .backward =
        [](Backward& b) {
          const TensorBase& x = b.tensor(0);
          TensorBase i1e = op::special_i1e(x);
          TensorBase scaled = op::sub(i1e, op::div(op::sub(b.result, op::div(i1e, x)), x));
          b.set(0, op::mul(b.grad, op::sub(scaled, op::mul(op::sgn(x), b.result))));
        },
});

TS_BODY(bessel_j0_special, "t", 't', 0, (TS_FLOATS), return T(::j0(double(a)));)
TS_OP({
    .schema = "special.bessel_j0(Tensor self) -> Tensor",
    .doc = "The Bessel function of the first kind of order 0.",
    .example = "torch.special.bessel_j0(torch.tensor([0.5, 1.0]))",
    .kind = Kind::kPointwise,
    .types = TypeRule::kPromoteFloat,
    .forms = kFunction | kOut,
    .body = &bessel_j0_special_body,
    .not_differentiable = true,
    .samples = {{"P(3, 4)"}},
});

TS_BODY(bessel_j1_special, "t", 't', 0, (TS_FLOATS), return T(::j1(double(a)));)
TS_OP({
    .schema = "special.bessel_j1(Tensor self) -> Tensor",
    .doc = "The Bessel function of the first kind of order 1.",
    .example = "torch.special.bessel_j1(torch.tensor([0.5, 1.0]))",
    .kind = Kind::kPointwise,
    .types = TypeRule::kPromoteFloat,
    .forms = kFunction | kOut,
    .body = &bessel_j1_special_body,
    .not_differentiable = true,
    .samples = {{"P(3, 4)"}},
});

TS_BODY(bessel_y0_special, "t", 't', 0, (TS_FLOATS),
        return a < T(0) ? std::numeric_limits<T>::quiet_NaN() : T(::y0(double(a)));)
TS_OP({
    .schema = "special.bessel_y0(Tensor self) -> Tensor",
    .doc = "The Bessel function of the second kind of order 0.",
    .example = "torch.special.bessel_y0(torch.tensor([0.5, 1.0]))",
    .kind = Kind::kPointwise,
    .types = TypeRule::kPromoteFloat,
    .forms = kFunction | kOut,
    .body = &bessel_y0_special_body,
    .not_differentiable = true,
    .samples = {{"P(3, 4)"}},
});

TS_BODY(bessel_y1_special, "t", 't', 0, (TS_FLOATS),
        return a < T(0) ? std::numeric_limits<T>::quiet_NaN() : T(::y1(double(a)));)
TS_OP({
    .schema = "special.bessel_y1(Tensor self) -> Tensor",
    .doc = "The Bessel function of the second kind of order 1.",
    .example = "torch.special.bessel_y1(torch.tensor([0.5, 1.0]))",
    .kind = Kind::kPointwise,
    .types = TypeRule::kPromoteFloat,
    .forms = kFunction | kOut,
    .body = &bessel_y1_special_body,
    .not_differentiable = true,
    .samples = {{"P(3, 4)"}},
});

TS_BODY_NEAR(modified_bessel_i0_special, "t", 't', 0, (TS_FLOATS), is_near_always(), i0(a),
             return T(special::i0(double(a)));)
TS_OP({
    .schema = "special.modified_bessel_i0(Tensor self) -> Tensor",
    .doc = "i0 under its longer name.",
    .example = "torch.special.modified_bessel_i0(torch.tensor([0.5, 1.0]))",
    .kind = Kind::kPointwise,
    .types = TypeRule::kPromoteFloat,
    .forms = kFunction | kOut,
    .body = &modified_bessel_i0_special_body,
    .not_differentiable = true,
    .samples = {{"P(3, 4)"}},
});

TS_BODY_NEAR(modified_bessel_i1_special, "t", 't', 0, (TS_FLOATS), is_near_always(), i1(a),
             return T(special::i1(double(a)));)
TS_OP({
    .schema = "special.modified_bessel_i1(Tensor self) -> Tensor",
    .doc = "i1 under its longer name.",
    .example = "torch.special.modified_bessel_i1(torch.tensor([0.5, 1.0]))",
    .kind = Kind::kPointwise,
    .types = TypeRule::kPromoteFloat,
    .forms = kFunction | kOut,
    .body = &modified_bessel_i1_special_body,
    .not_differentiable = true,
    .samples = {{"P(3, 4)"}},
});

TS_BODY_NEAR(modified_bessel_k0_special, "t", 't', 0, (TS_FLOATS), is_near_always(), k0(a),
             return T(special::k0(double(a)));)
TS_OP({
    .schema = "special.modified_bessel_k0(Tensor self) -> Tensor",
    .doc = "The modified Bessel function of the second kind of order 0.",
    .example = "torch.special.modified_bessel_k0(torch.tensor([0.5, 1.0]))",
    .kind = Kind::kPointwise,
    .types = TypeRule::kPromoteFloat,
    .forms = kFunction | kOut,
    .body = &modified_bessel_k0_special_body,
    .not_differentiable = true,
    .samples = {{"P(3, 4)"}},
});

TS_BODY_NEAR(modified_bessel_k1_special, "t", 't', 0, (TS_FLOATS), is_near_always(), k1(a),
             return T(special::k1(double(a)));)
TS_OP({
    .schema = "special.modified_bessel_k1(Tensor self) -> Tensor",
    .doc = "The modified Bessel function of the second kind of order 1.",
    .example = "torch.special.modified_bessel_k1(torch.tensor([0.5, 1.0]))",
    .kind = Kind::kPointwise,
    .types = TypeRule::kPromoteFloat,
    .forms = kFunction | kOut,
    .body = &modified_bessel_k1_special_body,
    .not_differentiable = true,
    .samples = {{"P(3, 4)"}},
});

TS_BODY_NEAR(scaled_modified_bessel_k0_special, "t", 't', 0, (TS_FLOATS), is_near_always(), k0e(a),
             return T(special::k0e(double(a)));)
TS_OP({
    .schema = "special.scaled_modified_bessel_k0(Tensor self) -> Tensor",
    .doc = "modified_bessel_k0 times exp(x).",
    .example = "torch.special.scaled_modified_bessel_k0(torch.tensor([0.5, 1.0]))",
    .kind = Kind::kPointwise,
    .types = TypeRule::kPromoteFloat,
    .forms = kFunction | kOut,
    .body = &scaled_modified_bessel_k0_special_body,
    .not_differentiable = true,
    .samples = {{"P(3, 4)"}},
});

TS_BODY_NEAR(scaled_modified_bessel_k1_special, "t", 't', 0, (TS_FLOATS), is_near_always(), k1e(a),
             return T(special::k1e(double(a)));)
TS_OP({
    .schema = "special.scaled_modified_bessel_k1(Tensor self) -> Tensor",
    .doc = "modified_bessel_k1 times exp(x).",
    .example = "torch.special.scaled_modified_bessel_k1(torch.tensor([0.5, 1.0]))",
    .kind = Kind::kPointwise,
    .types = TypeRule::kPromoteFloat,
    .forms = kFunction | kOut,
    .body = &scaled_modified_bessel_k1_special_body,
    .not_differentiable = true,
    .samples = {{"P(3, 4)"}},
});

TS_BODY(spherical_bessel_j0_special, "t", 't', 0, (TS_FLOATS),
        return T(special::spherical_j0(double(a)));)
TS_OP({
    .schema = "special.spherical_bessel_j0(Tensor self) -> Tensor",
    .doc = "sin(x) / x.",
    .example = "torch.special.spherical_bessel_j0(torch.tensor([0.5, 1.0]))",
    .kind = Kind::kPointwise,
    .types = TypeRule::kPromoteFloat,
    .forms = kFunction | kOut,
    .body = &spherical_bessel_j0_special_body,
    .not_differentiable = true,
    .samples = {{"P(3, 4)"}},
});

TS_BODY(airy_ai_special, "t", 't', 0, (TS_FLOATS), return T(special::airy_ai(double(a)));)
TS_OP({
    .schema = "special.airy_ai(Tensor self) -> Tensor",
    .doc = "Airy's function Ai.",
    .example = "torch.special.airy_ai(torch.tensor([0.5, 1.0]))",
    .kind = Kind::kPointwise,
    .types = TypeRule::kPromoteFloat,
    .forms = kFunction | kOut,
    .body = &airy_ai_special_body,
    .not_differentiable = true,
    .samples = {{"P(3, 4)"}},
});

}  // namespace tessera
