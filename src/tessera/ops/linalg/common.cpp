#include "tessera/ops/linalg/common.h"

#include "tessera/gen/creation.h"
#include "tessera/gen/linalg.h"
#include "tessera/gen/view.h"
#include "tessera/ops/valid.h"

namespace tessera::linalg {

TensorBase identity(int64_t n, DType dtype, Device device) {
  Dims sizes{n, n};
  TensorBase t = op::zeros(sizes.span(), dtype, device);
  if (n > 0) fill(alias(t, {n}, {n + 1}, t.storage_offset()), Scalar(1));
  return t;
}

Dims batch_of(const TensorBase& t) { return Dims(t.sizes().span().first(t.sizes().size() - 2)); }

int64_t numel_of(const Dims& sizes) {
  int64_t n = 1;
  for (int64_t s : sizes) n *= s;
  return n;
}

Dims with(Dims batch, std::initializer_list<int64_t> sizes) {
  for (int64_t s : sizes) batch.push_back(s);
  return batch;
}

TensorBase as_batch(const TensorBase& t) {
  Dims shape{numel_of(batch_of(t)), t.size(-2), t.size(-1)};
  return t.dim() == 3 ? t : op::reshape(t, shape.span());
}

TensorBase new_columns(const Dims& batch, int64_t rows, int64_t columns, DType dtype,
                       Device device) {
  Dims sizes = with(batch, {rows, columns});
  Dims strides = contiguous_strides(with(batch, {columns, rows}));
  std::swap(strides[strides.size() - 1], strides[strides.size() - 2]);
  return new_empty_strided(sizes, strides, dtype, device);
}

TensorBase flat_columns(const TensorBase& t) {
  const int64_t rows = t.size(-2), columns = t.size(-1);
  return alias(t, {numel_of(batch_of(t)), rows, columns}, {rows * columns, 1, rows},
               t.storage_offset());
}

TensorBase flat_rows(const TensorBase& t) {
  const int64_t n = t.size(-1);
  return alias(t, {n == 0 ? 0 : t.numel() / n, n}, {n, 1}, t.storage_offset());
}

void broadcast_batches(TensorBase& a, TensorBase& b) {
  Dims batch = broadcast_shapes(batch_of(a), batch_of(b));
  Dims of_a = with(batch, {a.size(-2), a.size(-1)}), of_b = with(batch, {b.size(-2), b.size(-1)});
  if (!(a.sizes() == of_a)) a = op::expand(a, of_a.span());
  if (!(b.sizes() == of_b)) b = op::expand(b, of_b.span());
}

void check_matrix(const TensorBase& t, std::string_view name, std::string_view arg) {
  TS_CHECK(t.dim() >= 2, name, ": The input tensor ", arg, " must have at least 2 dimensions.");
}

void check_square(const TensorBase& t, std::string_view name, std::string_view arg) {
  check_matrix(t, name, arg);
  TS_CHECK(t.size(-1) == t.size(-2), name, ": ", arg,
           " must be batches of square matrices, but they are ", t.size(-2), " by ", t.size(-1),
           " matrices");
}

void check_lapack_dtype(const TensorBase& t, std::string_view name) {
  TS_CHECK(is_differentiable(t.dtype()), name,
           ": Expected a floating point or complex tensor as input. Got ", dtype_title(t.dtype()));
  TS_CHECK(!is_reduced_floating(t.dtype()), name, ": Low precision dtypes not supported. Got ",
           dtype_title(t.dtype()));
}

std::string error_name(const Op& op) { return op.paths.front(); }

namespace {

std::string reason(Failed what, int32_t code) {
  const char* infinite =
      "The algorithm failed to converge because the input matrix contained non-finite values.";
  switch (what) {
    case Failed::kInverse:
      return cat("The diagonal element ", code,
                 " is zero, the inversion could not be completed because the input matrix is "
                 "singular.");
    case Failed::kCholesky:
      return cat(
          "The factorization could not be completed because the input is not "
          "positive-definite (the leading minor of order ",
          code, " is not positive-definite).");
    case Failed::kSolve:
      return "The solver failed because the input matrix is singular.";
    case Failed::kLu:
      return cat("U[", code, ",", code,
                 "] is zero and using it on lu_solve would result in a division by zero. If you "
                 "still want to perform the factorization, consider calling linalg.lu(A, pivot) or "
                 "linalg.lu_factor_ex(A, pivot)");
    case Failed::kLdl:
      return cat("D[", code, ",", code,
                 "] is zero and using it on ldl_solve would result in a division by zero. If you "
                 "still want to perform the factorization, consider calling "
                 "linalg.ldl_factor_ex(A)");
    case Failed::kEigen:
      if (code < 0) return infinite;
      return cat(
          "The algorithm failed to converge because the input matrix is ill-conditioned or "
          "has too many repeated eigenvalues (error code: ",
          code, ").");
    case Failed::kSvd:
      if (code < 0) return infinite;
      return cat(
          "The algorithm failed to converge because the input matrix is ill-conditioned or "
          "has too many repeated singular values (error code: ",
          code, ").");
    case Failed::kLstsq:
      break;
  }
  return cat(
      "The least squares solution could not be computed because the input matrix does not "
      "have full rank (error code: ",
      code, ").");
}

}  // namespace

void check_info(const TensorBase& info, Failed what, std::string_view name) {
  if (info.device().is_meta() || info.numel() == 0) return;
  TensorBase host = host_data(info);
  const int32_t* codes = reinterpret_cast<const int32_t*>(host.raw());
  const int64_t n = host.numel();
  for (int64_t i = 0; i < n; ++i) {
    const int32_t code = codes[i];
    if (code == 0) continue;
    const std::string where =
        info.dim() == 0 ? cat(name, ": ") : cat(name, ": (Batch element ", i, "): ");
    raise(ErrorKind::kLinAlg, where + reason(what, code));
  }
}

namespace {

TensorBase product(const TensorBase& a, const TensorBase& b) {
  return a.dim() == 2 ? op::mm(a, b) : op::bmm(a, b);
}

}  // namespace

TensorBase gradient_of_left(const TensorBase& grad, const TensorBase& b, bool by_columns) {
  return by_columns ? mH(product(b, mH(grad))) : product(grad, mH(b));
}

TensorBase gradient_of_right(const TensorBase& a, const TensorBase& grad, bool by_columns) {
  return by_columns ? mH(product(mH(grad), a)) : product(mH(a), grad);
}

void check_system(const Call& c, int a, int b, bool left) {
  const TensorBase &m = c.tensor(a), &rhs = c.tensor(b);
  const std::string name = error_name(c.op);
  check_square(m, name, c.op.args[static_cast<size_t>(a)].name);
  check_matrix(rhs, name, c.op.args[static_cast<size_t>(b)].name);
  TS_CHECK(batch_of(m) == batch_of(rhs) && m.size(-1) == rhs.size(left ? -2 : -1), name,
           ": Incompatible shapes of ", c.op.args[static_cast<size_t>(a)].name, " ", m.sizes(),
           " and ", c.op.args[static_cast<size_t>(b)].name, " ", rhs.sizes());
  check_lapack_dtype(m, name);
  check_dtype(c, b, m.dtype());
}

void check_pivots(const Call& c, int pivots, int lu) {
  const TensorBase& m = c.tensor(lu);
  check_matrix(m, error_name(c.op), c.op.args[static_cast<size_t>(lu)].name);
  Dims expected = batch_of(m);
  expected.push_back(std::min(m.size(-2), m.size(-1)));
  check_shape(c, pivots, expected.span());
  check_dtype(c, pivots, DType::kInt32);
}

}  // namespace tessera::linalg
