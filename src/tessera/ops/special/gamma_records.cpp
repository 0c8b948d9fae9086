// The gamma function: logarithm, derivatives, incomplete forms; zeta.
#include "tessera/gen/binary.h"
#include "tessera/gen/creation.h"
#include "tessera/gen/reduce.h"
#include "tessera/gen/special.h"
#include "tessera/gen/unary.h"
#include "tessera/gen/view.h"
#include "tessera/ops/loops.h"
#include "tessera/ops/special/float_special.h"
#include "tessera/ops/special/gamma.h"
#include "tessera/ops/special/operands.h"

namespace tessera {

TS_BODY(lgamma, "t", 't', 0, (TS_FLOATS), return lgamma(a);)
TS_OP({
    .schema = "lgamma(Tensor self) -> Tensor",
    .also = "special.gammaln",
    .doc = "The logarithm of the absolute value of the gamma function.",
    .example = "torch.lgamma(torch.tensor([1.0, 3.5]))",
    .kind = Kind::kPointwise,
    .types = TypeRule::kPromoteFloat,
    .forms = kFunction | kMethod | kInplace | kOut,
    .body = &lgamma_body,
    .saves = "self",
    .backward = [](Backward& b) { b.set(0, op::mul(b.grad, op::digamma(b.tensor(0)))); },
    .samples = {{"P(3, 4)"}},
});

TS_BODY_NEAR(digamma_special, "t", 't', 0, (TS_FLOATS), is_near_always(), digamma(a),
             return T(special::digamma(double(a)));)
TS_OP({
    .schema = "digamma(Tensor self) -> Tensor",
    .also = "special.digamma special.psi",
    .doc = "The derivative of lgamma.",
    .example = "torch.digamma(torch.tensor([1.0, 3.5]))",
    .kind = Kind::kPointwise,
    .types = TypeRule::kPromoteFloat,
    .forms = kFunction | kMethod | kInplace | kOut,
    .body = &digamma_special_body,
    .saves = "self",
    .backward = [](Backward& b) { b.set(0, op::mul(b.grad, op::polygamma(1, b.tensor(0)))); },
    .samples = {{"P(3, 4)"}},
});

namespace {
// The order is an argument that chooses nothing a body could hold: it is a scalar of it.
TS_BODY(polygamma, "t", 't', 1, (TS_FLOATS), return T(special::polygamma(int64_t(s0), double(a)));)
}  // namespace
TS_OP({
    .schema = "_polygamma(Tensor self, float n) -> Tensor",
    .kind = Kind::kPointwise,
    .types = TypeRule::kPromoteFloat,
    .forms = kFunction,
    .body = &polygamma_body,
    .saves = "self",
    .backward =
        [](Backward& b) {
          b.set(0, op::mul(b.grad, op::_polygamma(b.tensor(0), b.number(1) + 1)));
        },
});
TS_OP({
    .schema = "polygamma(int n, Tensor self) -> Tensor",
    .also = "special.polygamma",
    .doc = "The n-th derivative of digamma.",
    .example = "torch.polygamma(1, torch.tensor([1.0, 3.5]))",
    .forms = kFunction | kOut,
    .run = [](const Call& c) -> Outputs {
      TS_CHECK(c.integer(0) >= 0, "polygamma(n, x) does not support negative n.");
      return op::_polygamma(c.tensor(1), static_cast<double>(c.integer(0)));
    },
    .samples = {{"1, P(3)"}, {"2, P(3)"}},
});
TS_OP({
    .schema = "mvlgamma(Tensor self, int p) -> Tensor",
    .also = "special.multigammaln",
    .doc = "The logarithm of the multivariate gamma function of dimension p.",
    .example = "torch.mvlgamma(torch.tensor([2.0, 3.5]), 2)",
    .forms = kFunction | kMethod | kInplace | kOut,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& self = c.tensor(0);
      int64_t p = c.integer(1);
      TS_CHECK(p >= 1, "p has to be greater than or equal to 1");
      TS_CHECK(!is_complex(self.dtype()) && self.dtype() != DType::kBool,
               "The input tensor may not be a ", self.dtype());
      double q = static_cast<double>(p);
      DType t = is_floating(self.dtype()) ? self.dtype() : default_dtype();
      TensorBase halves = op::mul(op::arange(Scalar(p), t, self.device()), Scalar(0.5));
      const int64_t last = -1;
      TensorBase terms = op::lgamma(op::sub(op::unsqueeze(self, -1), halves));
      return op::add(op::sum(terms, std::span(&last, 1)),
                     Scalar(q * (q - 1) / 4 * 1.14472988584940017414));  // log(pi)
    },
    .samples = {{"P(3), 1"}},
});

