// Orthogonal factors and products of Householder's reflections.
#include "tessera/gen/binary.h"
#include "tessera/gen/copy.h"
#include "tessera/gen/creation.h"
#include "tessera/gen/join.h"
#include "tessera/gen/linalg.h"
#include "tessera/gen/rearrange.h"
#include "tessera/gen/unary.h"
#include "tessera/gen/view.h"
#include "tessera/ops/linalg/common.h"

namespace tessera {

using namespace linalg;

TS_OP({
    .schema = "geqrf(Tensor self) -> (Tensor a, Tensor tau)",
    .doc = "The QR factors of each matrix as LAPACK keeps them: R, and the reflections that make "
           "Q below it, with their factors.",
    .example = "torch.geqrf(torch.tensor([[3.0, 1.0], [4.0, 2.0]]))",
    .kind = Kind::kKernel,
    .forms = kFunction | kMethod | kOut,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& self = c.tensor(0);
      TS_CHECK(self.dim() >= 2, "torch.geqrf: input must have at least 2 dimensions.");
      check_lapack_dtype(self, "torch.geqrf");
      Dims batch = batch_of(self);
      const int64_t m = self.size(-2), n = self.size(-1);
      TensorBase a = new_columns(batch, m, n, self.dtype(), self.device());
      TensorBase tau = new_empty(with(batch, {std::min(m, n)}), self.dtype(), self.device());
      if (a.numel() > 0) {
        TensorBase outs[] = {flat_columns(a), tau}, in = as_batch(self);
        launch("geqrf", outs, {&in, 1});
      }
      return {a, tau};
    },
    .backward = refuse_gradient,
    .autocast = Autocast::kFloat32Cpu,
});

namespace {

// Q from reflections, with as many columns as `a` has.
TensorBase orthogonal_columns(const TensorBase& a, const TensorBase& tau) {
  TensorBase q = new_columns(batch_of(a), a.size(-2), a.size(-1), a.dtype(), a.device());
  if (q.numel() == 0) return q;
  Dims rows{numel_of(batch_of(a)), tau.size(-1)};
  TensorBase out = flat_columns(q), in[] = {as_batch(a), op::reshape(tau, rows.span())};
  launch("householder_product", {&out, 1}, in);
  return q;
}

void check_reflections(const TensorBase& a, const TensorBase& tau, std::string_view name) {
  TS_CHECK(a.dim() >= 2, name, ": input must have at least 2 dimensions.");
  TS_CHECK(a.size(-1) >= tau.size(-1), name,
           ": input.shape[-1] must be greater than or equal to tau.shape[-1]");
  TS_CHECK(a.dim() - tau.dim() == 1, name,
           ": Expected tau to have one dimension less than input, but got tau.ndim equal to ",
           tau.dim(), " and input.ndim is equal to ", a.dim());
  Dims batch = batch_of(a), of_tau(tau.sizes().span().first(tau.sizes().size() - 1));
  TS_CHECK(batch == of_tau, name,
           ": Expected batch dimensions of tau to be equal to input.shape[:-2], but got ", of_tau);
  TS_CHECK(a.dtype() == tau.dtype(), name, ": tau dtype ", dtype_title(tau.dtype()),
           " does not match input dtype ", dtype_title(a.dtype()));
  check_lapack_dtype(a, name);
}

struct Reflected {
  TensorBase g_vectors, g_tau, g_matrix;
};

// The gradients of Y = H_1 ... H_k W, or with `adjoint` of H_k^H ... H_1^H W, from that of Y. Each
// W is found again from Y by the inverse of a reflection.
Reflected reflections_gradient(const TensorBase& vectors, const TensorBase& tau, TensorBase y,
                               TensorBase g, bool adjoint) {
  const int64_t m = vectors.size(-2), k = tau.size(-1);
  TensorBase one = identity(m, vectors.dtype(), vectors.device());
  std::vector<TensorBase> g_v(static_cast<size_t>(vectors.size(-1))), g_t(static_cast<size_t>(k));
  // Below the diagonal the vectors, on it ones, above zeros.
  TensorBase all =
      op::add(op::tril(op::slice(vectors, -1, 0, k, 1), -1), op::slice(one, -1, 0, k, 1));
  for (int64_t step = 0; step < k; ++step) {
    const int64_t i = adjoint ? k - 1 - step : step;
    TensorBase v = op::slice(all, -1, i, i + 1, 1);                     // [m, 1]
    TensorBase t = op::unsqueeze(op::slice(tau, -1, i, i + 1, 1), -1);  // [1, 1]
    if (adjoint) t = conj(t);
    // (1 - t v v^H)^-1 = 1 - s v v^H
    TensorBase length = op::matmul(mH(v), v);
    TensorBase s = op::div(t, op::sub(op::mul(t, length), Scalar(1)));
    TensorBase w = op::sub(y, op::matmul(op::mul(v, s), op::matmul(mH(v), y)));
    TensorBase vw = op::matmul(mH(v), w), vg = op::matmul(mH(v), g);  // [1, n]
    TensorBase of_t = op::neg(op::matmul(vg, mH(vw)));
    g_t[static_cast<size_t>(i)] = op::squeeze(adjoint ? conj(of_t) : of_t, -1);
    TensorBase of_v =
        op::add(op::mul(op::matmul(g, mH(vw)), conj(t)), op::mul(op::matmul(w, mH(vg)), t));
    g_v[static_cast<size_t>(i)] = op::neg(of_v);
    g = op::sub(g, op::mul(op::matmul(v, vg), conj(t)));
    y = w;
  }
  for (size_t i = static_cast<size_t>(k); i < g_v.size(); ++i)
    g_v[i] = op::zeros_like(op::slice(vectors, -1, 0, 1, 1));
  return {op::tril(op::cat(g_v, -1), -1), op::cat(g_t, -1), g};
}

}  // namespace

