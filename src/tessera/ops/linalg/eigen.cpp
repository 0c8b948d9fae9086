// Eigenvalues and eigenvectors.
#include "tessera/gen/binary.h"
#include "tessera/gen/compare.h"
#include "tessera/gen/complex.h"
#include "tessera/gen/copy.h"
#include "tessera/gen/creation.h"
#include "tessera/gen/linalg.h"
#include "tessera/gen/rearrange.h"
#include "tessera/gen/reduce.h"
#include "tessera/gen/unary.h"
#include "tessera/gen/view.h"
#include "tessera/ops/linalg/common.h"

namespace tessera {

using namespace linalg;

namespace {

// Differences of eigenvalues l_j - l_i, with ones on the diagonal.
TensorBase gaps(const TensorBase& values) {
  TensorBase e = op::sub(op::unsqueeze(values, -2), op::unsqueeze(values, -1));
  return op::add(e, identity(values.size(-1), values.dtype(), values.device()));
}

// A matrix whose diagonal is taken out.
TensorBase without_diagonal(const TensorBase& t) {
  TensorBase one = identity(t.size(-1), real_dtype(t.dtype()), t.device());
  return op::mul(t, op::sub(op::ones_like(one), one));
}

// Vectors of complex matrices are free in their phase: a loss that depends on it has no gradient.
void check_phase(const TensorBase& products, std::string_view what) {
  if (!is_complex(products.dtype()) || products.device().is_meta() || products.numel() == 0) return;
  TensorBase phase = detached(op::imag(op::diagonal(detached(products), 0, -2, -1)));
  TensorBase largest = host_data(op::_to_dtype(op::amax(op::abs(phase)), DType::kFloat64));
  TS_CHECK(
      !(*reinterpret_cast<const double*>(largest.raw()) > 1e-2), what,
      ": The eigenvectors in the complex case are specified up to multiplication by e^{i phi}. "
      "The specified loss function depends on this quantity, so it is ill-defined.");
}

}  // namespace

TS_OP({
    .schema = "_linalg_eigh(Tensor A, str UPLO, bool compute_v) -> (Tensor eigenvalues, Tensor "
              "eigenvectors)",
    .kind = Kind::kKernel,
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& a = c.tensor(0);
      const char* name = c.flag(2) ? "linalg.eigh" : "linalg.eigvalsh";
      check_square(a, "linalg.eigh");
      check_lapack_dtype(a, "linalg.eigh");
      const std::string_view uplo = c.text(1);
      const bool upper = uplo == "U" || uplo == "u";
      TS_CHECK(upper || uplo == "L" || uplo == "l",
               "Expected UPLO argument to be 'L' or 'U', but "
               "got ",
               uplo);
      Dims batch = batch_of(a);
      const int64_t n = a.size(-1);
      const bool vectors = c.flag(2);
      TensorBase values = new_empty(with(batch, {n}), real_dtype(a.dtype()), a.device());
      TensorBase v = vectors ? new_columns(batch, n, n, a.dtype(), a.device())
                             : new_empty({0}, a.dtype(), a.device());
      if (a.numel() == 0) return {values, v};
      TensorBase info = op::zeros(batch.span(), DType::kInt32, a.device());
      TensorBase outs[] = {values, vectors ? flat_columns(v) : v, info}, in = as_batch(a);
      const int64_t ints[] = {upper, vectors};
      launch("eigh", outs, {&in, 1}, ints);
      check_info(info, Failed::kEigen, name);
      return {values, v};
    },
    .saves = "eigenvalues eigenvectors",
    .backward =
        [](Backward& b) {
          TS_CHECK(b.flag(2), "linalg.eigvalsh: eigenvectors are needed for its gradient");
          const TensorBase &values = b.results[0], &v = b.results[1];
          TensorBase inner;
          if (b.has_grad(1)) {
            TensorBase p = op::matmul(mH(v), b.result_grads[1]);
            check_phase(p, "linalg_eigh_backward");
            inner = without_diagonal(op::div(p, gaps(values)));
          }
          if (!inner.defined())
            return b.set(0, op::matmul(op::mul(v, op::unsqueeze(b.grad, -2)), mH(v)));
          if (b.has_grad(0)) inner = op::add(inner, op::diag_embed(b.grad));
          b.set(0, op::matmul(v, op::matmul(inner, mH(v))));
        },
    .raises_on_data = true,
});

TS_OP({
    .schema =
        "linalg.eigh(Tensor self, str UPLO=\"L\") -> (Tensor eigenvalues, Tensor eigenvectors)",
    .doc = "Eigenvalues in ascending order and eigenvectors of each Hermitian matrix, of which one "
           "triangle is read.",
    .example = "torch.linalg.eigh(torch.tensor([[2.0, 0.0], [0.0, 1.0]]))",
    .forms = kFunction | kOut,
    .run = [](const Call& c) -> Outputs { return op::_linalg_eigh(c.tensor(0), c.text(1), true); },
    .autocast = Autocast::kFloat32Cpu,
    .exact_out = true,
    .raises_on_data = true,
});

