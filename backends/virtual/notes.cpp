#include "notes.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include "state.h"

namespace tessera::vgpu {

namespace {

struct Note {
  std::string name;
  DeviceActivity about;
};
struct Notes {
  std::mutex mutex;
  std::vector<Note> all;
  std::vector<const Stream*> streams;  // numbered as they are seen
};
Notes& notes() {
  static auto* n = new Notes;
  return *n;
}

int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

std::atomic<uint64_t> g_correlation{0};

}  // namespace

void NotedCall::begin(Task* task) {
  correlation_ = task->correlation = g_correlation.fetch_add(1) + 1;
  name_ = task->activity == DeviceActivity::Kind::kKernel ? "cudaLaunchKernel" : "cudaMemcpyAsync";
  start_ = now();
}

namespace {

void note_call(const char* name, uint64_t correlation, int64_t start) {
  DeviceActivity a;
  a.kind = DeviceActivity::Kind::kCall;
  a.start_ns = start;
  a.end_ns = now();
  a.correlation = correlation;
  a.thread = static_cast<uint32_t>(syscall(SYS_gettid));
  std::lock_guard lock(notes().mutex);
  notes().all.push_back({name, a});
}

}  // namespace

void NotedCall::end() {
  try {
    note_call(name_, correlation_, start_);
  } catch (const std::bad_alloc&) {  // the profile lacks it
  }
}

uint64_t note_graph() {
  if (!profiling.load(std::memory_order_relaxed)) return 0;
  const uint64_t correlation = g_correlation.fetch_add(1) + 1;
  note_call("cudaGraphLaunch", correlation, now());
  return correlation;
}

Status run_noted(Task& task, Stream& stream, uint64_t correlation) {
  if (!profiling.load(std::memory_order_relaxed) || !task.label) [[likely]]
    return task.run(&task, stream);
  DeviceActivity a;
  a.kind = task.activity;
  a.correlation = correlation;
  a.device = stream.device().index();
  a.bytes = task.bytes;
  a.start_ns = now();
  Status status = task.run(&task, stream);
  a.end_ns = now();
  Notes& n = notes();
  std::lock_guard lock(n.mutex);
  auto at = std::find(n.streams.begin(), n.streams.end(), &stream);
  constexpr int64_t kFirst = 7;  // the default stream's number in PyTorch's traces
  a.stream = kFirst + (at - n.streams.begin());
  try {
    if (at == n.streams.end()) n.streams.push_back(&stream);
    n.all.push_back({task.label, a});
  } catch (const std::bad_alloc&) {  // the profile lacks it
  }
  return status;
}

Status profile_begin(const char** how) {
  return guarded([&]() -> Status {
    *how = "wall clock of the virtual GPU's threads";
    std::lock_guard lock(notes().mutex);
    notes().all.clear();
    profiling.store(true);
    return {};
  });
}

Status profile_take(const ActivitySink* sink) {
  return guarded([&]() -> Status {
    std::vector<Note> all;
    {
      std::lock_guard lock(notes().mutex);
      all.swap(notes().all);
    }
    for (Note& n : all) {
      n.about.name = n.name.c_str();
      sink->take(sink->to, n.about);
    }
    return {};
  });
}

Status profile_end() {
  profiling.store(false);
  return {};
}

}  // namespace tessera::vgpu
