// Factors of matrices: Cholesky, LU, LDL, QR.
#include "../group.h"
#include "../linalg.h"

namespace tessera::cuda {
namespace {

// outputs: factor, info; inputs: matrix; ints: upper
template <class T>
Status cholesky_as(const Linalg<T>& l) {
  const KernelTensor& in = l.args.inputs[0];
  const int64_t batch = in.sizes[0];
  const int n = to_int(in.sizes[1]);
  const bool upper = l.args.ints[0] != 0;
  const cublasFillMode_t uplo = upper ? CUBLAS_FILL_MODE_UPPER : CUBLAS_FILL_MODE_LOWER;
  int* info = static_cast<int*>(l.args.outputs[1].data);
  Columns<T> a;
  TS_TRY(copied(l, in, l.args.outputs[0].data, &a));
  if (batch > 1 && n <= 1024) {
    Pointers<T> of_a(l);
    TS_TRY(of_a.fill(l, a.data, a.stride, batch));
    TS_TRY(l.check(l.t.potrf_batched(l.solver, uplo, n, of_a.get(), a.ld, info, to_int(batch))));
  } else {
    int size = 0;
    TS_TRY(l.check(l.t.potrf_size(l.solver, uplo, n, a.data, a.ld, &size)));
    Room<T> work(l);
    TS_TRY(work.take(size));
    for (int64_t i = 0; i < batch; ++i)
      TS_TRY(l.check(l.t.potrf(l.solver, uplo, n, a.at(i), a.ld, work.get(), size, info + i)));
  }
  return fill_triangle(l.d, l.stream, l.dtype(), a.data, batch, n, !upper, Fill::kZero);
}

// outputs: factors, pivots, info; ints: with exchanges of rows
template <class T>
Status lu_as(const Linalg<T>& l) {
  const KernelTensor& in = l.args.inputs[0];
  const int64_t batch = in.sizes[0];
  const int m = to_int(in.sizes[1]), n = to_int(in.sizes[2]), k = std::min(m, n);
  int* pivots = static_cast<int*>(l.args.outputs[1].data);
  int* info = static_cast<int*>(l.args.outputs[2].data);
  const bool exchanges = l.args.num_ints == 0 || l.args.ints[0] != 0;
  if (!exchanges) {
    // Each row with itself; the routines are given no place for them.
    TS_TRY(count_rows(l.d, l.stream, pivots, batch, k));
    pivots = nullptr;
  }
  Columns<T> a;
  TS_TRY(copied(l, in, l.args.outputs[0].data, &a));
  if (batch > 1 && m == n && n <= 256) {
    Pointers<T> of_a(l);
    TS_TRY(of_a.fill(l, a.data, a.stride, batch));
    return l.check(l.t.getrf_batched(l.blas, n, of_a.get(), a.ld, pivots, info, to_int(batch)));
  }
  int size = 0;
  TS_TRY(l.check(l.t.getrf_size(l.solver, m, n, a.data, a.ld, &size)));
  Room<T> work(l);
  TS_TRY(work.take(size));
  for (int64_t i = 0; i < batch; ++i)
    TS_TRY(l.check(l.t.getrf(l.solver, m, n, a.at(i), a.ld, work.get(),
                             exchanges ? pivots + i * k : nullptr, info + i)));
  return ok();
}

// outputs: factors, pivots, info; ints: hermitian
template <class T>
Status ldl_as(const Linalg<T>& l) {
  const KernelTensor& in = l.args.inputs[0];
  const int n = to_int(in.sizes[1]);
  int* pivots = static_cast<int*>(l.args.outputs[1].data);
  int* info = static_cast<int*>(l.args.outputs[2].data);
  Columns<T> a;
  TS_TRY(copied(l, in, l.args.outputs[0].data, &a));
  auto clear = [&] {
    return fill_triangle(l.d, l.stream, l.dtype(), a.data, in.sizes[0], n, true, Fill::kZero);
  };
  if (Linalg<T>::kComplex && l.args.ints[0] != 0) {
    TS_TRY(factor_hermitian(l.d, l.stream, l.dtype(), a.data, in.sizes[0], n, pivots, info));
    return clear();
  }
  int size = 0;
  TS_TRY(l.check(l.t.sytrf_size(l.solver, n, a.data, a.ld, &size)));
  Room<T> work(l);
  TS_TRY(work.take(size));
  for (int64_t i = 0; i < in.sizes[0]; ++i)
    TS_TRY(l.check(l.t.sytrf(l.solver, CUBLAS_FILL_MODE_LOWER, n, a.at(i), a.ld, pivots + i * n,
                             work.get(), size, info + i)));
  return clear();
}

}  // namespace

template <class T>
Status factor_qr(const Linalg<T>& l, int m, int n, int64_t batch, Columns<T> a, T* tau) {
  const int k = std::min(m, n);
  if (batch >= std::max(2, m / 16) && m <= 256) {
    Pointers<T> of_a(l), of_tau(l);
    TS_TRY(of_a.fill(l, a.data, a.stride, batch));
    TS_TRY(of_tau.fill(l, tau, k, batch));
    int wrong = 0;
    TS_TRY(l.check(
        l.t.geqrf_batched(l.blas, m, n, of_a.get(), a.ld, of_tau.get(), &wrong, to_int(batch))));
    return wrong == 0 ? ok() : fail(Code::kFailed, "geqrf: argument %d is wrong", -wrong);
  }
  int size = 0;
  TS_TRY(l.check(l.t.geqrf_size(l.solver, m, n, a.data, a.ld, &size)));
  Room<T> work(l);
  Room<int> info(l);
  TS_TRY(work.take(size));
  TS_TRY(info.take(1));
  for (int64_t i = 0; i < batch; ++i)
    TS_TRY(l.check(
        l.t.geqrf(l.solver, m, n, a.at(i), a.ld, tau + i * k, work.get(), size, info.get())));
  return ok();
}
template Status factor_qr(const Linalg<float>&, int, int, int64_t, Columns<float>, float*);
template Status factor_qr(const Linalg<double>&, int, int, int64_t, Columns<double>, double*);
template Status factor_qr(const Linalg<cuComplex>&, int, int, int64_t, Columns<cuComplex>,
                          cuComplex*);
template Status factor_qr(const Linalg<cuDoubleComplex>&, int, int, int64_t,
                          Columns<cuDoubleComplex>, cuDoubleComplex*);

namespace {

// outputs: reflectors and R, tau
template <class T>
Status geqrf_as(const Linalg<T>& l) {
  const KernelTensor& in = l.args.inputs[0];
  Columns<T> a;
  TS_TRY(copied(l, in, l.args.outputs[0].data, &a));
  return factor_qr(l, to_int(in.sizes[1]), to_int(in.sizes[2]), in.sizes[0], a,
                   static_cast<T*>(l.args.outputs[1].data));
}

// A batch of vectors, dense: where it lies or copied.
template <class T>
Status as_rows(const Linalg<T>& l, const KernelTensor& t, Room<T>* room, const T** out) {
  const bool dense =
      (t.strides[1] == 1 || t.sizes[1] == 1) && (t.strides[0] == t.sizes[1] || t.sizes[0] == 1);
  *out = static_cast<const T*>(t.data);
  if (dense) return ok();
  TS_TRY(room->take(t.numel));
  *out = room->get();
  return copy_strided(l.d, l.stream, room->get(), t.data, t.dtype, 2, t.sizes, t.strides);
}

// outputs: the first columns of the product of reflectors; inputs: reflectors, tau
template <class T>
Status orgqr_as(const Linalg<T>& l) {
  const KernelTensor &in = l.args.inputs[0], &tau = l.args.inputs[1];
  const int64_t batch = in.sizes[0];
  const int m = to_int(in.sizes[1]), n = to_int(in.sizes[2]), k = to_int(tau.sizes[1]);
  if (k == 0) return write_identity(l.d, l.stream, l.dtype(), l.args.outputs[0].data, batch, m, n);
  if (are_small(batch, m)) {
    Room<T> room(l);
    Columns<T> v;
    TS_TRY(as_columns(l, in, &room, &v));
    const Reflectors q{v.data, tau.data,       batch,         m, k, v.stride,
                       v.ld,   tau.strides[0], tau.strides[1]};
    return reflect(l.d, l.stream, l.dtype(), q,
                   {l.args.outputs[0].data, n, int64_t{m} * n, m, 1, false, true}, false);
  }
  Columns<T> a;
  TS_TRY(copied(l, in, l.args.outputs[0].data, &a));
  Room<T> rows(l), work(l);
  const T* t = nullptr;
  TS_TRY(as_rows(l, tau, &rows, &t));
  int size = 0;
  TS_TRY(l.check(l.t.orgqr_size(l.solver, m, n, k, a.data, a.ld, t, &size)));
  Room<int> info(l);
  TS_TRY(work.take(size));
  TS_TRY(info.take(1));
  for (int64_t i = 0; i < batch; ++i)
    TS_TRY(l.check(
        l.t.orgqr(l.solver, m, n, k, a.at(i), a.ld, t + i * k, work.get(), size, info.get())));
  return ok();
}

// outputs: the product; inputs: reflectors, tau, other; ints: left, transpose
template <class T>
Status ormqr_as(const Linalg<T>& l) {
  const KernelTensor &in = l.args.inputs[0], &tau = l.args.inputs[1], &other = l.args.inputs[2];
  const cublasSideMode_t side = l.args.ints[0] ? CUBLAS_SIDE_LEFT : CUBLAS_SIDE_RIGHT;
  const cublasOperation_t op = !l.args.ints[1]       ? CUBLAS_OP_N
                               : Linalg<T>::kComplex ? CUBLAS_OP_C
                                                     : CUBLAS_OP_T;
  const int m = to_int(other.sizes[1]), n = to_int(other.sizes[2]), k = to_int(tau.sizes[1]);
  Room<T> reflectors(l), rows(l), work(l);
  Columns<T> a, c;
  TS_TRY(as_columns(l, in, &reflectors, &a));
  TS_TRY(copied(l, other, l.args.outputs[0].data, &c));
  const bool left = side == CUBLAS_SIDE_LEFT;
  if (are_small(other.sizes[0], left ? m : n)) {
    const Reflectors q{a.data,   tau.data, other.sizes[0], left ? m : n,  k,
                       a.stride, a.ld,     tau.strides[0], tau.strides[1]};
    return reflect(l.d, l.stream, l.dtype(), q,
                   {c.data, left ? n : m, c.stride, left ? c.ld : 1, left ? 1 : c.ld, !left},
                   op != CUBLAS_OP_N);
  }
  const T* t = nullptr;
  TS_TRY(as_rows(l, tau, &rows, &t));
  int size = 0;
  TS_TRY(
      l.check(l.t.ormqr_size(l.solver, side, op, m, n, k, a.data, a.ld, t, c.data, c.ld, &size)));
  Room<int> info(l);
  TS_TRY(work.take(size));
  TS_TRY(info.take(1));
  for (int64_t i = 0; i < other.sizes[0]; ++i)
    TS_TRY(l.check(l.t.ormqr(l.solver, side, op, m, n, k, a.at(i), a.ld, t + i * k, c.at(i), c.ld,
                             work.get(), size, info.get())));
  return ok();
}

TS_CUDA_LINALG("cholesky", cholesky)
TS_CUDA_LINALG("lu_factor", lu)
TS_CUDA_LINALG("ldl_factor", ldl)
TS_CUDA_LINALG("geqrf", geqrf)
TS_CUDA_LINALG("householder_product", orgqr)
TS_CUDA_LINALG("ormqr", ormqr)

}  // namespace
}  // namespace tessera::cuda
