// Linear equations and inverses.
#include "tessera/gen/copy.h"
#include "tessera/gen/linalg.h"
#include "tessera/gen/rearrange.h"
#include "tessera/gen/unary.h"
#include "tessera/gen/view.h"
#include "tessera/ops/linalg/common.h"
#include "tessera/ops/valid.h"

namespace tessera {

using namespace linalg;

// A X = B, X A = B, or the same with the adjoint of A: by A's factors, with the gradient of A.
TS_OP({
    .schema = "_solve_factored(Tensor A, Tensor B, Tensor LU, Tensor pivots, bool left, bool "
              "adjoint) -> Tensor",
    .kind = Kind::kKernel,
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase &b = c.tensor(1), &lu = c.tensor(2), &pivots = c.tensor(3);
      check_system(c, 0, 1, c.flag(4));
      if (c.flag(4)) return op::_lu_solve(b, lu, pivots, c.flag(5) ? 2 : 0);
      return mH(op::_lu_solve(mH(b), lu, pivots, c.flag(5) ? 0 : 2));
    },
    .saves = "A LU pivots result",
    .backward =
        [](Backward& b) {
          const bool left = b.flag(4), adjoint = b.flag(5);
          TensorBase g =
              op::_solve_factored(b.tensor(0), b.grad, b.tensor(2), b.tensor(3), left, !adjoint);
          b.set(1, g);
          if (!b.wants(0)) return;
          const TensorBase& x = b.result;
          TensorBase of_a = left ? op::matmul(g, mH(x)) : op::matmul(mH(x), g);
          b.set(0, op::neg(adjoint ? mH(of_a) : of_a));
        },
});

namespace {

// Is B a vector, or a batch of them?
bool is_vector(const TensorBase& a, const TensorBase& b) {
  if (b.dim() == 1) return true;
  Dims rows(a.sizes().span().first(a.sizes().size() - 1));
  return a.dim() - 1 == b.dim() && b.sizes() == rows;
}

struct Solved {
  TensorBase x, info;
};

Solved solve(const Call& c, bool left, std::string_view name) {
  TensorBase a = c.tensor(0), b = c.tensor(1);
  check_same_device(c.op, c.args);
  TS_CHECK(is_differentiable(a.dtype()), name,
           ": Expected a floating point or complex tensor as input. Got ", dtype_title(a.dtype()));
  check_lapack_dtype(a, name);
  TS_CHECK(a.dtype() == b.dtype(), name,
           ": Expected A and B to have the same dtype, but found A of "
           "type ",
           dtype_title(a.dtype()), " and B of type ", dtype_title(b.dtype()), " instead");
  check_square(a, name);
  const bool vector = is_vector(a, b);
  if (vector) {
    TS_CHECK(left, name,
             ": Vector broadcasting of the left hand side is not supported for left=False. In this "
             "case linalg.solve is equivalent to B / A.squeeze(-1)");
    b = op::unsqueeze(b, -1);
  }
  check_matrix(b, name, "B");
  TS_CHECK(a.size(-2) == b.size(left ? -2 : -1), name,
           ": Incompatible shapes of A and B for the equation ", left ? "AX = B" : "XA = B", " (",
           a.size(-2), "x", a.size(-1), " and ", b.size(-2), "x", b.size(-1), ")");
  Outputs factors = op::linalg_lu_factor_ex(detached(a));
  Solved out{TensorBase(), factors[2]};
  const int64_t n = a.size(-1);
  Dims batch = broadcast_shapes(batch_of(a), batch_of(b));
  auto spread = [&](const TensorBase& t, std::initializer_list<int64_t> tail) {
    return op::expand(t, with(batch, tail).span());
  };
  out.x = op::_solve_factored(spread(a, {n, n}), spread(b, {b.size(-2), b.size(-1)}),
                              spread(factors[0], {n, n}), spread(factors[1], {n}), left, false);
  if (vector) out.x = op::squeeze(out.x, -1);
  return out;
}

}  // namespace

TS_OP({
    .schema = "linalg.solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> "
              "(Tensor result, Tensor info)",
    .doc = "As linalg.solve, with 0 for each matrix that is not singular instead of an error.",
    .example = "torch.linalg.solve_ex(torch.tensor([[2.0, 0.0], [0.0, 4.0]]), torch.ones(2))",
    .forms = kFunction | kOut,
    .run = [](const Call& c) -> Outputs {
      Solved s = solve(c, c.flag(2), "linalg.solve");
      if (c.flag(3)) check_info(s.info, Failed::kSolve, "torch.linalg.solve_ex");
      return {s.x, s.info};
    },
    .exact_out = true,
    .samples = {{"T(3, 3, dtype='float64'), T(3, 2, dtype='float64')"}},
});

