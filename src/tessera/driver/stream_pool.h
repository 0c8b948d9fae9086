// Streams that programs ask for come from a pool, as PyTorch's do: a program may make streams in a
// loop, and memory that was used on a stream refers to it for as long as it is cached.
#pragma once
#include <vector>

#include "tessera/driver/backend.h"

namespace tessera {

inline constexpr int kPooledStreams = 32;  // of each device and priority

// In turn, made when first needed. A priority beyond what the device has is brought into its range.
StreamHandle stream_from_pool(int device, int priority);
// Those that have been asked for so far, where they are this backend's.
std::vector<StreamHandle> streams_made(const Backend* backend, int device);
// 0 for the default stream, and for those that did not come from the pool.
int stream_priority(int device, StreamHandle stream);

}  // namespace tessera
