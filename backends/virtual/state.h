// What there is once per process: the devices, page-locked memory, and its end.
#pragma once
#include <exception>
#include <map>
#include <memory>
#include <vector>

#include "device.h"

namespace tessera::vgpu {

// Note [The end of a virtual GPU]
// Kernels run on workers and inside libraries whose destructors are exit handlers. When the process
// begins to end (driver/ending.h), end() waits until the queues are empty, at most kDrainLimit, and
// then ends the workers. From then on the thread that ends the process runs each task itself, so
// that destructors and exit handlers may still compute; calls of other threads do not return while
// the process lives, except after kOthersWait, for the case that a destructor joins them.
//
// A worker that does not come back is left behind. The process must not tear libraries down under
// it: it ends with _exit() and its exit status, in the exit handler that end() registers.

// In a child of fork the workers do not exist, and locks may be held by nobody.
inline std::atomic<bool> forked{false};

class State {
 public:
  State();
  const Config& config() const { return config_; }
  int count() const { return static_cast<int>(devices_.size()); }
  Device& device(int i) { return *devices_[static_cast<size_t>(i)]; }
  bool drain();
  // Waits for the queues and ends the workers; at most once.
  void end();
  // Called where ending is set. Returns a failure where work was dropped and, after kOthersWait, to
  // threads other than the one that ends the process.
  Status usable_at_end() const;

  Status host_allocate(size_t bytes, void** out);
  Status host_deallocate(void* p);
  bool is_pinned(const void* p);

  void lock_for_fork();
  void unlock_after_fork();

 private:
  bool drain_until(Stream::Clock::time_point deadline);

  std::atomic<bool> ended_{false};
  std::atomic<bool> abandoned_{false};  // queued work was dropped
  std::atomic<pid_t> ending_thread_{0};
  Config config_;
  std::vector<std::unique_ptr<Device>> devices_;
  std::mutex pinned_mutex_;
  std::map<const char*, size_t> pinned_;
};

// Never destroyed: it is used from other libraries' exit handlers.
State& state();

inline Status usable() {
  if (forked.load(std::memory_order_relaxed)) [[unlikely]]
    return fail(Code::kFailed,
                "Cannot re-initialize CUDA in forked subprocess. The virtual GPU's threads are in "
                "the parent: use the 'spawn' start method");
  if (ending.load(std::memory_order_relaxed)) [[unlikely]]
    return state().usable_at_end();
  return {};
}

// The frame of every function of the table: nothing is thrown through it.
template <class F>
Status guarded(F f) noexcept {
  try {
    if (Status s = usable(); !s.ok()) return s;
    return f();
  } catch (const std::exception& e) {
    return fail(Code::kFailed, e.what());
  } catch (...) {
    return {Code::kFailed, "unknown failure in the virtual GPU"};
  }
}

inline Status no_device(int device) {
  return fail(Code::kFailed, "there is no virtual GPU " + std::to_string(device) + ": " +
                                 std::to_string(state().count()) + " configured");
}

template <class F>
Status on_device(int device, F f) noexcept {
  return guarded([&]() -> Status {
    State& s = state();
    if (device < 0 || device >= s.count()) [[unlikely]]
      return no_device(device);
    return f(s.device(device));
  });
}

// The same for what queues work or waits for it.
template <class F>
Status on_stream(int device, StreamHandle stream, F f) noexcept {
  return on_device(device, [&](Device& d) -> Status {
    if (d.faulted()) [[unlikely]]
      return d.take_failure();
    Status status;
    Stream* s = d.stream(stream, &status);
    return s ? f(*s) : status;
  });
}

}  // namespace tessera::vgpu
