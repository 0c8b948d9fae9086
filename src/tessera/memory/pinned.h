// Page-locked host memory, which the accelerator copies from at its full speed.
#pragma once

namespace tessera {
class Storage;
}

namespace tessera::memory {

// Did allocate_pinned() make it?
bool is_pinned(const Storage& storage);

}  // namespace tessera::memory
