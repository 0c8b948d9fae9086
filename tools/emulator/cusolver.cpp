// Stands in for libcusolver: the routines that the backend calls, by the host's LAPACK. Workspaces
// are asked for, checked and filled with NaN, though LAPACK has its own.
#include <cusolverDn.h>

#include <algorithm>
#include <cmath>

#include "lapack.h"

namespace emulator {
namespace {

void* stream_of(cusolverDnHandle_t h) { return *reinterpret_cast<void**>(h); }

template <class T>
int size_for(int m, int n) {
  return 17 + 3 * (m + n);
}
template <class T>
bool has_work(T* work, int size, int m, int n) {
  return size >= size_for<T>(m, n) && on_device(work, sizeof(T) * static_cast<size_t>(size));
}
bool has_info(const int* info) { return on_device(info, sizeof(int)); }

// What is queued, once what the caller gave is found right.
template <class F>
cusolverStatus_t queue(cusolverDnHandle_t h, bool right, const F& f) {
  if (!right) return CUSOLVER_STATUS_INVALID_VALUE;
  return enqueue(stream_of(h), f) ? CUSOLVER_STATUS_SUCCESS : CUSOLVER_STATUS_EXECUTION_FAILED;
}
template <class T>
void spoil(T* work, int size) {
  std::memset(static_cast<void*>(work), 0xff, sizeof(T) * static_cast<size_t>(size));
}

template <class T>
cusolverStatus_t potrf(cusolverDnHandle_t h, cublasFillMode_t uplo, int n, T* a, int lda, T* work,
                       int size, int* info) {
  return queue(h, matrix_on_device(a, n, n, lda) && has_work(work, size, n, n) && has_info(info),
               [=] {
                 spoil(work, size);
                 const char half = letter(uplo);
                 OnHost<T> x(a, n, n, lda);
                 lapack<T>("potrf", &half, &n, x.get(), &lda, info);
               });
}

template <class T>
cusolverStatus_t potrf_batched(cusolverDnHandle_t h, cublasFillMode_t uplo, int n, T** a, int lda,
                               int* info, int batch) {
  const auto count = static_cast<size_t>(batch);
  if (!on_device(a, sizeof(T*) * count) || !on_device(info, sizeof(int) * count))
    return CUSOLVER_STATUS_INVALID_VALUE;
  bool ok = enqueue_checked(
      stream_of(h),
      [=] {
        const char half = letter(uplo);
        for (int i = 0; i < batch; ++i) {
          if (!matrix_on_device(a[i], n, n, lda)) return false;
          OnHost<T> x(a[i], n, n, lda);
          lapack<T>("potrf", &half, &n, x.get(), &lda, info + i);
        }
        return true;
      },
      "potrfBatched");
  return ok ? CUSOLVER_STATUS_SUCCESS : CUSOLVER_STATUS_EXECUTION_FAILED;
}

template <class T>
cusolverStatus_t getrf(cusolverDnHandle_t h, int m, int n, T* a, int lda, T* work, int* pivots,
                       int* info) {
  const int size = size_for<T>(m, n);
  return queue(
      h,
      matrix_on_device(a, m, n, lda) && has_work(work, size, m, n) && has_info(info) &&
          (!pivots || on_device(pivots, sizeof(int) * static_cast<size_t>(std::min(m, n)))),
      [=] {
        spoil(work, size);
        OnHost<T> x(a, m, n, lda);
        if (pivots)
          lapack<T>("getrf", &m, &n, x.get(), &lda, pivots, info);
        else
          getrf_without_exchanges<T>(m, n, x.get(), lda, info);
      });
}

template <class T>
cusolverStatus_t getrs(cusolverDnHandle_t h, cublasOperation_t op, int n, int nrhs, const T* a,
                       int lda, const int* pivots, T* b, int ldb, int* info) {
  return queue(h,
               matrix_on_device(a, n, n, lda) && matrix_on_device(b, n, nrhs, ldb) &&
                   has_info(info) && on_device(pivots, sizeof(int) * static_cast<size_t>(n)),
               [=] {
                 const char trans = letter(op);
                 OnHost<const T> factors(a, n, n, lda);
                 OnHost<T> x(b, n, nrhs, ldb);
                 lapack<T>("getrs", &trans, &n, &nrhs, factors.get(), &lda, pivots, x.get(), &ldb,
                           info);
               });
}

template <class T>
cusolverStatus_t geqrf(cusolverDnHandle_t h, int m, int n, T* a, int lda, T* tau, T* work, int size,
                       int* info) {
  return queue(h,
               matrix_on_device(a, m, n, lda) && has_work(work, size, m, n) && has_info(info) &&
                   on_device(tau, sizeof(T) * static_cast<size_t>(std::min(m, n))),
               [=] {
                 spoil(work, size);
                 OnHost<T> x(a, m, n, lda);
                 with_work<T>([&](T* w, int* s) {
                   lapack<T>("geqrf", &m, &n, x.get(), &lda, tau, w, s, info);
                 });
               });
}

template <class T>
cusolverStatus_t orgqr(cusolverDnHandle_t h, int m, int n, int k, T* a, int lda, const T* tau,
                       T* work, int size, int* info) {
  return queue(h,
               matrix_on_device(a, m, n, lda) && has_work(work, size, m, n) && has_info(info) &&
                   k > 0 && n >= k && m >= n && on_device(tau, sizeof(T) * static_cast<size_t>(k)),
               [=] {
                 spoil(work, size);
                 const char* name = is_complex_v<T> ? "ungqr" : "orgqr";
                 OnHost<T> x(a, m, n, lda);
                 with_work<T>([&](T* w, int* s) {
                   lapack<T>(name, &m, &n, &k, x.get(), &lda, tau, w, s, info);
                 });
               });
}

template <class T>
cusolverStatus_t ormqr(cusolverDnHandle_t h, cublasSideMode_t side, cublasOperation_t op, int m,
                       int n, int k, const T* a, int lda, const T* tau, T* c, int ldc, T* work,
                       int size, int* info) {
  const int rows = side == CUBLAS_SIDE_LEFT ? m : n;
  const bool real_adjoint = !is_complex_v<T> && op == CUBLAS_OP_C;
  const bool complex_transpose = is_complex_v<T> && op == CUBLAS_OP_T;
  return queue(h,
               matrix_on_device(a, rows, k, lda) && matrix_on_device(c, m, n, ldc) &&
                   has_work(work, size, m, n) && has_info(info) && k > 0 && k <= rows &&
                   !real_adjoint && !complex_transpose &&
                   on_device(tau, sizeof(T) * static_cast<size_t>(k)),
               [=] {
                 spoil(work, size);
                 const char where = letter(side), trans = letter(op);
                 const char* name = is_complex_v<T> ? "unmqr" : "ormqr";
                 OnHost<const T> v(a, rows, k, lda);
                 OnHost<T> x(c, m, n, ldc);
                 with_work<T>([&](T* w, int* s) {
                   lapack<T>(name, &where, &trans, &m, &n, &k, v.get(), &lda, tau, x.get(), &ldc, w,
                             s, info);
                 });
               });
}

template <class T>
cusolverStatus_t sytrf(cusolverDnHandle_t h, cublasFillMode_t uplo, int n, T* a, int lda,
                       int* pivots, T* work, int size, int* info) {
  return queue(h,
               matrix_on_device(a, n, n, lda) && has_work(work, size, n, n) && has_info(info) &&
                   on_device(pivots, sizeof(int) * static_cast<size_t>(n)),
               [=] {
                 spoil(work, size);
                 const char half = letter(uplo);
                 OnHost<T> x(a, n, n, lda);
                 with_work<T>([&](T* w, int* s) {
                   lapack<T>("sytrf", &half, &n, x.get(), &lda, pivots, w, s, info);
                 });
               });
}

template <class T>
void eigen(char job, char half, int n, T* a, int lda, Real<T>* values, int* info) {
  std::vector<Real<T>> rwork(static_cast<size_t>(3 * n + 1));
  const char* name = is_complex_v<T> ? "heev" : "syev";
  OnHost<T> x(a, n, n, lda);
  with_work<T>([&](T* w, int* s) {
    if constexpr (is_complex_v<T>)
      lapack<T>(name, &job, &half, &n, x.get(), &lda, values, w, s, rwork.data(), info);
    else
      lapack<T>(name, &job, &half, &n, x.get(), &lda, values, w, s, info);
  });
}

template <class T>
cusolverStatus_t syevd(cusolverDnHandle_t h, cusolverEigMode_t job, cublasFillMode_t uplo, int n,
                       T* a, int lda, Real<T>* values, T* work, int size, int* info, int batch) {
  const auto count = static_cast<size_t>(batch);
  return queue(h,
               matrix_on_device(a, n, int64_t{n} * batch, lda) && has_work(work, size, n, n) &&
                   on_device(info, sizeof(int) * count) &&
                   on_device(values, sizeof(Real<T>) * static_cast<size_t>(n) * count),
               [=] {
                 spoil(work, size);
                 for (int64_t i = 0; i < batch; ++i)
                   eigen<T>(job == CUSOLVER_EIG_MODE_VECTOR ? 'V' : 'N', letter(uplo), n,
                            a + i * lda * n, lda, values + i * n, info + i);
               });
}

// V, not its adjoint.
template <class T>
void singular(char job, int m, int n, T* a, int lda, Real<T>* values, T* u, int ldu, T* v, int ldv,
              int* info) {
  const int least = std::min(m, n), most = std::max(m, n), rows = job == 'A' ? n : least;
  std::vector<int> iwork(static_cast<size_t>(8 * least));
  std::vector<Real<T>> rwork(
      static_cast<size_t>(5 * least * least + 7 * least + 2 * most * least + 2 * least * least));
  std::vector<T> vt(static_cast<size_t>(rows * n) + 64);
  OnHost<T> x(a, m, n, lda), left(u, m, job == 'A' ? m : job == 'S' ? least : 0, ldu);
  with_work<T>([&](T* w, int* s) {
    if constexpr (is_complex_v<T>)
      lapack<T>("gesdd", &job, &m, &n, x.get(), &lda, values, left.get(), &ldu, vt.data(), &rows, w,
                s, rwork.data(), iwork.data(), info);
    else
      lapack<T>("gesdd", &job, &m, &n, x.get(), &lda, values, left.get(), &ldu, vt.data(), &rows, w,
                s, iwork.data(), info);
  });
  if (job == 'N') return;
  for (int r = 0; r < n; ++r)
    for (int c = 0; c < rows; ++c) {
      const T x = vt[static_cast<size_t>(r * rows + c)];
      if constexpr (is_complex_v<T>)
        v[c * ldv + r] = std::conj(x);
      else
        v[c * ldv + r] = x;
    }
}

template <class T>
cusolverStatus_t gesvdj(cusolverDnHandle_t h, cusolverEigMode_t job, int economy, int m, int n,
                        T* a, int lda, Real<T>* values, T* u, int ldu, T* v, int ldv, T* work,
                        int size, int* info, int batch) {
  const int least = std::min(m, n), of_u = economy ? least : m, of_v = economy ? least : n;
  const auto count = static_cast<size_t>(batch);
  return queue(h,
               matrix_on_device(a, m, int64_t{n} * batch, lda) &&
                   matrix_on_device(u, m, int64_t{of_u} * batch, ldu) &&
                   matrix_on_device(v, n, int64_t{of_v} * batch, ldv) &&
                   has_work(work, size, m, n) && on_device(info, sizeof(int) * count) &&
                   on_device(values, sizeof(Real<T>) * static_cast<size_t>(least) * count),
               [=] {
                 spoil(work, size);
                 const char how = job != CUSOLVER_EIG_MODE_VECTOR ? 'N' : economy ? 'S' : 'A';
                 for (int64_t i = 0; i < batch; ++i)
                   singular<T>(how, m, n, a + i * lda * n, lda, values + i * least,
                               u + i * ldu * of_u, ldu, v + i * ldv * of_v, ldv, info + i);
               });
}

// Values are complex, vectors of real matrices packed as LAPACK has them.
template <class T>
void geev(char job, int n, T* a, int lda, std::complex<Real<T>>* values, T* v, int ldv, int* info) {
  const char none = 'N';
  const int one = 1;
  std::vector<Real<T>> rwork(static_cast<size_t>(2 * n)), wr(rwork.size()), wi(rwork.size());
  T unused{};
  const int ld = v ? ldv : 1;
  OnHost<T> x(a, n, n, lda), vectors(v, n, v ? n : 0, ld);
  with_work<T>([&](T* w, int* s) {
    if constexpr (is_complex_v<T>)
      lapack<T>("geev", &none, &job, &n, x.get(), &lda, values, &unused, &one, vectors.get(), &ld,
                w, s, rwork.data(), info);
    else
      lapack<T>("geev", &none, &job, &n, x.get(), &lda, wr.data(), wi.data(), &unused, &one,
                vectors.get(), &ld, w, s, info);
  });
  if constexpr (!is_complex_v<T>)
    for (size_t i = 0; i < static_cast<size_t>(n); ++i) values[i] = {wr[i], wi[i]};
}

// f(T) for a data type; false if it is none of the four.
template <class F>
bool with_type(cudaDataType t, const F& f) {
  switch (t) {
    case CUDA_R_32F:
      f(float{});
      return true;
    case CUDA_R_64F:
      f(double{});
      return true;
    case CUDA_C_32F:
      f(std::complex<float>{});
      return true;
    case CUDA_C_64F:
      f(std::complex<double>{});
      return true;
    default:
      return false;
  }
}
constexpr size_t kBytes = 512, kHostBytes = 64;

}  // namespace
}  // namespace emulator

