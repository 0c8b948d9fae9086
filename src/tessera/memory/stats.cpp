// memory_stats(): every count under PyTorch's name.
#include "tessera/memory/stats.h"

#include <algorithm>

#include "tessera/memory/device_allocator.h"

namespace tessera::memory {

namespace {

struct Entry {
  const char* name;
  PoolStat Stats::*stat;
};
constexpr Entry kEntries[] = {
    {"allocation", &Stats::allocation},
    {"segment", &Stats::segment},
    {"active", &Stats::active},
    {"inactive_split", &Stats::inactive_split},
    {"allocated_bytes", &Stats::allocated_bytes},
    {"reserved_bytes", &Stats::reserved_bytes},
    {"active_bytes", &Stats::active_bytes},
    {"inactive_split_bytes", &Stats::inactive_split_bytes},
    {"requested_bytes", &Stats::requested_bytes},
};
constexpr const char* kPools[] = {"all", "large_pool", "small_pool"};

void put(std::vector<NamedCount>& out, const std::string& name, const Stat& s) {
  out.push_back({name + ".current", s.current});
  out.push_back({name + ".peak", s.peak});
  out.push_back({name + ".allocated", s.allocated});
  out.push_back({name + ".freed", s.freed});
}

}  // namespace

std::vector<NamedCount> DeviceAllocator::stats() {
  std::vector<NamedCount> out;
  std::lock_guard lock(mutex_);
  for (const Entry& e : kEntries)
    for (int p = 0; p < 3; ++p) {
      Stat s = (stats_.*e.stat).of[p];
      if (p == 0 && e.stat == &Stats::allocated_bytes) {
        s.current = used_.now();  // with what deferred results are promised
        s.peak = std::max(s.peak, s.current);
      }
      put(out, std::string(e.name) + "." + kPools[p], s);
    }
  put(out, "oversize_allocations", stats_.oversize_allocations);
  put(out, "oversize_segments", stats_.oversize_segments);
  out.push_back({"num_alloc_retries", num_alloc_retries()});
  out.push_back({"num_ooms", num_ooms()});
  out.push_back({"num_sync_all_streams", stats_.num_sync_all_streams});
  out.push_back({"num_device_alloc", stats_.num_device_alloc});
  out.push_back({"num_device_free", stats_.num_device_free});
  out.push_back({"max_split_size",
                 config_.max_split == SIZE_MAX ? -1 : static_cast<int64_t>(config_.max_split)});
  return out;
}

int64_t DeviceAllocator::peak_allocated() {
  std::lock_guard lock(mutex_);
  // What was told once stays: a promise may go without ever having been memory.
  int64_t& peak = stats_.allocated_bytes.of[0].peak;
  return peak = std::max(peak, used_.now());
}

void DeviceAllocator::reset_peak() {
  std::lock_guard lock(mutex_);
  used_.reset_peak();
  used_.raise_peak(usage().real());  // deferred work may hold more than eager execution would
  reserved_.reset_peak();
  auto reset = [](Stat& s) { s.peak = s.current; };
  for (const Entry& e : kEntries)
    for (Stat& s : (stats_.*e.stat).of) reset(s);
  reset(stats_.oversize_allocations);
  reset(stats_.oversize_segments);
}

void DeviceAllocator::reset_accumulated() {
  std::lock_guard lock(mutex_);
  auto reset = [](Stat& s) { s.allocated = s.freed = 0; };
  for (const Entry& e : kEntries)
    for (Stat& s : (stats_.*e.stat).of) reset(s);
  reset(stats_.oversize_allocations);
  reset(stats_.oversize_segments);
  stats_.num_device_alloc = stats_.num_device_free = stats_.num_sync_all_streams = 0;
  retries_.store(0, std::memory_order_relaxed);
  ooms_.store(0, std::memory_order_relaxed);
}

}  // namespace tessera::memory
