// Page-locked host memory, which the accelerator copies from at its full speed. Asking the driver
// for it takes milliseconds, so it is cached: by the allocator of device memory, over a table whose
// memory is the host's.
#pragma once
#include <cstdint>

namespace tessera {
class Storage;
}

namespace tessera::memory {

// Did allocate_pinned() make it?
bool is_pinned(const Storage& storage);

// Bytes that tensors have, and that were taken from the driver.
int64_t pinned_allocated();
int64_t pinned_reserved();
// Gives what no tensor has back to the driver.
void empty_pinned_cache();

}  // namespace tessera::memory
