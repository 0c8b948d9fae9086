// Loops of softmax and log_softmax over dense rows, or over dense columns side by side. T is float
// or double; vectors have kBytes. Sums have a fixed order: of a row that of reductions, of a column
// one element after the other by kColumnBlock.
#pragma once
#include <algorithm>

#include "moments.h"

namespace tessera::cpu {

inline constexpr int64_t kColumnBlock = 64;

// exp of a number that is not above zero; zero where that is below the smallest normal number or
// near it: the scale of the least argument is 2^-127, whose bits are those of zero.
TS_INLINE float exp_down(float x) {
  const float least = -88.03f;
  x = least > x ? least : x;
  float t = x * 1.44269504f + 12582912.0f;
  const uint32_t scale = (std::bit_cast<uint32_t>(t) << 23) + 0x3f800000u;
  t -= 12582912.0f;
  const float r = (x - t * 0.693359375f) + t * 2.12194440e-4f;
  float p = 1.3814610389e-3f;
  p = p * r + 8.3687111366e-3f;
  p = p * r + 4.1668387491e-2f;
  p = p * r + 1.6666520679e-1f;
  p = p * r + 4.9999993451e-1f;
  p = (p * r * r + r) + 1.0f;
  return p * std::bit_cast<float>(scale);
}
TS_INLINE double exp_down(double x) { return math::exp(x); }

struct Larger {
  static constexpr const char* kMap = "a";
  static constexpr const char* kCombine = "max(x, y)";
  template <class T>
  static TS_INLINE T init() {
    return -std::numeric_limits<T>::infinity();
  }
  template <class T>
  static TS_INLINE T map(T a) {
    return a;
  }
  template <class T>
  static TS_INLINE T combine(T x, T y) {
    return x > y ? x : y;
  }
};

// The largest element and the sum of exponentials below it; those go to e unless it is null.
// Meanwhile the row at next, whose elements have item bytes, is fetched to the cache: its largest
// element would else be waited for while nothing is computed.
template <class T, int kBytes>
TS_INLINE void row_exponentials(const T* x, T* e, int64_t n, const char* next, int64_t item,
                                T* top_out, T* sum) {
  constexpr int64_t kStep = loops::kReduceLanes;
  constexpr int kWide = loops::vector_bytes<Larger>(kBytes);
  constexpr int kHalf = loops::LanesOf<T, kWide>::kCount / 2;
  const T top =
      loops::fold_lanes<Larger, T, kWide, kHalf>(loops::reduce_lanes<Larger, T, kWide>(x, n));
  detail::BlockLanes<T, kBytes> lanes;
  lanes.clear();
  alignas(64) T terms[kStep];
  int64_t i = 0;
  for (; i + kStep <= n; i += kStep) {
    if (next)
      for (int64_t line = 0; line < kStep * item; line += 64)
        __builtin_prefetch(next + i * item + line);
    for (int64_t j = 0; j < kStep; ++j) terms[j] = exp_down(x[i + j] - top);
    if (e) __builtin_memcpy(e + i, terms, sizeof terms);
    detail::add_elements(lanes, terms);
  }
  if (i < n) {
    for (int64_t j = 0; j < kStep; ++j) terms[j] = T(0);
    for (int64_t j = 0; j < n - i; ++j) terms[j] = exp_down(x[i + j] - top);
    detail::add_elements(lanes, terms);
    if (e) std::copy_n(terms, n - i, e + i);
  }
  *top_out = top;
  *sum = lanes.fold();
}

template <class T>
TS_INLINE void scale_row(const T* e, T* y, int64_t n, T factor) {
  for (int64_t i = 0; i < n; ++i) y[i] = e[i] * factor;
}
template <class T>
TS_INLINE void shift_row(const T* x, T* y, int64_t n, T top, T log_sum) {
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] - top - log_sum;
}

// Columns: rows of n, `step` apart, `rows` of them.
template <class T>
TS_INLINE void column_max(const T* x, int64_t step, int64_t rows, int64_t n, T* __restrict top) {
  int64_t k = 0;
  for (; k + 4 <= rows; k += 4, x += 4 * step) {
    const T *b = x + step, *c = x + 2 * step, *d = x + 3 * step;
    for (int64_t j = 0; j < n; ++j) {
      T m = x[j] > top[j] ? x[j] : top[j];
      m = b[j] > m ? b[j] : m;
      m = c[j] > m ? c[j] : m;
      top[j] = d[j] > m ? d[j] : m;
    }
  }
  for (; k < rows; ++k, x += step)
    for (int64_t j = 0; j < n; ++j) top[j] = x[j] > top[j] ? x[j] : top[j];
}
// One row of exponentials, added to part; they go to e unless it is null.
template <class T>
TS_INLINE void column_exponentials(const T* x, int64_t n, const T* __restrict top,
                                   T* __restrict part, T* e) {
  if (e) {
#pragma GCC ivdep
    for (int64_t j = 0; j < n; ++j) {
      e[j] = exp_down(x[j] - top[j]);
      part[j] += e[j];
    }
  } else {
    for (int64_t j = 0; j < n; ++j) part[j] += exp_down(x[j] - top[j]);
  }
}

}  // namespace tessera::cpu
