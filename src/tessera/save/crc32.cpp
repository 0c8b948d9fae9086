// Sixteen tables for any processor; carry-less products, 64 bytes a step, where there are such.
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
// Powers of x modulo the polynomial, reflected: what four accumulators, then one, are moved on by.
__attribute__((target("pclmul,sse4.1"))) __m128i fold(__m128i a, __m128i by, __m128i next) {
  __m128i low = _mm_clmulepi64_si128(a, by, 0x00), high = _mm_clmulepi64_si128(a, by, 0x11);
  return _mm_xor_si128(_mm_xor_si128(low, high), next);
}
__attribute__((target("pclmul,sse4.1"))) uint32_t by_products(const uint8_t* p, size_t n,
                                                              uint32_t c) {
  auto load = [](const uint8_t* at) __attribute__((target("pclmul,sse4.1"))) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
  };
  const __m128i by64 = _mm_set_epi64x(0x1c6e41596, 0x154442bd4);
  const __m128i by16 = _mm_set_epi64x(0x0ccaa009e, 0x1751997d0);
  __m128i x0 = _mm_xor_si128(load(p), _mm_cvtsi32_si128(static_cast<int>(c)));
  __m128i x1 = load(p + 16), x2 = load(p + 32), x3 = load(p + 48);
  for (p += 64, n -= 64; n >= 64; p += 64, n -= 64) {
    x0 = fold(x0, by64, load(p));
    x1 = fold(x1, by64, load(p + 16));
    x2 = fold(x2, by64, load(p + 32));
    x3 = fold(x3, by64, load(p + 48));
  }
  x0 = fold(fold(fold(x0, by16, x1), by16, x2), by16, x3);
  for (; n >= 16; p += 16, n -= 16) x0 = fold(x0, by16, load(p));
  // The 16 bytes that are left stand for all before them: the tables finish.
  uint8_t rest[16];
  _mm_storeu_si128(reinterpret_cast<__m128i*>(rest), x0);
  return by_table(p, n, by_table(rest, 16, 0));
}
bool has_products() {
  static const bool has = __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
  return has;
}
#endif

}  // namespace

uint32_t crc32_by_table(const void* data, size_t n, uint32_t before) {
  return ~by_table(static_cast<const uint8_t*>(data), n, ~before);
}

uint32_t crc32(const void* data, size_t n, uint32_t before) {
#if defined(__x86_64__)
  if (n >= 64 && has_products()) return ~by_products(static_cast<const uint8_t*>(data), n, ~before);
#endif
  return crc32_by_table(data, n, before);
}

}  // namespace tessera::files
