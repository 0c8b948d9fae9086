#include "transpose.h"

#include "isa.h"
#include "tessera/ops/loops.h"

namespace tessera::cpu {

namespace {

struct Pair {  // an element of 16 bytes
  uint64_t a, b;
};

// One round: row i and the one half the rows further are zipped into rows 2i and 2i + 1. A round
// rotates the bits of an element's (row, column) by one place, so as many rounds as a row number
// has bits swap the two.
template <class V, class Indices, int kRows>
TS_INLINE void zip_rounds(V (&a)[kRows]) {
  Indices low{}, high{};
  for (int i = 0; i < kRows / 2; ++i) {
    low[2 * i] = i;
    low[2 * i + 1] = kRows + i;
    high[2 * i] = kRows / 2 + i;
    high[2 * i + 1] = kRows + kRows / 2 + i;
  }
#pragma GCC unroll 8
  for (int round = 1; round < kRows; round *= 2) {
    V b[kRows];
#pragma GCC unroll 32
    for (int i = 0; i < kRows / 2; ++i) {
      b[2 * i] = __builtin_shuffle(a[i], a[i + kRows / 2], low);
      b[2 * i + 1] = __builtin_shuffle(a[i], a[i + kRows / 2], high);
    }
#pragma GCC unroll 32
    for (int i = 0; i < kRows; ++i) a[i] = b[i];
  }
}

// A square of vectors of kBytes.
template <class U, class Index, int kBytes, bool kStream>
TS_INLINE void square(U* dst, int64_t ds, const U* src, int64_t ss) {
  constexpr int kRows = kBytes / static_cast<int>(sizeof(U));
  typedef U V __attribute__((vector_size(kBytes)));
  typedef Index Indices __attribute__((vector_size(kBytes)));
  V a[kRows];
#pragma GCC unroll 32
  for (int i = 0; i < kRows; ++i) __builtin_memcpy(&a[i], src + i * ss, kBytes);
  zip_rounds<V, Indices>(a);
#pragma GCC unroll 32
  for (int i = 0; i < kRows; ++i) {
#if defined(__x86_64__)
    if constexpr (kStream) {
      typedef long long Line __attribute__((vector_size(64)));
      __builtin_ia32_movntdq512(reinterpret_cast<Line*>(dst + i * ds),
                                reinterpret_cast<Line>(a[i]));
      continue;
    }
#endif
    __builtin_memcpy(dst + i * ds, &a[i], kBytes);
  }
}

template <class U>
TS_INLINE void elements(U* dst, int64_t ds, const U* src, int64_t ss, int64_t rows, int64_t cols) {
  // The longer side innermost.
  if (rows < cols) {
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < cols; ++j) dst[i * ds + j] = src[j * ss + i];
  } else {
    for (int64_t j = 0; j < cols; ++j)
      for (int64_t i = 0; i < rows; ++i) dst[i * ds + j] = src[j * ss + i];
  }
}

template <class U, class Index, int kBytes, bool kStream>
TS_INLINE void transpose_as(void* dst_, int64_t ds, const void* src_, int64_t ss, int64_t rows,
                            int64_t cols) {
  U* dst = static_cast<U*>(dst_);
  const U* src = static_cast<const U*>(src_);
  int64_t i = 0, j = 0;
  if constexpr (kBytes > static_cast<int>(sizeof(U))) {
    constexpr int64_t k = kBytes / static_cast<int>(sizeof(U));
    for (; i + k <= rows; i += k)
      for (j = 0; j + k <= cols; j += k)
        square<U, Index, kBytes, kStream>(dst + i * ds + j, ds, src + j * ss + i, ss);
    j = cols / k * k;
    if (j > 0 && i < rows) elements(dst + i * ds, ds, src + i, ss, rows - i, j);
  }
  if (j < cols) elements(dst + j, ds, src + j * ss, ss, rows, cols - j);
}

#define TS_TRANSPOSE_ISA(isa, target, bytes2, bytes48, stream)                           \
  target void transpose_##isa(void* d, int64_t ds, const void* s, int64_t ss, int64_t r, \
                              int64_t c, size_t item) {                                  \
    switch (item) {                                                                      \
      case 1:                                                                            \
        return transpose_as<uint8_t, int8_t, 16, false>(d, ds, s, ss, r, c);             \
      case 2:                                                                            \
        return transpose_as<uint16_t, int16_t, bytes2, stream>(d, ds, s, ss, r, c);      \
      case 4:                                                                            \
        return transpose_as<uint32_t, int32_t, bytes48, stream>(d, ds, s, ss, r, c);     \
      case 8:                                                                            \
        return transpose_as<uint64_t, int64_t, bytes48, stream>(d, ds, s, ss, r, c);     \
      default:                                                                           \
        return transpose_as<Pair, int64_t, 0, false>(d, ds, s, ss, r, c);                \
    }                                                                                    \
  }
TS_TRANSPOSE_ISA(baseline, , 16, 16, false)
TS_TRANSPOSE_ISA(avx2, TS_TARGET_AVX2, 16, 32, false)
TS_TRANSPOSE_ISA(avx512, TS_TARGET_AVX512, 32, 64, false)
TS_TRANSPOSE_ISA(avx512_stream, TS_TARGET_AVX512, 64, 64, true)
#undef TS_TRANSPOSE_ISA

}  // namespace

void transpose(void* dst, int64_t dst_step, const void* src, int64_t src_step, int64_t rows,
               int64_t cols, size_t itemsize, bool stream) noexcept {
  constexpr decltype(&transpose_baseline) kTable[] = {transpose_baseline, transpose_avx2,
                                                      transpose_avx512, transpose_avx512_stream};
  const bool whole_lines = stream && g_isa == static_cast<int>(Isa::kAvx512);
  kTable[g_isa + whole_lines](dst, dst_step, src, src_step, rows, cols, itemsize);
}

}  // namespace tessera::cpu
