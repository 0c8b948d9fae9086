// Turns map / combine / finish into the CPU's reduction loops, once per instruction set.
//
// Note [The reduction tree]
// A run of n elements is cut into blocks of kReduceBlock. Inside a block, lane j of kReduceLanes
// takes elements j, j + kReduceLanes, ...; the lanes are combined pairwise by halves. The blocks'
// results are combined pairwise, by a binary counter over block numbers (in the CPU backend, which
// also says how several dimensions are cut into blocks). So the tree is a function of sizes and
// strides: not of the instruction set, the number of threads, or what produced the elements. The
// error grows with the logarithm of n.
#pragma once
#include <limits>
#include <string_view>

#include "tessera/ops/loops.h"

namespace tessera::loops {

inline constexpr int64_t kReduceLanes = 64;
inline constexpr int64_t kReduceBlock = 4096;

// A vector of T, kBytes of it, by the compiler's own vector types: the loops below keep their lanes
// in registers, which arrays do not.
template <class T, int kBytes>
struct LanesOf {
  using Element = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;
  using Index = std::conditional_t<sizeof(T) == 1, int8_t,
                                   std::conditional_t<sizeof(T) == 4, int32_t, int64_t>>;
  static constexpr int kCount = kBytes / sizeof(T);
  typedef Element Vector __attribute__((vector_size(kBytes)));
  typedef Index Indices __attribute__((vector_size(kBytes)));

