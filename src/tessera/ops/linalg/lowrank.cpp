// A few of the largest singular values or eigenvalues.
#include "tessera/gen/binary.h"
#include "tessera/gen/linalg.h"
#include "tessera/gen/random.h"
#include "tessera/gen/rearrange.h"
#include "tessera/gen/reduce.h"
#include "tessera/gen/view.h"
#include "tessera/ops/linalg/common.h"
#include "tessera/ops/valid.h"

namespace tessera {

using namespace linalg;

namespace {

// Orthonormal columns that nearly span the range of A: of A times random vectors, made sharper by
// `niter` more products with A^H and A.
TensorBase range_of(const TensorBase& a, int64_t q, int64_t niter) {
  Dims shape{a.size(-1), q};
  TensorBase draw = op::randn(shape.span(), a.dtype(), a.device());
  TensorBase x = op::linalg_qr(op::matmul(a, draw))[0];
  for (int64_t i = 0; i < niter; ++i) {
    x = op::linalg_qr(op::matmul(mH(a), x))[0];
    x = op::linalg_qr(op::matmul(a, x))[0];
  }
  return x;
}

// Four matrix operators for each iteration: more than so many are a mistake that would never end.
void check_niter(const Call& c, int arg) {
  constexpr int64_t kMaxIterations = 1 << 20;
  TS_CHECK_VALUE(c.integer(arg) <= kMaxIterations, c.op.name, "(): niter(=", c.integer(arg),
                 ") must not be greater than ", kMaxIterations);
}

Outputs svd_lowrank(TensorBase a, int64_t q, int64_t niter) {
  const bool wide = a.size(-2) < a.size(-1);
  if (wide) a = mH(a);
  TensorBase basis = range_of(a, q, niter);
  Outputs s = op::linalg_svd(op::matmul(mH(basis), a), false);
  TensorBase u = op::matmul(basis, s[0]), v = mH(s[2]);
  if (wide) std::swap(u, v);
  return std::vector<TensorBase>{u, s[1], v};
}

}  // namespace

TS_OP({
    .schema = "svd_lowrank(Tensor A, int? q=6, int? niter=2, Tensor? M=None) -> (Tensor, Tensor, "
              "Tensor)",
    .doc = "The q largest singular values of A - M and their vectors U, V, from random products.",
    .example = "torch.svd_lowrank(torch.ones(4, 3), q=1)[1].shape",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      TensorBase a = c.tensor(0);
      check_matrix(a, "svd_lowrank");
      check_lapack_dtype(a, "svd_lowrank");
      if (c.has(3)) a = op::sub(a, c.tensor(3));
      if (c.has(2)) check_niter(c, 2);
      return svd_lowrank(a, c.has(1) ? c.integer(1) : 6, c.has(2) ? c.integer(2) : 2);
    },
    .random = true,
});

TS_OP({
    .schema = "pca_lowrank(Tensor A, int? q=None, bool center=True, int niter=2) -> (Tensor, "
              "Tensor, Tensor)",
    .doc = "The q largest principal components of the rows of A, from random products.",
    .example = "torch.pca_lowrank(torch.ones(4, 3), q=1)[1].shape",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      TensorBase a = c.tensor(0);
      check_matrix(a, "pca_lowrank");
      check_lapack_dtype(a, "pca_lowrank");
      const int64_t least = std::min(a.size(-2), a.size(-1));
      const int64_t q = c.has(1) ? c.integer(1) : std::min<int64_t>(6, least);
      TS_CHECK_VALUE(q >= 0 && q <= least, "q(=", q,
                     ") must be non-negative integer and not greater than min(m, n)=", least);
      TS_CHECK_VALUE(c.integer(3) >= 0, "niter(=", c.integer(3), ") must be non-negative integer");
      check_niter(c, 3);
      const int64_t rows = -2;
      if (c.flag(2)) a = op::sub(a, op::mean(a, std::span(&rows, 1), true));
      return svd_lowrank(a, q, c.integer(3));
    },
    .random = true,
});

TS_OP({
    .schema = "lobpcg(Tensor A, int? k=None, Tensor? B=None, Tensor? X=None, int? n=None, Tensor? "
              "iK=None, int? niter=None, float? tol=None, bool? largest=None, str? method=None) -> "
              "(Tensor, Tensor)",
    .doc = "The k largest (or smallest) eigenvalues of A x = lambda B x, and their vectors, of "
           "symmetric A and positive definite B. Found by a complete factorisation: what steers "
           "PyTorch's iteration (X, iK, niter, tol, method) has no effect on the result.",
    .example = "torch.lobpcg(torch.tensor([[2.0, 0.0], [0.0, 5.0]]), k=1)[0]",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      TensorBase a = c.tensor(0);
      check_square(a, "lobpcg");
      check_lapack_dtype(a, "lobpcg");
      const int64_t size = a.size(-1);
      int64_t k = c.has(1) ? c.integer(1) : c.has(3) ? c.tensor(3).size(-1) : 1;
      TS_CHECK_VALUE(k >= 1 && k <= size, "lobpcg: k must be between 1 and ", size, ", got ", k);
      const bool largest = !c.has(8) || c.flag(8);
      TensorBase factor;
      if (c.has(2)) {  // with B = L L^H, of L^-1 A L^-H
        factor = op::linalg_cholesky(c.tensor(2));
        a = op::linalg_solve_triangular(factor, a, false);
        a = op::linalg_solve_triangular(mH(factor), a, true, false);
      }
      Outputs e = op::linalg_eigh(a);
      auto pick = [&](const TensorBase& t) {
        const int64_t last = -1;
        if (!largest) return op::slice(t, -1, 0, k, 1);
        return op::flip(op::slice(t, -1, size - k, size, 1), std::span(&last, 1));
      };
      TensorBase x = pick(e[1]);
      if (factor.defined()) x = op::linalg_solve_triangular(mH(factor), x, true);
      return {pick(e[0]), x};
    },
    .raises_on_data = true,
});

}  // namespace tessera
