// Stands in for libcublas: the routines that the backend calls, by the host's LAPACK.
#include <cublas_v2.h>

#include <algorithm>

#include "lapack.h"

namespace emulator {
namespace {

void* stream_of(cublasHandle_t h) { return *reinterpret_cast<void**>(h); }
cublasStatus_t queued(bool ok) {
  return ok ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

struct Solve {
  cublasSideMode_t side;
  cublasFillMode_t uplo;
  cublasOperation_t op;
  cublasDiagType_t diag;
  int m, n, lda, ldb;
};

template <class T>
bool trsm(const Solve& s, T alpha, const T* a, T* b) {
  const int order = s.side == CUBLAS_SIDE_LEFT ? s.m : s.n;
  if (!matrix_on_device(a, order, order, s.lda) || !matrix_on_device(b, s.m, s.n, s.ldb))
    return false;
  const char side = letter(s.side), uplo = letter(s.uplo), op = letter(s.op);
  const char diag = s.diag == CUBLAS_DIAG_UNIT ? 'U' : 'N';
  OnHost<const T> triangle(a, order, order, s.lda);
  OnHost<T> x(b, s.m, s.n, s.ldb);
  lapack<T>("trsm", &side, &uplo, &op, &diag, &s.m, &s.n, &alpha, triangle.get(), &s.lda, x.get(),
            &s.ldb);
  return true;
}

template <class T>
bool list_on_device(T* const* list, int batch) {
  return batch > 0 && on_device(list, static_cast<size_t>(batch) * sizeof(T*));
}

template <class T>
cublasStatus_t trsm_batched(cublasHandle_t h, const Solve& s, const T* alpha, const T* const* a,
                            T* const* b, int batch) {
  if (!list_on_device(a, batch) || !list_on_device(b, batch)) return CUBLAS_STATUS_INVALID_VALUE;
  return queued(enqueue_checked(
      stream_of(h),
      [=, by = *alpha] {
        for (int i = 0; i < batch; ++i)
          if (!trsm(s, by, a[i], b[i])) return false;
        return true;
      },
      "trsmBatched"));
}

template <class T>
cublasStatus_t getrf_batched(cublasHandle_t h, int n, T* const* a, int lda, int* pivots, int* info,
                             int batch) {
  if (!list_on_device(a, batch) ||
      (pivots && !on_device(pivots, sizeof(int) * static_cast<size_t>(n * batch))) ||
      !on_device(info, sizeof(int) * static_cast<size_t>(batch)))
    return CUBLAS_STATUS_INVALID_VALUE;
  return queued(enqueue_checked(
      stream_of(h),
      [=] {
        for (int i = 0; i < batch; ++i) {
          if (!matrix_on_device(a[i], n, n, lda)) return false;
          OnHost<T> x(a[i], n, n, lda);
          if (pivots)
            lapack<T>("getrf", &n, &n, x.get(), &lda, pivots + i * n, info + i);
          else
            getrf_without_exchanges<T>(n, n, x.get(), lda, info + i);
        }
        return true;
      },
      "getrfBatched"));
}

template <class T>
cublasStatus_t getrs_batched(cublasHandle_t h, cublasOperation_t op, int n, int nrhs,
                             const T* const* a, int lda, const int* pivots, T* const* b, int ldb,
                             int* info, int batch) {
  *info = 0;
  if (!list_on_device(a, batch) || !list_on_device(b, batch) ||
      !on_device(pivots, sizeof(int) * static_cast<size_t>(n * batch)))
    return CUBLAS_STATUS_INVALID_VALUE;
  return queued(enqueue_checked(
      stream_of(h),
      [=] {
        const char trans = letter(op);
        for (int i = 0; i < batch; ++i) {
          if (!matrix_on_device(a[i], n, n, lda) || !matrix_on_device(b[i], n, nrhs, ldb))
            return false;
          int ignored = 0;
          OnHost<const T> factors(a[i], n, n, lda);
          OnHost<T> x(b[i], n, nrhs, ldb);
          lapack<T>("getrs", &trans, &n, &nrhs, factors.get(), &lda, pivots + i * n, x.get(), &ldb,
                    &ignored);
        }
        return true;
      },
      "getrsBatched"));
}

template <class T>
cublasStatus_t geqrf_batched(cublasHandle_t h, int m, int n, T* const* a, int lda, T* const* tau,
                             int* info, int batch) {
  *info = 0;
  if (!list_on_device(a, batch) || !list_on_device(tau, batch)) return CUBLAS_STATUS_INVALID_VALUE;
  return queued(enqueue_checked(
      stream_of(h),
      [=] {
        for (int i = 0; i < batch; ++i) {
          if (!matrix_on_device(a[i], m, n, lda) ||
              !on_device(tau[i], sizeof(T) * static_cast<size_t>(std::min(m, n))))
            return false;
          int ignored = 0;
          OnHost<T> x(a[i], m, n, lda);
          with_work<T>([&](T* work, int* size) {
            lapack<T>("geqrf", &m, &n, x.get(), &lda, tau[i], work, size, &ignored);
          });
        }
        return true;
      },
      "geqrfBatched"));
}

}  // namespace
}  // namespace emulator

using namespace emulator;

cublasStatus_t cublasCreate_v2(cublasHandle_t* out) {
  *out = reinterpret_cast<cublasHandle_t>(new void*(nullptr));
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasDestroy_v2(cublasHandle_t h) {
  delete reinterpret_cast<void**>(h);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetStream_v2(cublasHandle_t h, cudaStream_t stream) {
  *reinterpret_cast<void**>(h) = stream;
  return CUBLAS_STATUS_SUCCESS;
}
const char* cublasGetStatusString(cublasStatus_t s) {
  return s == CUBLAS_STATUS_INVALID_VALUE ? "CUBLAS_STATUS_INVALID_VALUE"
                                          : "CUBLAS_STATUS_EXECUTION_FAILED";
}

#define CUBLAS_OF(L, T)                                                                            \
  cublasStatus_t cublas##L##trsm_v2(                                                               \
      cublasHandle_t h, cublasSideMode_t side, cublasFillMode_t uplo, cublasOperation_t op,        \
      cublasDiagType_t diag, int m, int n, const T* alpha, const T* a, int lda, T* b, int ldb) {   \
    const Solve s{side, uplo, op, diag, m, n, lda, ldb};                                           \
    return queued(enqueue_checked(                                                                 \
        stream_of(h), [=, by = *as_host(alpha)] { return trsm(s, by, as_host(a), as_host(b)); },   \
        "trsm"));                                                                                  \
  }                                                                                                \
  cublasStatus_t cublas##L##trsmBatched(                                                           \
      cublasHandle_t h, cublasSideMode_t side, cublasFillMode_t uplo, cublasOperation_t op,        \
      cublasDiagType_t diag, int m, int n, const T* alpha, const T* const a[], int lda,            \
      T* const b[], int ldb, int batch) {                                                          \
    return trsm_batched(h, {side, uplo, op, diag, m, n, lda, ldb}, as_host(alpha),                 \
                        as_host_list(a), as_host_list(b), batch);                                  \
  }                                                                                                \
  cublasStatus_t cublas##L##getrfBatched(cublasHandle_t h, int n, T* const a[], int lda,           \
                                         int* pivots, int* info, int batch) {                      \
    return getrf_batched(h, n, as_host_list(a), lda, pivots, info, batch);                         \
  }                                                                                                \
  cublasStatus_t cublas##L##getrsBatched(cublasHandle_t h, cublasOperation_t op, int n, int nrhs,  \
                                         const T* const a[], int lda, const int* pivots,           \
                                         T* const b[], int ldb, int* info, int batch) {            \
    return getrs_batched(h, op, n, nrhs, as_host_list(a), lda, pivots, as_host_list(b), ldb, info, \
                         batch);                                                                   \
  }                                                                                                \
  cublasStatus_t cublas##L##geqrfBatched(cublasHandle_t h, int m, int n, T* const a[], int lda,    \
                                         T* const tau[], int* info, int batch) {                   \
    return geqrf_batched(h, m, n, as_host_list(a), lda, as_host_list(tau), info, batch);           \
  }
CUBLAS_OF(S, float)
CUBLAS_OF(D, double)
CUBLAS_OF(C, cuComplex)
CUBLAS_OF(Z, cuDoubleComplex)
