// Host memory for tensors, from the cpu backend (which keeps the cache).
#pragma once
#include <cstddef>

#include "tessera/driver/cpu.h"

namespace tessera::memory {

inline void* host_allocate(size_t bytes) {
  void* p = nullptr;
  Status status = cpu().allocate(0, bytes, &p);
  if (!status.ok()) [[unlikely]]
    check(status, "allocating host memory");
  return p;
}

inline void host_deallocate(void* p) noexcept {
  if (p) cpu().deallocate(0, p);
}

}  // namespace tessera::memory
