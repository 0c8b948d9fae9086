// Factors of matrices: Cholesky, LU, LDL, QR.
#include "kernel_linalg.h"

namespace tessera::cpu {

namespace {

// Zeroes what lies on the other side of the diagonal of an n x n matrix by columns.
template <class T>
void clear_triangle(T* a, int64_t n, bool upper_part) {
  for (int64_t c = 0; c < n; ++c) {
    if (upper_part)
      std::fill(a + c * n, a + c * n + c, T(0));
    else
      std::fill(a + c * n + c + 1, a + (c + 1) * n, T(0));
  }
}

// outputs: factor, info; inputs: matrix; ints: upper
template <class T>
Status cholesky_as(const KernelArgs& args, const Lapack<T>& l) {
  const KernelTensor& in = args.inputs[0];
  const int n = to_int(in.sizes[1]), ld = ld_of(n);
  const bool upper = args.ints[0] != 0;
  int* info = static_cast<int*>(args.outputs[1].data);
  return each_matrix("cholesky", in.sizes[0], n * 1.0 * n * n / 3, 0, [&](int64_t i, char*) {
    T* a = matrix_of<T>(args.outputs[0], i);
    copy_columns(a, in, i, n);
    l.potrf(upper ? "U" : "L", &n, a, &ld, info + i, 1);
    clear_triangle(a, n, !upper);
  });
}

// outputs: factors, pivots, info; ints: with exchanges of rows
template <class T>
Status lu_as(const KernelArgs& args, const Lapack<T>& l) {
  if (args.num_ints > 0 && args.ints[0] == 0)
    return fail(Code::kUnsupported, "LU without pivoting is not implemented by LAPACK");
  const KernelTensor& in = args.inputs[0];
  const int m = to_int(in.sizes[1]), n = to_int(in.sizes[2]), ld = ld_of(m), k = std::min(m, n);
  int* pivots = static_cast<int*>(args.outputs[1].data);
  int* info = static_cast<int*>(args.outputs[2].data);
  const double work = static_cast<double>(m) * n * k;
  return each_matrix("lu_factor", in.sizes[0], work, 0, [&](int64_t i, char*) {
    T* a = matrix_of<T>(args.outputs[0], i);
    copy_columns(a, in, i, m);
    l.getrf(&m, &n, a, &ld, pivots + i * k, info + i);
  });
}

// outputs: factors, pivots, info; ints: hermitian
template <class T>
Status ldl_as(const KernelArgs& args, const Lapack<T>& l) {
  const KernelTensor& in = args.inputs[0];
  const int n = to_int(in.sizes[1]), ld = ld_of(n);
  auto factor = args.ints[0] != 0 ? l.hetrf : l.sytrf;
  int* pivots = static_cast<int*>(args.outputs[1].data);
  int* info = static_cast<int*>(args.outputs[2].data);
  int query = -1, ignored = 0;
  T size{};
  factor("L", &n, &size, &ld, &ignored, &size, &query, &ignored, 1);
  const int lwork = asked_size(size);
  const double work = n * 1.0 * n * n / 3;
  return each_matrix("ldl_factor", in.sizes[0], work, room<T>(lwork), [&](int64_t i, char* p) {
    T* a = matrix_of<T>(args.outputs[0], i);
    copy_columns(a, in, i, n);
    factor("L", &n, a, &ld, pivots + i * n, take<T>(p, lwork), &lwork, info + i, 1);
    clear_triangle(a, n, true);
  });
}

// outputs: reflectors and R, tau
template <class T>
Status geqrf_as(const KernelArgs& args, const Lapack<T>& l) {
  const KernelTensor& in = args.inputs[0];
  const int m = to_int(in.sizes[1]), n = to_int(in.sizes[2]), ld = ld_of(m), k = std::min(m, n);
  T* tau = static_cast<T*>(args.outputs[1].data);
  int query = -1, ignored = 0;
  T size{};
  T none{};
  l.geqrf(&m, &n, &none, &ld, &none, &size, &query, &ignored);
  const int lwork = asked_size(size);
  const double work = 2.0 * m * n * k;
  return each_matrix("geqrf", in.sizes[0], work, room<T>(lwork), [&](int64_t i, char* p) {
    T* a = matrix_of<T>(args.outputs[0], i);
    copy_columns(a, in, i, m);
    int info = 0;
    l.geqrf(&m, &n, a, &ld, tau + i * k, take<T>(p, lwork), &lwork, &info);
  });
}

// outputs: the first columns of the product of reflectors; inputs: reflectors, tau
template <class T>
Status orgqr_as(const KernelArgs& args, const Lapack<T>& l) {
  const KernelTensor &in = args.inputs[0], &tau = args.inputs[1];
  const int m = to_int(in.sizes[1]), n = to_int(in.sizes[2]), k = to_int(tau.sizes[1]);
  const int ld = ld_of(m);
  int query = -1, ignored = 0;
  T size{};
  T none{};
  l.orgqr(&m, &n, &k, &none, &ld, &none, &size, &query, &ignored);
  const int lwork = asked_size(size);
  const double work = 2.0 * m * n * k;
  const size_t bytes = room<T>(lwork) + room<T>(k);
  return each_matrix("householder_product", in.sizes[0], work, bytes, [&](int64_t i, char* p) {
    T* a = matrix_of<T>(args.outputs[0], i);
    copy_columns(a, in, i, m);
    T* t = take<T>(p, k);
    gather_block(t, matrix_of<T>(tau, i), 1, k, 0, tau.strides[1], sizeof(T));
    int info = 0;
    l.orgqr(&m, &n, &k, a, &ld, t, take<T>(p, lwork), &lwork, &info);
  });
}

// outputs: the product; inputs: reflectors, tau, other; ints: left, transpose
template <class T>
Status ormqr_as(const KernelArgs& args, const Lapack<T>& l) {
  const KernelTensor &in = args.inputs[0], &tau = args.inputs[1], &other = args.inputs[2];
  const char side = args.ints[0] ? 'L' : 'R';
  const char trans = args.ints[1] ? (is_complex_v<T> ? 'C' : 'T') : 'N';
  const int m = to_int(other.sizes[1]), n = to_int(other.sizes[2]), k = to_int(tau.sizes[1]);
  const int ldc = ld_of(m), lda = ld_of(in.sizes[1]);
  int query = -1, ignored = 0;
  T size{};
  T none{};
  l.ormqr(&side, &trans, &m, &n, &k, &none, &lda, &none, &none, &ldc, &size, &query, &ignored, 1,
          1);
  const int lwork = asked_size(size);
  const double work = 4.0 * m * n * k;
  // The routine writes into the reflectors and puts them back: a copy is safe to share.
  const int64_t reflectors = in.sizes[1] * in.sizes[2];
  const size_t bytes = room<T>(lwork) + room<T>(k) + room<T>(reflectors);
  return each_matrix("ormqr", other.sizes[0], work, bytes, [&](int64_t i, char* p) {
    T* c = matrix_of<T>(args.outputs[0], i);
    copy_columns(c, other, i, m);
    T* t = take<T>(p, k);
    gather_block(t, matrix_of<T>(tau, i), 1, k, 0, tau.strides[1], sizeof(T));
    T* a = take<T>(p, reflectors);
    copy_columns(a, in, i, in.sizes[1]);
    int info = 0;
    l.ormqr(&side, &trans, &m, &n, &k, a, &lda, t, c, &ldc, take<T>(p, lwork), &lwork, &info, 1, 1);
  });
}

// outputs: P, zero so far; inputs: the rows that were exchanged, counted from 1
Status permutation_matrix(const KernelArgs& args) {
  const KernelTensor &pivots = args.inputs[0], &out = args.outputs[0];
  const int64_t batch = out.sizes[0], m = out.sizes[1], k = pivots.sizes[1];
  auto write = [&](auto one) {
    using T = decltype(one);
    OutOfScratch failure;
    parallel_for(0, batch, std::max<int64_t>(1, 4096 / m), [&](int64_t b, int64_t e) {
      Scratch scratch(room<int64_t>(m), failure);
      int64_t* order = static_cast<int64_t*>(scratch.get());
      if (!order) return;
      for (int64_t i = b; i < e; ++i) {
        for (int64_t r = 0; r < m; ++r) order[r] = r;
        const int* exchanged = matrix_of<int>(pivots, i);
        for (int64_t r = 0; r < k; ++r) {
          const int64_t with = exchanged[r * pivots.strides[1]] - 1;
          if (with >= 0 && with < m) std::swap(order[r], order[with]);
        }
        T* p = matrix_of<T>(out, i);
        for (int64_t r = 0; r < m; ++r) p[order[r] * m + r] = one;
      }
    });
    return failure.status("lu_unpack");
  };
  switch (out.dtype) {
    case DType::kFloat32:
      return write(float{1});
    case DType::kFloat64:
      return write(double{1});
    case DType::kComplex64:
      return write(c64(1));
    case DType::kComplex128:
      return write(c128(1));
    default:
      return fail(Code::kUnsupported, "not implemented for %s", dtype_name(out.dtype));
  }
}
TS_KERNEL("permutation_matrix", permutation_matrix)

TS_LAPACK_KERNEL("cholesky", cholesky)
TS_LAPACK_KERNEL("lu_factor", lu)
TS_LAPACK_KERNEL("ldl_factor", ldl)
TS_LAPACK_KERNEL("geqrf", geqrf)
TS_LAPACK_KERNEL("householder_product", orgqr)
TS_LAPACK_KERNEL("ormqr", ormqr)

}  // namespace

}  // namespace tessera::cpu
