// Text that kernels over rows share. It asks for V (elements of a vector), THREADS (that share a
// row, a power of two: of one warp or a whole block) and A (the type of arithmetic).
#pragma once
#include <array>
#include <cstddef>

namespace tessera::cuda {

// Texts one after the other.
template <size_t... N>
constexpr auto join(const char (&... parts)[N]) {
  std::array<char, (N + ...) - sizeof...(N) + 1> all{};
  size_t at = 0;
  auto add = [&](const char* s, size_t n) {
    for (size_t i = 0; i + 1 < n; ++i) all[at++] = s[i];
  };
  (add(parts, N), ...);
  return all;
}

// In vectors, past the caches where data is used once; sums over the threads of a row.
inline constexpr char kVectorText[] = R"(
template <class W> TS_FN W load_once(const W* p) {
  if constexpr (sizeof(W) == 16) return __builtin_bit_cast(W, __ldcs((const uint4*)p));
  else return *p;
}
template <class W> TS_FN void store_once(W* p, W v) {
  if constexpr (sizeof(W) == 16) __stcs((uint4*)p, __builtin_bit_cast(uint4, v));
  else *p = v;
}
TS_FN int64_t quotient(int64_t i, int64_t by) {
  return (i | by) >> 31 == 0 ? (int64_t)((unsigned)i / (unsigned)by) : i / by;
}
)";

inline constexpr char kRowSumText[] = R"(
enum { WARPS = THREADS / 32 };
// Sums over the threads that share a row: the same, of the same order, in every one of them.
// `parts`: 32 numbers a sum, which no other sum uses between the same two barriers.
template <int K, class N> TS_FN void row_sums(N (&x)[K], N* parts) {
  #pragma unroll
  for (int d = THREADS < 32 ? THREADS / 2 : 16; d > 0; d /= 2)
    #pragma unroll
    for (int k = 0; k < K; ++k) x[k] += __shfl_xor_sync(0xffffffffu, x[k], d);
  if constexpr (THREADS > 32) {
    const int lane = threadIdx.x % 32;
    #pragma unroll
    for (int k = 0; k < K; ++k)
      if (lane == k) parts[32 * k + threadIdx.x / 32] = x[k];
    __syncthreads();
    #pragma unroll
    for (int k = 0; k < K; ++k) {
      x[k] = parts[32 * k + lane % WARPS];
      #pragma unroll
      for (int d = WARPS / 2; d > 0; d /= 2) x[k] += __shfl_xor_sync(0xffffffffu, x[k], d);
    }
  }
}
template <class N> TS_FN N row_sum(N x, N* parts) {
  N one[1] = {x};
  row_sums(one, parts);
  return one[0];
}
)";

// V elements of row r of p.x from j on, and one; or what makes them (Note [Company of a kernel]).
// After Params, which has x, rows of p.n elements; ALIGNED: in vectors.
inline constexpr char kRowLoadText[] = R"(
#ifdef BEFORE
TS_FN Vec<X::S, V> load_x(const Params& p, int64_t r, int64_t j) {
  Vec<X::S, V> v;
  Before::make(p.before, r, j, v.v);
  return v;
}
TS_FN X::S one_x(const Params& p, int64_t r, int64_t j) {
  X::S v[1];
  Before::make(p.before, r, j, v);
  return v[0];
}
#else
TS_FN Vec<X::S, V> load_x(const Params& p, int64_t r, int64_t j) {
  const X::S* at = p.x + r * p.n + j;
  if constexpr (ALIGNED) return load_once((const Vec<X::S, V>*)at);
  Vec<X::S, V> v;
  #pragma unroll
  for (int i = 0; i < V; ++i) v.v[i] = at[i];
  return v;
}
TS_FN X::S one_x(const Params& p, int64_t r, int64_t j) { return p.x[r * p.n + j]; }
#endif
)";

}  // namespace tessera::cuda
