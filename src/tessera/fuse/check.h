// TESSERA_FUSE=check: every group also runs operator by operator, and the bits are compared.
#pragma once
#include "tessera/fuse/stream.h"

namespace tessera::fuse {

// Compares what a fused group stored with the unfused reference; on a difference writes a
// reproducer beside the working directory and raises.
void compare_stored(Device device, Exec exec, const PendingOp& op, const Dims& shape,
                    const TensorBase& reference, const std::string& description);

}  // namespace tessera::fuse
