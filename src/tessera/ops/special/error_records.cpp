// The error function's relatives, and entropies.
#include "tessera/gen/binary.h"
#include "tessera/gen/special.h"
#include "tessera/gen/unary.h"
#include "tessera/ops/loops.h"
#include "tessera/ops/special/error.h"
#include "tessera/ops/special/float_special.h"
#include "tessera/ops/special/operands.h"

namespace tessera {

TS_BODY_NEAR(erfinv_special, "t", 't', 0, (TS_FLOATS), is_near_always(), erfinv(a),
             return T(special::erfinv(double(a)));)
TS_OP({
    .schema = "erfinv(Tensor self) -> Tensor",
    .also = "special.erfinv",
    .doc = "The inverse of the error function.",
    .example = "torch.erfinv(torch.tensor([0.0, 0.5]))",
    .kind = Kind::kPointwise,
    .types = TypeRule::kPromoteFloat,
    .forms = kFunction | kMethod | kInplace | kOut,
    .body = &erfinv_special_body,
    .saves = "result",
    .backward =
        [](Backward& b) {
          b.set(0, op::mul(b.grad, op::mul(op::exp(op::mul(b.result, b.result)),
                                           Scalar(0.88622692545275801365))));
        },
    .autocast = Autocast::kFloat32Gpu,
    .samples = {{"U(3, 4)"}},
});

TS_BODY(erfcx_special, "t", 't', 0, (TS_FLOATS), return T(special::erfcx(double(a)));)
TS_OP({
    .schema = "special.erfcx(Tensor self) -> Tensor",
    .doc = "exp(x * x) * erfc(x), without overflow.",
    .example = "torch.special.erfcx(torch.tensor([0.0, 5.0]))",
    .kind = Kind::kPointwise,
    .types = TypeRule::kPromoteFloat,
    .forms = kFunction | kOut,
    .body = &erfcx_special_body,
    .saves = "self result",
    .backward =
        [](Backward& b) {
          b.set(0, op::mul(b.grad, op::sub(op::mul(op::mul(b.tensor(0), b.result), Scalar(2)),
                                           Scalar(1.12837916709551257390))));
        },
    .samples = {{"U(3, 4)"}},
});

TS_BODY(ndtr_special, "t", 't', 0, (TS_FLOATS),
        return T(0.5) * erfc(a * T(-0.70710678118654752440));)
TS_OP({
    .schema = "special.ndtr(Tensor self) -> Tensor",
    .doc = "The normal distribution function.",
    .example = "torch.special.ndtr(torch.tensor([0.0, 1.0]))",
    .kind = Kind::kPointwise,
    .types = TypeRule::kPromoteFloat,
    .forms = kFunction | kOut,
    .body = &ndtr_special_body,
    .saves = "self",
    .backward =
        [](Backward& b) {
          b.set(0,
                op::mul(b.grad,
                        op::mul(op::exp(op::mul(op::mul(b.tensor(0), b.tensor(0)), Scalar(-0.5))),
                                Scalar(0.39894228040143267794))));
        },
    .samples = {{"U(3, 4)"}},
});

TS_BODY_NEAR(ndtri_special, "t", 't', 0, (TS_FLOATS), is_near_always(), ndtri(a),
             return T(special::ndtri(double(a)));)
TS_OP({
    .schema = "special.ndtri(Tensor self) -> Tensor",
    .doc = "The inverse of the normal distribution function.",
    .example = "torch.special.ndtri(torch.tensor([0.5, 0.9]))",
    .kind = Kind::kPointwise,
    .types = TypeRule::kPromoteFloat,
    .forms = kFunction | kOut,
    .body = &ndtri_special_body,
    .saves = "result",
    .backward =
        [](Backward& b) {
          b.set(0,
                op::mul(b.grad, op::mul(op::exp(op::mul(op::mul(b.result, b.result), Scalar(0.5))),
                                        Scalar(2.50662827463100050242))));
        },
    .samples = {{"torch.tensor([0.1, 0.5, 0.9])"}},
});

TS_BODY(log_ndtr_special, "t", 't', 0, (TS_FLOATS), return T(special::log_ndtr(double(a)));)
TS_OP({
    .schema = "special.log_ndtr(Tensor self) -> Tensor",
    .doc = "The logarithm of the normal distribution function, also far in its tail.",
    .example = "torch.special.log_ndtr(torch.tensor([0.0, -40.0]))",
    .kind = Kind::kPointwise,
    .types = TypeRule::kPromoteFloat,
    .forms = kFunction | kOut,
    .body = &log_ndtr_special_body,
    .saves = "self",
    .backward =
        [](Backward& b) {
          b.set(0,
                op::div(op::mul(b.grad, Scalar(0.79788456080286535588)),
                        op::special_erfcx(op::mul(b.tensor(0), Scalar(-0.70710678118654752440)))));
        },
    .samples = {{"U(3, 4)"}},
});

TS_BODY(entr, "t", 't', 0, (TS_FLOATS),
        return select(isnan(a), a,
                      select(a > T(0), negate(a) * log(a),
                             select(a == T(0), T(0), negate(std::numeric_limits<T>::infinity()))));)
TS_OP({
    .schema = "special.entr(Tensor self) -> Tensor",
    .doc = "-x log(x): 0 at 0, minus infinity below.",
    .example = "torch.special.entr(torch.tensor([0.0, 0.5]))",
    .kind = Kind::kPointwise,
    .types = TypeRule::kPromoteFloat,
    .forms = kFunction | kOut,
    .body = &entr_body,
    .saves = "self",
    .backward =
        [](Backward& b) {
          b.set(0, op::mul(b.grad, op::sub(op::neg(op::log(b.tensor(0))), Scalar(1))));
        },
    .samples = {{"P(3, 4)"}},
});

TS_BODY(xlog1py, "tt", 't', 0, (TS_FLOATS), T y = select(a == T(0), T(0), a* log1p(b));
        return select(isnan(b), b, select(isnan(a), a, y));)
// The slope by self: log1p(other), but 0 where self is and the other way leads nowhere.
TS_BODY(xlog1py_slope, "tt", 't', 0, (TS_FLOATS),
        return select((a == T(0)) & (b <= T(-1)), T(0), log1p(b));)
TS_OP({
    .schema = "_xlog1py_slope(Tensor|Scalar self, Tensor|Scalar other) -> Tensor",
    .kind = Kind::kPointwise,
    .types = TypeRule::kPromoteFloat,
    .forms = kFunction,
    .body = &xlog1py_slope_body,
    .saves = "other",
    .backward =
        [](Backward& b) {
          if (b.wants(1)) b.set(1, op::div(b.grad, op::add(b.tensor(1), Scalar(1))));
        },
});
TS_OP({
    .schema = "special.xlog1py(Tensor|Scalar self, Tensor|Scalar other) -> Tensor",
    .doc = "self * log1p(other), 0 where self is.",
    .example = "torch.special.xlog1py(torch.tensor([0.0, 2.0]), torch.tensor([1.0, 1.0]))",
    .kind = Kind::kPointwise,
    .types = TypeRule::kPromoteFloat,
    .forms = kFunction | kOut,
    .check = check_some_tensor,
    .body = &xlog1py_body,
    .saves = "self other",
    .backward =
        [](Backward& b) {
          if (b.wants(0)) b.set(0, op::mul(b.grad, op::_xlog1py_slope(b.args[0], b.args[1])));
          if (b.wants(1)) {
            TensorBase scaled =
                b.is_tensor(0) ? op::mul(b.grad, b.tensor(0)) : op::mul(b.grad, b.scalar(0));
            b.set(1, op::div(scaled, op::add(b.tensor(1), Scalar(1))));
          }
        },
    .samples = {{"P(3), P(3)"}},
});

}  // namespace tessera