TS_OP({
    .schema = "linalg.householder_product(Tensor input, Tensor tau) -> Tensor",
    .doc = "The first columns of a product of Householder reflections, as geqrf gives them.",
    .example = "torch.linalg.householder_product(*torch.geqrf(torch.tensor([[3.0], [4.0]])))",
    .kind = Kind::kKernel,
    .forms = kFunction | kOut,
    .run = [](const Call& c) -> Outputs {
      const TensorBase &a = c.tensor(0), &tau = c.tensor(1);
      check_same_device(c.op, c.args);
      TS_CHECK(a.dim() >= 2,
               "torch.linalg.householder_product: input must have at least 2 dimensions.");
      TS_CHECK(a.size(-2) >= a.size(-1),
               "torch.linalg.householder_product: input.shape[-2] must be greater than or equal to "
               "input.shape[-1]");
      check_reflections(a, tau, "torch.linalg.householder_product");
      if (tau.size(-1) == 0) {
        TensorBase one = identity(a.size(-2), a.dtype(), a.device());
        return op::clone(op::expand(op::slice(one, 1, 0, a.size(-1), 1), a.sizes().span()));
      }
      return orthogonal_columns(a, tau);
    },
    .saves = "input tau result",
    .backward =
        [](Backward& b) {
          const TensorBase &a = b.tensor(0), &tau = b.tensor(1);
          if (a.numel() == 0 || tau.numel() == 0) {
            b.set(0, op::zeros_like(a));
            b.set(1, op::zeros_like(tau));
            return;
          }
          Reflected r = reflections_gradient(a, tau, b.result, b.grad, false);
          b.set(0, r.g_vectors);
          b.set(1, r.g_tau);
        },
    .autocast = Autocast::kFloat32Cpu,
    .samples = {{"T(4, 3, dtype='float64'), T(3, dtype='float64')"}},
});

TS_OP({
    .schema = "orgqr(Tensor self, Tensor input2) -> Tensor",
    .doc = "The old name of linalg.householder_product.",
    .example = "torch.orgqr(*torch.geqrf(torch.tensor([[3.0], [4.0]])))",
    .forms = kFunction | kMethod | kOut,
    .run = [](const Call& c) -> Outputs {
      return op::linalg_householder_product(c.tensor(0), c.tensor(1));
    },
    .autocast = Autocast::kFloat32Cpu,
    .samples = {{"T(4, 3, dtype='float64'), T(3, dtype='float64')"}},
});

