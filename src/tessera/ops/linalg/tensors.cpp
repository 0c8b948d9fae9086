// Tensors taken as matrices, and matrices of powers.
#include "tessera/gen/binary.h"
#include "tessera/gen/copy.h"
#include "tessera/gen/creation.h"
#include "tessera/gen/join.h"
#include "tessera/gen/linalg.h"
#include "tessera/gen/rearrange.h"
#include "tessera/gen/scan.h"
#include "tessera/gen/view.h"
#include "tessera/ops/in_dtype.h"
#include "tessera/ops/linalg/common.h"
#include "tessera/ops/valid.h"

namespace tessera {

namespace {
// Powers from which a Vandermonde matrix is one running product instead of an operator for each.
constexpr int64_t kManyPowers = 1024;
}  // namespace

using namespace linalg;

TS_OP({
    .schema = "linalg.tensorinv(Tensor self, int ind=2) -> Tensor",
    .doc = "The inverse of a tensor taken as a matrix: its first ind dimensions are the rows.",
    .example = "torch.linalg.tensorinv(torch.eye(4).reshape(2, 2, 4), ind=2).shape",
    .forms = kFunction | kOut,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& a = c.tensor(0);
      const int64_t ind = c.integer(1);
      check_lapack_dtype(a, "linalg.tensorinv");
      TS_CHECK(ind > 0, "Expected a strictly positive integer for 'ind'");
      std::span<const int64_t> sizes = a.sizes().span();
      const size_t at = std::min(static_cast<size_t>(ind), sizes.size());
      Dims first(sizes.first(at)), last(sizes.subspan(at));
      const int64_t rows = numel_of(first), columns = numel_of(last);
      TS_CHECK(rows == columns,
               "Expected self to satisfy the requirement prod(self.shape[ind:]) == "
               "prod(self.shape[:ind]), but got ",
               columns, " != ", rows);
      Dims matrix{rows, columns}, shape = last;
      for (int64_t s : first) shape.push_back(s);
      Outputs out = op::linalg_inv_ex(op::reshape(a, matrix.span()));
      TS_CHECK_KIND(kLinAlg,
                    out[1].device().is_meta() ||
                        *reinterpret_cast<const int32_t*>(host_data(out[1]).raw()) == 0,
                    "Failed to invert the input tensor, because it is singular.");
      return op::reshape(out[0], shape.span());
    },
    .autocast = Autocast::kFloat32Cpu,
    .raises_on_data = true,
    .samples = {{"T(2, 3, 6, dtype='float64')"}},
});

TS_OP({
    .schema = "linalg.tensorsolve(Tensor self, Tensor other, int[]? dims=None) -> Tensor",
    .doc = "The tensor X with tensordot(A, X, X.ndim) = B; dims of A are moved to its end first.",
    .example = "torch.linalg.tensorsolve(torch.eye(4).reshape(2, 2, 4), torch.ones(2, 2))",
    .forms = kFunction | kOut,
    .run = [](const Call& c) -> Outputs {
      TensorBase a = c.tensor(0);
      const TensorBase& b = c.tensor(1);
      check_same_device(c.op, c.args);
      check_lapack_dtype(a, "linalg.tensorsolve");
      if (c.has(2)) {
        Dims order, moved = c.ints(2);
        uint64_t seen = 0;
        for (int64_t& d : moved) {
          d = wrap_dim(d, a.dim());
          TS_CHECK(!(seen >> d & 1), "movedim: repeated dim in `source` (", c.ints(2), ")");
          seen |= uint64_t{1} << d;
        }
        for (int64_t d = 0; d < a.dim(); ++d)
          if (!(seen >> d & 1)) order.push_back(d);
        for (int64_t d : moved) order.push_back(d);
        a = op::permute(a, order.span());
      }
      const int lead = std::min(b.dim(), a.dim());
      Dims unknown(a.sizes().span().subspan(static_cast<size_t>(lead)));
      const int64_t n = numel_of(unknown);
      TS_CHECK(n == b.numel(),
               "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == "
               "prod(self.shape[:other.ndim]), but got ",
               n, " != ", b.numel());
      Dims matrix{b.numel(), n}, flat{b.numel()};
      TensorBase x = op::linalg_solve(op::reshape(a, matrix.span()), op::reshape(b, flat.span()));
      return op::reshape(x, unknown.span());
    },
    .autocast = Autocast::kFloat32Cpu,
    .raises_on_data = true,
    .samples = {{"T(2, 3, 6, dtype='float64'), T(2, 3, dtype='float64')"}},
});

TS_OP({
    .schema = "linalg.vander(Tensor x, *, int? N=None) -> Tensor",
    .doc = "The powers 0 to N - 1 of each element, side by side; N is their number unless told.",
    .example = "torch.linalg.vander(torch.tensor([1, 2, 3]))",
    .run = [](const Call& c) -> Outputs {
      TensorBase x = c.tensor(0);
      if (x.dim() == 0) x = op::unsqueeze(x, 0);
      const int64_t n = c.has(1) ? c.integer(1) : x.size(-1);
      TS_CHECK(n > 1, "N must be greater than 1.");
      TS_CHECK(x.dtype() != DType::kBool, "linalg.vander: bool is not supported");
      // One product more at a time, as a running product rounds.
      const DType dtype = is_integral(x.dtype(), false) ? DType::kInt64 : x.dtype();
      TensorBase column = op::unsqueeze(in_dtype(x, dtype), -1);
      Dims shape = x.sizes();
      shape.push_back(n);
      check_fits_memory(shape, dtype, x.device());
      if (n > kManyPowers) {
        TensorBase base = op::expand(column, shape.span());
        base =
            op::cat(std::vector<TensorBase>{op::ones_like(column), op::slice(base, -1, 1, n)}, -1);
        return op::cumprod(base, -1);
      }
      std::vector<TensorBase> columns{op::ones_like(column), column};
      for (int64_t k = 2; k < n; ++k) columns.push_back(op::mul(columns.back(), column));
      return op::cat(columns, -1);
    },
    .samples = {{"T(4)"}, {"T(2, 3), N=5"}},
});

TS_OP({
    .schema = "linalg.diagonal(Tensor A, *, int offset=0, int dim1=-2, int dim2=-1) -> Tensor",
    .doc = "A view of the diagonals of the matrices in the last two dimensions.",
    .example = "torch.linalg.diagonal(torch.tensor([[1, 2], [3, 4]]))",
    .run = [](const Call& c) -> Outputs {
      return op::diagonal(c.tensor(0), c.integer(1), c.integer(2), c.integer(3));
    },
    .samples = {{"T(3, 4)"}, {"T(2, 3, 4), offset=1"}},
});

}  // namespace tessera
