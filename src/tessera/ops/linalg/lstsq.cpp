// Least squares.
#include "tessera/gen/binary.h"
#include "tessera/gen/copy.h"
#include "tessera/gen/creation.h"
#include "tessera/gen/linalg.h"
#include "tessera/gen/reduce.h"
#include "tessera/gen/unary.h"
#include "tessera/gen/view.h"
#include "tessera/ops/linalg/common.h"
#include "tessera/ops/valid.h"

namespace tessera {

using namespace linalg;

namespace {

enum Driver : int64_t { kGels, kGelsy, kGelsd, kGelss };

Driver driver_of(const Call& c, const TensorBase& a) {
  if (!c.has(3)) return a.device().is_cpu() ? kGelsy : kGels;
  const std::string_view name = c.text(3);
  if (name == "gels") return kGels;
  TS_CHECK(a.device().is_cpu(),
           "torch.linalg.lstsq: `driver` other than `gels` is not supported on CUDA");
  if (name == "gelsy") return kGelsy;
  if (name == "gelsd") return kGelsd;
  TS_CHECK(name == "gelss",
           "torch.linalg.lstsq: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)");
  return kGelss;
}

}  // namespace

// All that LAPACK answers: the solution and what is left over in max(m, n) rows.
TS_OP({
    .schema = "_lstsq(Tensor self, Tensor B, float rcond, int driver) -> (Tensor solution, Tensor "
              "rest, Tensor rank, Tensor singular_values)",
    .kind = Kind::kKernel,
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase &a = c.tensor(0), &b = c.tensor(1);
      check_matrix(a, "linalg.lstsq", "input");
      check_matrix(b, "linalg.lstsq", "other");
      check_lapack_dtype(a, "linalg.lstsq");
      check_dtype(c, 1, a.dtype());
      TS_CHECK(batch_of(a) == batch_of(b) && a.size(-2) == b.size(-2),
               "linalg.lstsq: input of shape ", a.sizes(), " does not fit other of shape ",
               b.sizes());
      Dims batch = batch_of(a);
      const int64_t m = a.size(-2), n = a.size(-1), k = b.size(-1), driver = c.integer(3);
      const double rcond = c.number(2);
      TensorBase both = new_columns(batch, std::max(m, n), k, a.dtype(), a.device());
      TensorBase rank = op::zeros(batch.span(), DType::kInt64, a.device());
      TensorBase values =
          new_empty(with(batch, {std::min(m, n)}), real_dtype(a.dtype()), a.device());
      if (a.numel() == 0 || k == 0) {
        fill(both, Scalar(0));
        fill(values, Scalar(0));
        if (a.numel() == 0 && b.numel() > 0) copy_into(op::slice(both, -2, 0, m, 1), b, false);
      } else {
        TensorBase info = op::zeros(batch.span(), DType::kInt32, a.device());
        TensorBase outs[] = {flat_columns(both), rank, values, info};
        TensorBase in[] = {as_batch(a), as_batch(b)};
        launch("lstsq", outs, in, {&driver, 1}, {&rcond, 1});
        check_info(info, Failed::kLstsq, "torch.linalg.lstsq");
      }
      TensorBase x = op::slice(both, -2, 0, n, 1), rest = op::slice(both, -2, std::min(n, m), m, 1);
      return std::vector<TensorBase>{op::clone(x), op::clone(rest), rank, values};
    },
    .saves = "self B solution",
    .backward =
        [](Backward& b) {
          if (!b.has_grad(0)) return;
          // X = pinv(A) B, with a pseudoinverse of constant rank.
          const TensorBase &a = b.tensor(0), &right = b.tensor(1), &x = b.results[0];
          TensorBase inverse = op::linalg_pinv(a, TensorBase(), TensorBase(), false);
          TensorBase z = op::matmul(mH(inverse), b.grad);
          if (b.wants(1)) b.set(1, z);
          if (!b.wants(0)) return;
          // -z x^H, and what the rank leaves open on both sides.
          TensorBase rest = op::sub(right, op::matmul(a, x));
          TensorBase out = op::neg(op::matmul(z, mH(x)));
          out = op::add(out, op::matmul(rest, mH(op::matmul(inverse, z))));
          TensorBase y = op::matmul(mH(inverse), x);
          TensorBase g = op::sub(b.grad, op::matmul(mH(a), z));
          b.set(0, op::add(out, op::matmul(y, mH(g))));
        },
    .raises_on_data = true,
});

