// Powers and exponentials of matrices.
#include <cmath>

#include "tessera/gen/binary.h"
#include "tessera/gen/copy.h"
#include "tessera/gen/creation.h"
#include "tessera/gen/join.h"
#include "tessera/gen/linalg.h"
#include "tessera/gen/reduce.h"
#include "tessera/gen/ternary.h"
#include "tessera/gen/unary.h"
#include "tessera/gen/view.h"
#include "tessera/ops/in_dtype.h"
#include "tessera/ops/linalg/common.h"

namespace tessera {

using namespace linalg;

TS_OP({
    .schema = "linalg.matrix_power(Tensor self, int n) -> Tensor",
    .doc = "Each square matrix multiplied n times with itself; of a negative n its inverse.",
    .example = "torch.linalg.matrix_power(torch.tensor([[1.0, 1.0], [0.0, 1.0]]), 5)",
    .forms = kFunction | kOut,
    .run = [](const Call& c) -> Outputs {
      TensorBase a = c.tensor(0);
      check_square(a, "linalg.matrix_power");
      int64_t n = c.integer(1);
      if (n == 0) {
        TensorBase one = identity(a.size(-1), a.dtype(), a.device());
        // of a's graph still
        TensorBase always = op::full(Dims{}.span(), Scalar(true), DType::kBool, a.device());
        return op::where(always, one, a);
      }
      if (n == 1) return op::clone(a);
      if (n < 0) a = op::linalg_inv(a);
      uint64_t left = n < 0 ? 0 - static_cast<uint64_t>(n) : static_cast<uint64_t>(n);
      if (left == 1) return a;
      TensorBase out;
      for (TensorBase square = a; left > 0; left >>= 1) {
        if (left & 1) out = out.defined() ? op::matmul(out, square) : square;
        if (left > 1) square = op::matmul(square, square);
      }
      return out;
    },
    .exact_out = true,
    .samples = {{"U(3, 3), 0"}, {"U(3, 3), 3"}, {"U(2, 2, 2), 6"}},
});

TS_OP({
    .schema = "matrix_power(Tensor self, int n) -> Tensor",
    .doc = "The old name of linalg.matrix_power.",
    .example = "torch.matrix_power(torch.tensor([[1.0, 1.0], [0.0, 1.0]]), 5)",
    .forms = kFunction | kMethod | kOut,
    .run = [](const Call& c) -> Outputs {
      return op::linalg_matrix_power(c.tensor(0), c.integer(1));
    },
    .samples = {{"U(3, 3), 3"}},
});

namespace {

// Polynomials of matrices by Horner's rule in the fourth power: 7 products for degree 19.
TensorBase taylor(const TensorBase& a, const TensorBase& one) {
  TensorBase a2 = op::matmul(a, a), a3 = op::matmul(a2, a), a4 = op::matmul(a2, a2);
  double factorial[20] = {1};
  for (int k = 1; k < 20; ++k) factorial[k] = factorial[k - 1] * k;
  TensorBase out;
  for (int k = 16; k >= 0; k -= 4) {
    TensorBase term = op::mul(one, Scalar(1 / factorial[k]));
    term = op::add(term, op::mul(a, Scalar(1 / factorial[k + 1])));
    term = op::add(term, op::mul(a2, Scalar(1 / factorial[k + 2])));
    term = op::add(term, op::mul(a3, Scalar(1 / factorial[k + 3])));
    out = out.defined() ? op::add(op::matmul(out, a4), term) : term;
  }
  return out;
}

// How often each matrix is halved so that the series reaches the last place.
std::vector<int> halvings(const TensorBase& a) {
  const double limit = real_dtype(a.dtype()) == DType::kFloat64 ? 1.09 : 3.01;
  const int64_t rows = -2, columns = -1;
  TensorBase norms = op::amax(op::sum(op::abs(a), over(rows), false), over(columns), false);
  TensorBase host = host_data(op::_to_dtype(norms, DType::kFloat64));
  const double* v = reinterpret_cast<const double*>(host.raw());
  std::vector<int> out;
  for (int64_t i = 0; i < host.numel(); ++i) {
    const double ratio = v[i] / limit;
    out.push_back(std::isfinite(ratio) && ratio > 1 ? static_cast<int>(std::ceil(std::log2(ratio)))
                                                    : 0);
  }
  return out;
}

TensorBase exponential(const TensorBase& a) {
  TensorBase one = identity(a.size(-1), a.dtype(), a.device());
  std::vector<int> halved = halvings(a);
  const int most = *std::max_element(halved.begin(), halved.end());
  if (most == 0) return taylor(a, one);
  const int64_t batch = a.size(0);
  auto per_matrix = [&](DType dtype, auto value) {
    TensorBase host = new_empty({batch, 1, 1}, DType::kFloat64, Device{});
    for (int64_t i = 0; i < batch; ++i)
      reinterpret_cast<double*>(host.raw())[i] = value(halved[static_cast<size_t>(i)]);
    return op::_to_device(op::_to_dtype(host, dtype), a.device());
  };
  TensorBase out = taylor(
      op::mul(a, per_matrix(real_dtype(a.dtype()), [](int h) { return std::ldexp(1.0, -h); })),
      one);
  for (int k = 1; k <= most; ++k) {
    TensorBase squared = op::matmul(out, out);
    const bool all = *std::min_element(halved.begin(), halved.end()) >= k;
    TensorBase more = per_matrix(DType::kBool, [k](int h) { return h >= k ? 1.0 : 0.0; });
    out = all ? squared : op::where(more, squared, out);
  }
  return out;
}

}  // namespace

TS_OP({
    .schema = "linalg.matrix_exp(Tensor self) -> Tensor",
    .doc = "The exponential of each square matrix.",
    .example = "torch.linalg.matrix_exp(torch.tensor([[0.0, 1.0], [0.0, 0.0]]))",
    .kind = Kind::kKernel,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& self = c.tensor(0);
      TS_CHECK(is_differentiable(self.dtype()),
               "linalg.matrix_exp: Expected a floating point or complex tensor as input. Got ",
               dtype_title(self.dtype()));
      check_square(self, "linalg.matrix_exp");
      if (self.numel() == 0) return op::clone(self);
      if (self.size(-1) == 1) return op::exp(self);
      if (self.device().is_meta()) return new_empty(self.sizes(), self.dtype(), self.device());
      TensorBase a = as_batch(self);
      if (is_reduced_floating(a.dtype())) a = op::_to_dtype(a, DType::kFloat32);
      TensorBase out = op::reshape(exponential(a), self.sizes().span());
      return in_dtype(out, self.dtype());
    },
    .saves = "self",
    .backward =
        [](Backward& b) {
          // The upper right part of exp [[A^H, G], [0, A^H]].
          TensorBase a = mH(b.tensor(0));
          const int64_t n = a.size(-1);
          if (a.numel() == 0) return b.set(0, op::zeros_like(b.grad));
          TensorBase top[] = {a, b.grad}, bottom[] = {op::zeros_like(a), a};
          TensorBase rows[] = {op::cat(top, -1), op::cat(bottom, -1)};
          TensorBase e = op::linalg_matrix_exp(op::cat(rows, -2));
          b.set(0, op::slice(op::slice(e, -2, 0, n, 1), -1, n, 2 * n, 1));
        },
    .samples = {{"U(3, 3)"}, {"T(2, 3, 3)"}},
});

TS_OP({
    .schema = "matrix_exp(Tensor self) -> Tensor",
    .doc = "The exponential of each square matrix; the old name of linalg.matrix_exp.",
    .example = "torch.matrix_exp(torch.tensor([[0.0, 1.0], [0.0, 0.0]]))",
    .run = [](const Call& c) -> Outputs { return op::linalg_matrix_exp(c.tensor(0)); },
    .samples = {{"U(3, 3)"}},
});

}  // namespace tessera
