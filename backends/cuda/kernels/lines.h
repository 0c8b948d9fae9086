// How the threads of a block share the lines of a tensor: what scans and sums along a dimension
// have in common. A warp holds LINES lines and SEG threads work on each; the lanes of one line are
// neighbours, or, ACROSS, those of neighbouring lines are. W warps work on the same lines. A thread
// has K runs of V elements, each run SEG * V elements behind the last.
#pragma once
#include <algorithm>
#include <bit>

#include "../text.h"
#include "../walk.h"

namespace tessera::cuda {

struct Spread {
  bool across = false, vector = false;
  int64_t seg = 32, v = 1, k = 1, w = 1, warps = 8;
  int64_t lines() const { return 32 / seg; }  // of a warp
  int64_t block_lines() const { return lines() * warps / w; }
  int threads() const { return static_cast<int>(warps * 32); }
  int64_t tile() const { return seg * v * k * w; }  // of a line, in one step
};

inline int64_t power_of_two(int64_t n) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(1, n))));
}

// Elements of a vector of 16 bytes, or of 8.
inline int64_t vector_of(int64_t bytes) { return std::clamp<int64_t>(16 / bytes, 1, 8); }

// For lines of n elements, `items` a thread at once, in runs of `run` (1: as lanes lie, which suits
// elements that cannot be read in vectors). `neighbours` lines lie side by side (0: the elements of
// a line do). At most `most_warps` work on one.
inline Spread spread_lines(int64_t n, int64_t lines, int64_t run, int64_t items, int64_t neighbours,
                           int64_t most_warps = 8) {
  Spread s;
  s.across = neighbours > 0;
  if (s.across) {
    s.v = std::min<int64_t>(items, 4);
    s.seg = neighbours > 16 || lines >= 4096 ? 1 : 32 / power_of_two(neighbours);
  } else {
    s.v = run;
    s.seg = std::min<int64_t>(32, power_of_two((n + s.v - 1) / s.v));
  }
  const int64_t most = std::max<int64_t>(1, items / s.v), once = s.seg * s.v;
  s.k = std::min(most, power_of_two((n + once - 1) / once));
  s.w = std::min(most_warps, power_of_two((n + once * s.k - 1) / (once * s.k)));
  s.warps = std::max<int64_t>(s.w, 8);
  return s;
}

inline constexpr const char* kLinesText = R"(
constexpr int kSeg = (int)SEG, kLines = 32 / kSeg, kWarps = (int)W, kRuns = (int)K, kRun = (int)V;
constexpr int kGroups = (int)THREADS / 32 / kWarps, kUnit = ACROSS ? kLines : 1;
constexpr unsigned kAll = 0xffffffffu;
TS_FN int lane_of() { return threadIdx.x % 32; }
TS_FN int line_of() { return ACROSS ? lane_of() % kLines : lane_of() / kSeg; }
TS_FN int seg_of() { return ACROSS ? lane_of() / kLines : lane_of() % kSeg; }
// The lane of the same line whose segment that is.
TS_FN int lane_at(int seg) { return ACROSS ? seg * kLines + line_of() : line_of() * kSeg + seg; }
template <class X> struct Words { unsigned w[sizeof(X) / 4]; };
template <class X> TS_FN X from_below(X x, int by) {
  Words<X> b = __builtin_bit_cast(Words<X>, x);
  #pragma unroll
  for (int i = 0; i < (int)sizeof(X) / 4; ++i) b.w[i] = __shfl_up_sync(kAll, b.w[i], by);
  return __builtin_bit_cast(X, b);
}
template <class X> TS_FN X from_lane(X x, int lane) {
  Words<X> b = __builtin_bit_cast(Words<X>, x);
  #pragma unroll
  for (int i = 0; i < (int)sizeof(X) / 4; ++i) b.w[i] = __shfl_sync(kAll, b.w[i], lane);
  return __builtin_bit_cast(X, b);
}
template <class X> TS_FN X from_other(X x, int with) {
  Words<X> b = __builtin_bit_cast(Words<X>, x);
  #pragma unroll
  for (int i = 0; i < (int)sizeof(X) / 4; ++i) b.w[i] = __shfl_xor_sync(kAll, b.w[i], with);
  return __builtin_bit_cast(X, b);
}
// A thread's runs of a line of n elements; run k begins at first + k * SEG * V.
template <class S> TS_FN void load_runs(const S* x, int64_t stride, int64_t first, int64_t n,
                                        Vec<S, V> (&to)[K]) {
  #pragma unroll
  for (int k = 0; k < kRuns; ++k) {
    const int64_t j = first + k * (kSeg * kRun);
    if constexpr (VECTOR) {  // then n is a multiple of V
      if (j < n) to[k] = *(const Vec<S, V>*)(x + (REVERSE ? n - kRun - j : j));
    } else {
      #pragma unroll
      for (int i = 0; i < kRun; ++i)
        if (j + i < n) to[k].v[i] = x[(j + i) * stride];
    }
  }
}
template <class S> TS_FN void store_run(S* y, int64_t stride, int64_t j, int64_t n,
                                        const Vec<S, V>& from) {
  if constexpr (VECTOR) {
    if (j < n) *(Vec<S, V>*)(y + (REVERSE ? n - kRun - j : j)) = from;
  } else {
    #pragma unroll
    for (int i = 0; i < kRun; ++i)
      if (j + i < n) y[(j + i) * stride] = from.v[i];
  }
}
// Where element i of a run stands in what was loaded.
TS_FN int in_run(int i) { return VECTOR && REVERSE ? kRun - 1 - i : i; }
)";

}  // namespace tessera::cuda
