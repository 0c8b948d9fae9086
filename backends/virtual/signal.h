// Waiting for a condition over atomics, where signalling costs one load when nobody waits.
#pragma once
#include <sched.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>

namespace tessera::vgpu {

class Signal {
 public:
  // `condition` must read its atomics, and who changes them write them, sequentially consistent:
  // then either the waiter sees the change or the notifier sees the waiter. A short spin comes
  // first, since waking a thread costs more than most tasks take.
  template <class Condition>
  void wait(Condition condition) {
    for (int i = 1; i <= kSpins; ++i) {
      if (condition()) return;
      // Now and then the core is offered to others: who is to change it may be waiting for it.
      i % 16 ? pause() : static_cast<void>(sched_yield());
    }
    std::unique_lock lock(mutex_);
    waiters_.fetch_add(1);
    while (!condition()) changed_.wait(lock);
    waiters_.fetch_sub(1);
  }

  // Returns false if the condition does not hold at `deadline`.
  template <class Condition>
  bool wait_until(std::chrono::steady_clock::time_point deadline, Condition condition) {
    if (condition()) return true;
    std::unique_lock lock(mutex_);
    waiters_.fetch_add(1);
    bool holds = condition();
    while (!holds && changed_.wait_until(lock, deadline) != std::cv_status::timeout)
      holds = condition();
    waiters_.fetch_sub(1);
    return holds || condition();
  }

  void notify() {
    if (waiters_.load() == 0) return;
    std::lock_guard lock(mutex_);
    changed_.notify_all();
  }

 private:
  static constexpr int kSpins = 800;  // some 30 microseconds
  static void pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }

  std::atomic<int> waiters_{0};
  std::mutex mutex_;
  std::condition_variable changed_;
};

}  // namespace tessera::vgpu