TS_OP({
    .schema = "ormqr(Tensor self, Tensor input2, Tensor input3, bool left=True, bool "
              "transpose=False) -> Tensor",
    .doc = "The product of the whole of Q, as geqrf gives it, with a matrix.",
    .example = "torch.ormqr(*torch.geqrf(torch.tensor([[3.0], [4.0]])), torch.ones(2, 1))",
    .kind = Kind::kKernel,
    .forms = kFunction | kMethod | kOut,
    .run = [](const Call& c) -> Outputs {
      const TensorBase &a = c.tensor(0), &tau = c.tensor(1), &other = c.tensor(2);
      const bool left = c.flag(3);
      check_same_device(c.op, c.args);
      TS_CHECK(a.dim() >= 2, "torch.ormqr: input must have at least 2 dimensions.");
      TS_CHECK(other.dim() >= 2, "torch.ormqr: other must have at least 2 dimensions.");
      const int64_t side = left ? -2 : -1;
      TS_CHECK(other.size(side) >= tau.size(-1), "torch.ormqr: other.shape[", side,
               "] must be greater than or equal to tau.shape[-1]");
      TS_CHECK(other.size(side) == a.size(-2), "torch.ormqr: other.shape[", side,
               "] must be equal to input.shape[-2]");
      TS_CHECK(tau.size(-1) <= a.size(-1),
               "torch.ormqr: tau.shape[-1] must be less than or equal to input.shape[-1]");
      TS_CHECK(a.dim() - tau.dim() == 1,
               "torch.ormqr: Expected tau to have one dimension less than input, but got tau.ndim "
               "equal to ",
               tau.dim(), " and input.ndim is equal to ", a.dim());
      TS_CHECK(
          a.dim() == other.dim(),
          "torch.ormqr: Expected other to have the same number of dimensions as input, but got "
          "other.ndim equal to ",
          other.dim(), " and input.ndim is equal to ", a.dim());
      check_reflections(a, tau, "torch.ormqr");
      TS_CHECK(batch_of(a) == batch_of(other),
               "torch.ormqr: Expected batch dimensions of other to be equal to input.shape[:-2], "
               "but got ",
               batch_of(other));
      TS_CHECK(a.dtype() == other.dtype(),
               "torch.ormqr: Expected input and other to have the same "
               "dtype, but input has dtype ",
               a.dtype(), " and other has dtype ", other.dtype());
      if (other.numel() == 0 || tau.numel() == 0) return op::clone(other);
      TensorBase x = new_columns(batch_of(other), other.size(-2), other.size(-1), other.dtype(),
                                 other.device());
      Dims rows{numel_of(batch_of(a)), tau.size(-1)};
      TensorBase out = flat_columns(x);
      TensorBase in[] = {as_batch(a), op::reshape(tau, rows.span()), as_batch(other)};
      const int64_t ints[] = {left, c.flag(4)};
      launch("ormqr", {&out, 1}, in, ints);
      return x;
    },
    .saves = "self input2 result",
    .backward =
        [](Backward& b) {
          const TensorBase &a = b.tensor(0), &tau = b.tensor(1);
          const bool left = b.flag(3), adjoint = b.flag(4);
          if (!b.wants(0) && !b.wants(1))
            return b.set(2, op::ormqr(a, tau, b.grad, left, !adjoint));
          if (b.grad.numel() == 0 || tau.numel() == 0) {
            b.set(0, op::zeros_like(a));
            b.set(1, op::zeros_like(tau));
            return b.set(2, b.grad);
          }
          // C Q is (Q^H C^H)^H.
          Reflected r = reflections_gradient(a, tau, left ? b.result : mH(b.result),
                                             left ? b.grad : mH(b.grad), adjoint == left);
          b.set(0, r.g_vectors);
          b.set(1, r.g_tau);
          b.set(2, left ? r.g_matrix : mH(r.g_matrix));
        },
    .autocast = Autocast::kFloat32Cpu,
    // Small ones: larger reflections leave differences of large numbers to a numerical derivative.
    .samples = {{"U(4, 3, dtype='float64'), U(3, dtype='float64'), U(4, 2, dtype='float64')"}},
});

namespace {

enum class Mode : uint8_t { kReduced, kComplete, kR };

Mode mode_of(std::string_view mode) {
  if (mode == "reduced") return Mode::kReduced;
  if (mode == "complete") return Mode::kComplete;
  TS_CHECK(mode == "r", "qr received unrecognized mode '", mode,
           "' but expected one of 'reduced' (default), 'r', or 'complete'");
  return Mode::kR;
}

// Of A = Q R with as many columns of Q as R has rows, and R's diagonal not zero.
TensorBase square_qr_gradient(const TensorBase& g_q, const TensorBase& g_r, const TensorBase& q,
                              const TensorBase& r) {
  TensorBase m;
  if (g_r.defined()) m = op::matmul(g_r, mH(r));
  if (g_q.defined()) {
    TensorBase other = op::matmul(mH(q), g_q);
    m = m.defined() ? op::sub(m, other) : op::neg(other);
  }
  // The upper triangle made Hermitian, with the diagonal's real part.
  TensorBase s = op::add(op::triu(m, 1), mH(op::triu(m)));
  if (is_complex(s.dtype())) s = op::mul(op::add(s, mH(s)), Scalar(0.5));
  s = op::matmul(q, s);
  if (g_q.defined()) s = op::add(s, g_q);
  return op::linalg_solve_triangular(mH(r), s, false, false);
}

}  // namespace

