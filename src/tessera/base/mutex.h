// The mutex of the core. Debug builds (TESSERA_LOCK_CHECKS) count how many a thread holds.
#pragma once
#include <mutex>

namespace tessera {

#ifdef TESSERA_LOCK_CHECKS

// Number of Mutex objects that the calling thread holds.
int& held_mutexes();
// Aborts with `what` if the calling thread holds a Mutex.
void require_no_mutex(const char* what);

class Mutex {
 public:
  void lock() {
    mutex_.lock();
    ++held_mutexes();
  }
  bool try_lock() {
    const bool locked = mutex_.try_lock();
    if (locked) ++held_mutexes();
    return locked;
  }
  void unlock() {
    --held_mutexes();
    mutex_.unlock();
  }

 private:
  std::mutex mutex_;
};

#else

using Mutex = std::mutex;
inline void require_no_mutex(const char*) {}

#endif

}  // namespace tessera
