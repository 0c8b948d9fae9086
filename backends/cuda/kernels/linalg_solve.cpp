// Solutions of linear equations, from factors or by least squares.
#include <vector>

#include "../group.h"
#include "../linalg.h"

namespace tessera::cuda {
namespace {

template <class T>
constexpr cublasOperation_t adjoint() {
  return Linalg<T>::kComplex ? CUBLAS_OP_C : CUBLAS_OP_T;
}

// outputs: solution; inputs: triangular matrix, right side; ints: upper, left, unit diagonal
template <class T>
Status triangular_as(const Linalg<T>& l) {
  KernelTensor a = l.args.inputs[0];
  const KernelTensor& b = l.args.inputs[1];
  Triangle how{l.args.ints[1] != 0, l.args.ints[0] != 0, l.args.ints[2] != 0, CUBLAS_OP_N};
  // What lies by rows is the transpose of a matrix by columns.
  const int64_t turned[] = {a.strides[0], a.strides[2], a.strides[1]};
  KernelTensor other = a;
  other.strides = turned;
  if (!has_columns(a) && has_columns(other)) {
    a = other;
    how.upper = !how.upper;
    how.op = CUBLAS_OP_T;
  }
  Room<T> room(l);
  Columns<T> triangle, x;
  TS_TRY(as_columns(l, a, &room, &triangle));
  TS_TRY(copied(l, b, l.args.outputs[0].data, &x));
  return solve_triangles(l, how, to_int(b.sizes[1]), to_int(b.sizes[2]), b.sizes[0], triangle, x);
}

// A X = B over B, of A given by its Cholesky factor.
template <class T>
Status solve_by_cholesky(const Linalg<T>& l, bool upper, int n, int k, int64_t batch, Columns<T> a,
                         Columns<T> x) {
  Triangle how{true, upper, false, upper ? adjoint<T>() : CUBLAS_OP_N};
  TS_TRY(solve_triangles(l, how, n, k, batch, a, x));
  how.op = upper ? CUBLAS_OP_N : adjoint<T>();
  return solve_triangles(l, how, n, k, batch, a, x);
}

// outputs: solution; inputs: right side, factor; ints: upper
template <class T>
Status cholesky_solve_as(const Linalg<T>& l) {
  const KernelTensor &b = l.args.inputs[0], &factor = l.args.inputs[1];
  Room<T> room(l);
  Columns<T> a, x;
  TS_TRY(as_columns(l, factor, &room, &a));
  TS_TRY(copied(l, b, l.args.outputs[0].data, &x));
  return solve_by_cholesky(l, l.args.ints[0] != 0, to_int(b.sizes[1]), to_int(b.sizes[2]),
                           b.sizes[0], a, x);
}

// outputs: inverse, info; inputs: factor; ints: upper
template <class T>
Status cholesky_inverse_as(const Linalg<T>& l) {
  const KernelTensor& in = l.args.inputs[0];
  const int64_t batch = in.sizes[0];
  const int n = to_int(in.sizes[1]);
  void* out = l.args.outputs[0].data;
  int* info = static_cast<int*>(l.args.outputs[1].data);
  Room<T> room(l);
  Columns<T> a, x{static_cast<T*>(out), int64_t{n} * n, ld_of(n)};
  TS_TRY(as_columns(l, in, &room, &a));
  TS_TRY(find_zeros(l.d, l.stream, l.dtype(), a.data, a.stride, a.ld, batch, n, info));
  TS_TRY(write_identity(l.d, l.stream, l.dtype(), out, batch, n, n));
  TS_TRY(solve_by_cholesky(l, l.args.ints[0] != 0, n, n, batch, a, x));
  return fill_triangle(l.d, l.stream, l.dtype(), out, batch, n, true, Fill::kMirror);
}

// outputs: solution; inputs: right side, factors, pivots; ints: 0 plain, 1 transposed, 2 adjoint
template <class T>
Status lu_solve_as(const Linalg<T>& l) {
  const KernelTensor &b = l.args.inputs[0], &factors = l.args.inputs[1];
  const int64_t batch = b.sizes[0];
  const int n = to_int(b.sizes[1]), k = to_int(b.sizes[2]);
  const cublasOperation_t op = l.args.ints[0] == 0   ? CUBLAS_OP_N
                               : l.args.ints[0] == 1 ? CUBLAS_OP_T
                                                     : adjoint<T>();
  const int* pivots = static_cast<const int*>(l.args.inputs[2].data);
  Room<T> room(l);
  Columns<T> a, x;
  TS_TRY(as_columns(l, factors, &room, &a));
  TS_TRY(copied(l, b, l.args.outputs[0].data, &x));
  if (batch > 1 && n <= 256) {
    Pointers<T> of_a(l), of_x(l);
    TS_TRY(of_a.fill(l, a.data, a.stride, batch));
    TS_TRY(of_x.fill(l, x.data, x.stride, batch));
    int wrong = 0;
    TS_TRY(l.check(l.t.getrs_batched(l.blas, op, n, k, of_a.get(), a.ld, pivots, of_x.get(), x.ld,
                                     &wrong, to_int(batch))));
    return wrong == 0 ? ok() : fail(Code::kFailed, "lu_solve: argument %d is wrong", -wrong);
  }
  Room<int> info(l);
  TS_TRY(info.take(1));
  for (int64_t i = 0; i < batch; ++i)
    TS_TRY(l.check(
        l.t.getrs(l.solver, op, n, k, a.at(i), a.ld, pivots + i * n, x.at(i), x.ld, info.get())));
  return ok();
}

// outputs: solution; inputs: right side, factors, pivots; ints: hermitian
template <class T>
Status ldl_solve_as(const Linalg<T>& l) {
  const KernelTensor &b = l.args.inputs[0], &factors = l.args.inputs[1];
  const KernelTensor& pivots = l.args.inputs[2];
  const int64_t batch = b.sizes[0], n = b.sizes[1], k = b.sizes[2];
  Room<T> room(l);
  Columns<T> a, x;
  TS_TRY(as_columns(l, factors, &room, &a));
  TS_TRY(copied(l, b, l.args.outputs[0].data, &x));
  const bool hermitian = Linalg<T>::kComplex && l.args.ints[0] != 0;
  return solve_ldl(l.d, l.stream, l.dtype(), hermitian, a.data, a.stride, a.ld,
                   static_cast<const int*>(pivots.data), pivots.strides[0], x.data, batch, n, k);
}

// outputs: solution in the first rows of max(m, n), rank, singular values, info; inputs: matrix,
// right side; ints: driver. By QR, of A or of its adjoint, as the driver gels does, which is the
// only one asked for on CUDA. It finds neither rank nor singular values.
template <class T>
Status lstsq_as(const Linalg<T>& l) {
  const KernelTensor &in = l.args.inputs[0], &right = l.args.inputs[1];
  const int64_t batch = in.sizes[0];
  const int m = to_int(in.sizes[1]), n = to_int(in.sizes[2]), k = to_int(right.sizes[2]);
  const int most = std::max(m, n), least = std::min(m, n), ld = ld_of(most);
  if (l.args.ints[0] != 0)
    return fail(Code::kUnsupported, "linalg.lstsq: only the driver gels is implemented for CUDA");
  int* info = static_cast<int*>(l.args.outputs[3].data);
  // [most, least] by columns, so that QR has more rows than columns.
  Room<T> matrices(l), taus(l);
  TS_TRY(matrices.take(in.numel));
  TS_TRY(taus.take(batch * least));
  Columns<T> a{matrices.get(), int64_t{most} * least, ld};
  Columns<T> x{static_cast<T*>(l.args.outputs[0].data), int64_t{ld} * k, ld};
  TS_TRY(m >= n ? copy_columns(l.d, l.stream, in, a.data, m)
                : copy_adjoint(l.d, l.stream, in, a.data));
  if (m < n)
    TS_TRY(
        check(l.d,
              driver().cuMemsetD8Async(reinterpret_cast<CUdeviceptr>(x.data), 0,
                                       static_cast<size_t>(batch * x.stride) * sizeof(T), l.stream),
              "clearing a solution"));
  TS_TRY(copy_columns(l.d, l.stream, right, x.data, ld));
  TS_TRY(factor_qr(l, most, least, batch, a, taus.get()));
  const cublasOperation_t op = m >= n ? adjoint<T>() : CUBLAS_OP_N;
  auto rotate = [&]() -> Status {
    if (are_small(batch, most))
      return reflect(l.d, l.stream, l.dtype(),
                     {a.data, taus.get(), batch, most, least, a.stride, a.ld, least, 1},
                     {x.data, k, x.stride, x.ld, 1}, op != CUBLAS_OP_N);
    int size = 0;
    TS_TRY(l.check(l.t.ormqr_size(l.solver, CUBLAS_SIDE_LEFT, op, most, k, least, a.data, a.ld,
                                  taus.get(), x.data, x.ld, &size)));
    Room<T> work(l);
    Room<int> ignored(l);
    TS_TRY(work.take(size));
    TS_TRY(ignored.take(1));
    for (int64_t i = 0; i < batch; ++i)
      TS_TRY(l.check(l.t.ormqr(l.solver, CUBLAS_SIDE_LEFT, op, most, k, least, a.at(i), a.ld,
                               taus.get() + i * least, x.at(i), x.ld, work.get(), size,
                               ignored.get())));
    return ok();
  };
  if (m >= n) TS_TRY(rotate());
  TS_TRY(find_zeros(l.d, l.stream, l.dtype(), a.data, a.stride, a.ld, batch, least, info));
  const Triangle how{true, true, false, m >= n ? CUBLAS_OP_N : adjoint<T>()};
  TS_TRY(solve_triangles(l, how, least, k, batch, a, x));
  return m >= n ? ok() : rotate();
}

TS_CUDA_LINALG("solve_triangular", triangular)
TS_CUDA_LINALG("cholesky_solve", cholesky_solve)
TS_CUDA_LINALG("cholesky_inverse", cholesky_inverse)
TS_CUDA_LINALG("lu_solve", lu_solve)
TS_CUDA_LINALG("ldl_solve", ldl_solve)
TS_CUDA_LINALG("lstsq", lstsq)

}  // namespace
}  // namespace tessera::cuda
