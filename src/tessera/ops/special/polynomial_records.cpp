// Orthogonal polynomials.
#include "tessera/ops/loops.h"
#include "tessera/ops/record.h"
#include "tessera/ops/special/operands.h"
#include "tessera/ops/special/polynomials.h"

namespace tessera {

TS_BODY(chebyshev_polynomial_t, "tt", 't', 0, (TS_FLOATS),
        return T(special::chebyshev_t(double(a), double(b)));)
TS_OP({
    .schema = "special.chebyshev_polynomial_t(Tensor|Scalar x, Tensor|Scalar n) -> Tensor",
    .doc = "Chebyshev's polynomial of the first kind and degree n.",
    .example = "torch.special.chebyshev_polynomial_t(torch.tensor([0.5, 2.0]), 3)",
    .kind = Kind::kPointwise,
    .types = TypeRule::kPromoteFloat,
    .forms = kFunction | kOut,
    .check = check_some_tensor,
    .body = &chebyshev_polynomial_t_body,
    .not_differentiable = true,
    .samples = {{"P(3), 3"}, {"U(2, 2), torch.tensor([2.0, 5.0])"}},
});

TS_BODY(chebyshev_polynomial_u, "tt", 't', 0, (TS_FLOATS),
        return T(special::chebyshev_u(double(a), double(b)));)
TS_OP({
    .schema = "special.chebyshev_polynomial_u(Tensor|Scalar x, Tensor|Scalar n) -> Tensor",
    .doc = "Chebyshev's polynomial of the second kind.",
    .example = "torch.special.chebyshev_polynomial_u(torch.tensor([0.5, 2.0]), 3)",
    .kind = Kind::kPointwise,
    .types = TypeRule::kPromoteFloat,
    .forms = kFunction | kOut,
    .check = check_some_tensor,
    .body = &chebyshev_polynomial_u_body,
    .not_differentiable = true,
    .samples = {{"P(3), 3"}, {"U(2, 2), torch.tensor([2.0, 5.0])"}},
});

TS_BODY(chebyshev_polynomial_v, "tt", 't', 0, (TS_FLOATS),
        return T(special::chebyshev_v(double(a), double(b)));)
TS_OP({
    .schema = "special.chebyshev_polynomial_v(Tensor|Scalar x, Tensor|Scalar n) -> Tensor",
    .doc = "Chebyshev's polynomial of the third kind.",
    .example = "torch.special.chebyshev_polynomial_v(torch.tensor([0.5, 2.0]), 3)",
    .kind = Kind::kPointwise,
    .types = TypeRule::kPromoteFloat,
    .forms = kFunction | kOut,
    .check = check_some_tensor,
    .body = &chebyshev_polynomial_v_body,
    .not_differentiable = true,
    .samples = {{"P(3), 3"}, {"U(2, 2), torch.tensor([2.0, 5.0])"}},
});

TS_BODY(chebyshev_polynomial_w, "tt", 't', 0, (TS_FLOATS),
        return T(special::chebyshev_w(double(a), double(b)));)
TS_OP({
    .schema = "special.chebyshev_polynomial_w(Tensor|Scalar x, Tensor|Scalar n) -> Tensor",
    .doc = "Chebyshev's polynomial of the fourth kind.",
    .example = "torch.special.chebyshev_polynomial_w(torch.tensor([0.5, 2.0]), 3)",
    .kind = Kind::kPointwise,
    .types = TypeRule::kPromoteFloat,
    .forms = kFunction | kOut,
    .check = check_some_tensor,
    .body = &chebyshev_polynomial_w_body,
    .not_differentiable = true,
    .samples = {{"P(3), 3"}, {"U(2, 2), torch.tensor([2.0, 5.0])"}},
});

TS_BODY(shifted_chebyshev_polynomial_t, "tt", 't', 0, (TS_FLOATS),
        return T(special::chebyshev_t(2 * double(a) - 1, double(b)));)
TS_OP({
    .schema = "special.shifted_chebyshev_polynomial_t(Tensor|Scalar x, Tensor|Scalar n) -> Tensor",
    .doc = "chebyshev_polynomial_t of 2 x - 1.",
    .example = "torch.special.shifted_chebyshev_polynomial_t(torch.tensor([0.5, 2.0]), 3)",
    .kind = Kind::kPointwise,
    .types = TypeRule::kPromoteFloat,
    .forms = kFunction | kOut,
    .check = check_some_tensor,
    .body = &shifted_chebyshev_polynomial_t_body,
    .not_differentiable = true,
    .samples = {{"P(3), 3"}, {"U(2, 2), torch.tensor([2.0, 5.0])"}},
});

TS_BODY(shifted_chebyshev_polynomial_u, "tt", 't', 0, (TS_FLOATS),
        return T(special::chebyshev_u(2 * double(a) - 1, double(b)));)
TS_OP({
    .schema = "special.shifted_chebyshev_polynomial_u(Tensor|Scalar x, Tensor|Scalar n) -> Tensor",
    .doc = "chebyshev_polynomial_u of 2 x - 1.",
    .example = "torch.special.shifted_chebyshev_polynomial_u(torch.tensor([0.5, 2.0]), 3)",
    .kind = Kind::kPointwise,
    .types = TypeRule::kPromoteFloat,
    .forms = kFunction | kOut,
    .check = check_some_tensor,
    .body = &shifted_chebyshev_polynomial_u_body,
    .not_differentiable = true,
    .samples = {{"P(3), 3"}, {"U(2, 2), torch.tensor([2.0, 5.0])"}},
});

TS_BODY(shifted_chebyshev_polynomial_v, "tt", 't', 0, (TS_FLOATS),
        return T(special::chebyshev_v(2 * double(a) - 1, double(b)));)
TS_OP({
    .schema = "special.shifted_chebyshev_polynomial_v(Tensor|Scalar x, Tensor|Scalar n) -> Tensor",
    .doc = "chebyshev_polynomial_v of 2 x - 1.",
    .example = "torch.special.shifted_chebyshev_polynomial_v(torch.tensor([0.5, 2.0]), 3)",
    .kind = Kind::kPointwise,
    .types = TypeRule::kPromoteFloat,
    .forms = kFunction | kOut,
    .check = check_some_tensor,
    .body = &shifted_chebyshev_polynomial_v_body,
    .not_differentiable = true,
    .samples = {{"P(3), 3"}, {"U(2, 2), torch.tensor([2.0, 5.0])"}},
});

TS_BODY(shifted_chebyshev_polynomial_w, "tt", 't', 0, (TS_FLOATS),
        return T(special::chebyshev_w(2 * double(a) - 1, double(b)));)
TS_OP({
    .schema = "special.shifted_chebyshev_polynomial_w(Tensor|Scalar x, Tensor|Scalar n) -> Tensor",
    .doc = "chebyshev_polynomial_w of 2 x - 1.",
    .example = "torch.special.shifted_chebyshev_polynomial_w(torch.tensor([0.5, 2.0]), 3)",
    .kind = Kind::kPointwise,
    .types = TypeRule::kPromoteFloat,
    .forms = kFunction | kOut,
    .check = check_some_tensor,
    .body = &shifted_chebyshev_polynomial_w_body,
    .not_differentiable = true,
    .samples = {{"P(3), 3"}, {"U(2, 2), torch.tensor([2.0, 5.0])"}},
});

TS_BODY(hermite_polynomial_h, "tt", 't', 0, (TS_FLOATS),
        return T(special::hermite_h(double(a), double(b)));)
TS_OP({
    .schema = "special.hermite_polynomial_h(Tensor|Scalar x, Tensor|Scalar n) -> Tensor",
    .doc = "The physicists' Hermite polynomial.",
    .example = "torch.special.hermite_polynomial_h(torch.tensor([0.5, 2.0]), 3)",
    .kind = Kind::kPointwise,
    .types = TypeRule::kPromoteFloat,
    .forms = kFunction | kOut,
    .check = check_some_tensor,
    .body = &hermite_polynomial_h_body,
    .not_differentiable = true,
    .samples = {{"P(3), 3"}, {"U(2, 2), torch.tensor([2.0, 5.0])"}},
});

TS_BODY(hermite_polynomial_he, "tt", 't', 0, (TS_FLOATS),
        return T(special::hermite_he(double(a), double(b)));)
TS_OP({
    .schema = "special.hermite_polynomial_he(Tensor|Scalar x, Tensor|Scalar n) -> Tensor",
    .doc = "The probabilists' Hermite polynomial.",
    .example = "torch.special.hermite_polynomial_he(torch.tensor([0.5, 2.0]), 3)",
    .kind = Kind::kPointwise,
    .types = TypeRule::kPromoteFloat,
    .forms = kFunction | kOut,
    .check = check_some_tensor,
    .body = &hermite_polynomial_he_body,
    .not_differentiable = true,
    .samples = {{"P(3), 3"}, {"U(2, 2), torch.tensor([2.0, 5.0])"}},
});

TS_BODY(laguerre_polynomial_l, "tt", 't', 0, (TS_FLOATS),
        return T(special::laguerre_l(double(a), double(b)));)
TS_OP({
    .schema = "special.laguerre_polynomial_l(Tensor|Scalar x, Tensor|Scalar n) -> Tensor",
    .doc = "Laguerre's polynomial.",
    .example = "torch.special.laguerre_polynomial_l(torch.tensor([0.5, 2.0]), 3)",
    .kind = Kind::kPointwise,
    .types = TypeRule::kPromoteFloat,
    .forms = kFunction | kOut,
    .check = check_some_tensor,
    .body = &laguerre_polynomial_l_body,
    .not_differentiable = true,
    .samples = {{"P(3), 3"}, {"U(2, 2), torch.tensor([2.0, 5.0])"}},
});

TS_BODY(legendre_polynomial_p, "tt", 't', 0, (TS_FLOATS),
        return T(special::legendre_p(double(a), double(b)));)
TS_OP({
    .schema = "special.legendre_polynomial_p(Tensor|Scalar x, Tensor|Scalar n) -> Tensor",
    .doc = "Legendre's polynomial.",
    .example = "torch.special.legendre_polynomial_p(torch.tensor([0.5, 2.0]), 3)",
    .kind = Kind::kPointwise,
    .types = TypeRule::kPromoteFloat,
    .forms = kFunction | kOut,
    .check = check_some_tensor,
    .body = &legendre_polynomial_p_body,
    .not_differentiable = true,
    .samples = {{"P(3), 3"}, {"U(2, 2), torch.tensor([2.0, 5.0])"}},
});

}  // namespace tessera
