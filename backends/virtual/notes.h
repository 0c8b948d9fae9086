// What a profile of the virtual GPU notes: launches on the host, and tasks on their workers.
#pragma once
#include <atomic>

#include "stream.h"

namespace tessera::vgpu {

inline std::atomic<bool> profiling{false};

// On the host, around submitting a task: gives it its number.
class NotedCall {
 public:
  explicit NotedCall(Task* task) {
    if (profiling.load(std::memory_order_relaxed) && task->label) [[unlikely]]
      begin(task);
  }
  ~NotedCall() {
    if (start_) end();
  }
  NotedCall(const NotedCall&) = delete;

 private:
  void begin(Task* task);
  void end();
  int64_t start_ = 0;
  uint64_t correlation_ = 0;
  const char* name_ = nullptr;
};

// The launch of a graph: the number that its tasks have.
uint64_t note_graph();

// On the worker. The same as task.run(&task, stream), and noted.
Status run_noted(Task& task, Stream& stream, uint64_t correlation);

Status profile_begin(const char** how);
Status profile_take(const ActivitySink* sink);
Status profile_end();

}  // namespace tessera::vgpu
