// What the records of linear algebra are written with.
#pragma once
#include "tessera/gen/complex.h"
#include "tessera/gen/view.h"
#include "tessera/ops/call.h"

namespace tessera::linalg {

inline TensorBase conj(const TensorBase& t) { return is_complex(t.dtype()) ? op::conj(t) : t; }
inline Scalar conj(Scalar s) {
  s.im = -s.im;
  return s;
}
// Transposed and adjoint, of each matrix of a batch.
inline TensorBase mT(const TensorBase& t) { return op::transpose(t, -2, -1); }
inline TensorBase mH(const TensorBase& t) { return conj(mT(t)); }

// Gradients of the matrices of a product, a @ b, by that of the product; laid out by columns where
// the matrix itself is: the gradient of a weight that was transposed then lies as the weight does.
TensorBase gradient_of_left(const TensorBase& grad, const TensorBase& b, bool by_columns);
TensorBase gradient_of_right(const TensorBase& a, const TensorBase& grad, bool by_columns);

// Of a product of matrices, or of batches of them; 0 where they are none.
inline int64_t product_flops(const TensorBase& a, const TensorBase& b) {
  return a.dim() < 2 || b.dim() != a.dim() ? 0 : 2 * a.numel() * b.sizes()[b.dim() - 1];
}

// n x n, with ones on the diagonal.
TensorBase identity(int64_t n, DType dtype, Device device);
// The leading dimensions of a batch of matrices.
Dims batch_of(const TensorBase& t);
int64_t numel_of(const Dims& sizes);
// ... with others behind them.
Dims with(Dims batch, std::initializer_list<int64_t> sizes);
// A batch of matrices as [batch, rows, columns]; a copy where no view can be.
TensorBase as_batch(const TensorBase& t);
// A fresh batch of matrices, each by columns, as LAPACK writes them.
TensorBase new_columns(const Dims& batch, int64_t rows, int64_t columns, DType dtype,
                       Device device);
// Such a batch as [batch, rows, columns], and a dense vector for each matrix as [batch, n]: what a
// kernel writes.
TensorBase flat_columns(const TensorBase& t);
TensorBase flat_rows(const TensorBase& t);
// The same values outside the graph.
inline TensorBase detached(const TensorBase& t) {
  return alias(t, t.sizes(), t.strides(), t.storage_offset());
}
// Both with the batch dimensions that they have in common by broadcasting.
void broadcast_batches(TensorBase& a, TensorBase& b);

// Raise with PyTorch's words; `name` is what errors begin with: "linalg.solve".
void check_matrix(const TensorBase& t, std::string_view name, std::string_view arg = "A");
void check_square(const TensorBase& t, std::string_view name, std::string_view arg = "A");
// Floating point or complex, and no half type.
void check_lapack_dtype(const TensorBase& t, std::string_view name);
// Raises unless argument `a` is square, or of `rows` x n, and argument `b` is a batch of matrices
// of the same dtype and batch with as many rows: what kernels that solve rely on.
void check_system(const Call& c, int a, int b, bool left = true);
// Raises unless the pivots are a vector of int32 for each matrix of argument `lu`.
void check_pivots(const Call& c, int pivots, int lu);
// The name of an operator as PyTorch's errors write it.
std::string error_name(const Op& op);
// Raises LinAlgError for the first matrix whose `info` is not zero.
enum class Failed : uint8_t { kInverse, kCholesky, kSolve, kLu, kLdl, kEigen, kSvd, kLstsq };
void check_info(const TensorBase& info, Failed what, std::string_view name);

// For records without a derivative, PyTorch's too.
[[noreturn]] inline void refuse_gradient(Backward&) {
  raise(ErrorKind::kNotImplemented, "the derivative of this factorisation is not implemented");
}

// One dimension as a list of dimensions; the argument outlives the call.
inline std::span<const int64_t> over(const int64_t& dim) { return {&dim, 1}; }

inline bool is_one(Scalar s) { return s.im == 0 && s.to_double() == 1; }

}  // namespace tessera::linalg