TS_OP({
    .schema = "linalg.solve(Tensor A, Tensor B, *, bool left=True) -> Tensor",
    .doc = "The solution X of A @ X = B, or with left=False of X @ A = B.",
    .example = "torch.linalg.solve(torch.tensor([[2.0, 0.0], [0.0, 4.0]]), torch.ones(2))",
    .forms = kFunction | kOut,
    .run = [](const Call& c) -> Outputs {
      Solved s = solve(c, c.flag(2), "linalg.solve");
      check_info(s.info, Failed::kSolve, "torch.linalg.solve");
      return s.x;
    },
    .autocast = Autocast::kFloat32Cpu,
    .exact_out = true,
    .raises_on_data = true,
    .samples = {{"T(3, 3, dtype='float64'), T(3, 2, dtype='float64')"},
                {"T(2, 3, 3, dtype='float64'), T(3, 2, dtype='float64')"},
                {"T(3, 3, dtype='float64'), T(2, 3, dtype='float64'), left=False"}},
});

TS_OP({
    .schema = "linalg.inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor "
              "info)",
    .doc = "As linalg.inv, with 0 for each matrix that is not singular instead of an error.",
    .example = "torch.linalg.inv_ex(torch.tensor([[2.0, 0.0], [0.0, 4.0]]))",
    .kind = Kind::kKernel,
    .forms = kFunction | kOut,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& a = c.tensor(0);
      check_square(a, "linalg.inv");
      check_lapack_dtype(a, "linalg.inv");
      Outputs factors = op::linalg_lu_factor_ex(a);
      TensorBase one = op::expand(identity(a.size(-1), a.dtype(), a.device()), a.sizes().span());
      if (c.flag(1)) check_info(factors[2], Failed::kInverse, "linalg.inv_ex");
      return {op::_lu_solve(one, factors[0], factors[1], 0), factors[2]};
    },
    .saves = "inverse",
    .backward =
        [](Backward& b) {
          TensorBase x = mH(b.result);
          b.set(0, op::neg(op::matmul(x, op::matmul(b.grad, x))));
        },
    .autocast = Autocast::kFloat32Cpu,
    .exact_out = true,
    .samples = {{"T(3, 3, dtype='float64')"}},
});

TS_OP({
    .schema = "linalg.inv(Tensor A) -> Tensor",
    .doc = "The inverse of each square matrix.",
    .example = "torch.linalg.inv(torch.tensor([[2.0, 0.0], [0.0, 4.0]]))",
    .forms = kFunction | kOut,
    .run = [](const Call& c) -> Outputs {
      Outputs out = op::linalg_inv_ex(c.tensor(0));
      check_info(out[1], Failed::kInverse, "linalg.inv");
      return out[0];
    },
    .autocast = Autocast::kFloat32Cpu,
    .exact_out = true,
    .raises_on_data = true,
    .samples = {{"T(3, 3, dtype='float64')"}, {"T(2, 3, 3, dtype='float64')"}},
});

TS_OP({
    .schema = "inverse(Tensor self) -> Tensor",
    .doc = "The inverse of each square matrix.",
    .example = "torch.inverse(torch.tensor([[2.0, 0.0], [0.0, 4.0]]))",
    .forms = kFunction | kMethod | kOut,
    .run = [](const Call& c) -> Outputs { return op::linalg_inv(c.tensor(0)); },
    .autocast = Autocast::kFloat32Cpu,
    .exact_out = true,
    .raises_on_data = true,
    .samples = {{"T(3, 3, dtype='float64')"}},
});

TS_OP({
    .schema = "_solve_triangular(Tensor A, Tensor B, bool upper, bool left, bool unitriangular) -> "
              "Tensor",
    .kind = Kind::kKernel,
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& b = c.tensor(1);
      check_system(c, 0, 1, c.flag(3));
      TensorBase x = new_columns(batch_of(b), b.size(-2), b.size(-1), b.dtype(), b.device());
      if (x.numel() == 0) return x;
      TensorBase out = flat_columns(x), in[] = {as_batch(c.tensor(0)), as_batch(b)};
      const int64_t ints[] = {c.flag(2), c.flag(3), c.flag(4)};
      launch("solve_triangular", {&out, 1}, in, ints);
      return x;
    },
    .saves = "A result",
    .backward =
        [](Backward& b) {
          const bool upper = b.flag(2), left = b.flag(3), unit = b.flag(4);
          TensorBase g = op::_solve_triangular(mH(b.tensor(0)), b.grad, !upper, left, unit);
          b.set(1, g);
          if (!b.wants(0)) return;
          TensorBase of_a = left ? op::matmul(g, mH(b.result)) : op::matmul(mH(b.result), g);
          const int64_t skip = unit ? 1 : 0;
          b.set(0, op::neg(upper ? op::triu(of_a, skip) : op::tril(of_a, -skip)));
        },
});