TS_OP({
    .schema = "linalg.qr(Tensor A, str mode=\"reduced\") -> (Tensor Q, Tensor R)",
    .doc = "Each matrix as the product of one with orthonormal columns and an upper triangular "
           "one. mode is 'reduced', 'complete' (Q is square) or 'r' (no Q).",
    .example = "torch.linalg.qr(torch.tensor([[3.0, 1.0], [4.0, 2.0]]))",
    .kind = Kind::kKernel,
    .forms = kFunction | kOut,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& a = c.tensor(0);
      const Mode mode = mode_of(c.text(1));
      check_matrix(a, "linalg.qr");
      check_lapack_dtype(a, "linalg.qr");
      const int64_t m = a.size(-2), n = a.size(-1), k = std::min(m, n);
      const int64_t columns = mode == Mode::kComplete ? m : k;
      Outputs f = op::geqrf(a);
      TensorBase r = op::triu(op::slice(f[0], -2, 0, std::min(columns, m), 1));
      if (mode == Mode::kR) return {op::zeros(Dims{0}.span(), a.dtype(), a.device()), r};
      TensorBase one = identity(m, a.dtype(), a.device());
      Dims shape = with(batch_of(a), {m, columns});
      if (k == 0 || a.numel() == 0)
        return {op::clone(op::expand(op::slice(one, 1, 0, columns, 1), shape.span())), r};
      TensorBase vectors = op::slice(f[0], -1, 0, std::min(columns, n), 1);
      if (columns > n) {
        TensorBase parts[] = {
            vectors, op::zeros(with(batch_of(a), {m, columns - n}).span(), a.dtype(), a.device())};
        vectors = op::cat(parts, -1);
      }
      return {orthogonal_columns(vectors, f[1]), r};
    },
    .saves = "Q R",
    .backward =
        [](Backward& b) {
          const Mode mode = mode_of(b.text(1));
          TS_CHECK(mode != Mode::kR,
                   "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. "
                   "Please use linalg.qr(A, mode=\"reduced\") if you are going to require "
                   "gradients.");
          const TensorBase &q = b.results[0], &r = b.results[1];
          const int64_t m = q.size(-2), n = r.size(-1), k = std::min(m, n);
          TS_CHECK(mode != Mode::kComplete || m <= n,
                   "The QR decomposition is not differentiable when mode='complete' and nrows > "
                   "ncols.");
          TensorBase g_q = b.result_grads[0], g_r = b.result_grads[1];
          if (m >= n) return b.set(0, square_qr_gradient(g_q, g_r, q, r));
          // A = [A1 A2] = Q [R1 R2]: A2 = Q R2 is linear, and adds to Q's gradient.
          TensorBase r1 = op::slice(r, -1, 0, k, 1), r2 = op::slice(r, -1, k, n, 1), g1, g2;
          if (g_r.defined()) {
            g1 = op::slice(g_r, -1, 0, k, 1);
            g2 = op::slice(g_r, -1, k, n, 1);
            TensorBase more = op::matmul(op::matmul(q, r2), mH(g2));
            g_q = g_q.defined() ? op::add(g_q, more) : more;
          } else {
            g2 = op::zeros_like(r2);
          }
          TensorBase parts[] = {square_qr_gradient(g_q, g1, q, r1), op::matmul(q, g2)};
          b.set(0, op::cat(parts, -1));
        },
    .autocast = Autocast::kFloat32Cpu,
    .exact_out = true,
});

TS_OP({
    .schema = "qr(Tensor self, bool some=True) -> (Tensor Q, Tensor R)",
    .doc = "The old name of linalg.qr; some=False is its mode 'complete'.",
    .example = "torch.qr(torch.tensor([[3.0, 1.0], [4.0, 2.0]]))",
    .forms = kFunction | kMethod | kOut,
    .run = [](const Call& c) -> Outputs {
      TS_CHECK(c.tensor(0).dim() >= 2, "qr input should have at least 2 dimensions, but has ",
               c.tensor(0).dim(), " dimensions instead");
      return op::linalg_qr(c.tensor(0), c.flag(1) ? "reduced" : "complete");
    },
    .autocast = Autocast::kFloat32Cpu,
});

}  // namespace tessera