TS_OP({
    .schema = "linalg.eigvalsh(Tensor self, str UPLO=\"L\") -> Tensor",
    .doc = "Eigenvalues of each Hermitian matrix, in ascending order.",
    .example = "torch.linalg.eigvalsh(torch.tensor([[2.0, 1.0], [1.0, 2.0]]))",
    .forms = kFunction | kOut,
    .run = [](const Call& c) -> Outputs {
      return op::_linalg_eigh(c.tensor(0), c.text(1), c.tensor(0).requires_grad())[0];
    },
    .autocast = Autocast::kFloat32Cpu,
    .exact_out = true,
    .raises_on_data = true,
});

TS_OP({
    .schema = "_linalg_eig(Tensor A, bool compute_v) -> (Tensor eigenvalues, Tensor eigenvectors)",
    .kind = Kind::kKernel,
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& a = c.tensor(0);
      check_square(a, "linalg.eig");
      check_lapack_dtype(a, "linalg.eig");
      Dims batch = batch_of(a);
      const int64_t n = a.size(-1);
      const bool vectors = c.flag(1);
      const DType complex = complex_dtype(a.dtype());
      TensorBase values = new_empty(with(batch, {n}), complex, a.device());
      TensorBase v = vectors ? new_columns(batch, n, n, complex, a.device())
                             : new_empty({0}, complex, a.device());
      if (a.numel() == 0) return {values, v};
      if (!a.device().is_meta()) {
        TensorBase finite = host_data(op::all(op::isfinite(a)));
        TS_CHECK(*finite.raw() != 0,
                 "torch.linalg.eig: input tensor should not contain infs or "
                 "NaNs.");
      }
      TensorBase info = op::zeros(batch.span(), DType::kInt32, a.device());
      TensorBase outs[] = {values, vectors ? flat_columns(v) : v, info}, in = as_batch(a);
      const int64_t with_vectors = vectors;
      launch("eig", outs, {&in, 1}, {&with_vectors, 1});
      check_info(info, Failed::kEigen, vectors ? "linalg.eig" : "linalg.eigvals");
      return {values, v};
    },
    .saves = "eigenvalues eigenvectors",
    .backward =
        [](Backward& b) {
          TS_CHECK(b.flag(1), "linalg.eigvals: eigenvectors are needed for its gradient");
          const TensorBase &values = b.results[0], &v = b.results[1];
          TensorBase inner;
          if (b.has_grad(1)) {
            TensorBase p = op::matmul(mH(v), b.result_grads[1]);
            check_phase(p, "linalg_eig_backward");
            // Vectors have length one: what the gradient has along them does not count.
            TensorBase along = op::real(op::diagonal(p, 0, -2, -1));
            p = op::sub(p, op::matmul(mH(v), op::mul(v, op::unsqueeze(along, -2))));
            inner = without_diagonal(op::div(p, conj(gaps(values))));
          }
          if (b.has_grad(0) || !inner.defined()) {
            TensorBase d = op::diag_embed(b.grad);
            inner = inner.defined() ? op::add(inner, d) : d;
          }
          b.set(0, op::linalg_solve(mH(v), op::matmul(inner, mH(v))));
        },
    .raises_on_data = true,
});

TS_OP({
    .schema = "linalg.eig(Tensor self) -> (Tensor eigenvalues, Tensor eigenvectors)",
    .doc = "Eigenvalues and eigenvectors of each square matrix, complex.",
    .example = "torch.linalg.eig(torch.tensor([[2.0, 0.0], [0.0, 1.0]]))",
    .forms = kFunction | kOut,
    .run = [](const Call& c) -> Outputs { return op::_linalg_eig(c.tensor(0), true); },
    .autocast = Autocast::kFloat32Cpu,
    .exact_out = true,
    .raises_on_data = true,
});

TS_OP({
    .schema = "linalg.eigvals(Tensor self) -> Tensor",
    .doc = "Eigenvalues of each square matrix, complex.",
    .example = "torch.linalg.eigvals(torch.tensor([[0.0, 1.0], [-1.0, 0.0]]))",
    .forms = kFunction | kOut,
    .run = [](const Call& c) -> Outputs {
      return op::_linalg_eig(c.tensor(0), c.tensor(0).requires_grad())[0];
    },
    .autocast = Autocast::kFloat32Cpu,
    .exact_out = true,
    .raises_on_data = true,
});

}  // namespace tessera
