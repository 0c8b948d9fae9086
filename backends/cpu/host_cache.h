// A caching allocator for host memory.
//
// Note [The host cache]
// Writing into fresh pages costs ten times what writing into warm ones does, so freed blocks are
// kept. Sizes are rounded up to a class (four per power of two, at least 64 bytes). Each thread
// keeps a few blocks of each small class for itself, without locks; the others lie in free lists
// under one lock. Kept bytes stay below a cap (a quarter of the machine's memory, or
// TESSERA_CPU_CACHE_MB); what would go past it is given back at once.
// With TESSERA_GUARD_PAGES=1 nothing is kept: each allocation ends at a page without access, so
// that a read or write past its end, or after it is freed, raises a signal. tools/fuzz/calls.py
// uses it.
#pragma once
#include <cstddef>
#include <cstdint>

namespace tessera::cpu {

// Aligned to at least 64 bytes; null when there is no memory.
void* cache_allocate(size_t bytes) noexcept;
void cache_free(void* p) noexcept;

}  // namespace tessera::cpu

extern "C" {
// Gives kept memory back to the system (other threads' own few small blocks stay with them).
void tessera_cpu_empty_cache();
// Bytes kept but not in use.
int64_t tessera_cpu_cached_bytes();
}
