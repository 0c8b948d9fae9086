// Counts of the allocator under PyTorch's names. Changed under the allocator's lock.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace tessera::memory {

struct Stat {
  int64_t current = 0, peak = 0, allocated = 0, freed = 0;
  void add(int64_t n) {
    current += n;
    allocated += n;
    peak = std::max(peak, current);
  }
  void subtract(int64_t n) {
    current -= n;
    freed += n;
  }
};

// All, small and large requests.
struct PoolStat {
  Stat of[3];
  void add(bool small, int64_t n) {
    of[0].add(n);
    of[small ? 2 : 1].add(n);
  }
  void subtract(bool small, int64_t n) {
    of[0].subtract(n);
    of[small ? 2 : 1].subtract(n);
  }
};

struct Stats {
  PoolStat allocation, segment, active, inactive_split;
  PoolStat allocated_bytes, reserved_bytes, active_bytes, inactive_split_bytes, requested_bytes;
  Stat oversize_allocations, oversize_segments;
  int64_t num_device_alloc = 0, num_device_free = 0, num_sync_all_streams = 0;
};

// One entry of torch.cuda.memory_stats().
struct NamedCount {
  std::string name;
  int64_t value;
};

}  // namespace tessera::memory
