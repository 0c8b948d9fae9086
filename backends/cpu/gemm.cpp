#include "gemm.h"

#include <algorithm>
#include <type_traits>

#include "isa.h"
#include "tessera/ops/loops.h"
#include "thread_pool.h"

namespace tessera::cpu {

namespace {

constexpr int kRows = 4;

template <class T>
TS_INLINE T mul_add(T acc, T x, T y) {
  if constexpr (std::is_integral_v<T>) {
    // Narrow types would be promoted to int, and overflow.
    using W = std::conditional_t<(sizeof(T) < 4), uint32_t, T>;
    return static_cast<T>(static_cast<W>(acc) + static_cast<W>(x) * static_cast<W>(y));
  } else {
    return acc + x * y;
  }
}

// R rows by kCols columns held in registers over all of k.
template <class T, int R, int kCols>
TS_INLINE void block(int64_t n, int64_t k, const T* a, int64_t ar, int64_t ac, const T* b,
                     int64_t br, T* c) {
  T acc[R][kCols] = {};
  for (int64_t p = 0; p < k; ++p)
    for (int r = 0; r < R; ++r) {
      T x = a[r * ar + p * ac];
      for (int j = 0; j < kCols; ++j) acc[r][j] = mul_add(acc[r][j], x, b[p * br + j]);
    }
  for (int r = 0; r < R; ++r)
    for (int j = 0; j < kCols; ++j) c[r * n + j] = acc[r][j];
}

template <class T>
TS_INLINE void edge(int64_t rows, int64_t cols, int64_t n, int64_t k, const T* a, int64_t ar,
                    int64_t ac, const T* b, int64_t br, T* c) {
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t j = 0; j < cols; ++j) c[r * n + j] = T(0);
    for (int64_t p = 0; p < k; ++p) {
      T x = a[r * ar + p * ac];
      for (int64_t j = 0; j < cols; ++j) c[r * n + j] = mul_add(c[r * n + j], x, b[p * br + j]);
    }
  }
}

// Rows [first, last) of the result.
template <class T, int kCols>
TS_INLINE void rows(int64_t first, int64_t last, int64_t n, int64_t k, const T* a, int64_t ar,
                    int64_t ac, const T* b, int64_t br, T* c) {
  for (int64_t j = 0; j < n; j += kCols) {
    int64_t cols = std::min<int64_t>(kCols, n - j);
    int64_t i = first;
    if (cols == kCols)
      for (; i + kRows <= last; i += kRows)
        block<T, kRows, kCols>(n, k, a + i * ar, ar, ac, b + j, br, c + i * n + j);
    if (cols == kCols)
      for (; i < last; ++i) block<T, 1, kCols>(n, k, a + i * ar, ar, ac, b + j, br, c + i * n + j);
    else
      edge<T>(last - i, cols, n, k, a + i * ar, ar, ac, b + j, br, c + i * n + j);
  }
}

template <class T>
void rows_baseline(int64_t f, int64_t l, int64_t n, int64_t k, const T* a, int64_t ar, int64_t ac,
                   const T* b, int64_t br, T* c) {
  rows<T, 32 / sizeof(T)>(f, l, n, k, a, ar, ac, b, br, c);
}
template <class T>
TS_TARGET_AVX2 void rows_avx2(int64_t f, int64_t l, int64_t n, int64_t k, const T* a, int64_t ar,
                              int64_t ac, const T* b, int64_t br, T* c) {
  rows<T, 64 / sizeof(T)>(f, l, n, k, a, ar, ac, b, br, c);
}
template <class T>
TS_TARGET_AVX512 void rows_avx512(int64_t f, int64_t l, int64_t n, int64_t k, const T* a,
                                  int64_t ar, int64_t ac, const T* b, int64_t br, T* c) {
  rows<T, 128 / sizeof(T)>(f, l, n, k, a, ar, ac, b, br, c);
}

}  // namespace

template <class T>
void gemm(int64_t m, int64_t n, int64_t k, const T* a, int64_t a_row, int64_t a_col, const T* b,
          int64_t b_row, T* c) {
  constexpr decltype(&rows_baseline<T>) kLoops[] = {rows_baseline<T>, rows_avx2<T>, rows_avx512<T>};
  auto loop = kLoops[g_isa];
  int64_t row_work = std::max<int64_t>(1, n * k);
  if (m * row_work <= 32 * 1024) return loop(0, m, n, k, a, a_row, a_col, b, b_row, c);
  // Whole register blocks of rows to each thread.
  int64_t groups = (m + kRows - 1) / kRows;
  int64_t grain = std::max<int64_t>(1, 32 * 1024 / (row_work * kRows));
  parallel_for(0, groups, grain, [&](int64_t f, int64_t l) {
    loop(f * kRows, std::min(m, l * kRows), n, k, a, a_row, a_col, b, b_row, c);
  });
}

template void gemm<float>(int64_t, int64_t, int64_t, const float*, int64_t, int64_t, const float*,
                          int64_t, float*);
template void gemm<double>(int64_t, int64_t, int64_t, const double*, int64_t, int64_t,
                           const double*, int64_t, double*);
template void gemm<c64>(int64_t, int64_t, int64_t, const c64*, int64_t, int64_t, const c64*,
                        int64_t, c64*);
template void gemm<c128>(int64_t, int64_t, int64_t, const c128*, int64_t, int64_t, const c128*,
                         int64_t, c128*);
template void gemm<uint8_t>(int64_t, int64_t, int64_t, const uint8_t*, int64_t, int64_t,
                            const uint8_t*, int64_t, uint8_t*);
template void gemm<uint16_t>(int64_t, int64_t, int64_t, const uint16_t*, int64_t, int64_t,
                             const uint16_t*, int64_t, uint16_t*);
template void gemm<uint32_t>(int64_t, int64_t, int64_t, const uint32_t*, int64_t, int64_t,
                             const uint32_t*, int64_t, uint32_t*);
template void gemm<uint64_t>(int64_t, int64_t, int64_t, const uint64_t*, int64_t, int64_t,
                             const uint64_t*, int64_t, uint64_t*);

}  // namespace tessera::cpu
