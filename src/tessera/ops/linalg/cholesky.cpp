// Factors of positive definite matrices, and what is solved with them.
#include "tessera/gen/binary.h"
#include "tessera/gen/creation.h"
#include "tessera/gen/linalg.h"
#include "tessera/gen/rearrange.h"
#include "tessera/gen/unary.h"
#include "tessera/ops/linalg/common.h"
#include "tessera/ops/valid.h"

namespace tessera {

using namespace linalg;

TS_OP({
    .schema = "linalg.cholesky_ex(Tensor self, *, bool upper=False, bool check_errors=False) -> "
              "(Tensor L, Tensor info)",
    .doc = "The Cholesky factor of each matrix, and for each the order of the leading minor that "
           "is not positive definite, 0 if all are.",
    .example = "torch.linalg.cholesky_ex(torch.tensor([[4.0, 2.0], [2.0, 3.0]]))",
    .kind = Kind::kKernel,
    .forms = kFunction | kOut,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& a = c.tensor(0);
      check_square(a, "linalg.cholesky");
      check_lapack_dtype(a, "linalg.cholesky");
      Dims batch = batch_of(a);
      const int64_t n = a.size(-1);
      TensorBase l = new_columns(batch, n, n, a.dtype(), a.device());
      TensorBase info = op::zeros(batch.span(), DType::kInt32, a.device());
      if (a.numel() > 0) {
        TensorBase outs[] = {flat_columns(l), info}, in = as_batch(a);
        const int64_t upper = c.flag(1);
        launch("cholesky", outs, {&in, 1}, {&upper, 1});
      }
      if (c.flag(2)) check_info(info, Failed::kCholesky, "linalg.cholesky_ex");
      return {l, info};
    },
    .saves = "L",
    .backward =
        [](Backward& b) {
          // With P = L^H G, S its lower triangle and that of P^H above it: L^-H S L^-1 / 2. The
          // diagonal stays complex, as PyTorch's: what makes the matrix Hermitian drops that part.
          const bool upper = b.flag(1);
          TensorBase l = upper ? mH(b.result) : b.result, g = upper ? mH(b.grad) : b.grad;
          TensorBase p = op::tril(op::matmul(mH(l), g));
          TensorBase s = op::add(p, mH(op::tril(p, -1)));
          s = op::linalg_solve_triangular(mH(l), s, true);
          s = op::linalg_solve_triangular(l, s, false, false);
          b.set(0, op::mul(s, Scalar(0.5)));
        },
    .autocast = Autocast::kFloat32Cpu,
    .exact_out = true,
});

namespace {

Outputs cholesky(const Call& c, int upper, std::string_view name) {
  Outputs out = op::linalg_cholesky_ex(c.tensor(0), c.flag(upper), false);
  check_info(out[1], Failed::kCholesky, name);
  return out[0];
}

}  // namespace

TS_OP({
    .schema = "linalg.cholesky(Tensor self, *, bool upper=False) -> Tensor",
    .doc = "The lower triangular factor L of each positive definite matrix L @ L^H.",
    .example = "torch.linalg.cholesky(torch.tensor([[4.0, 2.0], [2.0, 3.0]]))",
    .forms = kFunction | kOut,
    .run = [](const Call& c) { return cholesky(c, 1, "linalg.cholesky"); },
    .autocast = Autocast::kFloat32Cpu,
    .exact_out = true,
    .raises_on_data = true,
});

TS_OP({
    .schema = "cholesky(Tensor self, bool upper=False) -> Tensor",
    .doc = "The old name of linalg.cholesky.",
    .example = "torch.cholesky(torch.tensor([[4.0, 2.0], [2.0, 3.0]]))",
    .forms = kFunction | kMethod | kOut,
    .run = [](const Call& c) { return cholesky(c, 1, "cholesky"); },
    .autocast = Autocast::kFloat32Cpu,
    .raises_on_data = true,
});

