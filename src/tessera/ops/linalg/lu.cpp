// Triangular factors with exchanged rows.
#include "tessera/gen/binary.h"
#include "tessera/gen/copy.h"
#include "tessera/gen/creation.h"
#include "tessera/gen/join.h"
#include "tessera/gen/linalg.h"
#include "tessera/gen/rearrange.h"
#include "tessera/gen/unary.h"
#include "tessera/gen/view.h"
#include "tessera/ops/linalg/common.h"
#include "tessera/ops/valid.h"

namespace tessera {

using namespace linalg;

namespace {

TensorBase narrow(const TensorBase& t, int64_t dim, int64_t begin, int64_t end) {
  return op::slice(t, dim, begin, end, 1);
}

// L with its ones, of the first k columns; U of the first k rows.
TensorBase lower_part(const TensorBase& lu, int64_t k) {
  TensorBase one = identity(lu.size(-2), lu.dtype(), lu.device());
  return op::add(op::tril(narrow(lu, -1, 0, k), -1), narrow(one, -1, 0, k));
}
TensorBase upper_part(const TensorBase& lu, int64_t k) { return op::triu(narrow(lu, -2, 0, k)); }

// Of A = P L U, from the gradients of L and U; either may be undefined.
TensorBase lu_gradient(TensorBase g_l, TensorBase g_u, const TensorBase& p, const TensorBase& l,
                       const TensorBase& u) {
  const int64_t m = l.size(-2), k = l.size(-1), n = u.size(-1);
  if (!g_l.defined()) g_l = op::zeros_like(l);
  if (!g_u.defined()) g_u = op::zeros_like(u);
  TensorBase l1 = narrow(l, -2, 0, k), u1 = narrow(u, -1, 0, k);
  TensorBase lower = op::matmul(mH(l1), narrow(g_l, -2, 0, k));
  TensorBase upper = op::matmul(narrow(g_u, -1, 0, k), mH(u1));
  TensorBase more;  // the gradient of the rows or columns beyond the square
  if (n > k) {
    TensorBase g = narrow(g_u, -1, k, n);
    lower = op::sub(lower, op::matmul(g, mH(narrow(u, -1, k, n))));
    more = op::linalg_solve_triangular(mH(l1), g, true, true, true);
  } else if (m > k) {
    TensorBase g = narrow(g_l, -2, k, m);
    upper = op::sub(upper, op::matmul(mH(narrow(l, -2, k, m)), g));
    more = op::linalg_solve_triangular(mH(u1), g, false, false);
  }
  TensorBase square = op::add(op::tril(lower, -1), op::triu(upper));
  square = op::linalg_solve_triangular(mH(u1), square, false, false);
  square = op::linalg_solve_triangular(mH(l1), square, true, true, true);
  if (more.defined()) {
    TensorBase parts[] = {square, more};
    square = op::cat(parts, n > k ? -1 : -2);
  }
  return op::matmul(p, square);
}

}  // namespace

TS_OP({
    .schema = "linalg.lu_factor_ex(Tensor A, *, bool pivot=True, bool check_errors=False) -> "
              "(Tensor LU, Tensor pivots, Tensor info)",
    .doc = "L and U in one matrix, the rows that were exchanged (counted from 1), and for each "
           "matrix the first zero on U's diagonal, 0 if there is none.",
    .example = "torch.linalg.lu_factor_ex(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))",
    .kind = Kind::kKernel,
    .forms = kFunction | kOut,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& a = c.tensor(0);
      TS_CHECK(a.dim() >= 2,
               "torch.lu_factor: Expected tensor with 2 or more dimensions. Got size: ", a.sizes(),
               " instead");
      check_lapack_dtype(a, "torch.linalg.lu_factor");
      TS_CHECK(c.flag(1) || !a.device().is_cpu(),
               "linalg.lu_factor: LU without pivoting is not implemented on the CPU");
      Dims batch = batch_of(a);
      const int64_t m = a.size(-2), n = a.size(-1);
      TensorBase lu = new_columns(batch, m, n, a.dtype(), a.device());
      TensorBase pivots = new_empty(with(batch, {std::min(m, n)}), DType::kInt32, a.device());
      TensorBase info = op::zeros(batch.span(), DType::kInt32, a.device());
      if (a.numel() > 0) {
        TensorBase outs[] = {flat_columns(lu), pivots, info}, in = as_batch(a);
        const int64_t exchanges = c.flag(1);
        launch("lu_factor", outs, {&in, 1}, {&exchanges, 1});
      }
      if (c.flag(2)) check_info(info, Failed::kLu, "torch.linalg.lu_factor_ex");
      return std::vector<TensorBase>{lu, pivots, info};
    },
    .saves = "LU pivots",
    .backward =
        [](Backward& b) {
          const TensorBase& lu = b.results[0];
          const int64_t m = lu.size(-2), n = lu.size(-1), k = std::min(m, n);
          TensorBase p = op::lu_unpack(lu, b.results[1], false, true)[0];
          TensorBase g_l = op::tril(narrow(b.grad, -1, 0, k), -1);
          TensorBase g_u = op::triu(narrow(b.grad, -2, 0, k));
          b.set(0, lu_gradient(g_l, g_u, p, lower_part(lu, k), upper_part(lu, k)));
        },
    .samples = {{"T(3, 3, dtype='float64')"}},
});

