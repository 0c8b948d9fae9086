#include "tessera/distributed/work.h"

#include "tessera/base/blocking.h"

namespace tessera::distributed {

bool Work::is_completed() const {
  {
    std::lock_guard lock(mutex_);
    if (!done_ || error_) return done_;
  }
  return !query_ || query_();
}

bool Work::is_success() const {
  std::lock_guard lock(mutex_);
  return done_ && !error_;
}

std::exception_ptr Work::exception() const {
  std::lock_guard lock(mutex_);
  return error_;
}

bool Work::wait_for(Milliseconds patience) {
  Deadline until = Clock::now() + patience;
  {
    BlockingScope others_go_on;
    std::unique_lock lock(mutex_);
    while (!done_) {
      Deadline now = Clock::now();
      if (now >= until) return false;
      changed_.wait_until(lock, std::min(until, now + std::chrono::seconds(1)));
      if (done_ || !watch_) continue;
      lock.unlock();
      watch_();
      lock.lock();
    }
    if (error_) std::rethrow_exception(error_);
  }
  if (join_) join_();
  return true;
}

void Work::wait() {
  while (!wait_for(std::chrono::hours(1))) {
  }
}

void Work::finish() {
  std::lock_guard lock(mutex_);
  done_ = true;
  changed_.notify_all();
}

void Work::fail(std::exception_ptr error) {
  std::lock_guard lock(mutex_);
  if (done_) return;
  done_ = true;
  error_ = std::move(error);
  changed_.notify_all();
}

}  // namespace tessera::distributed
