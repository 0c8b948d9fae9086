// Turns map / combine / finish into the CPU's reduction loops, once per instruction set.
//
// Note [The reduction tree]
// A run of n elements is cut into blocks of kBlock. Inside a block, lane j of kLanes takes elements
// j, j + kLanes, ...; the lanes are combined pairwise by halves. The blocks' results are combined
// pairwise, by a binary counter over block numbers. So the tree is a function of n alone: not of
// the instruction set, the number of threads, or what produced the elements. The error grows with
// the logarithm of n.
#pragma once
#include "tessera/ops/loops.h"

namespace tessera::loops {

inline constexpr int64_t kReduceLanes = 64;
inline constexpr int64_t kReduceBlock = 4096;

template <class B, class T>
TS_INLINE T reduce_block(const T* in, int64_t n) {
  alignas(64) T lanes[kReduceLanes];
  for (int64_t j = 0; j < kReduceLanes; ++j) lanes[j] = B::template init<T>();
  int64_t i = 0;
  for (; i + kReduceLanes <= n; i += kReduceLanes)
    for (int64_t j = 0; j < kReduceLanes; ++j)
      lanes[j] = B::template combine<T>(lanes[j], B::template map<T>(in[i + j]));
  for (int64_t j = 0; i + j < n; ++j)
    lanes[j] = B::template combine<T>(lanes[j], B::template map<T>(in[i + j]));
  for (int64_t half = kReduceLanes / 2; half > 0; half /= 2)
    for (int64_t j = 0; j < half; ++j) lanes[j] = B::template combine<T>(lanes[j], lanes[j + half]);
  return lanes[0];
}

// One block at a time; combining blocks is the caller's (see BlockTree in the CPU backend).
template <class B, class T>
TS_INLINE void reduce_run(void* acc, const void* in, int64_t n) {
  *static_cast<T*>(acc) = reduce_block<B, T>(static_cast<const T*>(in), n);
}
template <class B, class T>
TS_INLINE void reduce_rows(void* acc_, const void* in_, int64_t n) {
  T* __restrict acc = static_cast<T*>(acc_);
  const T* in = static_cast<const T*>(in_);
  for (int64_t i = 0; i < n; ++i)
    acc[i] = B::template combine<T>(acc[i], B::template map<T>(in[i]));
}
template <class B, class T>
TS_INLINE void reduce_merge(void* acc_, const void* other_, int64_t n) {
  T* __restrict acc = static_cast<T*>(acc_);
  const T* other = static_cast<const T*>(other_);
  for (int64_t i = 0; i < n; ++i) acc[i] = B::template combine<T>(acc[i], other[i]);
}
template <class B, class T>
void reduce_finish(void* acc_, int64_t n, int64_t count) {
  T* acc = static_cast<T*>(acc_);
  for (int64_t i = 0; i < n; ++i) acc[i] = B::template finish<T>(acc[i], static_cast<T>(count));
}

#define TS_REDUCE_LOOP(fn)                                                  \
  template <class B, class T>                                               \
  void fn##_baseline(void* acc, const void* in, int64_t n) {                \
    fn<B, T>(acc, in, n);                                                   \
  }                                                                         \
  template <class B, class T>                                               \
  TS_TARGET_AVX2 void fn##_avx2(void* acc, const void* in, int64_t n) {     \
    fn<B, T>(acc, in, n);                                                   \
  }                                                                         \
  template <class B, class T>                                               \
  TS_TARGET_AVX512 void fn##_avx512(void* acc, const void* in, int64_t n) { \
    fn<B, T>(acc, in, n);                                                   \
  }
TS_REDUCE_LOOP(reduce_run)
TS_REDUCE_LOOP(reduce_rows)
TS_REDUCE_LOOP(reduce_merge)
#undef TS_REDUCE_LOOP

template <class B, class T>
void add_reduce_type(ReduceBody& body) {
  constexpr int c = static_cast<int>(RegClassOf<T>::value);
  Imm init{};
  T value = B::template init<T>();
  __builtin_memcpy(&init, &value, sizeof value);
  body.loops[0][c] = {&reduce_run_baseline<B, T>, &reduce_rows_baseline<B, T>,
                      &reduce_merge_baseline<B, T>, &reduce_finish<B, T>, init};
  body.loops[1][c] = {&reduce_run_avx2<B, T>, &reduce_rows_avx2<B, T>, &reduce_merge_avx2<B, T>,
                      &reduce_finish<B, T>, init};
  body.loops[2][c] = {&reduce_run_avx512<B, T>, &reduce_rows_avx512<B, T>,
                      &reduce_merge_avx512<B, T>, &reduce_finish<B, T>, init};
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
  struct body_name##_reduce_t {                                                     \
    static constexpr const char* kName = #body_name;                                \
    static constexpr const char* kInit = #init_expr;                                \
    static constexpr const char* kMap = #map_expr;                                  \
    static constexpr const char* kCombine = #combine_expr;                          \
    static constexpr const char* kFinish = #finish_expr;                            \
    template <class T>                                                              \
    static TS_INLINE T init() {                                                     \
      return init_expr;                                                             \
    }                                                                               \
    template <class T>                                                              \
    static TS_INLINE T map(T a) {                                                   \
      using namespace ::tessera::math;                                              \
      return map_expr;                                                              \
    }                                                                               \
    template <class T>                                                              \
    static TS_INLINE T combine(T x, T y) {                                          \
      using namespace ::tessera::math;                                              \
      return combine_expr;                                                          \
    }                                                                               \
    template <class T>                                                              \
    static TS_INLINE T finish(T x, [[maybe_unused]] T n) {                          \
      using namespace ::tessera::math;                                              \
      return finish_expr;                                                           \
    }                                                                               \
  };                                                                                \
  static const ::tessera::ReduceBody body_name##_reduce =                           \
      ::tessera::loops::make_reduce<body_name##_reduce_t, TS_UNPACK types>();