TS_OP({
    .schema = "linalg.lu_factor(Tensor A, *, bool pivot=True) -> (Tensor LU, Tensor pivots)",
    .doc = "L and U in one matrix, and the rows that were exchanged, counted from 1.",
    .example = "torch.linalg.lu_factor(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))",
    .forms = kFunction | kOut,
    .run = [](const Call& c) -> Outputs {
      Outputs out = op::linalg_lu_factor_ex(c.tensor(0), c.flag(1), false);
      check_info(out[2], Failed::kLu, "torch.linalg.lu_factor");
      return {out[0], out[1]};
    },
    .exact_out = true,
    .raises_on_data = true,
    .samples = {{"T(3, 3, dtype='float64')"}, {"T(2, 4, dtype='float64')"}},
});

// P as a matrix from the rows that were exchanged.
TS_OP({
    .schema = "_permutation_matrix(Tensor pivots, int rows, dtype dtype) -> Tensor",
    .kind = Kind::kKernel,
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& pivots = c.tensor(0);
      const int64_t m = c.integer(1);
      TS_CHECK(pivots.dim() >= 1, c.op.name, "(): expected pivots of one dimension or more");
      check_dtype(c, 0, DType::kInt32);
      check_integer(c, 1, pivots.size(-1));
      Dims batch(pivots.sizes().span().first(pivots.sizes().size() - 1));
      TensorBase p = op::zeros(with(batch, {m, m}).span(), c.args[2].dtype, pivots.device());
      if (p.numel() == 0) return p;
      TensorBase in = op::reshape(pivots, Dims{numel_of(batch), pivots.size(-1)}.span());
      TensorBase out = alias(p, {numel_of(batch), m, m}, {m * m, m, 1}, p.storage_offset());
      launch("permutation_matrix", {&out, 1}, {&in, 1});
      return p;
    },
    .not_differentiable = true,
});

TS_OP({
    .schema = "lu_unpack(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, bool "
              "unpack_pivots=True) -> (Tensor P, Tensor L, Tensor U)",
    .doc = "The matrices P, L and U that the results of lu_factor stand for.",
    .example = "torch.lu_unpack(*torch.linalg.lu_factor(torch.tensor([[1.0, 2.0], [3.0, 4.0]])))",
    .forms = kFunction | kOut,
    .run = [](const Call& c) -> Outputs {
      const TensorBase &lu = c.tensor(0), &pivots = c.tensor(1);
      TS_CHECK(lu.dim() >= 2,
               "torch.lu_unpack: Expected tensor with 2 or more dimensions. Got size: ", lu.sizes(),
               " instead");
      const int64_t m = lu.size(-2), n = lu.size(-1), k = std::min(m, n);
      if (c.flag(3)) {
        TS_CHECK(pivots.dtype() == DType::kInt32,
                 "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 "
                 "dtype.\nNote: this function is intended to be used with the output produced by "
                 "torch.linalg.lu_factor");
        TS_CHECK(pivots.sizes() == with(batch_of(lu), {k}), "lu_unpack: pivots of shape ",
                 pivots.sizes(), " do not fit LU of shape ", lu.sizes());
      }
      auto none = [&] { return op::zeros(Dims{0}.span(), lu.dtype(), lu.device()); };
      TensorBase p = c.flag(3) ? op::_permutation_matrix(pivots, m, lu.dtype()) : none();
      if (!c.flag(2)) return std::vector<TensorBase>{p, none(), none()};
      return std::vector<TensorBase>{p, lower_part(lu, k), upper_part(lu, k)};
    },
});