  static TS_INLINE Vector load(const T* p) {
    Vector v;
    __builtin_memcpy(&v, p, sizeof v);
    return v;
  }
};

// Can the combination be written on whole vectors? (Not of complex numbers, or with functions that
// take single ones.)
template <class B, class T>
inline constexpr bool kCombinesVectors = [] {
  if constexpr (std::is_arithmetic_v<T>) return requires(typename LanesOf<T, 16>::Vector v) {
      B::template combine<decltype(v)>(v, v);
    };
  else
    return false;
}();

template <class B, class T, int kBytes>
TS_INLINE typename LanesOf<T, kBytes>::Vector mapped(const T* in) {
  if constexpr (std::string_view(B::kMap) == "a") {
    return LanesOf<T, kBytes>::load(in);
  } else {
    alignas(64) T tmp[LanesOf<T, kBytes>::kCount];
    for (int j = 0; j < LanesOf<T, kBytes>::kCount; ++j) tmp[j] = B::template map<T>(in[j]);
    return LanesOf<T, kBytes>::load(tmp);
  }
}

// How wide the vectors of a combination may be. Functions without an instruction set of their own
// have vectors of 64 bytes taken apart before they are inlined where there is AVX-512; sums are put
// together again, comparisons are not. The tree does not depend on the width.
template <class B>
constexpr int vector_bytes(int most) {
  const std::string_view text = B::kCombine;
  const bool compares = text.find("max") != text.npos || text.find("min") != text.npos;
  return compares && most > 32 ? 32 : most;
}

// n elements in kReduceLanes lanes, and those to one vector of lanes.
template <class B, class T, int kBytes>
TS_INLINE typename LanesOf<T, kBytes>::Vector reduce_lanes(const T* in, int64_t n) {
  using L = LanesOf<T, kBytes>;
  using V = typename L::Vector;
  constexpr int kVectors = kReduceLanes / L::kCount;
  const T init = B::template init<T>();
  V lanes[kVectors];
  for (int v = 0; v < kVectors; ++v) lanes[v] = V{} + typename L::Element(init);
  int64_t i = 0;
  for (; i + kReduceLanes <= n; i += kReduceLanes)
#pragma GCC unroll 64
    for (int v = 0; v < kVectors; ++v)
      lanes[v] = B::template combine<V>(lanes[v], mapped<B, T, kBytes>(in + i + v * L::kCount));
  if (i < n) {
    alignas(64) T rest[kReduceLanes];
    __builtin_memcpy(rest, lanes, sizeof rest);
    for (int64_t j = 0; i + j < n; ++j)
      rest[j] = B::template combine<T>(rest[j], B::template map<T>(in[i + j]));
    __builtin_memcpy(lanes, rest, sizeof rest);
  }
#pragma GCC unroll 8
  for (int half = kVectors / 2; half > 0; half /= 2)
#pragma GCC unroll 64
    for (int v = 0; v < half; ++v) lanes[v] = B::template combine<V>(lanes[v], lanes[v + half]);
  return lanes[0];
}

// Each lane with the one kHalf further.
template <class B, class T, int kBytes, int kHalf>
TS_INLINE T fold_lanes(typename LanesOf<T, kBytes>::Vector v) {
  if constexpr (kHalf == 0) {
    return static_cast<T>(v[0]);
  } else {
    typename LanesOf<T, kBytes>::Indices at{};
    for (int i = 0; i < LanesOf<T, kBytes>::kCount; ++i)
      at[i] = (i + kHalf) % LanesOf<T, kBytes>::kCount;
    return fold_lanes<B, T, kBytes, kHalf / 2>(
        B::template combine<decltype(v)>(v, __builtin_shuffle(v, at)));
  }
}

// The same of as many vectors as there are lanes, all at once: two vectors of groups of kGroup
// lanes become one of groups of half that, until result r is in lane r.
template <class B, class T, int kBytes, int kGroup>
TS_INLINE void fold_together(typename LanesOf<T, kBytes>::Vector* v) {
  if constexpr (kGroup > 1) {
    using L = LanesOf<T, kBytes>;
    typename L::Indices low{};
    for (int i = 0; i < L::kCount; ++i) {
      const int group = i / (kGroup / 2), lane = i % (kGroup / 2);
      low[i] = group * kGroup + lane;
    }
    for (int i = 0; i < kGroup / 2; ++i)
      v[i] = B::template combine<typename L::Vector>(
          __builtin_shuffle(v[2 * i], v[2 * i + 1], low),
          __builtin_shuffle(v[2 * i], v[2 * i + 1], low + kGroup / 2));
    fold_together<B, T, kBytes, kGroup / 2>(v);
  }
}

// Without vectors: the same tree.
template <class B, class T>
TS_INLINE T reduce_scalars(const T* in, int64_t n) {
  T lanes[kReduceLanes];
  for (int64_t j = 0; j < kReduceLanes; ++j) lanes[j] = B::template init<T>();
  for (int64_t i = 0; i < n; i += kReduceLanes)
    for (int64_t j = 0; j < kReduceLanes && i + j < n; ++j)
      lanes[j] = B::template combine<T>(lanes[j], B::template map<T>(in[i + j]));
  for (int64_t half = kReduceLanes / 2; half > 0; half /= 2)
    for (int64_t j = 0; j < half; ++j) lanes[j] = B::template combine<T>(lanes[j], lanes[j + half]);
  return lanes[0];
}

template <class B, class T, int kBytes>
TS_INLINE void reduce_run(void* acc_, const void* in_, int64_t n, int64_t count, int64_t stride) {
  T* acc = static_cast<T*>(acc_);
  const T* in = static_cast<const T*>(in_);
  int64_t c = 0;
  if constexpr (kCombinesVectors<B, T>) {
    using L = LanesOf<T, kBytes>;
    if constexpr (sizeof(T) >= 4) {
      for (; c + L::kCount <= count; c += L::kCount) {
        typename L::Vector rows[L::kCount];
        for (int r = 0; r < L::kCount; ++r)
          rows[r] = reduce_lanes<B, T, kBytes>(in + (c + r) * stride, n);
        fold_together<B, T, kBytes, L::kCount>(rows);
        __builtin_memcpy(acc + c, rows, sizeof(typename L::Vector));
      }
    }
    for (; c < count; ++c)
      acc[c] =
          fold_lanes<B, T, kBytes, L::kCount / 2>(reduce_lanes<B, T, kBytes>(in + c * stride, n));
  } else {
    for (; c < count; ++c) acc[c] = reduce_scalars<B, T>(in + c * stride, n);
  }
}
// Several rows at a time, so that the accumulators are read and written less often; each still
// takes its elements one after the other.
template <class B, class T>
TS_INLINE void reduce_rows(void* acc_, const void* in_, int64_t n, int64_t rows, int64_t stride,
                           int64_t seen) {
  T* __restrict acc = static_cast<T*>(acc_);
  const T* in = static_cast<const T*>(in_);
  if (seen == 0)
    for (int64_t i = 0; i < n; ++i) acc[i] = B::template init<T>();
  int64_t r = 0;
  for (; r + 8 <= rows; r += 8, in += 8 * stride) {
    const T *in1 = in + stride, *in2 = in + 2 * stride, *in3 = in + 3 * stride;
    const T *in4 = in + 4 * stride, *in5 = in + 5 * stride, *in6 = in + 6 * stride;
    const T* in7 = in + 7 * stride;
    for (int64_t i = 0; i < n; ++i) {
      T x = B::template combine<T>(acc[i], B::template map<T>(in[i]));
      x = B::template combine<T>(x, B::template map<T>(in1[i]));
      x = B::template combine<T>(x, B::template map<T>(in2[i]));
      x = B::template combine<T>(x, B::template map<T>(in3[i]));
      x = B::template combine<T>(x, B::template map<T>(in4[i]));
      x = B::template combine<T>(x, B::template map<T>(in5[i]));
      x = B::template combine<T>(x, B::template map<T>(in6[i]));
      acc[i] = B::template combine<T>(x, B::template map<T>(in7[i]));
    }
  }
  for (; r < rows; ++r, in += stride)
    for (int64_t i = 0; i < n; ++i)
      acc[i] = B::template combine<T>(acc[i], B::template map<T>(in[i]));
}
template <class B, class T>
TS_INLINE void reduce_merge(void* acc_, const void* other_, int64_t n, int64_t, int64_t) {
  T* __restrict acc = static_cast<T*>(acc_);
  const T* other = static_cast<const T*>(other_);
  for (int64_t i = 0; i < n; ++i) acc[i] = B::template combine<T>(acc[i], other[i]);
}
// Of several NaNs in a reduction, which one is left is by the order of operands in loops that were
// compiled apart: so there is only one.
template <class T>
TS_INLINE T one_nan(T x) {
  if constexpr (std::is_floating_point_v<T>)
    return x == x ? x : std::numeric_limits<T>::quiet_NaN();
  else if constexpr (!std::is_arithmetic_v<T>)
    return T(one_nan(x.re), one_nan(x.im));
  else
    return x;
}

template <class B, class T>
void reduce_finish(void* acc_, int64_t n, int64_t count) {
  T* acc = static_cast<T*>(acc_);
  for (int64_t i = 0; i < n; ++i)
    acc[i] = one_nan(B::template finish<T>(acc[i], static_cast<T>(count)));
}

#define TS_REDUCE_ISA(isa, bytes, target)                                                      \
  template <class B, class T>                                                                  \
  target void reduce_run_##isa(void* acc, const void* in, int64_t n, int64_t c, int64_t s) {   \
    reduce_run<B, T, vector_bytes<B>(bytes)>(acc, in, n, c, s);                                \
  }                                                                                            \
  template <class B, class T>                                                                  \
  target void reduce_rows_##isa(void* acc, const void* in, int64_t n, int64_t r, int64_t s,    \
                                int64_t seen) {                                                \
    reduce_rows<B, T>(acc, in, n, r, s, seen);                                                 \
  }                                                                                            \
  template <class B, class T>                                                                  \
  target void reduce_merge_##isa(void* acc, const void* in, int64_t n, int64_t a, int64_t b) { \
    reduce_merge<B, T>(acc, in, n, a, b);                                                      \
  }
