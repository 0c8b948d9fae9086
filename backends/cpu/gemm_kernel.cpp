// This file alone is compiled with -ffp-contract=fast: x * y + z is one operation here.
#include "gemm_kernel.h"

#include <cmath>

#include "isa.h"
#include "tessera/ops/loops.h"

namespace tessera::cpu {

namespace {

// kRows by kVectors vectors, held in registers over all of k.
template <class T, int kBytes, int kRows, int kVectors>
TS_INLINE void multiply(const GemmPiece<T>& g) {
  constexpr int kLanes = kBytes / static_cast<int>(sizeof(T));
  typedef T V __attribute__((vector_size(kBytes)));
  V acc[kRows][kVectors];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) acc[r][v] = V{};
  const T *a = g.a, *b = g.b;
  const int64_t a_row = g.a_row, a_step = g.a_step, b_step = g.b_step;
  for (int64_t p = 0; p < g.k; ++p, a += a_step, b += b_step) {
    V y[kVectors];
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) __builtin_memcpy(&y[v], b + v * kLanes, kBytes);
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const T x = a[r * a_row];
#pragma GCC unroll 16
      for (int v = 0; v < kVectors; ++v) acc[r][v] += y[v] * x;
    }
  }
  const int64_t full = g.cols / kLanes, rest = g.cols - full * kLanes;
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
    T* c = g.c + r * g.c_row;
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) {
      if (v < full) {
        V x, old, bias;
        __builtin_memcpy(&old, c + v * kLanes, kBytes);
        x = g.add ? old + acc[r][v] : acc[r][v];
        if (g.bias) {
          __builtin_memcpy(&bias, g.bias + v * kLanes, kBytes);
          x = x + bias;
        }
        __builtin_memcpy(c + v * kLanes, &x, kBytes);
      } else {
        for (int64_t j = 0; j < rest; ++j) {
          const int64_t at = v * kLanes + j;
          T x = g.add ? c[at] + acc[r][v][j] : acc[r][v][j];
          c[at] = g.bias ? x + g.bias[at] : x;
        }
      }
    }
  }
}

template <class T, int kBytes, int kMaxRows, int kMaxVectors, int kRows = 1, int kVectors = 1>
TS_INLINE void choose(const GemmPiece<T>& g, int64_t rows, int64_t vectors) {
  if (rows != kRows) {
    if constexpr (kRows < kMaxRows)
      choose<T, kBytes, kMaxRows, kMaxVectors, kRows + 1, 1>(g, rows, vectors);
  } else if (vectors != kVectors) {
    if constexpr (kVectors < kMaxVectors)
      choose<T, kBytes, kMaxRows, kMaxVectors, kRows, kVectors + 1>(g, rows, vectors);
  } else {
    multiply<T, kBytes, kRows, kVectors>(g);
  }
}

template <class T>
TS_TARGET_AVX2 void run_avx2(const GemmPiece<T>& g) {
  constexpr int64_t kLanes = 32 / sizeof(T);
  choose<T, 32, 6, 2>(g, g.rows, (g.cols + kLanes - 1) / kLanes);
}
template <class T>
TS_TARGET_AVX512 void run_avx512(const GemmPiece<T>& g) {
  constexpr int64_t kLanes = 64 / sizeof(T);
  choose<T, 64, 6, 4>(g, g.rows, (g.cols + kLanes - 1) / kLanes);
}
// Where only the loops below were asked for: as slow as calls of fma are.
template <class T>
void run_baseline(const GemmPiece<T>& g) {
  for (int64_t i = 0; i < g.rows; ++i) {
    for (int64_t j = 0; j < g.cols; ++j) {
      T sum = 0;
      for (int64_t p = 0; p < g.k; ++p)
        sum = std::fma(g.a[i * g.a_row + p * g.a_step], g.b[p * g.b_step + j], sum);
      T* c = g.c + i * g.c_row + j;
      const T x = g.add ? *c + sum : sum;
      *c = g.bias ? x + g.bias[j] : x;
    }
  }
}

bool has_fma() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("fma");
#else
  return true;
#endif
}

}  // namespace

template <class T>
const GemmKernel<T>* gemm_kernel() noexcept {
  constexpr int64_t k32 = 32 / sizeof(T), k64 = 64 / sizeof(T);
  static constexpr GemmKernel<T> kKernels[] = {{4, 2 * k32, 1, run_baseline<T>},
                                               {6, 2 * k32, k32, run_avx2<T>},
                                               {6, 4 * k64, k64, run_avx512<T>}};
  static const bool there = has_fma();
  return there ? &kKernels[g_isa] : nullptr;
}

template const GemmKernel<float>* gemm_kernel<float>() noexcept;
template const GemmKernel<double>* gemm_kernel<double>() noexcept;

}  // namespace tessera::cpu