// L and U of A, from its factors.
TS_OP({
    .schema = "_linalg_lu(Tensor A, Tensor LU, Tensor pivots) -> (Tensor L, Tensor U)",
    .kind = Kind::kKernel,
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& lu = c.tensor(1);
      check_pivots(c, 2, 1);
      check_shape(c, 0, lu.sizes().span());
      const int64_t k = std::min(lu.size(-2), lu.size(-1));
      return {lower_part(lu, k), upper_part(lu, k)};
    },
    .saves = "pivots L U",
    .backward =
        [](Backward& b) {
          const TensorBase& l = b.results[0];
          TensorBase p = op::_permutation_matrix(b.tensor(2), l.size(-2), l.dtype());
          b.set(0, lu_gradient(b.result_grads[0], b.result_grads[1], p, l, b.results[1]));
        },
});

TS_OP({
    .schema = "linalg.lu(Tensor A, *, bool pivot=True) -> (Tensor P, Tensor L, Tensor U)",
    .doc = "A as the product of a permutation, a lower and an upper triangular matrix.",
    .example = "torch.linalg.lu(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))",
    .forms = kFunction | kOut,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& a = c.tensor(0);
      Outputs f = op::linalg_lu_factor_ex(detached(a), c.flag(1), false);
      Outputs lu = op::_linalg_lu(a, f[0], f[1]);
      // Without exchanges there is no P, as PyTorch has it.
      TensorBase p = c.flag(1) ? op::_permutation_matrix(f[1], a.size(-2), a.dtype())
                               : new_empty({0}, a.dtype(), a.device());
      return std::vector<TensorBase>{p, lu[0], lu[1]};
    },
    .exact_out = true,
    .samples = {{"T(3, 3, dtype='float64')"}, {"T(4, 2, dtype='float64')"}},
});

TS_OP({
    .schema = "_lu_solve(Tensor B, Tensor LU, Tensor pivots, int transposed) -> Tensor",
    .kind = Kind::kKernel,
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase &b = c.tensor(0), &lu = c.tensor(1);
      check_system(c, 1, 0);
      check_pivots(c, 2, 1);
      check_integer(c, 3, 0, 2);
      TensorBase x = new_columns(batch_of(b), b.size(-2), b.size(-1), b.dtype(), b.device());
      if (x.numel() == 0) return x;
      Dims rows{numel_of(batch_of(b)), b.size(-2)};
      TensorBase pivots = op::contiguous(op::reshape(c.tensor(2), rows.span()));
      TensorBase out = flat_columns(x), in[] = {as_batch(b), as_batch(lu), pivots};
      const int64_t transposed = c.integer(3);
      launch("lu_solve", {&out, 1}, in, {&transposed, 1});
      return x;
    },
    .not_differentiable = true,
});

