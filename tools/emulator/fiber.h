// Stacks of their own, switched between by hand: a block's threads on one thread of the host.
#pragma once
#include <cstddef>

namespace emulator {

// A stack and where it stopped.
class Fiber {
 public:
  Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;
  ~Fiber();

  // Makes the next resume() begin `body(argument)`, which ends by done(), never by returning.
  void start(void (*body)(void*), void* argument);
  // From the scheduler: runs it until it pauses.
  void resume();
  // From within: back to the scheduler.
  void pause();

 private:
  struct Impl;
  Impl* impl_;
};

}  // namespace emulator
