// LAPACK, opened at first use: from the library that BLAS comes from (OpenBLAS carries it) or from
// liblapack.so.3. The Fortran routines: everything by address, matrices by columns, the lengths of
// strings at the end.
#pragma once
#include <cstddef>
#include <type_traits>

#include "kernels.h"
#include "tessera/base/complex.h"

namespace tessera::cpu {

template <class T>
struct Lapack {
  using Size = const int*;
  void (*potrf)(const char* uplo, Size n, T* a, Size lda, int* info, size_t);
  void (*potri)(const char* uplo, Size n, T* a, Size lda, int* info, size_t);
  void (*potrs)(const char* uplo, Size n, Size nrhs, const T* a, Size lda, T* b, Size ldb,
                int* info, size_t);
  void (*getrf)(Size m, Size n, T* a, Size lda, int* pivots, int* info);
  void (*getrs)(const char* trans, Size n, Size nrhs, const T* a, Size lda, const int* pivots, T* b,
                Size ldb, int* info, size_t);
  void (*geqrf)(Size m, Size n, T* a, Size lda, T* tau, T* work, Size lwork, int* info);
  void (*orgqr)(Size m, Size n, Size k, T* a, Size lda, const T* tau, T* work, Size lwork,
                int* info);
  void (*ormqr)(const char* side, const char* trans, Size m, Size n, Size k, const T* a, Size lda,
                const T* tau, T* c, Size ldc, T* work, Size lwork, int* info, size_t, size_t);
  void (*trsm)(const char* side, const char* uplo, const char* trans, const char* diag, Size m,
               Size n, const T* alpha, const T* a, Size lda, T* b, Size ldb, size_t, size_t, size_t,
               size_t);
  void (*sytrf)(const char* uplo, Size n, T* a, Size lda, int* pivots, T* work, Size lwork,
                int* info, size_t);
  void (*sytrs)(const char* uplo, Size n, Size nrhs, const T* a, Size lda, const int* pivots, T* b,
                Size ldb, int* info, size_t);
  // Of Hermitian matrices; for real numbers the same two.
  decltype(sytrf) hetrf;
  decltype(sytrs) hetrs;
  void (*gels)(const char* trans, Size m, Size n, Size nrhs, T* a, Size lda, T* b, Size ldb,
               T* work, Size lwork, int* info, size_t);
  // Their arguments differ between real and complex numbers: see the functions below.
  void *syevd, *geev, *gesdd, *gelsd, *gelss, *gelsy;
};

// Null if there is none (or TESSERA_LAPACK=none). Threads follow ours, as BLAS's do.
template <class T>
const Lapack<T>* lapack() noexcept;
// The failure that says so, and which package to install.
Status no_lapack() noexcept;

// While one lives, BLAS and LAPACK use the calling thread alone: around loops of ours over
// matrices.
class OneBlasThread {
 public:
  OneBlasThread() noexcept;
  ~OneBlasThread();
  OneBlasThread(const OneBlasThread&) = delete;
  OneBlasThread& operator=(const OneBlasThread&) = delete;
};

// The routines below take all workspaces; real numbers have no use for `rwork`, some complex ones
// none for `iwork`.
template <class T>
struct Workspace {
  T* work;
  int lwork;
  real_t<T>* rwork;
  int lrwork;
  int* iwork;
  int liwork;
};

template <class T>
void syevd(const Lapack<T>& l, char jobz, char uplo, int n, T* a, int lda, real_t<T>* w,
           const Workspace<T>& s, int* info) {
  using R = real_t<T>;
  if constexpr (is_complex_v<T>) {
    using F = void (*)(const char*, const char*, const int*, T*, const int*, R*, T*, const int*, R*,
                       const int*, int*, const int*, int*, size_t, size_t);
    reinterpret_cast<F>(l.syevd)(&jobz, &uplo, &n, a, &lda, w, s.work, &s.lwork, s.rwork, &s.lrwork,
                                 s.iwork, &s.liwork, info, 1, 1);
  } else {
    using F = void (*)(const char*, const char*, const int*, T*, const int*, T*, T*, const int*,
                       int*, const int*, int*, size_t, size_t);
    reinterpret_cast<F>(l.syevd)(&jobz, &uplo, &n, a, &lda, w, s.work, &s.lwork, s.iwork, &s.liwork,
                                 info, 1, 1);
  }
}

// Eigenvalues of real matrices go to wr and wi, of complex ones to w.
template <class T>
void geev(const Lapack<T>& l, char jobvr, int n, T* a, int lda, T* w, T* wi, T* vr, int ldvr,
          const Workspace<T>& s, int* info) {
  using R = real_t<T>;
  const char no = 'N';
  const int one = 1;
  T unused{};
  if constexpr (is_complex_v<T>) {
    using F = void (*)(const char*, const char*, const int*, T*, const int*, T*, T*, const int*, T*,
                       const int*, T*, const int*, R*, int*, size_t, size_t);
    reinterpret_cast<F>(l.geev)(&no, &jobvr, &n, a, &lda, w, &unused, &one, vr, &ldvr, s.work,
                                &s.lwork, s.rwork, info, 1, 1);
  } else {
    using F = void (*)(const char*, const char*, const int*, T*, const int*, T*, T*, T*, const int*,
                       T*, const int*, T*, const int*, int*, size_t, size_t);
    reinterpret_cast<F>(l.geev)(&no, &jobvr, &n, a, &lda, w, wi, &unused, &one, vr, &ldvr, s.work,
                                &s.lwork, info, 1, 1);
  }
}

template <class T>
void gesdd(const Lapack<T>& l, char jobz, int m, int n, T* a, int lda, real_t<T>* values, T* u,
           int ldu, T* vt, int ldvt, const Workspace<T>& s, int* info) {
  using R = real_t<T>;
  if constexpr (is_complex_v<T>) {
    using F = void (*)(const char*, const int*, const int*, T*, const int*, R*, T*, const int*, T*,
                       const int*, T*, const int*, R*, int*, int*, size_t);
    reinterpret_cast<F>(l.gesdd)(&jobz, &m, &n, a, &lda, values, u, &ldu, vt, &ldvt, s.work,
                                 &s.lwork, s.rwork, s.iwork, info, 1);
  } else {
    using F = void (*)(const char*, const int*, const int*, T*, const int*, T*, T*, const int*, T*,
                       const int*, T*, const int*, int*, int*, size_t);
    reinterpret_cast<F>(l.gesdd)(&jobz, &m, &n, a, &lda, values, u, &ldu, vt, &ldvt, s.work,
                                 &s.lwork, s.iwork, info, 1);
  }
}

// Least squares by singular values (gelsd, gelss) or by columns in order of size (gelsy, which has
// its order in `iwork` and no values).
template <class T>
void gels_by(void* routine, bool has_values, bool has_iwork, int m, int n, int nrhs, T* a, int lda,
             T* b, int ldb, real_t<T>* values, real_t<T> rcond, int* rank, const Workspace<T>& s,
             int* info) {
  using R = real_t<T>;
  using I = const int*;
  auto call = [&](auto*... last) {
    if (has_values)
      reinterpret_cast<void (*)(I, I, I, T*, I, T*, I, R*, const R*, int*, T*, I,
                                decltype(last)...)>(routine)(
          &m, &n, &nrhs, a, &lda, b, &ldb, values, &rcond, rank, s.work, &s.lwork, last...);
    else
      reinterpret_cast<void (*)(I, I, I, T*, I, T*, I, int*, const R*, int*, T*, I,
                                decltype(last)...)>(routine)(
          &m, &n, &nrhs, a, &lda, b, &ldb, s.iwork, &rcond, rank, s.work, &s.lwork, last...);
  };
  const bool trailing = has_values && has_iwork;
  if constexpr (is_complex_v<T>)
    trailing ? call(s.rwork, s.iwork, info) : call(s.rwork, info);
  else
    trailing ? call(s.iwork, info) : call(info);
}

}  // namespace tessera::cpu
