#include "stream_store.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "isa.h"
#include "tessera/ops/loops.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tessera::cpu {

namespace {

#if defined(__x86_64__)
// `lines` lines of 64 bytes to where lines begin.
void lines_baseline(char* dst, const char* src, size_t lines) {
  for (; lines > 0; --lines, src += 64, dst += 64)
    for (int i = 0; i < 64; i += 16)
      _mm_stream_si128(reinterpret_cast<__m128i*>(dst + i),
                       _mm_loadu_si128(reinterpret_cast<const __m128i*>(src + i)));
}
TS_TARGET_AVX2 void lines_avx2(char* dst, const char* src, size_t lines) {
  for (; lines > 0; --lines, src += 64, dst += 64)
    for (int i = 0; i < 64; i += 32)
      _mm256_stream_si256(reinterpret_cast<__m256i*>(dst + i),
                          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(src + i)));
}
TS_TARGET_AVX512 void lines_avx512(char* dst, const char* src, size_t lines) {
  for (; lines > 0; --lines, src += 64, dst += 64)
    _mm512_stream_si512(reinterpret_cast<__m512i*>(dst), _mm512_loadu_si512(src));
}
#endif

// What a core finds in its last-level cache. Where a processor has several of them, sysconf may
// give the sum of all (320 MiB for ten of 32 on an AMD EPYC); the kernel knows each.
int64_t last_level_cache() noexcept {
  int64_t largest = 0;
  for (int index = 0;; ++index) {
    char name[64];
    std::snprintf(name, sizeof name, "/sys/devices/system/cpu/cpu0/cache/index%d/size", index);
    std::FILE* file = std::fopen(name, "r");
    if (!file) break;
    long size = 0;
    char unit = 0;
    if (std::fscanf(file, "%ld%c", &size, &unit) >= 1)
      largest = std::max(largest, int64_t{size} << (unit == 'M' ? 20 : unit == 'K' ? 10 : 0));
    std::fclose(file);
  }
#ifdef _SC_LEVEL3_CACHE_SIZE
  if (largest == 0) largest = sysconf(_SC_LEVEL3_CACHE_SIZE);
#endif
  return largest;
}

}  // namespace

void stream_copy(void* dst_, const void* src_, size_t bytes) noexcept {
  char* dst = static_cast<char*>(dst_);
  const char* src = static_cast<const char*>(src_);
#if defined(__x86_64__)
  if (bytes >= 256) {
    constexpr decltype(&lines_baseline) kTable[] = {lines_baseline, lines_avx2, lines_avx512};
    const size_t head = (64 - (reinterpret_cast<uintptr_t>(dst) & 63)) & 63;
    std::memcpy(dst, src, head);
    const size_t lines = (bytes - head) / 64, done = head + lines * 64;
    kTable[g_isa](dst + head, src + head, lines);
    dst += done;
    src += done;
    bytes -= done;
  }
#endif
  std::memcpy(dst, src, bytes);
}

void stream_fence() noexcept {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

int64_t streaming_bytes() noexcept {
  static const int64_t bytes = std::max(last_level_cache(), int64_t{8} << 20) * 3 / 2;
  return bytes;
}

}  // namespace tessera::cpu
