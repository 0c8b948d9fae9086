// Factors of symmetric matrices that need not be definite.
#include "tessera/gen/copy.h"
#include "tessera/gen/creation.h"
#include "tessera/gen/linalg.h"
#include "tessera/gen/view.h"
#include "tessera/ops/in_dtype.h"
#include "tessera/ops/linalg/common.h"

namespace tessera {

using namespace linalg;

TS_OP({
    .schema = "linalg.ldl_factor_ex(Tensor self, *, bool hermitian=False, bool check_errors=False) "
              "-> (Tensor LD, Tensor pivots, Tensor info)",
    .doc = "The LDL factors of each symmetric (or Hermitian) matrix as LAPACK keeps them, and for "
           "each the first zero on D's diagonal, 0 if there is none.",
    .example = "torch.linalg.ldl_factor_ex(torch.tensor([[4.0, 2.0], [2.0, 3.0]]))",
    .kind = Kind::kKernel,
    .forms = kFunction | kOut,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& a = c.tensor(0);
      check_square(a, "torch.linalg.ldl_factor_ex");
      check_lapack_dtype(a, "torch.linalg.ldl_factor_ex");
      Dims batch = batch_of(a);
      const int64_t n = a.size(-1), hermitian = c.flag(1);
      TensorBase ld = new_columns(batch, n, n, a.dtype(), a.device());
      TensorBase pivots = new_empty(with(batch, {n}), DType::kInt32, a.device());
      TensorBase info = op::zeros(batch.span(), DType::kInt32, a.device());
      if (a.numel() > 0) {
        TensorBase outs[] = {flat_columns(ld), pivots, info}, in = as_batch(a);
        launch("ldl_factor", outs, {&in, 1}, {&hermitian, 1});
      }
      if (c.flag(2)) check_info(info, Failed::kLdl, "torch.linalg.ldl_factor_ex");
      return std::vector<TensorBase>{ld, pivots, info};
    },
    .backward = refuse_gradient,
});

TS_OP({
    .schema = "linalg.ldl_factor(Tensor self, *, bool hermitian=False) -> (Tensor LD, Tensor "
              "pivots)",
    .doc = "The LDL factors of each symmetric (or Hermitian) matrix as LAPACK keeps them.",
    .example = "torch.linalg.ldl_factor(torch.tensor([[4.0, 2.0], [2.0, 3.0]]))",
    .forms = kFunction | kOut,
    .run = [](const Call& c) -> Outputs {
      Outputs out = op::linalg_ldl_factor_ex(c.tensor(0), c.flag(1), false);
      check_info(out[2], Failed::kLdl, "torch.linalg.ldl_factor");
      return {out[0], out[1]};
    },
    .raises_on_data = true,
    .samples = {{"T(3, 3, dtype='float64')"}},
});

TS_OP({
    .schema = "linalg.ldl_solve(Tensor LD, Tensor pivots, Tensor B, *, bool hermitian=False) -> "
              "Tensor",
    .doc = "The solution X of A X = B, of A given by the results of ldl_factor.",
    .example = "torch.linalg.ldl_solve(*torch.linalg.ldl_factor(torch.eye(2)), torch.ones(2, 1))",
    .kind = Kind::kKernel,
    .forms = kFunction | kOut,
    .run = [](const Call& c) -> Outputs {
      TensorBase ld = c.tensor(0), pivots = c.tensor(1), b = c.tensor(2);
      const char* name = "torch.linalg.ldl_solve";
      check_same_device(c.op, c.args);
      check_square(ld, name, "LD");
      check_lapack_dtype(ld, name);
      TS_CHECK(b.dim() >= 2, name, ": Expected B to have at least 2 dimensions, but it has ",
               b.dim(), " dimensions instead");
      TS_CHECK(pivots.sizes() == with(batch_of(ld), {ld.size(-1)}), name,
               ": Expected LD.shape[:-1] and pivots.shape to be the same, but got pivots with "
               "shape ",
               pivots.sizes(), " instead");
      TS_CHECK(is_integral(pivots.dtype(), false), name, ": Expected pivots to be integers. Got ",
               dtype_title(pivots.dtype()));
      TS_CHECK(ld.dtype() == b.dtype(), name, ": LD dtype ", dtype_title(ld.dtype()),
               " does not match b dtype ", dtype_title(b.dtype()));
      TS_CHECK(ld.size(-1) == b.size(-2), name,
               ": Incompatible matrix sizes for ldl_solve: each A matrix is ", ld.size(-1), " by ",
               ld.size(-1), " but each b matrix is ", b.size(-2), " by ", b.size(-1));
      broadcast_batches(ld, b);
      const int64_t n = ld.size(-1), hermitian = c.flag(3);
      pivots = op::expand(pivots, with(batch_of(ld), {n}).span());
      TensorBase x = new_columns(batch_of(b), n, b.size(-1), b.dtype(), b.device());
      if (x.numel() == 0) return x;
      pivots = in_dtype(pivots, DType::kInt32);
      Dims rows{numel_of(batch_of(b)), n};
      pivots = op::contiguous(op::reshape(pivots, rows.span()));
      TensorBase out = flat_columns(x), in[] = {as_batch(b), as_batch(ld), pivots};
      launch("ldl_solve", {&out, 1}, in, {&hermitian, 1});
      return x;
    },
    .backward = refuse_gradient,
});

}  // namespace tessera
