// Determinants.
#include "tessera/gen/binary.h"
#include "tessera/gen/complex.h"
#include "tessera/gen/copy.h"
#include "tessera/gen/creation.h"
#include "tessera/gen/linalg.h"
#include "tessera/gen/rearrange.h"
#include "tessera/gen/reduce.h"
#include "tessera/gen/ternary.h"
#include "tessera/gen/unary.h"
#include "tessera/gen/view.h"
#include "tessera/ops/linalg/common.h"
#include "tessera/ops/valid.h"

namespace tessera {

using namespace linalg;

namespace {

constexpr int64_t kLast = -1;

TensorBase diagonal(const TensorBase& t) { return op::diagonal(t, 0, -2, -1); }

// 1 or -1: were the rows exchanged an even number of times?
TensorBase permutation_sign(const TensorBase& pivots, DType dtype) {
  const int64_t n = pivots.size(-1);
  TensorBase host = new_empty({n}, DType::kInt32, Device{});
  for (int64_t i = 0; i < n; ++i)
    reinterpret_cast<int32_t*>(host.raw())[i] = static_cast<int32_t>(i + 1);
  TensorBase moved = op::ne(pivots, op::_to_device(host, pivots.device()));
  TensorBase signs = op::add(op::mul(op::_to_dtype(moved, dtype), Scalar(-2)), Scalar(1));
  return op::prod(signs, kLast, false);
}

// The factors with something small in place of zeros on the diagonal of U.
TensorBase regular(const TensorBase& lu) {
  TensorBase d = diagonal(lu);
  const double eps = real_dtype(lu.dtype()) == DType::kFloat64 ? 0x1p-52 : 0x1p-23;
  TensorBase zero = op::_to_dtype(op::eq(d, Scalar(0)), lu.dtype());
  return op::add(lu, op::diag_embed(op::mul(zero, Scalar(eps))));
}

// A^-H times a number for each matrix.
TensorBase times_inverse_adjoint(const TensorBase& a, const TensorBase& lu,
                                 const TensorBase& pivots, const TensorBase& g) {
  TensorBase one = identity(a.size(-1), a.dtype(), a.device());
  TensorBase right = op::mul(one, op::unsqueeze(op::unsqueeze(g, -1), -1));
  return op::_solve_factored(a, right, regular(detached(lu)), pivots, true, true);
}

bool any_zero(const TensorBase& t) {
  if (t.device().is_meta()) return false;
  TensorBase host = host_data(op::any(op::eq(detached(t), Scalar(0))));
  return *host.raw() != 0;
}

// The products of all singular values but one.
TensorBase products_of_others(const TensorBase& s) {
  const int64_t n = s.size(-1);
  TensorBase off = op::sub(op::ones_like(identity(n, s.dtype(), s.device())),
                           identity(n, s.dtype(), s.device()));
  // Row i has all of them with a one in place of number i.
  TensorBase rows = op::add(op::mul(op::unsqueeze(s, -2), off), identity(n, s.dtype(), s.device()));
  return op::prod(rows, kLast, false);
}

}  // namespace

TS_OP({
    .schema = "_linalg_det(Tensor A) -> (Tensor result, Tensor LU, Tensor pivots)",
    .kind = Kind::kKernel,
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& a = c.tensor(0);
      check_square(a, "linalg.det");
      Outputs f = op::linalg_lu_factor_ex(a);
      TensorBase d = op::prod(diagonal(f[0]), kLast, false);
      return std::vector<TensorBase>{op::mul(d, permutation_sign(f[1], a.dtype())), f[0], f[1]};
    },
    .saves = "A result LU pivots",
    .backward =
        [](Backward& b) {
          const TensorBase& a = b.tensor(0);
          if (a.numel() == 0) return b.set(0, op::zeros_like(a));
          if (!any_zero(b.result))
            return b.set(0, times_inverse_adjoint(a, b.results[1], b.results[2],
                                                  op::mul(b.grad, conj(b.result))));
          // Of a singular matrix: with A = U S V^H, det(U) det(V^H) U diag(products of the other
          // singular values) V^H.
          Outputs s = op::_linalg_svd(a, false, true);
          TensorBase phase = op::mul(op::linalg_det(s[0]), op::linalg_det(s[2]));
          TensorBase scale =
              op::mul(op::unsqueeze(op::mul(b.grad, conj(phase)), -1), products_of_others(s[1]));
          b.set(0, op::matmul(op::mul(s[0], op::unsqueeze(scale, -2)), s[2]));
        },
});

