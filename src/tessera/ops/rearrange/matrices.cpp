// Triangles and diagonals of matrices.
#include "tessera/gen/binary.h"
#include "tessera/gen/copy.h"
#include "tessera/gen/creation.h"
#include "tessera/gen/join.h"
#include "tessera/gen/rearrange.h"
#include "tessera/gen/reduce.h"
#include "tessera/gen/scan.h"
#include "tessera/gen/view.h"
#include "tessera/ops/in_dtype.h"
#include "tessera/ops/loops.h"
#include "tessera/ops/valid.h"

namespace tessera {

namespace {
// Powers from which a Vandermonde matrix is one running product instead of an operator for each.
constexpr int64_t kManyPowers = 1024;
}  // namespace

namespace {

// True where the place (a row, a column) is at or below a diagonal; s1 = 1 turns it round.
TS_BODY(triangle, "tt", 'b', 2, (int64_t), return s1 == 0 ? b - a <= s0 : b - a >= s0;)
TS_BODY(keep, "tb", 't', 0, (TS_ALL, TS_COMPLEX), return select(b, a, T(0));)

TensorBase triangle_of(const Call& c, bool upper) {
  const TensorBase& t = c.tensor(0);
  TS_CHECK(t.dim() >= 2, c.op.name, ": input tensor must have at least 2 dimensions");
  TensorBase rows = op::arange(t.size(-2), DType::kInt64, t.device());
  TensorBase cols = op::arange(t.size(-1), DType::kInt64, t.device());
  TensorBase mask = op::_triangle(op::unsqueeze(rows, 1), cols, c.integer(1), upper ? 1 : 0);
  return op::_keep(op::contiguous(t), mask);
}

}  // namespace

TS_OP({
    .schema = "_triangle(Tensor rows, Tensor cols, Scalar diagonal, Scalar upper) -> Tensor",
    .kind = Kind::kPointwise,
    .types = TypeRule::kCompare,
    .forms = kFunction,
    .body = &triangle_body,
    .not_differentiable = true,
});
TS_OP({
    .schema = "_keep(Tensor self, Tensor mask) -> Tensor",
    .kind = Kind::kPointwise,
    .types = TypeRule::kSame,
    .forms = kFunction,
    .body = &keep_body,
    .saves = "mask",
    .backward = [](Backward& b) { b.set(0, op::_keep(b.grad, b.tensor(1))); },
});

TS_OP({
    .schema = "tril(Tensor self, int diagonal=0) -> Tensor",
    .doc = "The elements at or below a diagonal of the last two dimensions; zeros elsewhere.",
    .example = "torch.tril(torch.ones(3, 3))",
    .forms = kFunction | kMethod | kInplace | kOut,
    .run = [](const Call& c) -> Outputs { return triangle_of(c, false); },
    .exact_out = true,
    .samples = {{"T(3, 4)"}, {"T(3, 4), 1"}, {"T(2, 3, 3), -1"}},
});

TS_OP({
    .schema = "triu(Tensor self, int diagonal=0) -> Tensor",
    .doc = "The elements at or above a diagonal of the last two dimensions; zeros elsewhere.",
    .example = "torch.triu(torch.ones(3, 3))",
    .forms = kFunction | kMethod | kInplace | kOut,
    .run = [](const Call& c) -> Outputs { return triangle_of(c, true); },
    .exact_out = true,
    .samples = {{"T(3, 4)"}, {"T(3, 4), 1"}, {"T(2, 3, 3), -1"}},
});

TS_OP({
    .schema = "diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor",
    .doc = "The last dimension as the diagonal of two dimensions that are otherwise zero.",
    .example = "torch.diag_embed(torch.tensor([1, 2]))",
    .run = [](const Call& c) -> Outputs {
      const TensorBase& t = c.tensor(0);
      int dims = t.dim() + 1;
      int a = wrap_dim(c.integer(2), dims), b = wrap_dim(c.integer(3), dims);
      TS_CHECK(a != b, "diagonal dimensions cannot be identical ", c.integer(2), ", ",
               c.integer(3));
      int64_t side = std::abs(c.integer(1)) + t.size(-1);
      Dims shape(t.sizes().span().first(static_cast<size_t>(t.dim() - 1)));
      shape.insert(static_cast<size_t>(std::min(a, b)), side);
      shape.insert(static_cast<size_t>(std::max(a, b)), side);
      TensorBase out = op::zeros(shape.span(), t.dtype(), t.device());
      copy_into(op::diagonal(out, c.integer(1), a, b), t, false);
      return out;
    },
    .backward =
        [](Backward& b) {
          b.set(0, op::diagonal(b.grad, b.integer(1), b.integer(2), b.integer(3)));
        },
    .samples = {{"T(3)"}, {"T(2, 3), 1"}, {"T(2, 3), -1, 0, 2"}},
});

TS_OP({
    .schema = "diag(Tensor self, int diagonal=0) -> Tensor",
    .doc = "A matrix with the vector on a diagonal, or a copy of a matrix's diagonal.",
    .example = "torch.diag(torch.tensor([1, 2]))",
    .forms = kFunction | kMethod | kOut,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& t = c.tensor(0);
      TS_CHECK(t.dim() == 1 || t.dim() == 2, "diag(): Supports 1D or 2D tensors. Got ", t.dim(),
               "D");
      if (t.dim() == 1) return op::diag_embed(t, c.integer(1));
      return op::diagonal_copy(t, c.integer(1));
    },
    .exact_out = true,
    .samples = {{"T(3)"}, {"T(3), -1"}, {"T(3, 4)"}, {"T(3, 4), 1"}},
});