TS_REDUCE_ISA(baseline, 16, )
TS_REDUCE_ISA(avx2, 32, TS_TARGET_AVX2)
TS_REDUCE_ISA(avx512, 64, TS_TARGET_AVX512)
#undef TS_REDUCE_ISA

template <class B, class T>
void add_reduce_type(ReduceBody& body) {
  constexpr int c = static_cast<int>(RegClassOf<T>::value);
  body.loops[0][c] = {&reduce_run_baseline<B, T>, &reduce_rows_baseline<B, T>,
                      &reduce_merge_baseline<B, T>, &reduce_finish<B, T>};
  body.loops[1][c] = {&reduce_run_avx2<B, T>, &reduce_rows_avx2<B, T>, &reduce_merge_avx2<B, T>,
                      &reduce_finish<B, T>};
  body.loops[2][c] = {&reduce_run_avx512<B, T>, &reduce_rows_avx512<B, T>,
                      &reduce_merge_avx512<B, T>, &reduce_finish<B, T>};
}

template <class B, class... Ts>
ReduceBody make_reduce() {
  ReduceBody body{B::kName, B::kMap, B::kCombine, B::kFinish, B::kInit, {}};
  (add_reduce_type<B, Ts>(body), ...);
  return body;
}

}  // namespace tessera::loops

// TS_REDUCE(name, (TYPES), init, map of a, combine of x and y, finish of x and n): expressions.
#define TS_REDUCE(body_name, types, init_expr, map_expr, combine_expr, finish_expr) \
  namespace body_name##_reduction {                                                 \
    using namespace ::tessera::math;                                                \
    struct body_name##_reduce_t {                                                   \
      static constexpr const char* kName = #body_name;                              \
      static constexpr const char* kInit = #init_expr;                              \
      static constexpr const char* kMap = #map_expr;                                \
      static constexpr const char* kCombine = #combine_expr;                        \
      static constexpr const char* kFinish = #finish_expr;                          \
      template <class T>                                                            \
      static TS_INLINE T init() {                                                   \
        return init_expr;                                                           \
      }                                                                             \
      template <class T>                                                            \
      static TS_INLINE T map(T a) {                                                 \
        return map_expr;                                                            \
      }                                                                             \
      template <class T>                                                            \
      static TS_INLINE auto combine(T x, T y) -> decltype(T(combine_expr)) {        \
        return combine_expr;                                                        \
      }                                                                             \
      template <class T>                                                            \
      static TS_INLINE T finish(T x, [[maybe_unused]] T n) {                        \
        return finish_expr;                                                         \
      }                                                                             \
    };                                                                              \
  }                                                                                 \
  static const ::tessera::ReduceBody body_name##_reduce =                           \
      ::tessera::loops::make_reduce<body_name##_reduction::body_name##_reduce_t,    \
                                    TS_UNPACK types>();
