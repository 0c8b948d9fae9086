#pragma once
#include "tessera/driver/backend.h"

namespace tessera::vgpu {

Status copy(Exec exec, CopyKind kind, void* dst, const void* src, size_t bytes, bool source_stable);
Status copy_peer(Exec exec, void* dst, int dst_device, const void* src, int src_device,
                 size_t bytes);

}  // namespace tessera::vgpu
