// Sixteen tables for any processor; carry-less products, 64 or 256 bytes a step, where there are
// such.
#include "tessera/save/crc32.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tessera::files {

namespace {

constexpr uint32_t kPolynomial = 0xedb88320u;  // reflected
constexpr int kTables = 16;
using Tables = std::array<std::array<uint32_t, 256>, kTables>;

constexpr Tables make_tables() {
  Tables t{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t c = i;
    for (int k = 0; k < 8; ++k) c = (c & 1) ? kPolynomial ^ (c >> 1) : c >> 1;
    t[0][i] = c;
  }
  for (int k = 1; k < kTables; ++k)
    for (uint32_t i = 0; i < 256; ++i) t[k][i] = t[0][t[k - 1][i] & 255] ^ (t[k - 1][i] >> 8);
  return t;
}
constexpr Tables kTable = make_tables();

// All of these take and give the register itself, not its complement.
uint32_t by_table(const uint8_t* p, size_t n, uint32_t c) {
  for (; n >= kTables; p += kTables, n -= kTables) {
    uint8_t block[kTables];
    std::memcpy(block, p, kTables);
    for (int i = 0; i < 4; ++i) block[i] ^= static_cast<uint8_t>(c >> (8 * i));
    c = 0;
    for (int i = 0; i < kTables; ++i) c ^= kTable[kTables - 1 - i][block[i]];
  }
  for (; n; ++p, --n) c = kTable[0][(c ^ *p) & 255] ^ (c >> 8);
  return c;
}

#if defined(__x86_64__)
// x^n modulo the polynomial, with its bits turned as the products need them.
constexpr uint64_t power(int n) {
  uint32_t c = 0x80000000u;  // x^0: the lowest power stands highest
  for (int i = 0; i < n; ++i) c = (c & 1) ? kPolynomial ^ (c >> 1) : c >> 1;
  return uint64_t{c} << 1;
}
// What 16 bytes are multiplied by to stand for themselves `bytes` further on: low half, high half.
constexpr uint64_t low_by(int bytes) { return power(8 * bytes + 32); }
constexpr uint64_t high_by(int bytes) { return power(8 * bytes - 32); }
static_assert(low_by(64) == 0x154442bd4 && high_by(64) == 0x1c6e41596);

#define TS_PCLMUL __attribute__((target("pclmul,sse4.1")))
template <int Bytes>
TS_PCLMUL __m128i by128() {
  constexpr uint64_t low = low_by(Bytes), high = high_by(Bytes);
  return _mm_set_epi64x(static_cast<int64_t>(high), static_cast<int64_t>(low));
}
TS_PCLMUL __m128i load128(const uint8_t* at) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
}
TS_PCLMUL __m128i fold(__m128i a, __m128i by, __m128i next) {
  __m128i low = _mm_clmulepi64_si128(a, by, 0x00), high = _mm_clmulepi64_si128(a, by, 0x11);
  return _mm_xor_si128(_mm_xor_si128(low, high), next);
}
// The 16 bytes in `x` stand for all before them: folded over what is left, then the tables.
TS_PCLMUL uint32_t finish(__m128i x, const uint8_t* p, size_t n) {
  const __m128i by16 = by128<16>();
  for (; n >= 16; p += 16, n -= 16) x = fold(x, by16, load128(p));
  uint8_t rest[16];
  _mm_storeu_si128(reinterpret_cast<__m128i*>(rest), x);
  return by_table(p, n, by_table(rest, 16, 0));
}
TS_PCLMUL uint32_t by_products(const uint8_t* p, size_t n, uint32_t c) {
  const __m128i by64 = by128<64>(), by16 = by128<16>();
  __m128i x0 = _mm_xor_si128(load128(p), _mm_cvtsi32_si128(static_cast<int>(c)));
  __m128i x1 = load128(p + 16), x2 = load128(p + 32), x3 = load128(p + 48);
  for (p += 64, n -= 64; n >= 64; p += 64, n -= 64) {
    x0 = fold(x0, by64, load128(p));
    x1 = fold(x1, by64, load128(p + 16));
    x2 = fold(x2, by64, load128(p + 32));
    x3 = fold(x3, by64, load128(p + 48));
  }
  return finish(fold(fold(fold(x0, by16, x1), by16, x2), by16, x3), p, n);
}

// Four times as wide: 256 bytes a step.
#define TS_VPCLMUL __attribute__((target("vpclmulqdq,avx512f,avx512vl,pclmul,sse4.1")))
template <int Bytes>
TS_VPCLMUL __m512i by512() {
  constexpr auto low = static_cast<int64_t>(low_by(Bytes)),
                 high = static_cast<int64_t>(high_by(Bytes));
  return _mm512_set_epi64(high, low, high, low, high, low, high, low);
}
TS_VPCLMUL __m512i fold_wide(__m512i a, __m512i by, __m512i next) {
  __m512i low = _mm512_clmulepi64_epi128(a, by, 0x00), high = _mm512_clmulepi64_epi128(a, by, 0x11);
  return _mm512_ternarylogic_epi64(low, high, next, 0x96);  // low ^ high ^ next
}
TS_VPCLMUL uint32_t by_wide_products(const uint8_t* p, size_t n, uint32_t c) {
  const __m512i by256 = by512<256>(), by64 = by512<64>();
  __m512i first = _mm512_zextsi128_si512(_mm_cvtsi32_si128(static_cast<int>(c)));
  __m512i x0 = _mm512_xor_si512(_mm512_loadu_si512(p), first), x1 = _mm512_loadu_si512(p + 64),
          x2 = _mm512_loadu_si512(p + 128), x3 = _mm512_loadu_si512(p + 192);
  for (p += 256, n -= 256; n >= 256; p += 256, n -= 256) {
    x0 = fold_wide(x0, by256, _mm512_loadu_si512(p));
    x1 = fold_wide(x1, by256, _mm512_loadu_si512(p + 64));
    x2 = fold_wide(x2, by256, _mm512_loadu_si512(p + 128));
    x3 = fold_wide(x3, by256, _mm512_loadu_si512(p + 192));
  }
  x0 = fold_wide(fold_wide(fold_wide(x0, by64, x1), by64, x2), by64, x3);
  uint8_t rest[64];
  _mm512_storeu_si512(rest, x0);
  const __m128i by16 = by128<16>();
  __m128i x = load128(rest);
  for (int i = 16; i < 64; i += 16) x = fold(x, by16, load128(rest + i));
  return finish(x, p, n);
}
#undef TS_PCLMUL
#undef TS_VPCLMUL

bool has_products() {
  static const bool has = __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
  return has;
}
bool has_wide_products() {
  static const bool has = has_products() && __builtin_cpu_supports("vpclmulqdq") &&
                          __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl");
  return has;
}
#endif

}  // namespace

uint32_t crc32_by_table(const void* data, size_t n, uint32_t before) {
  return ~by_table(static_cast<const uint8_t*>(data), n, ~before);
}

uint32_t crc32(const void* data, size_t n, uint32_t before) {
#if defined(__x86_64__)
  if (n >= 256 && has_wide_products())
    return ~by_wide_products(static_cast<const uint8_t*>(data), n, ~before);
  if (n >= 64 && has_products()) return ~by_products(static_cast<const uint8_t*>(data), n, ~before);
#endif
  return crc32_by_table(data, n, before);
}

}  // namespace tessera::files
