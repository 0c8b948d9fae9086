// A stream: a worker thread and its queue.
#pragma once
#include <chrono>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <utility>

#include "signal.h"
#include "status.h"

namespace tessera::vgpu {

class Capture;
class Device;
class Stream;

// One piece of queued work. `destroy` frees it, run or not.
struct Task {
  Task* next = nullptr;
  Status (*run)(Task*, Stream&) = nullptr;
  void (*destroy)(Task*) = nullptr;
  // What a profile calls it, null for what it does not show.
  const char* label = nullptr;
  DeviceActivity::Kind activity = DeviceActivity::Kind::kKernel;
  uint64_t correlation = 0;
  int64_t bytes = 0;  // read and written, or moved
};

template <class F>
struct FunctionTask : Task {
  explicit FunctionTask(F f) : function(std::move(f)) {
    run = [](Task* t, Stream& s) -> Status { return static_cast<FunctionTask*>(t)->function(s); };
    destroy = [](Task* t) { delete static_cast<FunctionTask*>(t); };
  }
  F function;
};

template <class F>
Task* make_task(F f) {
  return new FunctionTask<F>(std::move(f));
}

// Set when the process begins to end: transfers are not slowed down to a modelled rate any more.
inline std::atomic<bool> ending{false};
// Set after that: workers finish the task they are at and drop the rest.
inline std::atomic<bool> stopping{false};

class Stream : public std::enable_shared_from_this<Stream> {
 public:
  using Clock = std::chrono::steady_clock;
  explicit Stream(Device& device) : device_(device) {}
  ~Stream();
  void start();
  // Finishes what is queued (or, when the process is stopping, the task it is at) and joins.
  void stop();
  // Waits for the worker's loop to end, then joins it. Returns false at the deadline; the worker
  // is left to itself then.
  bool stop_until(Clock::time_point deadline);

  Device& device() const { return device_; }

  // Takes the task; its position in the stream. While the stream is captured, the task goes to the
  // capture and does not count.
  uint64_t submit(Task* task);
  uint64_t submitted() const { return submitted_.load(); }
  bool reached(uint64_t position) const { return completed_.load() >= position; }
  // False when the process is stopping before that.
  bool wait(uint64_t position);
  // Returns false if the position is not reached at the deadline.
  bool wait_until(uint64_t position, Clock::time_point deadline);
  void wake();

  // Where its tasks go instead; null unless it is being captured.
  std::shared_ptr<Capture> capture();
  void set_capture(std::shared_ptr<Capture> capture);

  // On the worker: the task is to last at least as long as `bytes` take at `rate` bytes per
  // nanosecond.
  void model_transfer(int64_t bytes, double rate);

 private:
  static constexpr uint64_t kDepth = 1024;  // tasks queued at most
  void work();
  uint64_t submit_at_end(Task* task);
  Task* take_all();

  Device& device_;
  std::thread thread_;
  std::mutex mutex_;  // guards the list; positions are given out in its order
  Task* first_ = nullptr;
  Task* last_ = nullptr;
  std::shared_ptr<Capture> capture_;
  std::atomic<bool> closed_{false};
  std::atomic<bool> returned_{false};  // the worker's loop has ended
  std::atomic<uint64_t> submitted_{0};
  std::atomic<uint64_t> completed_{0};
  Signal work_;
  Signal progress_;
  Clock::time_point busy_until_{};
};

}  // namespace tessera::vgpu
