// Copies between host and device.
#pragma once
#include "context.h"

namespace tessera::cuda {

Status copy_on(Device& d, CUstream stream, CopyKind kind, void* dst, const void* src, size_t bytes);

}  // namespace tessera::cuda
