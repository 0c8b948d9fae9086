// Singular values.
#include "tessera/gen/binary.h"
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

TensorBase row(const TensorBase& t) { return op::unsqueeze(t, -2); }
TensorBase column(const TensorBase& t) { return op::unsqueeze(t, -1); }
TensorBase skew(const TensorBase& t) { return op::sub(t, mH(t)); }

// u and v are free in a common phase: a loss that depends on it has no gradient.
void check_phase(const TensorBase& of_u, const TensorBase& of_v) {
  TensorBase sum = of_u.defined() && of_v.defined() ? op::add(of_u, of_v)
                   : of_u.defined()                 ? of_u
                                                    : of_v;
  if (!is_complex(sum.dtype()) || sum.device().is_meta() || sum.numel() == 0) return;
  TensorBase phase = op::imag(op::diagonal(detached(sum), 0, -2, -1));
  TensorBase largest =
      host_data(op::_to_dtype(op::amax(op::abs(detached(phase))), DType::kFloat64));
  TS_CHECK(!(*reinterpret_cast<const double*>(largest.raw()) > 1e-2),
           "svd_backward: The singular vectors in the complex case are specified up to "
           "multiplication by e^{i phi}. The specified loss function depends on this phase term, "
           "making it ill-defined.");
}

TensorBase svd_gradient(const TensorBase& g_u, const TensorBase& g_s, const TensorBase& g_vh,
                        const TensorBase& u, const TensorBase& s, const TensorBase& vh) {
  if (!g_u.defined() && !g_vh.defined()) return op::matmul(op::mul(u, row(g_s)), vh);
  const int64_t m = u.size(-2), n = vh.size(-1), k = s.size(-1);
  TensorBase of_u, of_v, inner;
  if (g_u.defined()) of_u = skew(op::matmul(mH(u), g_u));
  if (g_vh.defined()) of_v = skew(op::matmul(vh, mH(g_vh)));
  check_phase(of_u, of_v);
  TensorBase squares = op::mul(s, s);
  TensorBase one = identity(k, s.dtype(), s.device());
  TensorBase gaps = op::add(op::sub(row(squares), column(squares)), one);
  if (of_u.defined()) inner = op::mul(of_u, row(s));
  if (of_v.defined()) {
    TensorBase t = op::mul(of_v, column(s));
    inner = inner.defined() ? op::add(inner, t) : t;
  }
  // Its diagonal is zero for real matrices; of complex ones only the phase is left there.
  inner = op::mul(op::div(inner, gaps), op::sub(op::ones_like(gaps), one));
  TensorBase diagonal = g_s;
  if (is_complex(u.dtype()) && of_u.defined() && of_v.defined()) {
    TensorBase phase = op::div(op::diagonal(of_u, 0, -2, -1), op::mul(s, Scalar(2)));
    diagonal = diagonal.defined() ? op::add(phase, diagonal) : phase;
  }
  if (diagonal.defined()) inner = op::add(inner, op::diag_embed(diagonal));
  if (m > k && g_u.defined()) {
    // What of U's gradient lies outside the space of its columns.
    TensorBase t = op::div(g_u, row(s));
    t = op::sub(t, op::matmul(u, op::matmul(mH(u), t)));
    return op::matmul(op::add(op::matmul(u, inner), t), vh);
  }
  if (n > k && g_vh.defined()) {
    TensorBase t = op::div(g_vh, column(s));
    t = op::sub(t, op::matmul(op::matmul(t, mH(vh)), vh));
    return op::matmul(u, op::add(op::matmul(inner, vh), t));
  }
  return op::matmul(op::matmul(u, inner), vh);
}

}  // namespace

