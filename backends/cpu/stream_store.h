// Copies that pass the caches by: a large result that is written normally is first read, line by
// line, and drives out what others would find there.
#pragma once
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace tessera::cpu {

// More bytes than this, of all operands together, are not worth keeping in the last-level cache.
int64_t streaming_bytes() noexcept;

// As memcpy, by streaming stores where whole lines are written. After the last one and before other
// threads look: stream_fence.
inline void stream_copy(void* dst_, const void* src_, size_t bytes) noexcept {
  char* dst = static_cast<char*>(dst_);
  const char* src = static_cast<const char*>(src_);
#if defined(__x86_64__)
  const size_t head = (64 - (reinterpret_cast<uintptr_t>(dst) & 63)) & 63;
  if (bytes >= 256) {
    std::memcpy(dst, src, head);
    dst += head;
    src += head;
    bytes -= head;
    for (; bytes >= 64; bytes -= 64, src += 64, dst += 64) {
      __m128i a = _mm_loadu_si128(reinterpret_cast<const __m128i*>(src));
      __m128i b = _mm_loadu_si128(reinterpret_cast<const __m128i*>(src + 16));
      __m128i c = _mm_loadu_si128(reinterpret_cast<const __m128i*>(src + 32));
      __m128i d = _mm_loadu_si128(reinterpret_cast<const __m128i*>(src + 48));
      _mm_stream_si128(reinterpret_cast<__m128i*>(dst), a);
      _mm_stream_si128(reinterpret_cast<__m128i*>(dst + 16), b);
      _mm_stream_si128(reinterpret_cast<__m128i*>(dst + 32), c);
      _mm_stream_si128(reinterpret_cast<__m128i*>(dst + 48), d);
    }
  }
#endif
  std::memcpy(dst, src, bytes);
}

inline void stream_fence() noexcept {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

}  // namespace tessera::cpu
