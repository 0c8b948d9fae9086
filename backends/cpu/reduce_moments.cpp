#include "reduce_moments.h"

#include "isa.h"
#include "moments.h"

namespace tessera::cpu {

namespace {

template <class T, int kBytes>
TS_INLINE void moments_run(void* acc, const void* in, int64_t n, int64_t count, int64_t stride) {
  double* mean = static_cast<double*>(acc);
  for (int64_t c = 0; c < count; ++c) {
    const Moments m = block_moments<T, kBytes>(static_cast<const T*>(in) + c * stride, n);
    mean[c] = m.mean;
    mean[count + c] = m.m2;
  }
}

template <class T>
TS_INLINE void moments_rows(void* acc, const void* in_, int64_t n, int64_t rows, int64_t stride,
                            int64_t seen) {
  double *mean = static_cast<double*>(acc), *m2 = mean + n;
  const T* in = static_cast<const T*>(in_);
  if (seen == 0)
    for (int64_t i = 0; i < 2 * n; ++i) mean[i] = 0;
  int64_t r = 0;
  for (; r + 8 <= rows; r += 8) eight_rows_moments(mean, m2, in + r * stride, n, stride, seen + r);
  for (; r < rows; ++r) one_row_moments(mean, m2, in + r * stride, n, seen + r);
}

TS_INLINE void moments_merge(void* acc, const void* other, int64_t n, int64_t seen,
                             int64_t other_seen) {
  double* __restrict mean = static_cast<double*>(acc), * __restrict m2 = mean + n;
  const double *from = static_cast<const double*>(other), *from2 = from + n;
  const double na = static_cast<double>(seen), nb = static_cast<double>(other_seen);
  for (int64_t i = 0; i < n; ++i) {
    const Moments m = merge_moments({mean[i], m2[i]}, na, {from[i], from2[i]}, nb);
    mean[i] = m.mean;
    m2[i] = m.m2;
  }
}

#define TS_MOMENTS_ISA(isa, bytes, target)                                                 \
  template <class T>                                                                       \
  target void run_##isa(void* acc, const void* in, int64_t n, int64_t c, int64_t s) {      \
    moments_run<T, bytes>(acc, in, n, c, s);                                               \
  }                                                                                        \
  template <class T>                                                                       \
  target void rows_##isa(void* acc, const void* in, int64_t n, int64_t r, int64_t s,       \
                         int64_t seen) {                                                   \
    moments_rows<T>(acc, in, n, r, s, seen);                                               \
  }                                                                                        \
  target void merge_##isa(void* acc, const void* other, int64_t n, int64_t a, int64_t b) { \
    moments_merge(acc, other, n, a, b);                                                    \
  }                                                                                        \
  constexpr ReduceBody::Loops kLoops_##isa[] = {                                           \
      {run_##isa<float>, rows_##isa<float>, merge_##isa, nullptr},                         \
      {run_##isa<double>, rows_##isa<double>, merge_##isa, nullptr},                       \
  };
TS_MOMENTS_ISA(baseline, 16, )
TS_MOMENTS_ISA(avx2, 32, TS_TARGET_AVX2)
TS_MOMENTS_ISA(avx512, 64, TS_TARGET_AVX512)
#undef TS_MOMENTS_ISA

}  // namespace

const ReduceBody::Loops* moments_loops(RegClass cls) noexcept {
  static constexpr const ReduceBody::Loops* kTables[] = {kLoops_baseline, kLoops_avx2,
                                                         kLoops_avx512};
  if (cls == RegClass::kF32) return kTables[g_isa];
  if (cls == RegClass::kF64) return kTables[g_isa] + 1;
  return nullptr;
}

}  // namespace tessera::cpu
