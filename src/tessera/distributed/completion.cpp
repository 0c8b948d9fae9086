#include "tessera/distributed/completion.h"

#include <thread>

#include "tessera/base/blocking.h"
#include "tessera/distributed/error.h"

namespace tessera::distributed {

namespace {

std::string text_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return e.what();
  } catch (...) {
    return "an exception of unknown type";
  }
}

}  // namespace

// A forked child has no thread that carries the collective out, and nothing may release the lock.
bool Completion::is_inherited() const { return generation_ != fork_generation(); }

Completion::Progress Completion::progress_locked() const {
  return query_ ? query_() : Progress::kPassed;
}

CollectiveOutcome::State Completion::state() {
  if (State s = settled_.load(std::memory_order_acquire); s != State::kOpen) return s;
  if (is_inherited()) return State::kFailed;
  std::lock_guard lock(mutex_);
  if (!host_done_ || frozen_ || progress_locked() != Progress::kPassed) return State::kOpen;
  settled_.store(State::kDone, std::memory_order_release);
  return State::kDone;
}

bool Completion::is_failing() {
  if (settled_.load(std::memory_order_acquire) != State::kOpen || is_inherited()) return false;
  std::lock_guard lock(mutex_);
  return frozen_ || (host_done_ && progress_locked() == Progress::kRefused);
}

void Completion::wait() {
  while (!await_host(Clock::now() + std::chrono::hours(1))) {
  }
  while (!await_device(Clock::now() + std::chrono::hours(1))) {
  }
}

bool Completion::await_host(Deadline deadline) {
  if (is_inherited()) return true;
  BlockingScope others_go_on;
  std::unique_lock lock(mutex_);
  while (!host_done_ && !error_) {
    const Deadline now = Clock::now();
    if (now >= deadline) return false;
    changed_.wait_until(lock, std::min(deadline, now + std::chrono::seconds(1)));
    if (host_done_ || error_ || !watch_) continue;
    lock.unlock();
    watch_();
    lock.lock();
  }
  return true;
}

bool Completion::await_device(Deadline deadline) {
  BlockingScope others_go_on;
  // Most collectives end within microseconds; sleeping costs about 60.
  const Deadline spin = Clock::now() + std::chrono::microseconds(200);
  while (state() == State::kOpen) {
    const Deadline now = Clock::now();
    if (now >= deadline) return false;
    if (now < spin)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  return true;
}

void Completion::join() {
  if (is_inherited()) return;
  await_host(Clock::now() + std::chrono::hours(1000));
  if (join_ && state() == State::kOpen) join_();
}

bool Completion::is_host_done() const {
  std::lock_guard lock(mutex_);
  return host_done_ || error_;
}

std::exception_ptr Completion::error() const {
  std::lock_guard lock(mutex_);
  return error_;
}

void Completion::rethrow() const {
  std::exception_ptr e = error();
  if (!e) return;
  set_reported(e);
  std::rethrow_exception(e);
}

void Completion::raise() const {
  const char* advice =
      ". It can be read again after all of it was overwritten, for example by x.zero_()";
  if (is_inherited() && settled_.load() == State::kOpen)
    distributed::fail(DistErrorKind::kBackend,
                      "this tensor was being written by a collective when the process was forked",
                      advice);
  std::exception_ptr e = error();
  set_reported(e);
  distributed::fail(DistErrorKind::kBackend,
                    "this tensor holds the result of a failed collective, or was computed from one",
                    advice, ". The collective: ", text_of(e));
}

void Completion::finish() {
  std::lock_guard lock(mutex_);
  host_done_ = true;
  if (!query_ && !error_) settled_.store(State::kDone, std::memory_order_release);
  changed_.notify_all();
}

void Completion::fail(std::exception_ptr error) {
  {
    std::lock_guard lock(mutex_);
    if (error_ || settled_.load(std::memory_order_relaxed) != State::kOpen) return;
    if (host_done_ && !frozen_ && progress_locked() == Progress::kPassed) {
      settled_.store(State::kDone, std::memory_order_release);
      return;
    }
    error_ = error;
    settled_.store(untouched_ ? State::kDone : State::kFailed, std::memory_order_release);
  }
  record_failure(error, text_of(error));
  changed_.notify_all();
}

void Completion::set_untouched() {
  std::lock_guard lock(mutex_);
  untouched_ = true;
}

void Completion::freeze() {
  std::lock_guard lock(mutex_);
  if (settled_.load(std::memory_order_relaxed) == State::kOpen) frozen_ = true;
}

}  // namespace tessera::distributed
