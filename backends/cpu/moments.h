// Mean and sum of squared deviations, by which variances and normalisations are made.
//
// Note [Moments]
// A block of elements is read twice while it is in the cache: for its mean, then for the deviations
// d from it. Rounding of the mean is taken out again by the sum of the d, which would be zero:
// mean + sum(d) / n, and sum(d * d) - sum(d)^2 / n. So a large offset costs no digits. Blocks are
// combined in double, which costs nothing, as there are few. An infinite element makes the mean
// infinite (or nan, beside its opposite) and the deviations nan, wherever it stands: x - x + y - y
// is zero of finite numbers alone.
#pragma once
#include "tessera/ops/reduce_loops.h"

namespace tessera::cpu {

struct Moments {
  double mean;
  double m2;  // sum of squared deviations from the mean
};

// Two blocks to one.
TS_INLINE Moments merge_moments(Moments a, double na, Moments b, double nb) {
  const double d = b.mean - a.mean, n = na + nb;
  const double odd = (a.mean - a.mean) + (b.mean - b.mean);
  return {odd == 0 ? a.mean + d * (nb / n) : a.mean + b.mean,
          a.m2 + b.m2 + d * d * (na * nb / n) + odd};
}

namespace detail {

struct Plus {
  template <class T>
  static TS_INLINE T combine(T x, T y) {
    return x + y;
  }
};

// The lanes of a block: kReduceLanes of T in vectors of kBytes.
template <class T, int kBytes>
struct BlockLanes {
  using L = loops::LanesOf<T, kBytes>;
  using V = typename L::Vector;
  static constexpr int kVectors = static_cast<int>(loops::kReduceLanes) / L::kCount;
  V lanes[kVectors];

  TS_INLINE void clear() {
#pragma GCC unroll 64
    for (int v = 0; v < kVectors; ++v) lanes[v] = V{};
  }
  TS_INLINE T fold() {
#pragma GCC unroll 8
    for (int half = kVectors / 2; half > 0; half /= 2)
#pragma GCC unroll 64
      for (int v = 0; v < half; ++v) lanes[v] += lanes[v + half];
    return loops::fold_lanes<Plus, T, kBytes, L::kCount / 2>(lanes[0]);
  }
};

template <class T, int kBytes>
TS_INLINE void add_elements(BlockLanes<T, kBytes>& sum, const T* in) {
  using L = typename BlockLanes<T, kBytes>::L;
#pragma GCC unroll 64
  for (int v = 0; v < sum.kVectors; ++v) sum.lanes[v] += L::load(in + v * L::kCount);
}
template <class T, int kBytes>
TS_INLINE void add_deviations(BlockLanes<T, kBytes>& first, BlockLanes<T, kBytes>& second,
                              const T* in, T mean) {
  using L = typename BlockLanes<T, kBytes>::L;
#pragma GCC unroll 64
  for (int v = 0; v < first.kVectors; ++v) {
    const typename L::Vector d = L::load(in + v * L::kCount) - mean;
    first.lanes[v] += d;
    second.lanes[v] += d * d;
  }
}

// In double, for numbers whose sums or squares are beyond float.
template <class T>
Moments wide_moments(const T* in, int64_t n) {
  double sum = 0, m2 = 0;
  for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(in[i]);
  const double mean = sum / static_cast<double>(n);
  for (int64_t i = 0; i < n; ++i) {
    const double d = static_cast<double>(in[i]) - mean;
    m2 += d * d;
  }
  return {mean, m2};
}

}  // namespace detail

// Of n dense elements, at most kReduceBlock.
template <class T, int kBytes>
TS_INLINE Moments block_moments(const T* in, int64_t n) {
  constexpr int64_t kStep = loops::kReduceLanes;
  const int64_t whole = n / kStep * kStep;
  detail::BlockLanes<T, kBytes> sum, first, second;
  alignas(64) T rest[kStep];  // what is past the last whole step, filled up

  sum.clear();
  for (int64_t i = 0; i < whole; i += kStep) detail::add_elements(sum, in + i);
  if (whole < n) {
    for (int64_t j = 0; j < kStep; ++j) rest[j] = whole + j < n ? in[whole + j] : T(0);
    detail::add_elements(sum, rest);
  }
  const T mean = sum.fold() / static_cast<T>(n);

  first.clear();
  second.clear();
  for (int64_t i = 0; i < whole; i += kStep) detail::add_deviations(first, second, in + i, mean);
  if (whole < n) {
    for (int64_t j = n - whole; j < kStep; ++j) rest[j] = mean;
    detail::add_deviations(first, second, rest, mean);
  }
  const double shift = static_cast<double>(first.fold()), count = static_cast<double>(n);
  const Moments m{static_cast<double>(mean) + shift / count,
                  static_cast<double>(second.fold()) - shift * shift / count};
  if (!math::isfinite(m.m2)) [[unlikely]]
    return detail::wide_moments(in, n);
  return {m.mean, m.m2 > 0 ? m.m2 : 0.0};
}

// Eight rows of n columns into the moments of each column, which hold `seen` elements already.
template <class T>
TS_INLINE void eight_rows_moments(double* __restrict mean, double* __restrict m2, const T* in,
                                  int64_t n, int64_t stride, int64_t seen) {
  const double count = static_cast<double>(seen), all = count + 8;
  const double part = 8 / all, cross = count * 8 / all;
  const T *in1 = in + stride, *in2 = in + 2 * stride, *in3 = in + 3 * stride;
  const T *in4 = in + 4 * stride, *in5 = in + 5 * stride, *in6 = in + 6 * stride;
  const T* in7 = in + 7 * stride;
  for (int64_t i = 0; i < n; ++i) {
    const T a = in[i], b = in1[i], c = in2[i], d = in3[i], e = in4[i], f = in5[i], g = in6[i],
            h = in7[i];
    const T m = (((a + b) + (c + d)) + ((e + f) + (g + h))) * T(0.125);
    const T da = a - m, db = b - m, dc = c - m, dd = d - m, de = e - m, df = f - m, dg = g - m,
            dh = h - m;
    const T first = ((da + db) + (dc + dd)) + ((de + df) + (dg + dh));
    const T second =
        ((da * da + db * db) + (dc * dc + dd * dd)) + ((de * de + df * df) + (dg * dg + dh * dh));
    const double shift = static_cast<double>(first);
    const double whole = static_cast<double>(m);
    const double block_mean = shift - shift == 0 ? whole + shift * 0.125 : whole;
    const double block_m2 = static_cast<double>(second) - shift * shift * 0.125;
    const double before = mean[i], delta = block_mean - before;
    const double odd = (before - before) + (block_mean - block_mean);
    mean[i] = odd == 0 ? before + delta * part : before + block_mean;
    m2[i] += block_m2 + delta * delta * cross + odd;
  }
}
// One row.
template <class T>
TS_INLINE void one_row_moments(double* __restrict mean, double* __restrict m2, const T* in,
                               int64_t n, int64_t seen) {
  const double count = static_cast<double>(seen), part = 1 / (count + 1), cross = count * part;
  for (int64_t i = 0; i < n; ++i) {
    const double x = static_cast<double>(in[i]), before = mean[i], delta = x - before;
    const double odd = (before - before) + (x - x);
    mean[i] = odd == 0 ? before + delta * part : before + x;
    m2[i] += delta * delta * cross + odd;
  }
}

}  // namespace tessera::cpu
