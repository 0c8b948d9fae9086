// Compiled with -ffp-contract=fast, as gemm_kernel.cpp is: x * y + z is one operation here.
#include "gemm_dots.h"

#include <algorithm>
#include <cmath>

#include "gemm_kernel.h"
#include "isa.h"
#include "tessera/ops/loops.h"
#include "thread_pool.h"

namespace tessera::cpu {

namespace {

constexpr int kLaneBytes = 64;
constexpr int64_t kSerialProducts = 32 * 1024;

template <class T>
struct Dots {
  const T* a;
  int64_t a_row;
  const T* b;
  int64_t b_col;
  int64_t k;
  T* out;  // kRows by kCols
};

template <class T, int kLanes>
TS_INLINE T fold(T (&lanes)[kLanes]) {
  for (int half = kLanes / 2; half > 0; half /= 2)
    for (int l = 0; l < half; ++l) lanes[l] += lanes[l + half];
  return lanes[0];
}

// kRows of a with kCols of b, in vectors of kBytes.
template <class T, int kBytes, int kRows, int kCols>
TS_INLINE void dots(const Dots<T>& d) {
  constexpr int kLanes = kLaneBytes / static_cast<int>(sizeof(T)), kParts = kLaneBytes / kBytes;
  constexpr int kOf = kBytes / static_cast<int>(sizeof(T));
  typedef T V __attribute__((vector_size(kBytes)));
  V sum[kRows][kCols][kParts];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 16
    for (int q = 0; q < kCols; ++q)
#pragma GCC unroll 4
      for (int s = 0; s < kParts; ++s) sum[r][q][s] = V{};
  auto step = [&](const T* a, int64_t a_row, const T* b, int64_t b_col)
      __attribute__((always_inline)) {
#pragma GCC unroll 4
    for (int s = 0; s < kParts; ++s) {
      V y[kCols];
#pragma GCC unroll 16
      for (int q = 0; q < kCols; ++q) __builtin_memcpy(&y[q], b + q * b_col + s * kOf, kBytes);
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
        V x;
        __builtin_memcpy(&x, a + r * a_row + s * kOf, kBytes);
#pragma GCC unroll 16
        for (int q = 0; q < kCols; ++q) sum[r][q][s] += x * y[q];
      }
    }
  };
  int64_t p = 0;
  for (; p + kLanes <= d.k; p += kLanes) step(d.a + p, d.a_row, d.b + p, d.b_col);
  if (p < d.k) {
    alignas(64) T x[kRows * kLanes] = {}, y[kCols * kLanes] = {};
    for (int r = 0; r < kRows; ++r)
      for (int64_t l = 0; p + l < d.k; ++l) x[r * kLanes + l] = d.a[r * d.a_row + p + l];
    for (int q = 0; q < kCols; ++q)
      for (int64_t l = 0; p + l < d.k; ++l) y[q * kLanes + l] = d.b[q * d.b_col + p + l];
    step(x, kLanes, y, kLanes);
  }
  for (int r = 0; r < kRows; ++r)
    for (int q = 0; q < kCols; ++q) {
      alignas(64) T lanes[kLanes];
      __builtin_memcpy(lanes, sum[r][q], kLaneBytes);
      d.out[r * kCols + q] = fold(lanes);
    }
}

template <class T, int kRows, int kCols>
TS_TARGET_AVX2 void dots_avx2(const Dots<T>& d) {
  dots<T, 32, kRows, kCols>(d);
}
template <class T, int kRows, int kCols>
TS_TARGET_AVX512 void dots_avx512(const Dots<T>& d) {
  dots<T, 64, kRows, kCols>(d);
}
// As slow as calls of fma are.
template <class T, int kRows, int kCols>
void dots_baseline(const Dots<T>& d) {
  constexpr int kLanes = kLaneBytes / static_cast<int>(sizeof(T));
  for (int r = 0; r < kRows; ++r)
    for (int q = 0; q < kCols; ++q) {
      T lanes[kLanes] = {};
      const int64_t whole = (d.k + kLanes - 1) / kLanes * kLanes;
      for (int64_t p = 0; p < whole; ++p) {
        const bool there = p < d.k;
        const T x = there ? d.a[r * d.a_row + p] : T(0), y = there ? d.b[q * d.b_col + p] : T(0);
        lanes[p % kLanes] = std::fma(x, y, lanes[p % kLanes]);
      }
      d.out[r * kCols + q] = fold(lanes);
    }
}

template <class T>
using DotsFn = void (*)(const Dots<T>&);

// Rows and columns at a time: as many as registers hold.
template <class T>
struct DotsTable {
  int most;
  DotsFn<T> by[4][4];
};
template <class T>
constexpr DotsTable<T> kDots[] = {
    {2,
     {{dots_baseline<T, 1, 1>, dots_baseline<T, 1, 2>},
      {dots_baseline<T, 2, 1>, dots_baseline<T, 2, 2>}}},
    {2, {{dots_avx2<T, 1, 1>, dots_avx2<T, 1, 2>}, {dots_avx2<T, 2, 1>, dots_avx2<T, 2, 2>}}},
#define TS_ROW(r) \
  { dots_avx512<T, r, 1>, dots_avx512<T, r, 2>, dots_avx512<T, r, 3>, dots_avx512<T, r, 4> }
    {4, {TS_ROW(1), TS_ROW(2), TS_ROW(3), TS_ROW(4)}}};
#undef TS_ROW

}  // namespace

template <class T>
bool gemm_dots(int64_t m, int64_t n, int64_t k, const T* a, int64_t a_row, const T* b,
               int64_t b_col, T* c, const T* bias) {
  if (!gemm_kernel<T>()) return false;
  const DotsTable<T>& table = kDots<T>[g_isa];
  const int64_t groups = (n + table.most - 1) / table.most;
  const int64_t work = std::max<int64_t>(1, m * k * table.most);
  // A few columns of b stay near while all rows of a pass.
  parallel_for(0, groups, std::max<int64_t>(1, kSerialProducts / work), [&](int64_t f, int64_t l) {
    T out[16];
    for (int64_t j = f * table.most; j < std::min(n, l * table.most); j += table.most) {
      const int64_t cols = std::min<int64_t>(table.most, n - j);
      for (int64_t i = 0; i < m; i += table.most) {
        const int64_t rows = std::min<int64_t>(table.most, m - i);
        table.by[rows - 1][cols - 1]({a + i * a_row, a_row, b + j * b_col, b_col, k, out});
        for (int64_t r = 0; r < rows; ++r)
          for (int64_t q = 0; q < cols; ++q)
            c[(i + r) * n + j + q] = bias ? out[r * cols + q] + bias[j + q] : out[r * cols + q];
      }
    }
  });
  return true;
}

template bool gemm_dots<float>(int64_t, int64_t, int64_t, const float*, int64_t, const float*,
                               int64_t, float*, const float*);
template bool gemm_dots<double>(int64_t, int64_t, int64_t, const double*, int64_t, const double*,
                                int64_t, double*, const double*);

}  // namespace tessera::cpu
