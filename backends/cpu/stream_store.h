// Copies that pass the caches by: a large result that is written normally is first read, line by
// line, and drives out what others would find there.
#pragma once
#include <cstddef>
#include <cstdint>

namespace tessera::cpu {

// More bytes than this, of all operands together, are not worth keeping in the last-level cache.
int64_t streaming_bytes() noexcept;

// As memcpy, by streaming stores where whole lines are written. After the last one and before other
// threads look: stream_fence.
void stream_copy(void* dst, const void* src, size_t bytes) noexcept;
void stream_fence() noexcept;

}  // namespace tessera::cpu
