// Pseudoinverses, ranks and condition numbers: what depends on small singular values.
#include <cmath>

#include "tessera/gen/binary.h"
#include "tessera/gen/creation.h"
#include "tessera/gen/linalg.h"
#include "tessera/gen/reduce.h"
#include "tessera/gen/ternary.h"
#include "tessera/gen/unary.h"
#include "tessera/gen/view.h"
#include "tessera/ops/linalg/common.h"
#include "tessera/ops/valid.h"

namespace tessera {

using namespace linalg;

namespace {

constexpr int64_t kLast = -1;

// An absolute and a relative cutoff, each a number, a tensor (one for each matrix) or None.
struct Cutoff {
  TensorBase absolute, relative;
};

TensorBase as_number(double v, DType dtype, Device device) {
  return op::full(Dims{}.span(), Scalar(v), dtype, device);
}

Cutoff cutoff_of(const Call& c, int atol, int rtol, const TensorBase& a) {
  const DType dtype = real_dtype(a.dtype());
  const double eps = dtype == DType::kFloat64 ? 0x1p-52 : 0x1p-23;
  auto read = [&](int arg, const char* name) {
    if (arg < 0 || !c.has(arg)) return TensorBase();
    if (!c.args[arg].is_tensor()) return as_number(c.number(arg), dtype, a.device());
    TS_CHECK(!is_complex(c.tensor(arg).dtype()), error_name(c.op), ": ", name,
             " tensor of complex type is not supported. Got ", dtype_title(c.tensor(arg).dtype()));
    return c.tensor(arg);
  };
  Cutoff out{read(atol, "atol"), read(rtol, "rtol")};
  const double size = static_cast<double>(std::max(a.size(-2), a.size(-1)));
  if (!out.absolute.defined() && !out.relative.defined()) {
    out.relative = as_number(eps * size, dtype, a.device());
  } else if (!out.relative.defined()) {
    // With an absolute cutoff above zero nothing else counts.
    out.relative = op::where(op::gt(out.absolute, Scalar(0)), Scalar(0.0), Scalar(eps * size));
  }
  if (!out.absolute.defined()) out.absolute = as_number(0, dtype, a.device());
  return out;
}

// The larger of atol and rtol times the largest value, with a dimension to compare along.
TensorBase threshold(const Cutoff& cut, const TensorBase& largest) {
  TensorBase relative = op::mul(op::unsqueeze(cut.relative, -1), largest);
  return op::maximum(op::unsqueeze(cut.absolute, -1), relative);
}

struct Spectrum {
  TensorBase values, left, right;  // right is already adjoint
};

TensorBase pinv(const Call& c, bool hermitian, const Cutoff& cut) {
  const TensorBase& a = c.tensor(0);
  return op::_pinv(a, cut.absolute, cut.relative, hermitian);
}

void check_pinv(const Call& c) {
  check_matrix(c.tensor(0), "linalg.pinv");
  check_lapack_dtype(c.tensor(0), "linalg.pinv");
}

}  // namespace

TS_OP({
    .schema = "_pinv(Tensor self, Tensor atol, Tensor rtol, bool hermitian) -> Tensor",
    .kind = Kind::kKernel,
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& a = c.tensor(0);
      check_matrix(a, "linalg.pinv");
      if (c.flag(3)) check_square(a, "linalg.pinv");
      if (a.numel() == 0)
        return op::zeros(with(batch_of(a), {a.size(-1), a.size(-2)}).span(), a.dtype(), a.device());
      Spectrum s;
      if (c.flag(3)) {
        Outputs e = op::_linalg_eigh(a, "L", true);
        s = {e[0], e[1], mH(e[1])};
      } else {
        Outputs e = op::_linalg_svd(a, false, true);
        s = {e[1], mH(e[2]), mH(e[0])};
      }
      TensorBase sizes = op::abs(s.values);
      TensorBase largest = op::amax(sizes, over(kLast), true);
      TensorBase keep = op::gt(sizes, threshold({c.tensor(1), c.tensor(2)}, largest));
      TensorBase inverse = op::where(keep, op::reciprocal(s.values), Scalar(0.0));
      return op::matmul(op::mul(s.left, op::unsqueeze(inverse, -2)), s.right);
    },
    .saves = "self result",
    .backward =
        [](Backward& b) {
          // The derivative of a pseudoinverse of constant rank.
          const TensorBase &a = b.tensor(0), &x = b.result;
          TensorBase g = mH(b.grad), xh = mH(x);
          if (a.numel() == 0) return b.set(0, op::zeros_like(a));
          if (a.size(-2) <= a.size(-1)) {
            TensorBase k = op::matmul(g, x), kx = op::matmul(k, xh);
            TensorBase out = op::sub(kx, mH(op::matmul(x, k)));
            out = op::sub(out, op::matmul(op::matmul(a, x), kx));
            b.set(0, op::add(out, op::matmul(op::matmul(xh, x), op::sub(g, op::matmul(k, a)))));
          } else {
            TensorBase k = op::matmul(x, g), xk = op::matmul(xh, k);
            TensorBase out = op::sub(xk, mH(op::matmul(k, x)));
            out = op::sub(out, op::matmul(op::matmul(xk, x), a));
            b.set(0, op::add(out, op::matmul(op::matmul(op::sub(g, op::matmul(a, k)), x), xh)));
          }
        },
    .raises_on_data = true,
});