using namespace emulator;

cusolverStatus_t cusolverDnCreate(cusolverDnHandle_t* out) {
  *out = reinterpret_cast<cusolverDnHandle_t>(new void*(nullptr));
  return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t cusolverDnDestroy(cusolverDnHandle_t h) {
  delete reinterpret_cast<void**>(h);
  return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t cusolverDnSetStream(cusolverDnHandle_t h, cudaStream_t stream) {
  *reinterpret_cast<void**>(h) = stream;
  return CUSOLVER_STATUS_SUCCESS;
}
#define OPTIONS_OF(type, name)                         \
  cusolverStatus_t cusolverDnCreate##name(type* out) { \
    *out = reinterpret_cast<type>(new int(0));         \
    return CUSOLVER_STATUS_SUCCESS;                    \
  }                                                    \
  cusolverStatus_t cusolverDnDestroy##name(type o) {   \
    delete reinterpret_cast<int*>(o);                  \
    return CUSOLVER_STATUS_SUCCESS;                    \
  }
OPTIONS_OF(cusolverDnParams_t, Params)
OPTIONS_OF(syevjInfo_t, SyevjInfo)
OPTIONS_OF(gesvdjInfo_t, GesvdjInfo)

cusolverStatus_t cusolverDnXgeev_bufferSize(cusolverDnHandle_t, cusolverDnParams_t,
                                            cusolverEigMode_t, cusolverEigMode_t, int64_t,
                                            cudaDataType, const void*, int64_t, cudaDataType,
                                            const void*, cudaDataType, const void*, int64_t,
                                            cudaDataType, const void*, int64_t, cudaDataType,
                                            size_t* bytes, size_t* host) {
  *bytes = kBytes;
  *host = kHostBytes;
  return CUSOLVER_STATUS_SUCCESS;
}
cusolverStatus_t cusolverDnXgeev(cusolverDnHandle_t h, cusolverDnParams_t params,
                                 cusolverEigMode_t left, cusolverEigMode_t right, int64_t n,
                                 cudaDataType type, void* a, int64_t lda, cudaDataType of_values,
                                 void* values, cudaDataType of_left, void*, int64_t,
                                 cudaDataType of_right, void* v, int64_t ldv, cudaDataType computed,
                                 void* work, size_t bytes, void* on_host, size_t host, int* info) {
  cusolverStatus_t r = CUSOLVER_STATUS_INVALID_VALUE;
  const bool vectors = right == CUSOLVER_EIG_MODE_VECTOR;
  const bool is_double = type == CUDA_R_64F || type == CUDA_C_64F;
  if (!params || left != CUSOLVER_EIG_MODE_NOVECTOR || of_left != type || of_right != type ||
      computed != type || of_values != (is_double ? CUDA_C_64F : CUDA_C_32F) || bytes < kBytes ||
      host < kHostBytes || !on_host || !on_device(work, bytes))
    return r;
  with_type(type, [&]<class T>(T) {
    using C = std::complex<Real<T>>;
    T *matrix = static_cast<T*>(a), *to = vectors ? static_cast<T*>(v) : nullptr;
    C* w = static_cast<C*>(values);
    r = queue(h,
              matrix_on_device(matrix, n, n, lda) &&
                  (!vectors || matrix_on_device(to, n, n, ldv)) && has_info(info) &&
                  on_device(w, sizeof(C) * static_cast<size_t>(n)),
              [=] {
                geev<T>(vectors ? 'V' : 'N', static_cast<int>(n), matrix, static_cast<int>(lda), w,
                        to, static_cast<int>(ldv), info);
              });
  });
  return r;
}

