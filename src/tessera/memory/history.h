// What happened to a device's memory, in order: torch.cuda.memory._record_memory_history.
#pragma once
#include <atomic>
#include <cstdint>
#include <deque>
#include <string>
#include <unordered_map>
#include <vector>

#include "tessera/base/source.h"
#include "tessera/driver/backend.h"

namespace tessera::memory {

enum class Action : uint8_t {
  kAlloc,
  kFreeRequested,
  kFreeCompleted,
  kSegmentAlloc,
  kSegmentFree,
  kSegmentMap,
  kSegmentUnmap,
  kOom,
};
const char* action_name(Action a);

struct TraceEntry {
  Action action;
  uint32_t stack;  // number of a stack, 0 for none
  uint64_t address;
  int64_t size;
  StreamHandle stream;
  int64_t time_us;  // since the epoch
};

// Which stacks are taken: PyTorch's `context`.
enum class StackOf : uint8_t { kNothing, kState, kAlloc, kAll };

// Off costs one load. Changed and read under the allocator's lock, except `on` and capture.
class History {
 public:
  void start(bool trace, StackOf stacks, size_t max_entries);
  void stop();
  bool on() const { return on_.load(std::memory_order_relaxed); }

  using Stack = std::vector<SourceRef>;
  // Of the calling thread, before the lock is taken; empty where it is not wanted.
  Stack capture(bool free) const;
  // Its number; equal stacks share one.
  uint32_t keep(Stack stack);
  void add(Action action, const void* address, size_t size, StreamHandle stream, uint32_t stack);

  const std::deque<TraceEntry>& entries() const { return entries_; }
  const std::vector<Stack>& stacks() const { return stacks_; }

 private:
  std::atomic<bool> on_{false};
  std::atomic<StackOf> stacks_of_{StackOf::kNothing};
  bool trace_ = false;
  size_t max_entries_ = 0;
  std::deque<TraceEntry> entries_;
  std::vector<Stack> stacks_;  // number 1 is the first
  std::unordered_multimap<uint64_t, uint32_t> by_hash_;
};

}  // namespace tessera::memory
