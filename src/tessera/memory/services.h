#pragma once
#include "tessera/driver/backend.h"

namespace tessera::memory {

// Handed to a backend when its first device gets an allocator.
const HostServices& host_services();

}  // namespace tessera::memory