// One a line, as the header has them.
// clang-format off
#define H cusolverDnHandle_t h
#define STATUS cusolverStatus_t
#define CUSOLVER_OF(L, OR, SY, T, R) \
  STATUS cusolverDn##L##potrf_bufferSize(H, cublasFillMode_t, int n, T*, int, int* size) { (void)h; *size = size_for<T>(n, n); return CUSOLVER_STATUS_SUCCESS; } \
  STATUS cusolverDn##L##potrf(H, cublasFillMode_t uplo, int n, T* a, int lda, T* w, int size, int* info) { return potrf(h, uplo, n, as_host(a), lda, as_host(w), size, info); } \
  STATUS cusolverDn##L##potrfBatched(H, cublasFillMode_t uplo, int n, T* a[], int lda, int* info, int batch) { return potrf_batched(h, uplo, n, const_cast<std::remove_const_t<std::remove_pointer_t<decltype(as_host_list(a))>>*>(as_host_list(a)), lda, info, batch); } \
  STATUS cusolverDn##L##getrf_bufferSize(H, int m, int n, T*, int, int* size) { (void)h; *size = size_for<T>(m, n); return CUSOLVER_STATUS_SUCCESS; } \
  STATUS cusolverDn##L##getrf(H, int m, int n, T* a, int lda, T* w, int* pivots, int* info) { return getrf(h, m, n, as_host(a), lda, as_host(w), pivots, info); } \
  STATUS cusolverDn##L##getrs(H, cublasOperation_t op, int n, int nrhs, const T* a, int lda, const int* pivots, T* b, int ldb, int* info) { return getrs(h, op, n, nrhs, as_host(a), lda, pivots, as_host(b), ldb, info); } \
  STATUS cusolverDn##L##geqrf_bufferSize(H, int m, int n, T*, int, int* size) { (void)h; *size = size_for<T>(m, n); return CUSOLVER_STATUS_SUCCESS; } \
  STATUS cusolverDn##L##geqrf(H, int m, int n, T* a, int lda, T* tau, T* w, int size, int* info) { return geqrf(h, m, n, as_host(a), lda, as_host(tau), as_host(w), size, info); } \
  STATUS cusolverDn##L##OR##gqr_bufferSize(H, int m, int n, int, const T*, int, const T*, int* size) { (void)h; *size = size_for<T>(m, n); return CUSOLVER_STATUS_SUCCESS; } \
  STATUS cusolverDn##L##OR##gqr(H, int m, int n, int k, T* a, int lda, const T* tau, T* w, int size, int* info) { return orgqr(h, m, n, k, as_host(a), lda, as_host(tau), as_host(w), size, info); } \
  STATUS cusolverDn##L##OR##mqr_bufferSize(H, cublasSideMode_t, cublasOperation_t, int m, int n, int, const T*, int, const T*, const T*, int, int* size) { (void)h; *size = size_for<T>(m, n); return CUSOLVER_STATUS_SUCCESS; } \
  STATUS cusolverDn##L##OR##mqr(H, cublasSideMode_t side, cublasOperation_t op, int m, int n, int k, const T* a, int lda, const T* tau, T* c, int ldc, T* w, int size, int* info) { return ormqr(h, side, op, m, n, k, as_host(a), lda, as_host(tau), as_host(c), ldc, as_host(w), size, info); } \
  STATUS cusolverDn##L##sytrf_bufferSize(H, int n, T*, int, int* size) { (void)h; *size = size_for<T>(n, n); return CUSOLVER_STATUS_SUCCESS; } \
  STATUS cusolverDn##L##sytrf(H, cublasFillMode_t uplo, int n, T* a, int lda, int* pivots, T* w, int size, int* info) { return sytrf(h, uplo, n, as_host(a), lda, pivots, as_host(w), size, info); } \
  STATUS cusolverDn##L##SY##evd_bufferSize(H, cusolverEigMode_t, cublasFillMode_t, int n, const T*, int, const R*, int* size) { (void)h; *size = size_for<T>(n, n); return CUSOLVER_STATUS_SUCCESS; } \
  STATUS cusolverDn##L##SY##evd(H, cusolverEigMode_t job, cublasFillMode_t uplo, int n, T* a, int lda, R* values, T* w, int size, int* info) { return syevd(h, job, uplo, n, as_host(a), lda, values, as_host(w), size, info, 1); } \
  STATUS cusolverDn##L##SY##evjBatched_bufferSize(H, cusolverEigMode_t, cublasFillMode_t, int n, const T*, int, const R*, int* size, syevjInfo_t, int) { (void)h; *size = size_for<T>(n, n); return n <= 32 ? CUSOLVER_STATUS_SUCCESS : CUSOLVER_STATUS_INVALID_VALUE; } \
  STATUS cusolverDn##L##SY##evjBatched(H, cusolverEigMode_t job, cublasFillMode_t uplo, int n, T* a, int lda, R* values, T* w, int size, int* info, syevjInfo_t, int batch) { return syevd(h, job, uplo, n, as_host(a), lda, values, as_host(w), size, info, batch); } \
  STATUS cusolverDn##L##gesvdj_bufferSize(H, cusolverEigMode_t, int, int m, int n, const T*, int, const R*, const T*, int, const T*, int, int* size, gesvdjInfo_t) { (void)h; *size = size_for<T>(m, n); return CUSOLVER_STATUS_SUCCESS; } \
  STATUS cusolverDn##L##gesvdj(H, cusolverEigMode_t job, int economy, int m, int n, T* a, int lda, R* values, T* u, int ldu, T* v, int ldv, T* w, int size, int* info, gesvdjInfo_t) { return gesvdj(h, job, economy, m, n, as_host(a), lda, values, as_host(u), ldu, as_host(v), ldv, as_host(w), size, info, 1); } \
  STATUS cusolverDn##L##gesvdjBatched_bufferSize(H, cusolverEigMode_t, int m, int n, const T*, int, const R*, const T*, int, const T*, int, int* size, gesvdjInfo_t, int) { (void)h; *size = size_for<T>(m, n); return m <= 32 && n <= 32 ? CUSOLVER_STATUS_SUCCESS : CUSOLVER_STATUS_INVALID_VALUE; } \
  STATUS cusolverDn##L##gesvdjBatched(H, cusolverEigMode_t job, int m, int n, T* a, int lda, R* values, T* u, int ldu, T* v, int ldv, T* w, int size, int* info, gesvdjInfo_t, int batch) { return gesvdj(h, job, 0, m, n, as_host(a), lda, values, as_host(u), ldu, as_host(v), ldv, as_host(w), size, info, batch); }
CUSOLVER_OF(S, or, sy, float, float)
CUSOLVER_OF(D, or, sy, double, double)
CUSOLVER_OF(C, un, he, cuComplex, float)
CUSOLVER_OF(Z, un, he, cuDoubleComplex, double)
// clang-format on
