// Memory of captured graphs.
#include <algorithm>
#include <utility>

#include "tessera/base/error.h"
#include "tessera/memory/device_allocator.h"

namespace tessera::memory {

bool DeviceAllocator::is_captured(StreamHandle stream) const {
  CaptureState state = CaptureState::kNone;
  uint64_t id = 0;
  return backend_->capture_state(device_, stream, &state, &id).ok() && state != CaptureState::kNone;
}

// Null unless the stream belongs to a capture of this device.
StreamPool* DeviceAllocator::captured_pool_of(StreamHandle stream) {
  CaptureState state = CaptureState::kNone;
  uint64_t id = 0;
  if (!backend_->capture_state(device_, stream, &state, &id).ok() || state == CaptureState::kNone)
    return nullptr;
  for (const Capture& c : captures_)
    if (c.id == id) return &private_pool_of(*c.pool, stream);
  return nullptr;
}

StreamPool& DeviceAllocator::private_pool_of(PrivatePool& graphs, StreamHandle stream) {
  for (StreamPool* pool : graphs.of_streams)
    if (pool->stream == stream) return *pool;
  // What graphs left behind is used again: its addresses, and the pages that are still there.
  auto left = std::find_if(
      private_streams_.begin(), private_streams_.end(),
      [&](const StreamPool& p) { return p.orphan && p.live == 0 && p.stream == stream; });
  StreamPool* pool = nullptr;
  if (left != private_streams_.end()) {
    settle();  // graphs were replayed, and their results used, on any stream
    pool = &*left;
    pool->orphan = false;
  } else {
    pool = &private_streams_.emplace_back(this, stream);
  }
  pool->graphs = &graphs;
  graphs.of_streams.push_back(pool);
  return *pool;
}

void DeviceAllocator::use_pool(PoolId id, StreamHandle stream) {
  std::lock_guard lock(mutex_);
  TS_CHECK(config_.caching,
           "graphs need the caching allocator: it is off (PYTORCH_NO_CUDA_MEMORY_CACHING)");
  auto found = std::find_if(private_pools_.begin(), private_pools_.end(),
                            [&](const PrivatePool& p) { return p.users > 0 && p.id == id; });
  if (found == private_pools_.end()) {
    // Places are used again: StreamPools refer to them.
    found = std::find_if(private_pools_.begin(), private_pools_.end(),
                         [](const PrivatePool& p) { return p.users == 0; });
    if (found == private_pools_.end())
      found = private_pools_.insert(private_pools_.end(), PrivatePool{});
    found->id = id;
  }
  ++found->users;
  private_pool_of(*found, stream);
}

void DeviceAllocator::leave_pool(PoolId id) {
  std::lock_guard lock(mutex_);
  for (PrivatePool& p : private_pools_) {
    if (p.users == 0 || !(p.id == id)) continue;
    if (--p.users > 0) return;
    for (StreamPool* pool : p.of_streams) {
      pool->graphs = nullptr;
      pool->orphan = true;
    }
    p.of_streams.clear();
    return;
  }
}

void DeviceAllocator::begin_capture(PoolId id, uint64_t capture) {
  std::lock_guard lock(mutex_);
  for (PrivatePool& p : private_pools_)
    if (p.users > 0 && p.id == id) captures_.push_back({capture, &p});
}

void DeviceAllocator::end_capture(uint64_t capture) {
  std::lock_guard lock(mutex_);
  std::erase_if(captures_, [&](const Capture& c) { return c.id == capture; });
  if (!captures_.empty()) return;
  while (Block* b = deferred_) {
    deferred_ = std::exchange(b->free_next, nullptr);
    b->waiting = 0;
    if (!await_streams(b)) give_back(b);
  }
}

}  // namespace tessera::memory
