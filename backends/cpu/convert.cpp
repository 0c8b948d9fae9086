#include "convert.h"

#include <cstring>

#include "convert_scalar.h"

#if defined(__x86_64__)
// GCC 12's own headers read an undefined register on purpose, and warn about it.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>
#endif

namespace tessera::cpu {

namespace {

// The loop of every conversion the compiler can vectorise by itself; the same memory is allowed
// for both where element sizes are equal.
template <class To, class From>
TS_INLINE void convert_loop(void* dst_, const void* src_, int64_t n) {
  To* dst = static_cast<To*>(dst_);
  const From* src = static_cast<const From*>(src_);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) dst[i] = cast<To>(src[i]);
}
template <class To, class From>
void convert_baseline(void* d, const void* s, int64_t n) {
  convert_loop<To, From>(d, s, n);
}
template <class To, class From>
TS_TARGET_AVX2 void convert_avx2(void* d, const void* s, int64_t n) {
  convert_loop<To, From>(d, s, n);
}
template <class To, class From>
TS_TARGET_AVX512 void convert_avx512(void* d, const void* s, int64_t n) {
  convert_loop<To, From>(d, s, n);
}

// To int64 registers, through int32.
template <class From>
TS_INLINE void to_int32_loop(void* dst_, const void* src_, int64_t n) {
  int64_t* dst = static_cast<int64_t*>(dst_);
  const From* src = static_cast<const From*>(src_);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) dst[i] = cast<int32_t>(src[i]);
}
template <class From>
void to_int32_baseline(void* d, const void* s, int64_t n) {
  to_int32_loop<From>(d, s, n);
}
template <class From>
TS_TARGET_AVX2 void to_int32_avx2(void* d, const void* s, int64_t n) {
  to_int32_loop<From>(d, s, n);
}
template <class From>
TS_TARGET_AVX512 void to_int32_avx512(void* d, const void* s, int64_t n) {
  to_int32_loop<From>(d, s, n);
}

// Through the narrow type and back, in place.
template <class Reg, class Narrow>
TS_INLINE void round_loop(void* dst_, const void* src_, int64_t n) {
  Reg* dst = static_cast<Reg*>(dst_);
  const Reg* src = static_cast<const Reg*>(src_);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) dst[i] = cast<Reg>(cast<Narrow>(src[i]));
}
template <class Reg, class Narrow>
void round_baseline(void* d, const void* s, int64_t n) {
  round_loop<Reg, Narrow>(d, s, n);
}
template <class Reg, class Narrow>
TS_TARGET_AVX2 void round_avx2(void* d, const void* s, int64_t n) {
  round_loop<Reg, Narrow>(d, s, n);
}
template <class Reg, class Narrow>
TS_TARGET_AVX512 void round_avx512(void* d, const void* s, int64_t n) {
  round_loop<Reg, Narrow>(d, s, n);
}

template <class T>
void copy(void* d, const void* s, int64_t n) {
  std::memcpy(d, s, static_cast<size_t>(n) * sizeof(T));
}

#if defined(__x86_64__)

TS_TARGET_AVX2 void load_half_avx2(void* d, const void* s, int64_t n) {
  float* dst = static_cast<float*>(d);
  const uint16_t* src = static_cast<const uint16_t*>(s);
  int64_t i = 0;
  for (; i + 8 <= n; i += 8)
    _mm256_storeu_ps(dst + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)(src + i))));
  for (; i < n; ++i) dst[i] = _cvtsh_ss(src[i]);
}
TS_TARGET_AVX2 void store_half_avx2(void* d, const void* s, int64_t n) {
  uint16_t* dst = static_cast<uint16_t*>(d);
  const float* src = static_cast<const float*>(s);
  int64_t i = 0;
  for (; i + 8 <= n; i += 8)
    _mm_storeu_si128((__m128i*)(dst + i), _mm256_cvtps_ph(_mm256_loadu_ps(src + i), 0));
  for (; i < n; ++i) dst[i] = _cvtss_sh(src[i], 0);
}
TS_TARGET_AVX2 void round_half_avx2(void* d, const void* s, int64_t n) {
  float* dst = static_cast<float*>(d);
  const float* src = static_cast<const float*>(s);
  int64_t i = 0;
  for (; i + 8 <= n; i += 8)
    _mm256_storeu_ps(dst + i, _mm256_cvtph_ps(_mm256_cvtps_ph(_mm256_loadu_ps(src + i), 0)));
  for (; i < n; ++i) dst[i] = _cvtsh_ss(_cvtss_sh(src[i], 0));
}

TS_TARGET_AVX512 void load_half_avx512(void* d, const void* s, int64_t n) {
  float* dst = static_cast<float*>(d);
  const uint16_t* src = static_cast<const uint16_t*>(s);
  int64_t i = 0;
  for (; i + 16 <= n; i += 16)
    _mm512_storeu_ps(dst + i, _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i*)(src + i))));
  if (i < n) {
    __mmask16 m = static_cast<__mmask16>((1u << (n - i)) - 1);
    _mm512_mask_storeu_ps(dst + i, m, _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(m, src + i)));
  }
}
TS_TARGET_AVX512 void store_half_avx512(void* d, const void* s, int64_t n) {
  uint16_t* dst = static_cast<uint16_t*>(d);
  const float* src = static_cast<const float*>(s);
  int64_t i = 0;
  for (; i + 16 <= n; i += 16)
    _mm256_storeu_si256((__m256i*)(dst + i), _mm512_cvtps_ph(_mm512_loadu_ps(src + i), 0));
  if (i < n) {
    __mmask16 m = static_cast<__mmask16>((1u << (n - i)) - 1);
    _mm256_mask_storeu_epi16(dst + i, m, _mm512_cvtps_ph(_mm512_maskz_loadu_ps(m, src + i), 0));
  }
}
TS_TARGET_AVX512 void round_half_avx512(void* d, const void* s, int64_t n) {
  float* dst = static_cast<float*>(d);
  const float* src = static_cast<const float*>(s);
  int64_t i = 0;
  for (; i + 16 <= n; i += 16)
    _mm512_storeu_ps(dst + i, _mm512_cvtph_ps(_mm512_cvtps_ph(_mm512_loadu_ps(src + i), 0)));
  if (i < n) {
    __mmask16 m = static_cast<__mmask16>((1u << (n - i)) - 1);
    __m512 v = _mm512_maskz_loadu_ps(m, src + i);
    _mm512_mask_storeu_ps(dst + i, m, _mm512_cvtph_ps(_mm512_cvtps_ph(v, 0)));
  }
}