TS_OP({
    .schema = "linalg.lu_solve(Tensor LU, Tensor pivots, Tensor B, *, bool left=True, bool "
              "adjoint=False) -> Tensor",
    .doc = "The solution X of A X = B (or X A = B, or with the adjoint of A), of A given by the "
           "results of lu_factor.",
    .example = "torch.linalg.lu_solve(*torch.linalg.lu_factor(torch.eye(2)), torch.ones(2, 1))",
    .forms = kFunction | kOut,
    .run = [](const Call& c) -> Outputs {
      TensorBase lu = c.tensor(0), pivots = c.tensor(1), b = c.tensor(2);
      const bool left = c.flag(3);
      check_same_device(c.op, c.args);
      check_square(lu, "torch.linalg.lu_solve", "LU");
      check_matrix(b, "torch.linalg.lu_solve", "B");
      check_lapack_dtype(lu, "torch.linalg.lu_solve");
      TS_CHECK(lu.dtype() == b.dtype(),
               "linalg.lu_solve: Expected LU and B to have the same dtype, but found LU of type ",
               dtype_title(lu.dtype()), " and B of type ", dtype_title(b.dtype()), " instead");
      TS_CHECK(pivots.dtype() == DType::kInt32,
               "linalg.lu_solve: pivots should be a Tensor of scalar type torch.int32");
      const int64_t n = lu.size(-1);
      TS_CHECK(b.size(left ? -2 : -1) == n,
               "linalg.lu_solve: Incompatible shapes of A and B for the equation ",
               left ? "AX = B" : "XA = B", " (", n, "x", n, " and ", b.size(-2), "x", b.size(-1),
               ")");
      TS_CHECK(pivots.size(-1) == n,
               "linalg.lu_solve: Number of pivots per batch should be same as the dimension of the "
               "matrix");
      TS_CHECK(pivots.sizes() == with(batch_of(lu), {n}),
               "linalg.lu_solve: Expected LU.shape[:-1] and pivots.shape to be the same, but got "
               "pivots with shape ",
               pivots.sizes(), " instead");
      Dims batch = broadcast_shapes(batch_of(lu), batch_of(b));
      lu = op::expand(lu, with(batch, {n, n}).span());
      pivots = op::expand(pivots, with(batch, {n}).span());
      b = op::expand(b, with(batch, {b.size(-2), b.size(-1)}).span());
      // X A = B is A^H X^H = B^H.
      const bool adjoint = c.flag(4);
      if (left) return op::_lu_solve_factors(lu, pivots, b, adjoint);
      return mH(op::_lu_solve_factors(lu, pivots, mH(b), !adjoint));
    },
    .exact_out = true,
});

// By the factors themselves where they are differentiated.
TS_OP({
    .schema = "_lu_solve_factors(Tensor LU, Tensor pivots, Tensor B, bool adjoint) -> Tensor",
    .kind = Kind::kKernel,
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      return op::_lu_solve(c.tensor(2), c.tensor(0), c.tensor(1), c.flag(3) ? 2 : 0);
    },
    .saves = "LU pivots result",
    .backward =
        [](Backward& b) {
          const TensorBase &lu = b.tensor(0), &pivots = b.tensor(1), &x = b.result;
          const bool adjoint = b.flag(3);
          if (b.wants(2)) b.set(2, op::_lu_solve_factors(lu, pivots, b.grad, !adjoint));
          if (!b.wants(0)) return;
          const int64_t n = lu.size(-1);
          TensorBase p = op::_permutation_matrix(pivots, n, lu.dtype());
          TensorBase l = lower_part(lu, n), u = upper_part(lu, n);
          TensorBase g_l, g_u;
          if (!adjoint) {
            // Of X = U^-1 L^-1 P^T B: with R = U^-H G X^H, U's is -R and L's -L^-H R U^H.
            TensorBase r = op::linalg_solve_triangular(mH(u), op::matmul(b.grad, mH(x)), false);
            g_u = op::neg(r);
            g_l =
                op::neg(op::linalg_solve_triangular(mH(l), op::matmul(r, mH(u)), true, true, true));
          } else {
            // Of X = P L^-H U^-H B: with R = P^T X G^H P L^-H, L's is -R and U's -L^H R U^-H.
            TensorBase t = op::matmul(op::matmul(mT(p), op::matmul(x, mH(b.grad))), p);
            TensorBase r = op::linalg_solve_triangular(mH(l), t, true, false, true);
            g_l = op::neg(r);
            g_u = op::neg(op::linalg_solve_triangular(mH(u), op::matmul(mH(l), r), false, false));
          }
          b.set(0, op::add(op::tril(g_l, -1), op::triu(g_u)));
        },
});

TS_OP({
    .schema = "lu_solve(Tensor self, Tensor LU_data, Tensor LU_pivots) -> Tensor",
    .doc = "The old order of linalg.lu_solve's arguments.",
    .example = "torch.ones(2, 1).lu_solve(*torch.linalg.lu_factor(torch.eye(2)))",
    .forms = kFunction | kMethod | kOut,
    .run = [](const Call& c) -> Outputs {
      return op::linalg_lu_solve(c.tensor(1), c.tensor(2), c.tensor(0));
    },
    .autocast = Autocast::kFloat32Cpu,
});

}  // namespace tessera