TS_OP({
    .schema = "linalg.pinv(Tensor self, *, Tensor? atol=None, Tensor? rtol=None, bool "
              "hermitian=False) -> Tensor",
    .doc = "The pseudoinverse of each matrix: singular values up to max(atol, rtol * largest) "
           "count as zero.",
    .example = "torch.linalg.pinv(torch.tensor([[2.0, 0.0], [0.0, 0.0]]))",
    .forms = kFunction | kOut,
    .check = check_pinv,
    .run = [](const Call& c) -> Outputs {
      return pinv(c, c.flag(3), cutoff_of(c, 1, 2, c.tensor(0)));
    },
    .raises_on_data = true,
    .samples = {{"T(3, 2, dtype='float64')"}, {"T(2, 3, 3, dtype='float64')"}},
});

TS_OP({
    .schema = "linalg.pinv(Tensor self, *, float? atol=None, float? rtol=None, bool "
              "hermitian=False) -> Tensor",
    .forms = kFunction | kOut,
    .check = check_pinv,
    .run = [](const Call& c) -> Outputs {
      return pinv(c, c.flag(3), cutoff_of(c, 1, 2, c.tensor(0)));
    },
    .raises_on_data = true,
});

TS_OP({
    .schema = "linalg.pinv(Tensor self, float rcond, bool hermitian=False) -> Tensor",
    .forms = kFunction | kOut,
    .check = check_pinv,
    .run = [](const Call& c) -> Outputs {
      return pinv(c, c.flag(2), cutoff_of(c, -1, 1, c.tensor(0)));
    },
    .raises_on_data = true,
});

TS_OP({
    .schema = "linalg.pinv(Tensor self, Tensor rcond, bool hermitian=False) -> Tensor",
    .forms = kFunction | kOut,
    .check = check_pinv,
    .run = [](const Call& c) -> Outputs {
      return pinv(c, c.flag(2), cutoff_of(c, -1, 1, c.tensor(0)));
    },
    .raises_on_data = true,
});

TS_OP({
    .schema = "pinverse(Tensor self, float rcond=1e-15) -> Tensor",
    .doc = "The pseudoinverse of each matrix, as linalg.pinv with rtol=rcond.",
    .example = "torch.pinverse(torch.tensor([[2.0, 0.0], [0.0, 0.0]]))",
    .forms = kFunction | kMethod,
    .check = check_pinv,
    .run = [](const Call& c) -> Outputs {
      return pinv(c, false, cutoff_of(c, -1, 1, c.tensor(0)));
    },
    .autocast = Autocast::kFloat32Cpu,
    .raises_on_data = true,
    .samples = {{"T(3, 2, dtype='float64')"}},
});

namespace {

void check_rank(const Call& c) {
  check_matrix(c.tensor(0), "torch.linalg.matrix_rank", "input");
  check_lapack_dtype(c.tensor(0), "torch.linalg.matrix_rank");
}

Outputs rank(const Call& c, bool hermitian, const Cutoff& cut) {
  TensorBase a = detached(c.tensor(0));
  Dims batch = batch_of(a);
  if (a.numel() == 0) return op::zeros(batch.span(), DType::kInt64, a.device());
  TensorBase s = hermitian ? op::abs(op::linalg_eigvalsh(a)) : op::linalg_svdvals(a);
  TensorBase keep = op::gt(s, threshold(cut, op::amax(s, over(kLast), true)));
  return op::sum(keep, over(kLast), false);
}

}  // namespace

TS_OP({
    .schema = "linalg.matrix_rank(Tensor input, *, Tensor? atol=None, Tensor? rtol=None, bool "
              "hermitian=False) -> Tensor",
    .doc = "How many singular values of each matrix are above max(atol, rtol * largest).",
    .example = "torch.linalg.matrix_rank(torch.tensor([[2.0, 0.0], [0.0, 0.0]]))",
    .forms = kFunction | kOut,
    .check = check_rank,
    .run = [](const Call& c) { return rank(c, c.flag(3), cutoff_of(c, 1, 2, c.tensor(0))); },
    .autocast = Autocast::kFloat32Cpu,
    .raises_on_data = true,
    .samples = {{"T(3, 2, dtype='float64')"}, {"T(2, 3, 3, dtype='float64')"}},
});