#endif

// Fills one instruction set's table.
#define TS_CONVERT_TABLE(isa)                                                            \
  ConvertTable table_##isa() {                                                           \
    ConvertTable t{};                                                                    \
    auto set = [&](DType d, ConvertFn load, ConvertFn store, ConvertFn round) {          \
      t.load[static_cast<int>(d)] = load;                                                \
      t.store[static_cast<int>(d)] = store;                                              \
      t.round[static_cast<int>(d)] = round;                                              \
    };                                                                                   \
    set(DType::kBool, copy<bool>, copy<bool>, nullptr);                                  \
    set(DType::kInt64, copy<int64_t>, copy<int64_t>, nullptr);                           \
    set(DType::kFloat32, copy<float>, copy<float>, nullptr);                             \
    set(DType::kFloat64, copy<double>, copy<double>, nullptr);                           \
    set(DType::kComplex64, copy<c64>, copy<c64>, nullptr);                               \
    set(DType::kComplex128, copy<c128>, copy<c128>, nullptr);                            \
    set(DType::kUInt8, convert_##isa<int64_t, uint8_t>, convert_##isa<uint8_t, int64_t>, \
        round_##isa<int64_t, uint8_t>);                                                  \
    set(DType::kInt8, convert_##isa<int64_t, int8_t>, convert_##isa<int8_t, int64_t>,    \
        round_##isa<int64_t, int8_t>);                                                   \
    set(DType::kInt16, convert_##isa<int64_t, int16_t>, convert_##isa<int16_t, int64_t>, \
        round_##isa<int64_t, int16_t>);                                                  \
    set(DType::kInt32, convert_##isa<int64_t, int32_t>, convert_##isa<int32_t, int64_t>, \
        round_##isa<int64_t, int32_t>);                                                  \
    set(DType::kBFloat16, convert_##isa<float, BFloat>, convert_##isa<BFloat, float>,    \
        round_##isa<float, BFloat>);                                                     \
    set(DType::kFloat16, convert_##isa<float, Half>, convert_##isa<Half, float>,         \
        round_##isa<float, Half>);                                                       \
    auto from = [&]<class F>(std::type_identity<F>, RegClass c) {                        \
      ConvertFn* row = t.convert[static_cast<int>(c)];                                   \
      row[static_cast<int>(RegClass::kF32)] = convert_##isa<float, F>;                   \
      row[static_cast<int>(RegClass::kF64)] = convert_##isa<double, F>;                  \
      row[static_cast<int>(RegClass::kI64)] = convert_##isa<int64_t, F>;                 \
      row[static_cast<int>(RegClass::kB8)] = convert_##isa<bool, F>;                     \
      row[static_cast<int>(RegClass::kC64)] = convert_##isa<c64, F>;                     \
      row[static_cast<int>(RegClass::kC128)] = convert_##isa<c128, F>;                   \
    };                                                                                   \
    from(std::type_identity<float>(), RegClass::kF32);                                   \
    from(std::type_identity<double>(), RegClass::kF64);                                  \
    from(std::type_identity<int64_t>(), RegClass::kI64);                                 \
    from(std::type_identity<bool>(), RegClass::kB8);                                     \
    from(std::type_identity<c64>(), RegClass::kC64);                                     \
    from(std::type_identity<c128>(), RegClass::kC128);                                   \
    t.to_int32[static_cast<int>(RegClass::kF32)] = to_int32_##isa<float>;                \
    t.to_int32[static_cast<int>(RegClass::kF64)] = to_int32_##isa<double>;               \
    t.to_int32[static_cast<int>(RegClass::kC64)] = to_int32_##isa<c64>;                  \
    t.to_int32[static_cast<int>(RegClass::kC128)] = to_int32_##isa<c128>;                \
    return t;                                                                            \
  }
TS_CONVERT_TABLE(baseline)
TS_CONVERT_TABLE(avx2)
TS_CONVERT_TABLE(avx512)
#undef TS_CONVERT_TABLE

ConvertTable with_half(ConvertTable t, ConvertFn load, ConvertFn store, ConvertFn round) {
  constexpr int h = static_cast<int>(DType::kFloat16);
  t.load[h] = load;
  t.store[h] = store;
  t.round[h] = round;
  return t;
}

}  // namespace

const ConvertTable g_convert_tables[kNumIsas] = {
    table_baseline(),
#if defined(__x86_64__)
    with_half(table_avx2(), load_half_avx2, store_half_avx2, round_half_avx2),
    with_half(table_avx512(), load_half_avx512, store_half_avx512, round_half_avx512),
#else
    table_avx2(),
    table_avx512(),
#endif
};

}  // namespace tessera::cpu