// The sums of squares of B - A X, which the last rows of LAPACK's answer hold. They do not change
// with X where that is the best one.
TS_OP({
    .schema = "_lstsq_squares(Tensor A, Tensor B, Tensor X, Tensor rest) -> Tensor",
    .kind = Kind::kKernel,
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      check_matrix(c.tensor(0), "linalg.lstsq");
      check_shape(c, 1, with(batch_of(c.tensor(0)), {c.tensor(0).size(-2), -1}).span());
      check_shape(c, 2,
                  with(batch_of(c.tensor(0)), {c.tensor(0).size(-1), c.tensor(1).size(-1)}).span());
      check_matrix(c.tensor(3), "linalg.lstsq", "rest");
      const int64_t rows = -2;
      TensorBase size = op::abs(c.tensor(3));
      return op::sum(op::mul(size, size), over(rows), false);
    },
    .saves = "A B X",
    .backward =
        [](Backward& b) {
          const TensorBase &a = b.tensor(0), &x = b.tensor(2);
          TensorBase r = op::sub(op::matmul(a, x), b.tensor(1));
          r = op::mul(op::mul(r, op::unsqueeze(b.grad, -2)), Scalar(2));
          if (b.wants(0)) b.set(0, op::matmul(r, mH(x)));
          if (b.wants(1)) b.set(1, op::neg(r));
        },
});

TS_OP({
    .schema = "linalg.lstsq(Tensor self, Tensor b, float? rcond=None, *, str? driver=None) -> "
              "(Tensor solution, Tensor residuals, Tensor rank, Tensor singular_values)",
    .doc = "The X with the least squares of A @ X - b; the squares that are left, the rank and the "
           "singular values of A where the driver ('gels', 'gelsy', 'gelsd', 'gelss') finds them.",
    .example = "torch.linalg.lstsq(torch.tensor([[1.0], [1.0]]), torch.tensor([[1.0], "
               "[3.0]])).solution",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      TensorBase a = c.tensor(0), b = c.tensor(1);
      check_same_device(c.op, c.args);
      TS_CHECK(a.dim() >= 2, "torch.linalg.lstsq: input must have at least 2 dimensions.");
      TS_CHECK(b.dim() >= 1, "torch.linalg.lstsq: other must have at least 1 dimension.");
      check_lapack_dtype(a, "torch.linalg.lstsq");
      TS_CHECK(a.dtype() == b.dtype(),
               "torch.linalg.lstsq: Expected input and other to have the same dtype, but got "
               "input's dtype ",
               a.dtype(), " and other's dtype ", b.dtype());
      const int difference = a.dim() - b.dim();
      TS_CHECK(difference == 0 || difference == 1,
               "torch.linalg.lstsq: input.dim() must be greater or equal to other.dim() and "
               "(input.dim() - other.dim()) <= 1");
      const Driver driver = driver_of(c, a);
      const bool vector =
          difference == 1 && b.sizes() == Dims(a.sizes().span().first(a.sizes().size() - 1));
      if (vector) b = op::unsqueeze(b, -1);
      TS_CHECK(a.size(-2) == b.size(-2),
               "torch.linalg.lstsq: input.size(-2) should match "
               "other.size(-",
               vector ? 1 : 2, ")");
      const int64_t m = a.size(-2), n = a.size(-1);
      const double eps = real_dtype(a.dtype()) == DType::kFloat64 ? 0x1p-52 : 0x1p-23;
      const double rcond = c.has(2) ? c.number(2) : eps * static_cast<double>(std::max(m, n));
      broadcast_batches(a, b);
      Outputs out = op::_lstsq(a, b, rcond, driver);
      const DType real = real_dtype(a.dtype());
      auto none = [&](DType dtype) { return op::zeros(Dims{0}.span(), dtype, a.device()); };
      // Squares are left where there are more equations than unknowns, and all of those count.
      TensorBase residuals = none(real);
      bool full = m > n && driver != kGelsy;
      if (full && driver != kGels && !a.device().is_meta()) {
        TensorBase ranks = host_data(out[2]);
        for (int64_t i = 0; i < ranks.numel(); ++i)
          full &= reinterpret_cast<const int64_t*>(ranks.raw())[i] == n;
      }
      if (full) residuals = op::_lstsq_squares(a, b, out[0], detached(out[1]));
      TensorBase x = vector ? op::squeeze(out[0], -1) : out[0];
      return std::vector<TensorBase>{
          x, residuals, driver == kGels ? none(DType::kInt64) : out[2],
          driver == kGelsd || driver == kGelss ? detached(out[3]) : none(real)};
    },
    .autocast = Autocast::kFloat32Cpu,
    .raises_on_data = true,
    // Wide and with its driver named: the default is another on a GPU, with other results beside
    // the solution, and residuals have no gradient in the PyTorch that answers.
    .samples = {{"T(2, 3, dtype='float64'), T(2, 2, dtype='float64'), driver='gels'"}},
});

}  // namespace tessera