TS_OP({
    .schema = "linalg.matrix_rank(Tensor self, *, float? atol=None, float? rtol=None, bool "
              "hermitian=False) -> Tensor",
    .forms = kFunction | kOut,
    .check = check_rank,
    .run = [](const Call& c) { return rank(c, c.flag(3), cutoff_of(c, 1, 2, c.tensor(0))); },
    .autocast = Autocast::kFloat32Cpu,
    .raises_on_data = true,
});

TS_OP({
    .schema = "linalg.matrix_rank(Tensor self, float tol, bool hermitian=False) -> Tensor",
    .forms = kFunction | kOut,
    .check = check_rank,
    .run =
        [](const Call& c) {
          Cutoff cut = cutoff_of(c, 1, -1, c.tensor(0));
          cut.relative = as_number(0, real_dtype(c.tensor(0).dtype()), c.tensor(0).device());
          return rank(c, c.flag(2), cut);
        },
    .autocast = Autocast::kFloat32Cpu,
    .raises_on_data = true,
});

TS_OP({
    .schema = "linalg.matrix_rank(Tensor input, Tensor tol, bool hermitian=False) -> Tensor",
    .forms = kFunction | kOut,
    .check = check_rank,
    .run =
        [](const Call& c) {
          Cutoff cut = cutoff_of(c, 1, -1, c.tensor(0));
          cut.relative = as_number(0, real_dtype(c.tensor(0).dtype()), c.tensor(0).device());
          return rank(c, c.flag(2), cut);
        },
    .autocast = Autocast::kFloat32Cpu,
    .raises_on_data = true,
});

namespace {

// Of singular matrices the inverse is infinite.
TensorBase norm_of_inverse(const TensorBase& a, const Value& ord) {
  Outputs out = op::linalg_inv_ex(a);
  TensorBase n = ord.is_scalar() ? op::linalg_matrix_norm(out[0], ord.scalar)
                                 : op::linalg_matrix_norm(out[0], ord.string);
  return op::where(op::eq(out[1], Scalar(0)), n, Scalar(INFINITY));
}

Outputs cond(const Call& c) {
  const TensorBase& a = c.tensor(0);
  TS_CHECK(a.dim() >= 2, "linalg.cond: The input tensor must have at least 2 dimensions.");
  check_lapack_dtype(a, "linalg.cond");
  const Value& p = c.args[1];
  const bool number = p.is_scalar();
  const double ord = number ? p.scalar.to_double() : 0;
  if (p.is_none() || (number && std::abs(ord) == 2)) {
    TensorBase s = op::linalg_svdvals(a);
    if (a.numel() == 0) return op::zeros(batch_of(a).span(), s.dtype(), s.device());
    TensorBase first = op::select(s, -1, 0), last = op::select(s, -1, s.size(-1) - 1);
    return ord == -2 ? op::div(last, first) : op::div(first, last);
  }
  if (number)
    TS_CHECK(std::abs(ord) == 1 || std::isinf(ord), "linalg.cond got an invalid norm type: ", ord);
  else
    TS_CHECK(p.string == "fro" || p.string == "nuc",
             "linalg.cond got an invalid norm type: ", p.string);
  if (!number) check_square(a, "linalg.cond");
  if (a.numel() == 0) return op::zeros(batch_of(a).span(), real_dtype(a.dtype()), a.device());
  check_square(a, "linalg.cond");
  if (!number && p.string == "nuc") {
    auto nuclear = [](const TensorBase& t) {
      return op::sum(op::linalg_svdvals(t), over(kLast), false);
    };
    Outputs out = op::linalg_inv_ex(a);
    TensorBase regular = op::eq(out[1], Scalar(0));
    TensorBase inverse = op::where(op::unsqueeze(op::unsqueeze(regular, -1), -1), out[0], 0);
    return op::mul(nuclear(a), op::where(regular, nuclear(inverse), Scalar(INFINITY)));
  }
  TensorBase n = number ? op::linalg_matrix_norm(a, p.scalar) : op::linalg_matrix_norm(a, p.string);
  // A norm of zero times an infinite one is infinite, as in NumPy.
  return op::nan_to_num(op::mul(n, norm_of_inverse(a, p)), INFINITY, INFINITY, -INFINITY);
}

}  // namespace

TS_OP({
    .schema = "linalg.cond(Tensor self, Scalar? p=None) -> Tensor",
    .doc = "The condition number of each matrix: the norm of it times that of its inverse.",
    .example = "torch.linalg.cond(torch.tensor([[4.0, 0.0], [0.0, 1.0]]))",
    .forms = kFunction | kOut,
    .run = cond,
    .autocast = Autocast::kFloat32Cpu,
    .raises_on_data = true,
    .samples = {{"T(3, 3, dtype='float64')"}, {"T(3, 3, dtype='float64'), 1"}},
});

TS_OP({
    .schema = "linalg.cond(Tensor self, str p) -> Tensor",
    .forms = kFunction | kOut,
    .run = cond,
    .autocast = Autocast::kFloat32Cpu,
    .raises_on_data = true,
});

}  // namespace tessera
