// TESSERA_FUSE=check: every group also runs operator by operator, and the bits are compared.
#pragma once
#include <functional>

#include "tessera/fuse/stream.h"

namespace tessera::fuse {

struct Stored {
  const PendingOperand& place;
  const Dims& shape;
  const char* name;  // of the operator
  int32_t id;
};

// Compares what a fused group stored with the unfused reference; on a difference writes a
// reproducer beside the working directory and raises.
void compare_stored(Device device, Exec exec, const Stored& result, const TensorBase& reference,
                    const std::function<std::string()>& description);

}  // namespace tessera::fuse