namespace {

// What PyTorch checks of A and B in A X = B.
void check_system(const TensorBase& b, const TensorBase& a, std::string_view name) {
  TS_CHECK(b.dim() >= 2, "b should have at least 2 dimensions, but has ", b.dim(),
           " dimensions instead");
  TS_CHECK(a.dim() >= 2, "u should have at least 2 dimensions, but has ", a.dim(),
           " dimensions instead");
  TS_CHECK(a.dtype() == b.dtype(), "Expected b and A to have the same dtype, but found b of type ",
           dtype_title(b.dtype()), " and A of type ", dtype_title(a.dtype()), " instead");
  TS_CHECK(a.size(-1) == a.size(-2), "A must be batches of square matrices, but they are ",
           a.size(-2), " by ", a.size(-1), " matrices");
  TS_CHECK(a.size(-1) == b.size(-2), "Incompatible matrix sizes for ", name, ": each A matrix is ",
           a.size(-1), " by ", a.size(-1), " but each b matrix is ", b.size(-2), " by ",
           b.size(-1));
}

}  // namespace

TS_OP({
    .schema = "_cholesky_solve(Tensor self, Tensor input2, bool upper) -> Tensor",
    .kind = Kind::kKernel,
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& b = c.tensor(0);
      check_system(c, 1, 0);
      TensorBase x = new_columns(batch_of(b), b.size(-2), b.size(-1), b.dtype(), b.device());
      if (x.numel() == 0) return x;
      TensorBase out = flat_columns(x), in[] = {as_batch(b), as_batch(c.tensor(1))};
      const int64_t upper = c.flag(2);
      launch("cholesky_solve", {&out, 1}, in, {&upper, 1});
      return x;
    },
    .saves = "input2 result",
    .backward =
        [](Backward& b) {
          const bool upper = b.flag(2);
          const TensorBase& l = b.tensor(1);
          TensorBase g = op::_cholesky_solve(b.grad, l, upper);
          b.set(0, g);
          if (!b.wants(1)) return;
          TensorBase p = op::matmul(g, mH(b.result));
          p = op::neg(op::add(p, mH(p)));
          b.set(1, upper ? op::matmul(l, p) : op::matmul(p, l));
        },
});

TS_OP({
    .schema = "cholesky_solve(Tensor self, Tensor input2, bool upper=False) -> Tensor",
    .doc = "The solution X of A X = self, of A given by its Cholesky factor.",
    .example = "torch.cholesky_solve(torch.ones(2, 1), torch.eye(2))",
    .forms = kFunction | kMethod | kOut,
    .run = [](const Call& c) -> Outputs {
      TensorBase b = c.tensor(0), l = c.tensor(1);
      check_same_device(c.op, c.args);
      check_system(b, l, "cholesky_solve");
      check_lapack_dtype(b, "cholesky_solve");
      broadcast_batches(b, l);
      return op::_cholesky_solve(b, l, c.flag(2));
    },
    .autocast = Autocast::kFloat32Cpu,
});

TS_OP({
    .schema = "cholesky_inverse(Tensor self, bool upper=False) -> Tensor",
    .doc = "The inverse of each matrix that is given by its Cholesky factor.",
    .example = "torch.cholesky_inverse(torch.tensor([[2.0, 0.0], [1.0, 1.0]]))",
    .kind = Kind::kKernel,
    .forms = kFunction | kMethod | kOut,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& a = c.tensor(0);
      check_square(a, "cholesky_inverse");
      check_lapack_dtype(a, "cholesky_inverse");
      Dims batch = batch_of(a);
      const int64_t n = a.size(-1);
      TensorBase out = new_columns(batch, n, n, a.dtype(), a.device());
      if (out.numel() == 0) return out;
      TensorBase info = op::zeros(batch.span(), DType::kInt32, a.device());
      TensorBase outs[] = {flat_columns(out), info}, in = as_batch(a);
      const int64_t upper = c.flag(1);
      launch("cholesky_inverse", outs, {&in, 1}, {&upper, 1});
      check_info(info, Failed::kInverse, "cholesky_inverse");
      return out;
    },
    .saves = "self result",
    .backward =
        [](Backward& b) {
          TensorBase g = op::add(b.grad, mH(b.grad));
          g = op::neg(op::matmul(b.result, op::matmul(g, b.result)));
          b.set(0, b.flag(1) ? op::matmul(b.tensor(0), g) : op::matmul(g, b.tensor(0)));
        },
    .autocast = Autocast::kFloat32Cpu,
    .raises_on_data = true,
});

}  // namespace tessera