TS_BODY(zeta, "tt", 't', 0, (TS_FLOATS), return T(special::zeta(double(a), double(b)));)
TS_OP({
    .schema = "special.zeta(Tensor|Scalar self, Tensor|Scalar other) -> Tensor",
    .doc = "Hurwitz's zeta: the sum over k of (k + other) to the power of -self.",
    .example = "torch.special.zeta(torch.tensor([2.0, 4.0]), 1)",
    .kind = Kind::kPointwise,
    .types = TypeRule::kPromoteFloat,
    .forms = kFunction | kOut,
    .check = check_some_tensor,
    .body = &zeta_body,
    .saves = "self other",
    .backward =
        [](Backward& b) {
          TS_CHECK_IMPLEMENTED(!b.wants(0), "the derivative for 'zeta' is not implemented.");
          if (!b.wants(1)) return;
          TensorBase s = b.is_tensor(0) ? b.tensor(0) : op::full_like(b.grad, b.scalar(0));
          TensorBase next = op::special_zeta(op::add(s, Scalar(1)), b.tensor(1));
          b.set(1, op::mul(b.grad, op::neg(op::mul(s, next))));
        },
    .samples = {{"torch.tensor([2.0, 3.0]), torch.tensor([1.0, 2.5])"}},
});

TS_BODY(igamma, "tt", 't', 0, (TS_FLOATS), return T(special::gammainc(double(a), double(b)));)
TS_BODY(igammac, "tt", 't', 0, (TS_FLOATS), return T(special::gammaincc(double(a), double(b)));)
namespace {
// other^(self - 1) e^-other / Gamma(self)
TensorBase density(const TensorBase& self, const TensorBase& other) {
  TensorBase exponent = op::sub(op::mul(op::sub(self, Scalar(1)), op::log(other)), other);
  return op::exp(op::sub(exponent, op::lgamma(self)));
}
void no_gradient_by_self(const Backward& b, const char* name) {
  TS_CHECK_IMPLEMENTED(!b.wants(0), "the derivative for '", name, ": input' is not implemented.");
}
}  // namespace
TS_OP({
    .schema = "igamma(Tensor self, Tensor other) -> Tensor",
    .also = "special.gammainc",
    .doc = "The regularised lower incomplete gamma function.",
    .example = "torch.igamma(torch.tensor([4.0]), torch.tensor([3.0]))",
    .kind = Kind::kPointwise,
    .types = TypeRule::kPromoteFloat,
    .forms = kFunction | kMethod | kInplace | kOut,
    .body = &igamma_body,
    .saves = "self other",
    .backward =
        [](Backward& b) {
          no_gradient_by_self(b, "igamma");
          if (b.wants(1)) b.set(1, op::mul(b.grad, density(b.tensor(0), b.tensor(1))));
        },
    .samples = {{"torch.tensor([4.0, 1.5]), torch.tensor([3.0, 2.0])"}},
});
TS_OP({
    .schema = "igammac(Tensor self, Tensor other) -> Tensor",
    .also = "special.gammaincc",
    .doc = "The regularised upper incomplete gamma function.",
    .example = "torch.igammac(torch.tensor([4.0]), torch.tensor([3.0]))",
    .kind = Kind::kPointwise,
    .types = TypeRule::kPromoteFloat,
    .forms = kFunction | kMethod | kInplace | kOut,
    .body = &igammac_body,
    .saves = "self other",
    .backward =
        [](Backward& b) {
          no_gradient_by_self(b, "igammac");
          if (b.wants(1)) b.set(1, op::mul(op::neg(b.grad), density(b.tensor(0), b.tensor(1))));
        },
    .samples = {{"torch.tensor([4.0, 1.5]), torch.tensor([3.0, 2.0])"}},
});

}  // namespace tessera
