// Time as a profile notes it: the processor's counter where that runs evenly, else nanoseconds.
#pragma once
#include <chrono>
#include <cstdint>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace tessera::profile {

// Of std::chrono::steady_clock, which is what backends tell times in.
inline int64_t steady_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

bool find_even_counter();
// A variable of each library's and program's own: one that a program shares with the core could be
// a copy made before it had its value.
inline bool even_counter() {
  static const bool even = find_even_counter();
  return even;
}

// In units of its own: a third of what asking the system costs.
inline int64_t ticks() {
#if defined(__x86_64__)
  if (even_counter()) [[likely]]
    return static_cast<int64_t>(__rdtsc());
#endif
  return steady_ns();
}

// Turns ticks into nanoseconds of the steady clock.
class TickScale {
 public:
  TickScale();  // as of now
  int64_t ns(int64_t ticks) const {
    return ns_ + static_cast<int64_t>(static_cast<double>(ticks - ticks_) * rate_);
  }

 private:
  int64_t ticks_, ns_;
  double rate_;
};

}  // namespace tessera::profile
