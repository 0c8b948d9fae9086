// A profile after it has ended: events with their names, one inside the other, and their sums.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/profile/arguments.h"
#include "tessera/profile/record.h"

namespace tessera::profile {

// What a backend has told (driver/backend.h), as a trace keeps it.
struct Activity {
  enum class Kind : uint8_t { kCall, kKernel, kCopy, kSet };
  Kind kind;
  std::string name;
  int64_t start, end;  // ns of the steady clock
  uint64_t correlation;
  uint32_t thread;
  int device;
  int64_t stream;
  int64_t bytes;
  int grid[3], block[3];
  int registers;
  int64_t shared;
};

enum class Category : uint8_t {
  kOperator,  // also nodes and groups, as PyTorch has it
  kUser,
  kRuntime,  // a call of the device's library
  kKernel,
  kCopy,
  kSet,
  kMemory,
};

struct TraceEvent {
  Category category;
  std::string_view name;
  uint32_t thread = 0;  // of a device's: 0
  int device = -1;      // -1: the host
  int64_t stream = 0;
  int64_t start = 0;  // ns since the profile began
  int64_t end = 0;
  uint64_t id = 0;
  uint64_t correlation = 0;
  int parent = -1;
  int children = 0;
  bool hidden = false;  // the only part of one of the same name: not counted
  bool backward = false;
  int64_t sequence = -1;
  uint32_t forward_thread = 0;
  int64_t flops = 0;
  int64_t bytes = 0;      // moved; of memory taken or given back
  int64_t allocated = 0;  // of memory: after it
  uint64_t address = 0;
  // Nanoseconds, and bytes, with and without what is inside it.
  int64_t self_ns = 0;
  int64_t device_ns = 0, self_device_ns = 0;
  int64_t host_bytes = 0, self_host_bytes = 0;
  int64_t device_bytes = 0, self_device_bytes = 0;
  const Event* raw = nullptr;
  const Activity* activity = nullptr;

  int64_t duration() const { return end - start; }
  bool on_device() const { return device >= 0 && category != Category::kMemory; }
};

// Two places in the trace that belong together.
struct Arrow {
  enum class Kind : uint8_t { kForwardBackward, kLaunch, kDeferred };
  Kind kind;
  int from, to;  // events
};

struct ThreadInfo {
  uint32_t id;
  std::string name;
};

class Trace {
 public:
  // Of what happened from `begin` to `end` (ns of the steady clock).
  Trace(std::vector<std::shared_ptr<const Buffer>> buffers, std::vector<Activity> activities,
        int64_t begin, int64_t end, uint32_t what);
  Trace(const Trace&) = delete;

  const std::vector<TraceEvent>& events() const { return events_; }  // by start
  const std::vector<Arrow>& arrows() const { return arrows_; }
  // Device events that an event started itself, not through what is inside it.
  std::vector<int> started_by(int event) const;
  const std::vector<ThreadInfo>& threads() const { return threads_; }
  const std::vector<int>& devices() const { return devices_; }
  uint32_t what() const { return what_; }
  bool uses_device() const { return uses_device_; }
  void set_uses_device(bool on) { uses_device_ = on; }
  int64_t begin_ns() const { return begin_; }
  int64_t length_ns() const { return length_; }
  int64_t epoch_ns() const { return epoch_; }  // when it began, since 1970

  std::vector<Argument> arguments(const TraceEvent& e) const;
  // "train.py(12): step", innermost first.
  std::vector<std::string> stack(const TraceEvent& e) const;
  // Of a group: "add", "train.py:12".
  std::vector<std::pair<std::string, std::string>> members(const TraceEvent& e) const;

  // Told with the trace; values are JSON.
  std::map<std::string, std::string> metadata;
  std::string measured_by;
  int64_t dropped = 0;

 private:
  void read(const Buffer& buffer, const TickScale& scale);
  void read_activities();
  std::string_view intern(std::string text);
  std::string_view name_of(const Event& e);
  void nest();
  void link_activities();
  void drop_doubles();
  void add_up();
  void find_arrows();

  std::vector<std::shared_ptr<const Buffer>> buffers_;
  std::vector<Activity> activities_;
  std::vector<TraceEvent> events_;
  std::vector<Arrow> arrows_;
  std::vector<std::pair<int, int>> started_;  // by whom, what; in order
  std::vector<ThreadInfo> threads_;
  std::vector<int> devices_;
  std::map<std::string, std::unique_ptr<std::string>, std::less<>> names_;
  std::map<std::pair<const char*, Kind>, std::string_view> known_;
  int64_t begin_, length_, epoch_;
  uint32_t what_;
  bool uses_device_ = false;
};

}  // namespace tessera::profile
