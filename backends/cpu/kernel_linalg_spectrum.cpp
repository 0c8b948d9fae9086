// Eigenvalues and singular values.
#include "kernel_linalg.h"

namespace tessera::cpu {

namespace {

// outputs: values, vectors, info; inputs: matrix; ints: upper, with vectors
template <class T>
Status eigh_as(const KernelArgs& args, const Lapack<T>& l) {
  using R = real_t<T>;
  const KernelTensor& in = args.inputs[0];
  const int n = to_int(in.sizes[1]), ld = ld_of(n);
  const char uplo = args.ints[0] ? 'U' : 'L', job = args.ints[1] ? 'V' : 'N';
  R* values = static_cast<R*>(args.outputs[0].data);
  int* info = static_cast<int*>(args.outputs[2].data);
  T size{}, none{};
  R rsize{}, no_values{};
  int isize = 0, ignored = 0;
  syevd<T>(l, job, uplo, n, &none, ld, &no_values, {&size, -1, &rsize, -1, &isize, -1}, &ignored);
  const int lwork = asked_size(size), lrwork = asked_size(rsize), liwork = std::max(1, isize);
  const int64_t own = args.ints[1] ? 0 : int64_t{n} * n;  // the factor is thrown away
  const size_t bytes = room<T>(lwork) + room<R>(lrwork) + room<int>(liwork) + room<T>(own);
  const double work = 4.0 * n * n * n;
  return each_matrix("eigh", in.sizes[0], work, bytes, [&](int64_t i, char* p) {
    T* a = own ? take<T>(p, own) : matrix_of<T>(args.outputs[1], i);
    copy_columns(a, in, i, n);
    Workspace<T> w{take<T>(p, lwork),    lwork, take<R>(p, lrwork), lrwork,
                   take<int>(p, liwork), liwork};
    syevd<T>(l, job, uplo, n, a, ld, values + i * n, w, info + i);
  });
}

// Columns of a real routine's vectors: a pair of conjugates is kept as its real and imaginary part.
template <class R>
void unpack_vectors(const R* wi, const R* packed, Complex<R>* out, int64_t n) {
  for (int64_t c = 0; c < n; ++c) {
    const bool pair = wi[c] != 0 && c + 1 < n;
    for (int64_t r = 0; r < n; ++r) {
      const R re = packed[c * n + r];
      if (!pair) {
        out[c * n + r] = re;
        continue;
      }
      const R im = packed[(c + 1) * n + r];
      out[c * n + r] = {re, im};
      out[(c + 1) * n + r] = {re, -im};
    }
    if (pair) ++c;
  }
}

// outputs: values, vectors, info, complex all; ints: with vectors
template <class T>
Status eig_as(const KernelArgs& args, const Lapack<T>& l) {
  using R = real_t<T>;
  using C = Complex<R>;
  const KernelTensor& in = args.inputs[0];
  const int n = to_int(in.sizes[1]), ld = ld_of(n);
  const bool vectors = args.ints[0] != 0;
  const char job = vectors ? 'V' : 'N';
  C* values = static_cast<C*>(args.outputs[0].data);
  int* info = static_cast<int*>(args.outputs[2].data);
  T size{}, unused{};
  R rsize{};  // LAPACK writes into it even when it is only asked
  int ignored = 0;
  geev<T>(l, job, n, &unused, ld, &unused, &unused, &unused, ld,
          {&size, -1, &rsize, -1, &ignored, 0}, &ignored);
  const int lwork = asked_size(size);
  const int64_t square = int64_t{n} * n;
  const size_t bytes =
      room<T>(lwork) + room<R>(2 * int64_t{n}) + 2 * room<T>(square) + 2 * room<T>(n);
  const double work = 10.0 * n * n * n;
  return each_matrix("eig", in.sizes[0], work, bytes, [&](int64_t i, char* p) {
    T* a = take<T>(p, square);
    copy_columns(a, in, i, n);
    Workspace<T> w{take<T>(p, lwork), lwork, take<R>(p, 2 * int64_t{n}), 2 * n, nullptr, 0};
    if constexpr (is_complex_v<T>) {
      T* v = vectors ? matrix_of<T>(args.outputs[1], i) : &unused;
      T none{};
      geev<T>(l, job, n, a, ld, values + i * n, nullptr, vectors ? v : &none, ld, w, info + i);
    } else {
      T *wr = take<T>(p, n), *wi = take<T>(p, n), *v = take<T>(p, square);
      geev<T>(l, job, n, a, ld, wr, wi, v, ld, w, info + i);
      for (int64_t k = 0; k < n; ++k) values[i * n + k] = {wr[k], wi[k]};
      if (vectors) unpack_vectors<R>(wi, v, matrix_of<C>(args.outputs[1], i), n);
    }
  });
}

// outputs: U, singular values, Vh, info; ints: with vectors, all of them
template <class T>
Status svd_as(const KernelArgs& args, const Lapack<T>& l) {
  using R = real_t<T>;
  const KernelTensor& in = args.inputs[0];
  const int m = to_int(in.sizes[1]), n = to_int(in.sizes[2]);
  const int64_t least = std::min(m, n), most = std::max(m, n);
  const bool vectors = args.ints[0] != 0;
  const char job = !vectors ? 'N' : args.ints[1] ? 'A' : 'S';
  const int lda = ld_of(m), ldu = ld_of(m);
  const int ldv = vectors ? ld_of(args.outputs[2].sizes[1]) : 1;
  R* values = static_cast<R*>(args.outputs[1].data);
  int* info = static_cast<int*>(args.outputs[3].data);
  T size{}, unused{};
  R rsize{};
  int isize = 0, ignored = 0;
  gesdd<T>(l, job, m, n, &unused, lda, &rsize, &unused, ldu, &unused, ldv,
           {&size, -1, &rsize, -1, &isize, -1}, &ignored);
  const int lwork = asked_size(size);
  int64_t lrwork = 0;
  if constexpr (is_complex_v<T>)
    lrwork = vectors ? std::max(5 * least * least + 5 * least,
                                2 * most * least + 2 * least * least + least)
                     : 7 * least;
  const int64_t liwork = 8 * least;
  const size_t bytes =
      room<T>(lwork) + room<R>(lrwork) + room<int>(liwork) + room<T>(int64_t{m} * n) + room<T>(1);
  const double work = 8.0 * m * n * static_cast<double>(least);
  return each_matrix("svd", in.sizes[0], work, bytes, [&](int64_t i, char* p) {
    T* a = take<T>(p, int64_t{m} * n);
    copy_columns(a, in, i, m);
    Workspace<T> w{take<T>(p, lwork), lwork, take<R>(p, lrwork), 0, take<int>(p, liwork), 0};
    T* none = take<T>(p, 1);
    T* u = vectors ? matrix_of<T>(args.outputs[0], i) : none;
    T* v = vectors ? matrix_of<T>(args.outputs[2], i) : none;
    gesdd<T>(l, job, m, n, a, lda, values + i * least, u, ldu, v, ldv, w, info + i);
  });
}

TS_LAPACK_KERNEL("eigh", eigh)
TS_LAPACK_KERNEL("eig", eig)
TS_LAPACK_KERNEL("svd", svd)

}  // namespace

}  // namespace tessera::cpu
