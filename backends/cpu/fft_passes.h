// One pass of a transform: butterflies of one radix over split arrays. See Note [How a transform is
// computed] in fft_plan.h.
#pragma once
#include <cstdint>

#include "tessera/ops/loops.h"

namespace tessera::cpu::fft {

inline constexpr int kLargestRadix = 61;  // of a loop; larger primes are convolutions
inline constexpr int kChunk = 16;

// Butterflies: the transform of R values in registers.
template <class T>
TS_INLINE void butterfly(T (&re)[2], T (&im)[2]) {
  T r = re[0] - re[1], i = im[0] - im[1];
  re[0] += re[1];
  im[0] += im[1];
  re[1] = r;
  im[1] = i;
}

template <class T>
TS_INLINE void butterfly(T (&re)[4], T (&im)[4]) {
  T ar = re[0] + re[2], ai = im[0] + im[2], br = re[0] - re[2], bi = im[0] - im[2];
  T cr = re[1] + re[3], ci = im[1] + im[3], dr = re[1] - re[3], di = im[1] - im[3];
  re[0] = ar + cr;
  im[0] = ai + ci;
  re[1] = br + di;
  im[1] = bi - dr;
  re[2] = ar - cr;
  im[2] = ai - ci;
  re[3] = br - di;
  im[3] = bi + dr;
}

template <class T>
TS_INLINE void butterfly(T (&re)[8], T (&im)[8]) {
  const T h = T(0.70710678118654752440);
  T er[4] = {re[0], re[2], re[4], re[6]}, ei[4] = {im[0], im[2], im[4], im[6]};
  T fr[4] = {re[1], re[3], re[5], re[7]}, fi[4] = {im[1], im[3], im[5], im[7]};
  butterfly(er, ei);
  butterfly(fr, fi);
  // Times the eighth roots: 1, (1 - i) h, -i, (-1 - i) h.
  T r1 = (fr[1] + fi[1]) * h, i1 = (fi[1] - fr[1]) * h;
  T r3 = (fi[3] - fr[3]) * h, i3 = (fr[3] + fi[3]) * h;
  re[0] = er[0] + fr[0];
  im[0] = ei[0] + fi[0];
  re[4] = er[0] - fr[0];
  im[4] = ei[0] - fi[0];
  re[1] = er[1] + r1;
  im[1] = ei[1] + i1;
  re[5] = er[1] - r1;
  im[5] = ei[1] - i1;
  re[2] = er[2] + fi[2];
  im[2] = ei[2] - fr[2];
  re[6] = er[2] - fi[2];
  im[6] = ei[2] + fr[2];
  re[3] = er[3] + r3;
  im[3] = ei[3] - i3;
  re[7] = er[3] - r3;
  im[7] = ei[3] + i3;
}

// Odd radices pair element k with R - k: their sums meet cosines, their differences sines.
template <class T, int R>
TS_INLINE void odd_butterfly(T (&re)[R], T (&im)[R], const T (&cosine)[R / 2 + 1],
                             const T (&sine)[R / 2 + 1]) {
  constexpr int H = R / 2;
  T sr[H + 1], si[H + 1], dr[H + 1], di[H + 1];
  T r0 = re[0], i0 = im[0];
  for (int k = 1; k <= H; ++k) {
    sr[k] = re[k] + re[R - k];
    si[k] = im[k] + im[R - k];
    dr[k] = re[k] - re[R - k];
    di[k] = im[k] - im[R - k];
    re[0] += sr[k];
    im[0] += si[k];
  }
  for (int j = 1; j <= H; ++j) {
    T ar = r0, ai = i0, br = 0, bi = 0;
    for (int k = 1; k <= H; ++k) {
      int at = j * k % R;
      T c = cosine[at <= H ? at : R - at];
      T s = at <= H ? sine[at] : -sine[R - at];
      ar += sr[k] * c;
      ai += si[k] * c;
      br += di[k] * s;
      bi -= dr[k] * s;
    }
    re[j] = ar + br;
    im[j] = ai + bi;
    re[R - j] = ar - br;
    im[R - j] = ai - bi;
  }
}
template <class T>
TS_INLINE void butterfly(T (&re)[3], T (&im)[3]) {
  const T c[] = {T(1), T(-0.5)}, s[] = {T(0), T(0.86602540378443864676)};
  odd_butterfly<T, 3>(re, im, c, s);
}
template <class T>
TS_INLINE void butterfly(T (&re)[5], T (&im)[5]) {
  const T c[] = {T(1), T(0.30901699437494742410), T(-0.80901699437494742410)};
  const T s[] = {T(0), T(0.95105651629515357212), T(0.58778525229247312917)};
  odd_butterfly<T, 5>(re, im, c, s);
}
template <class T>
TS_INLINE void butterfly(T (&re)[7], T (&im)[7]) {
  const T c[] = {T(1), T(0.62348980185873353053), T(-0.22252093395631440429),
                 T(-0.90096886790241912624)};
  const T s[] = {T(0), T(0.78183148246802980871), T(0.97492791218182360702),
                 T(0.43388373911755812048)};
  odd_butterfly<T, 7>(re, im, c, s);
}

// From element k of each of R parts of `rest` groups of `run` values to R values side by side,
// times the twiddles. Over the values of a group:
template <class T, int R>
TS_INLINE void pass_over_run(const T* __restrict xr, const T* __restrict xi, T* __restrict yr,
                             T* __restrict yi, int64_t rest, int64_t run, const T* twiddles) {
  const int64_t part = rest * run;
  for (int64_t p = 0; p < rest; ++p) {
    T wr[R], wi[R];
    for (int j = 1; j < R; ++j) {
      wr[j] = twiddles[(j - 1) * rest + p];
      wi[j] = twiddles[(R - 1 + j - 1) * rest + p];
    }
    const T *ar = xr + p * run, *ai = xi + p * run;
    T *br = yr + R * p * run, *bi = yi + R * p * run;
    if (rest == 1) {  // the last pass: all twiddles are one
      for (int64_t q = 0; q < run; ++q) {
        T re[R], im[R];
        for (int k = 0; k < R; ++k) {
          re[k] = ar[q + part * k];
          im[k] = ai[q + part * k];
        }
        butterfly(re, im);
        for (int j = 0; j < R; ++j) {
          br[q + run * j] = re[j];
          bi[q + run * j] = im[j];
        }
      }
      continue;
    }
    for (int64_t q = 0; q < run; ++q) {
      T re[R], im[R];
      for (int k = 0; k < R; ++k) {
        re[k] = ar[q + part * k];
        im[k] = ai[q + part * k];
      }
      butterfly(re, im);
      br[q] = re[0];
      bi[q] = im[0];
      for (int j = 1; j < R; ++j) {
        br[q + run * j] = re[j] * wr[j] - im[j] * wi[j];
        bi[q + run * j] = re[j] * wi[j] + im[j] * wr[j];
      }
    }
  }
}
// ... or, where a group is a single value, over the groups.
template <class T, int R>
TS_INLINE void pass_over_groups(const T* __restrict xr, const T* __restrict xi, T* __restrict yr,
                                T* __restrict yi, int64_t rest, const T* __restrict twiddles) {
  for (int64_t p = 0; p < rest; ++p) {
    T re[R], im[R];
    for (int k = 0; k < R; ++k) {
      re[k] = xr[p + rest * k];
      im[k] = xi[p + rest * k];
    }
    butterfly(re, im);
    yr[R * p] = re[0];
    yi[R * p] = im[0];
    for (int j = 1; j < R; ++j) {
      T wr = twiddles[(j - 1) * rest + p], wi = twiddles[(R - 1 + j - 1) * rest + p];
      yr[R * p + j] = re[j] * wr - im[j] * wi;
      yi[R * p + j] = re[j] * wi + im[j] * wr;
    }
  }
}

template <class T, int R>
TS_INLINE void pass(const T* xr, const T* xi, T* yr, T* yi, int64_t rest, int64_t run,
                    const T* twiddles) {
  if (run == 1 && rest > 1)
    pass_over_groups<T, R>(xr, xi, yr, yi, rest, twiddles);
  else
    pass_over_run<T, R>(xr, xi, yr, yi, rest, run, twiddles);
}

// Any odd radix, with the cosines and sines of its circle: [R] and [R].
template <class T>
TS_INLINE void pass_odd(int radix, const T* __restrict xr, const T* __restrict xi, T* __restrict yr,
                        T* __restrict yi, int64_t rest, int64_t run, const T* twiddles,
                        const T* circle) {
  const int half = radix / 2;
  const int64_t part = rest * run;
  alignas(64) T sr[kLargestRadix / 2 + 1][kChunk], si[kLargestRadix / 2 + 1][kChunk];
  alignas(64) T dr[kLargestRadix / 2 + 1][kChunk], di[kLargestRadix / 2 + 1][kChunk];
  for (int64_t p = 0; p < rest; ++p) {
    for (int64_t q = 0; q < run; q += kChunk) {
      const int n = static_cast<int>(run - q < kChunk ? run - q : kChunk);
      const T *ar = xr + p * run + q, *ai = xi + p * run + q;
      T *br = yr + radix * p * run + q, *bi = yi + radix * p * run + q;
      for (int i = 0; i < n; ++i) {
        br[i] = ar[i];
        bi[i] = ai[i];
      }
      for (int k = 1; k <= half; ++k)
        for (int i = 0; i < n; ++i) {
          T lr = ar[i + part * k], hr = ar[i + part * (radix - k)];
          T li = ai[i + part * k], hi = ai[i + part * (radix - k)];
          sr[k][i] = lr + hr;
          si[k][i] = li + hi;
          dr[k][i] = lr - hr;
          di[k][i] = li - hi;
          br[i] += lr + hr;
          bi[i] += li + hi;
        }
      for (int j = 1; j <= half; ++j) {
        alignas(64) T er[kChunk], ei[kChunk], fr[kChunk] = {}, fi[kChunk] = {};
        for (int i = 0; i < n; ++i) {
          er[i] = ar[i];
          ei[i] = ai[i];
        }
        for (int k = 1, at = j; k <= half; ++k, at += j) {
          if (at >= radix) at -= radix;
          T c = circle[at], s = circle[radix + at];
          for (int i = 0; i < n; ++i) {
            er[i] += sr[k][i] * c;
            ei[i] += si[k][i] * c;
            fr[i] += di[k][i] * s;
            fi[i] -= dr[k][i] * s;
          }
        }
        const int64_t low = run * j, high = run * (radix - j);
        const T *wr = twiddles + p, *wi = twiddles + (radix - 1) * rest + p;
        T lr = wr[(j - 1) * rest], li = wi[(j - 1) * rest];
        T hr = wr[(radix - j - 1) * rest], hi = wi[(radix - j - 1) * rest];
        for (int i = 0; i < n; ++i) {
          T r = er[i] + fr[i], m = ei[i] + fi[i];
          br[i + low] = r * lr - m * li;
          bi[i + low] = r * li + m * lr;
          r = er[i] - fr[i];
          m = ei[i] - fi[i];
          br[i + high] = r * hr - m * hi;
          bi[i + high] = r * hi + m * hr;
        }
      }
    }
  }
}

// One pass of any radix.
template <class T>
TS_INLINE void any_pass(int radix, const T* xr, const T* xi, T* yr, T* yi, int64_t rest,
                        int64_t run, const T* twiddles, const T* circle) {
  switch (radix) {
    case 2:
      return pass<T, 2>(xr, xi, yr, yi, rest, run, twiddles);
    case 3:
      return pass<T, 3>(xr, xi, yr, yi, rest, run, twiddles);
    case 4:
      return pass<T, 4>(xr, xi, yr, yi, rest, run, twiddles);
    case 5:
      return pass<T, 5>(xr, xi, yr, yi, rest, run, twiddles);
    case 7:
      return pass<T, 7>(xr, xi, yr, yi, rest, run, twiddles);
    case 8:
      return pass<T, 8>(xr, xi, yr, yi, rest, run, twiddles);
    default:
      return pass_odd<T>(radix, xr, xi, yr, yi, rest, run, twiddles, circle);
  }
}

// a *= b (or its product with a chirp) for `rows` rows of `lanes` values, one factor a row.
template <class T>
TS_INLINE void multiply_rows(T* __restrict xr, T* __restrict xi, const T* __restrict wr,
                             const T* __restrict wi, int64_t rows, int64_t lanes) {
  if (lanes == 1) {
    for (int64_t i = 0; i < rows; ++i) {
      T r = xr[i] * wr[i] - xi[i] * wi[i];
      xi[i] = xr[i] * wi[i] + xi[i] * wr[i];
      xr[i] = r;
    }
    return;
  }
  for (int64_t i = 0; i < rows; ++i) {
    const T a = wr[i], b = wi[i];
    for (int64_t l = i * lanes; l < (i + 1) * lanes; ++l) {
      T r = xr[l] * a - xi[l] * b;
      xi[l] = xr[l] * b + xi[l] * a;
      xr[l] = r;
    }
  }
}

}  // namespace tessera::cpu::fft