TS_OP({
    .schema = "linalg.solve_triangular(Tensor self, Tensor B, *, bool upper, bool left=True, bool "
              "unitriangular=False) -> Tensor",
    .doc = "The solution X of A @ X = B, or with left=False of X @ A = B, of triangular A.",
    .example = "torch.linalg.solve_triangular(torch.tensor([[2.0, 0.0], [1.0, 4.0]]), "
               "torch.ones(2, 1), upper=False)",
    .forms = kFunction | kOut,
    .run = [](const Call& c) -> Outputs {
      TensorBase a = c.tensor(0), b = c.tensor(1);
      const bool left = c.flag(3);
      const char* name = "linalg.solve_triangular";
      check_same_device(c.op, c.args);
      check_square(a, name);
      check_matrix(b, name, "B");
      check_lapack_dtype(a, name);
      TS_CHECK(a.dtype() == b.dtype(), name,
               ": Expected A and B to have the same dtype, but found A of type ",
               dtype_title(a.dtype()), " and B of type ", dtype_title(b.dtype()), " instead");
      TS_CHECK(a.size(-2) == b.size(left ? -2 : -1), name,
               ": Incompatible shapes of A and B for the equation ", left ? "AX = B" : "XA = B",
               " (", a.size(-2), "x", a.size(-1), " and ", b.size(-2), "x", b.size(-1), ")");
      broadcast_batches(a, b);
      return op::_solve_triangular(a, b, c.flag(2), left, c.flag(4));
    },
    .samples = {{"T(3, 3, dtype='float64'), T(3, 2, dtype='float64'), upper=True"},
                {"T(2, 3, 3, dtype='float64'), T(2, 3, dtype='float64'), upper=False, left=False, "
                 "unitriangular=True"}},
});

TS_OP({
    .schema = "triangular_solve(Tensor self, Tensor A, bool upper=True, bool transpose=False, bool "
              "unitriangular=False) -> (Tensor solution, Tensor cloned_coefficient)",
    .doc = "The old name of linalg.solve_triangular; A comes second and is given back.",
    .example = "torch.triangular_solve(torch.ones(2, 1), torch.eye(2))",
    .forms = kFunction | kMethod | kOut,
    .run = [](const Call& c) -> Outputs {
      TensorBase b = c.tensor(0), a = c.tensor(1);
      check_same_device(c.op, c.args);
      TS_CHECK(b.dim() >= 2,
               "torch.triangular_solve: Expected b to have at least 2 dimensions, but it has ",
               b.dim(), " dimensions instead");
      TS_CHECK(a.dim() >= 2,
               "torch.triangular_solve: Expected A to have at least 2 dimensions, but it has ",
               a.dim(), " dimensions instead");
      check_square(a, "triangular_solve");
      check_lapack_dtype(a, "triangular_solve");
      TS_CHECK(a.dtype() == b.dtype(),
               "triangular_solve: Expected b and A to have the same dtype, but found b of type ",
               dtype_title(b.dtype()), " and A of type ", dtype_title(a.dtype()), " instead");
      TS_CHECK(a.size(-1) == b.size(-2),
               "Incompatible matrix sizes for triangular_solve: each A matrix is ", a.size(-1),
               " by ", a.size(-1), " but each b matrix is ", b.size(-2), " by ", b.size(-1));
      broadcast_batches(a, b);
      const bool transposed = c.flag(3);
      return {op::_solve_triangular(transposed ? mT(a) : a, b, c.flag(2) != transposed, true,
                                    c.flag(4)),
              op::clone(a)};
    },
    .autocast = Autocast::kFloat32Cpu,
    .samples = {{"T(3, 2, dtype='float64'), T(3, 3, dtype='float64')"},
                {"T(3, 2, dtype='float64'), T(3, 3, dtype='float64'), False, True"}},
});

}  // namespace tessera
