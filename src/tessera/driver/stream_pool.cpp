#include "tessera/driver/stream_pool.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "tessera/base/fork.h"

namespace tessera {

namespace {

struct Pool {
  std::vector<StreamHandle> streams;
  size_t next = 0;
};

struct Pools {
  Mutex mutex;
  const Backend* backend = nullptr;                        // theirs
  std::map<std::pair<int, int>, Pool> by_priority;         // device, priority
  std::map<std::pair<int, StreamHandle>, int> priorities;  // device, stream
};

// Never destroyed: streams may be asked for while the process ends.
Pools& pools() {
  static Pools* p = new Pools;
  return *p;
}
Mutex& lock_of_pools() { return pools().mutex; }
const HeldDuringFork<ForkStage::kStreamPool, lock_of_pools> g_at_fork;

}  // namespace

StreamHandle stream_from_pool(int device, int priority) {
  const Backend& backend = *accelerator();
  int least = 0, greatest = 0;
  check(backend.priority_range(device, &least, &greatest), "asking for priorities");
  priority = std::clamp(priority, greatest, least);
  Pools& all = pools();
  std::lock_guard lock(all.mutex);
  Pool& pool = all.by_priority[{device, priority}];
  if (pool.streams.size() < kPooledStreams) {
    StreamHandle fresh = nullptr;
    check(backend.stream_create(device, priority, &fresh), "creating a stream");
    all.backend = &backend;
    all.priorities[{device, fresh}] = priority;
    pool.streams.push_back(fresh);
    return fresh;
  }
  return pool.streams[pool.next++ % kPooledStreams];
}

std::vector<StreamHandle> streams_made(const Backend* backend, int device) {
  Pools& all = pools();
  std::lock_guard lock(all.mutex);
  std::vector<StreamHandle> out;
  if (all.backend != backend) return out;
  for (auto& [key, pool] : all.by_priority)
    if (key.first == device) out.insert(out.end(), pool.streams.begin(), pool.streams.end());
  return out;
}

int stream_priority(int device, StreamHandle stream) {
  Pools& all = pools();
  std::lock_guard lock(all.mutex);
  auto found = all.priorities.find({device, stream});
  return found == all.priorities.end() ? 0 : found->second;
}

}  // namespace tessera