TS_OP({
    .schema = "_linalg_svd(Tensor A, bool full_matrices, bool compute_uv, str? driver=None) -> "
              "(Tensor U, Tensor S, Tensor Vh)",
    .kind = Kind::kKernel,
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& a = c.tensor(0);
      check_matrix(a, "linalg.svd");
      check_lapack_dtype(a, "linalg.svd");
      TS_CHECK(!c.has(3) || a.device().is_cuda(),
               "torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with "
               "cuSOLVER backend.");
      Dims batch = batch_of(a);
      const int64_t m = a.size(-2), n = a.size(-1), k = std::min(m, n);
      const bool full = c.flag(1), vectors = c.flag(2);
      TensorBase s = new_empty(with(batch, {k}), real_dtype(a.dtype()), a.device()), u, vh;
      if (vectors) {
        u = new_columns(batch, m, full ? m : k, a.dtype(), a.device());
        vh = new_columns(batch, full ? n : k, n, a.dtype(), a.device());
      } else {
        u = vh = new_empty({0}, a.dtype(), a.device());
      }
      if (a.numel() == 0) {
        for (const TensorBase* t : {&u, &vh})
          if (vectors && t->numel() > 0)
            copy_into(*t,
                      op::expand(identity(t->size(-1), a.dtype(), a.device()), t->sizes().span()),
                      false);
        return std::vector<TensorBase>{u, s, vh};
      }
      TensorBase info = op::zeros(batch.span(), DType::kInt32, a.device());
      TensorBase outs[] = {vectors ? flat_columns(u) : u, s, vectors ? flat_columns(vh) : vh, info};
      TensorBase in = as_batch(a);
      const int64_t ints[] = {vectors, full};
      launch("svd", outs, {&in, 1}, ints);
      check_info(info, Failed::kSvd, "linalg.svd");
      return std::vector<TensorBase>{u, s, vh};
    },
    .saves = "U S Vh",
    .backward =
        [](Backward& b) {
          TS_CHECK(b.flag(2), "linalg.svdvals: singular vectors are needed for its gradient");
          TensorBase u = b.results[0], s = b.results[1], vh = b.results[2];
          TensorBase g_u = b.result_grads[0], g_vh = b.result_grads[2];
          const int64_t k = s.size(-1);
          auto cut = [k](const TensorBase& t, int64_t dim) {
            return t.defined() && t.size(dim) > k ? op::slice(t, dim, 0, k, 1) : t;
          };
          b.set(0, svd_gradient(cut(g_u, -1), b.result_grads[1], cut(g_vh, -2), cut(u, -1), s,
                                cut(vh, -2)));
        },
    .raises_on_data = true,
});

TS_OP({
    .schema = "linalg.svd(Tensor A, bool full_matrices=True, *, str? driver=None) -> (Tensor U, "
              "Tensor S, Tensor Vh)",
    .doc = "Each matrix as U @ diag(S) @ Vh, with orthonormal U and Vh and S in descending order.",
    .example = "torch.linalg.svd(torch.tensor([[2.0, 0.0], [0.0, 1.0]]))",
    .forms = kFunction | kOut,
    .run = [](const Call& c) -> Outputs {
      return op::_linalg_svd(c.tensor(0), c.flag(1), true,
                             c.has(2) ? std::optional(c.text(2)) : std::nullopt);
    },
    .autocast = Autocast::kFloat32Cpu,
    .exact_out = true,
    .raises_on_data = true,
});

TS_OP({
    .schema = "linalg.svdvals(Tensor A, *, str? driver=None) -> Tensor",
    .doc = "The singular values of each matrix, in descending order.",
    .example = "torch.linalg.svdvals(torch.tensor([[2.0, 0.0], [0.0, 1.0]]))",
    .forms = kFunction | kOut,
    .run = [](const Call& c) -> Outputs {
      return op::_linalg_svd(c.tensor(0), false, c.tensor(0).requires_grad(),
                             c.has(1) ? std::optional(c.text(1)) : std::nullopt)[1];
    },
    .autocast = Autocast::kFloat32Cpu,
    .exact_out = true,
    .raises_on_data = true,
    .samples = {{"T(3, 3, dtype='float64')"}, {"T(3, 2, dtype='float64')"}},
});

TS_OP({
    .schema = "svd(Tensor self, bool some=True, bool compute_uv=True) -> (Tensor U, Tensor S, "
              "Tensor V)",
    .doc = "The old name of linalg.svd: V is not transposed, and without some it is whole.",
    .example = "torch.svd(torch.tensor([[2.0, 0.0], [0.0, 1.0]]))",
    .forms = kFunction | kMethod | kOut,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& a = c.tensor(0);
      TS_CHECK(a.dim() >= 2, "linalg.svd: The input tensor A must have at least 2 dimensions.");
      if (c.flag(2)) {
        Outputs out = op::_linalg_svd(a, !c.flag(1), true);
        return std::vector<TensorBase>{out[0], out[1], mH(out[2])};
      }
      auto zeros = [&](int64_t n) {
        return op::zeros(with(batch_of(a), {n, n}).span(), a.dtype(), a.device());
      };
      return std::vector<TensorBase>{zeros(a.size(-2)), op::linalg_svdvals(a), zeros(a.size(-1))};
    },
    .autocast = Autocast::kFloat32Cpu,
    .raises_on_data = true,
});

}  // namespace tessera