TS_OP({
    .schema = "linalg.det(Tensor A) -> Tensor",
    .doc = "The determinant of each square matrix.",
    .example = "torch.linalg.det(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))",
    .forms = kFunction | kOut,
    .run = [](const Call& c) -> Outputs {
      check_square(c.tensor(0), "linalg.det");
      check_lapack_dtype(c.tensor(0), "linalg.det");
      return op::_linalg_det(c.tensor(0))[0];
    },
    .exact_out = true,
    .samples = {{"T(3, 3, dtype='float64')"}, {"T(2, 3, 3, dtype='float64')"}},
});

TS_OP({
    .schema = "det(Tensor self) -> Tensor",
    .doc = "The determinant of each square matrix; the old name of linalg.det.",
    .example = "torch.det(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))",
    .forms = kFunction | kMethod,
    .run = [](const Call& c) -> Outputs { return op::linalg_det(c.tensor(0)); },
    .samples = {{"T(3, 3, dtype='float64')"}},
});

TS_OP({
    .schema = "_linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet, Tensor LU, Tensor "
              "pivots)",
    .kind = Kind::kKernel,
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& a = c.tensor(0);
      check_square(a, "linalg.slogdet");
      Outputs f = op::linalg_lu_factor_ex(a);
      TensorBase d = diagonal(f[0]);
      TensorBase sign =
          op::mul(op::prod(op::sgn(d), kLast, false), permutation_sign(f[1], a.dtype()));
      TensorBase log = op::sum(op::log(op::abs(d)), over(kLast), false);
      return std::vector<TensorBase>{sign, log, f[0], f[1]};
    },
    .saves = "A sign LU pivots",
    .backward =
        [](Backward& b) {
          const TensorBase& a = b.tensor(0);
          if (a.numel() == 0) return b.set(0, op::zeros_like(a));
          TensorBase g = b.result_grads[1];
          if (is_complex(a.dtype()) && b.has_grad(0)) {
            // The phase turns with the imaginary part of the logarithm.
            TensorBase turn = op::imag(op::mul(conj(b.result_grads[0]), b.result));
            TensorBase along = op::mul(op::_to_dtype(turn, a.dtype()), Scalar(c128(0, -1)));
            g = g.defined() ? op::add(along, g) : along;
          }
          if (!g.defined()) return b.set(0, op::zeros_like(a));
          b.set(0, times_inverse_adjoint(a, b.results[2], b.results[3], g));
        },
});

namespace {

Outputs slogdet(const Call& c) {
  check_square(c.tensor(0), "linalg.slogdet");
  check_lapack_dtype(c.tensor(0), "linalg.slogdet");
  Outputs out = op::_linalg_slogdet(c.tensor(0));
  return {out[0], out[1]};
}

}  // namespace

TS_OP({
    .schema = "linalg.slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet)",
    .doc = "The sign of each determinant (of a complex one the number of length one along it) and "
           "the logarithm of its absolute value.",
    .example = "torch.linalg.slogdet(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))",
    .forms = kFunction | kOut,
    .run = slogdet,
    .exact_out = true,
    .samples = {{"T(3, 3, dtype='float64')"}},
});

TS_OP({
    .schema = "slogdet(Tensor self) -> (Tensor sign, Tensor logabsdet)",
    .doc = "The sign of each determinant and the logarithm of its absolute value; the old name of "
           "linalg.slogdet.",
    .example = "torch.slogdet(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))",
    .forms = kFunction | kMethod | kOut,
    .run = slogdet,
    .samples = {{"T(3, 3, dtype='float64')"}},
});

TS_OP({
    .schema = "logdet(Tensor self) -> Tensor",
    .doc = "The logarithm of each determinant; NaN where that is negative.",
    .example = "torch.logdet(torch.tensor([[2.0, 0.0], [0.0, 4.0]]))",
    .forms = kFunction | kMethod,
    .run = [](const Call& c) -> Outputs {
      check_square(c.tensor(0), "logdet");
      check_lapack_dtype(c.tensor(0), "logdet");
      Outputs out = op::_linalg_slogdet(c.tensor(0));
      if (is_complex(c.tensor(0).dtype())) return op::add(op::log(out[0]), out[1]);
      return op::where(op::eq(out[0], Scalar(-1)), Scalar(NAN), out[1]);
    },
    .samples = {{"T(3, 3, dtype='float64')"}},
});

}  // namespace tessera
