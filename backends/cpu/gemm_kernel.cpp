// This file alone is compiled with -ffp-contract=fast: x * y + z is one operation here.
#include "gemm_kernel.h"

#include <cmath>

#include "isa.h"
#include "tessera/ops/loops.h"

namespace tessera::cpu {

namespace {

// Fewer columns than a vector has.
template <class T>
__attribute__((noinline)) void store_part(const T* x, T* c, int64_t n, bool add, const T* bias) {
  for (int64_t j = 0; j < n; ++j) {
    const T y = add ? c[j] + x[j] : x[j];
    c[j] = bias ? y + bias[j] : y;
  }
}

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
      // The results are written after all of k: by then their lines are near.
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) __builtin_prefetch(g.c + r * g.c_row + v * kLanes, 1);
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
        T part[kLanes];
        __builtin_memcpy(part, &acc[r][v], kBytes);
        store_part(part, c + v * kLanes, rest, g.add, g.bias ? g.bias + v * kLanes : nullptr);
      }
    }
  }
}

// One function for each number of rows and vectors: all in one takes GCC a minute.
template <class T, int kRows, int kVectors>
TS_TARGET_AVX2 void piece_avx2(const GemmPiece<T>& g) {
  multiply<T, 32, kRows, kVectors>(g);
}
template <class T, int kRows, int kVectors>
TS_TARGET_AVX512 void piece_avx512(const GemmPiece<T>& g) {
  multiply<T, 64, kRows, kVectors>(g);
}
template <class T>
void run_avx2(const GemmPiece<T>& g) {
  constexpr int64_t kLanes = 32 / sizeof(T);
#define TS_ROW(r) \
  { piece_avx2<T, r, 1>, piece_avx2<T, r, 2> }
  static constexpr void (*kPieces[6][2])(const GemmPiece<T>&) = {TS_ROW(1), TS_ROW(2), TS_ROW(3),
                                                                 TS_ROW(4), TS_ROW(5), TS_ROW(6)};
#undef TS_ROW
  kPieces[g.rows - 1][(g.cols + kLanes - 1) / kLanes - 1](g);
}
template <class T>
void run_avx512(const GemmPiece<T>& g) {
  constexpr int64_t kLanes = 64 / sizeof(T);
#define TS_ROW(r) \
  { piece_avx512<T, r, 1>, piece_avx512<T, r, 2>, piece_avx512<T, r, 3>, piece_avx512<T, r, 4> }
  static constexpr void (*kPieces[6][4])(const GemmPiece<T>&) = {TS_ROW(1), TS_ROW(2), TS_ROW(3),
                                                                 TS_ROW(4), TS_ROW(5), TS_ROW(6)};
#undef TS_ROW
  kPieces[g.rows - 1][(g.cols + kLanes - 1) / kLanes - 1](g);
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