TS_OP({
    .schema = "diagflat(Tensor self, int offset=0) -> Tensor",
    .doc = "A matrix with all elements on a diagonal.",
    .example = "torch.diagflat(torch.ones(2, 1))",
    .run = [](const Call& c) -> Outputs {
      return op::diag_embed(op::flatten(c.tensor(0)), c.integer(1));
    },
    .samples = {{"T(3)"}, {"T(2, 2), 1"}, {"T()"}},
});

TS_OP({
    .schema = "trace(Tensor self) -> Tensor",
    .doc = "The sum of a matrix's diagonal.",
    .example = "torch.trace(torch.eye(3))",
    .run = [](const Call& c) -> Outputs {
      TS_CHECK(c.tensor(0).dim() == 2, "trace: expected a matrix, but got tensor with dim ",
               c.tensor(0).dim());
      return op::sum(op::diagonal(c.tensor(0)));
    },
    .autocast = {Cast::kKeep, Cast::kFloat32},
    .samples = {{"T(3, 3)"}, {"T(2, 4)"}},
});

TS_OP({
    .schema = "vander(Tensor x, int? N=None, bool increasing=False) -> Tensor",
    .doc = "Powers of a vector's elements as columns, the highest first.",
    .example = "torch.vander(torch.tensor([1, 2, 3]), 3)",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& x = c.tensor(0);
      TS_CHECK(x.dim() == 1, "x must be a one-dimensional tensor.");
      int64_t n = c.has(1) ? c.integer(1) : x.numel();
      TS_CHECK(n >= 0, "N must be non-negative.");
      DType dtype = promote(x.dtype(), DType::kInt64);
      if (n == 0) return new_empty({x.numel(), 0}, dtype, x.device());
      const int64_t shape[] = {x.numel(), n};
      check_fits_memory(shape, dtype, x.device());
      if (n > kManyPowers) {
        TensorBase base = op::expand(op::unsqueeze(in_dtype(x, dtype), 1), shape);
        base = op::cat(std::vector<TensorBase>{op::ones_like(op::slice(base, 1, 0, 1)),
                                               op::slice(base, 1, 1, n)},
                       1);
        TensorBase powers = op::cumprod(base, 1);
        const int64_t columns = 1;
        return c.flag(2) ? powers : op::flip(powers, std::span(&columns, 1));
      }
      std::vector<TensorBase> columns{op::ones(x.sizes().span(), dtype, x.device())};
      TensorBase wide = in_dtype(x, dtype);
      while (static_cast<int64_t>(columns.size()) < n)
        columns.push_back(columns.size() == 1 ? wide : op::mul(columns.back(), wide));
      if (!c.flag(2)) std::reverse(columns.begin(), columns.end());
      return op::stack(columns, 1);
    },
    .reference = "np.vander(x, N, increasing)",
    .samples = {{"T(3)"}, {"T(3), 2"}, {"T(3), 4, True"}},
});

}  // namespace tessera
