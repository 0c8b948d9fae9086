// OpenBLAS, opened at first use: it takes tens of milliseconds to load, and most imports never
// multiply matrices. Without it the own loops of gemm.h do the work.
#pragma once
#include <cstdint>

namespace tessera::cpu {

struct Blas {
  void (*sgemm)(int order, int trans_a, int trans_b, int m, int n, int k, float alpha,
                const float* a, int lda, const float* b, int ldb, float beta, float* c, int ldc);
  void (*dgemm)(int order, int trans_a, int trans_b, int m, int n, int k, double alpha,
                const double* a, int lda, const double* b, int ldb, double beta, double* c,
                int ldc);
  // Complex numbers go by address, also the two factors.
  void (*cgemm)(int order, int trans_a, int trans_b, int m, int n, int k, const void* alpha,
                const void* a, int lda, const void* b, int ldb, const void* beta, void* c, int ldc);
  void (*zgemm)(int order, int trans_a, int trans_b, int m, int n, int k, const void* alpha,
                const void* a, int lda, const void* b, int ldb, const void* beta, void* c, int ldc);
  void (*set_num_threads)(int n);  // null where the library has none
};
inline constexpr int kBlasRowMajor = 101, kBlasNoTrans = 111, kBlasTrans = 112;

// Null if there is none (or TESSERA_BLAS=none). TESSERA_BLAS may name a library. Its thread count
// follows ours.
const Blas* blas() noexcept;
// Until the next call of blas(): for loops of ours that call the library from each of our threads.
void set_blas_threads(int n) noexcept;
// The file it was opened from; empty if there is none.
const char* blas_name() noexcept;

}  // namespace tessera::cpu
