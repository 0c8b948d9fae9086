// libcusolver and libcublas as structs of function pointers, opened at the first factorisation. A
// table for each type of number; what is not one of a type is in the struct itself.
#pragma once
#include <cublas_v2.h>
#include <cusolverDn.h>

// One a line, which the formatter does not leave so.
// clang-format off
// L: the letter of the type; OR: or, un; SY: sy, he.
#define TS_CUSOLVER_ROUTINES(X, L, OR, SY)                       \
  X(potrf_size, L##potrf_bufferSize)                             \
  X(potrf, L##potrf)                                             \
  X(potrf_batched, L##potrfBatched)                              \
  X(getrf_size, L##getrf_bufferSize)                             \
  X(getrf, L##getrf)                                             \
  X(getrs, L##getrs)                                             \
  X(geqrf_size, L##geqrf_bufferSize)                             \
  X(geqrf, L##geqrf)                                             \
  X(orgqr_size, L##OR##gqr_bufferSize)                           \
  X(orgqr, L##OR##gqr)                                           \
  X(ormqr_size, L##OR##mqr_bufferSize)                           \
  X(ormqr, L##OR##mqr)                                           \
  X(sytrf_size, L##sytrf_bufferSize)                             \
  X(sytrf, L##sytrf)                                             \
  X(syevd_size, L##SY##evd_bufferSize)                           \
  X(syevd, L##SY##evd)                                           \
  X(syevj_batched_size, L##SY##evjBatched_bufferSize)            \
  X(syevj_batched, L##SY##evjBatched)                            \
  X(gesvdj_size, L##gesvdj_bufferSize)                           \
  X(gesvdj, L##gesvdj)                                           \
  X(gesvdj_batched_size, L##gesvdjBatched_bufferSize)            \
  X(gesvdj_batched, L##gesvdjBatched)

#define TS_CUBLAS_ROUTINES(X, L)        \
  X(trsm, L##trsm_v2)                   \
  X(trsm_batched, L##trsmBatched)       \
  X(getrf_batched, L##getrfBatched)     \
  X(getrs_batched, L##getrsBatched)     \
  X(geqrf_batched, L##geqrfBatched)

#define TS_CUSOLVER_FUNCTIONS(X)     \
  X(cusolverDnCreate)                \
  X(cusolverDnDestroy)               \
  X(cusolverDnSetStream)             \
  X(cusolverDnCreateParams)          \
  X(cusolverDnDestroyParams)         \
  X(cusolverDnCreateSyevjInfo)       \
  X(cusolverDnDestroySyevjInfo)      \
  X(cusolverDnCreateGesvdjInfo)      \
  X(cusolverDnDestroyGesvdjInfo)
// Since CUDA 12.6; null before.
#define TS_CUSOLVER_NEW_FUNCTIONS(X) \
  X(cusolverDnXgeev_bufferSize)      \
  X(cusolverDnXgeev)
#define TS_CUBLAS_FUNCTIONS(X) \
  X(cublasCreate_v2)           \
  X(cublasDestroy_v2)          \
  X(cublasSetStream_v2)        \
  X(cublasGetStatusString)
// clang-format on

namespace tessera::cuda {

template <class T>
struct SolverTable;
#define TS_MEMBER(member, name) decltype(&::cusolverDn##name) member;
#define TS_BLAS_MEMBER(member, name) decltype(&::cublas##name) member;
#define TS_SOLVER_TABLE(T, R, L, OR, SY)                    \
  template <>                                               \
  struct SolverTable<T> {                                   \
    using Real = R;                                         \
    static constexpr bool kComplex = sizeof(T) > sizeof(R); \
    TS_CUSOLVER_ROUTINES(TS_MEMBER, L, OR, SY)              \
    TS_CUBLAS_ROUTINES(TS_BLAS_MEMBER, L)                   \
  };
TS_SOLVER_TABLE(float, float, S, or, sy)
TS_SOLVER_TABLE(double, double, D, or, sy)
TS_SOLVER_TABLE(cuComplex, float, C, un, he)
TS_SOLVER_TABLE(cuDoubleComplex, double, Z, un, he)
#undef TS_SOLVER_TABLE
#undef TS_BLAS_MEMBER
#undef TS_MEMBER

struct SolverApi {
#define TS_FUNCTION(f) decltype(&::f) f;
  TS_CUSOLVER_FUNCTIONS(TS_FUNCTION)
  TS_CUSOLVER_NEW_FUNCTIONS(TS_FUNCTION)
  TS_CUBLAS_FUNCTIONS(TS_FUNCTION)
#undef TS_FUNCTION
  SolverTable<float> f32;
  SolverTable<double> f64;
  SolverTable<cuComplex> c64;
  SolverTable<cuDoubleComplex> c128;
};

// Null if one of the two cannot be opened; *why says the reason.
const SolverApi* solver_api(const char** why);

}  // namespace tessera::cuda
