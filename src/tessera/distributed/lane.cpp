#include "tessera/distributed/lane.h"

namespace tessera::distributed {

Lane::~Lane() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Lane::post(Task task) {
  std::lock_guard lock(mutex_);
  if (failed_) return task.work->fail(failed_);
  tasks_.push_back(std::move(task));
  changed_.notify_all();
}

void Lane::fail_all(std::exception_ptr error) {
  // One by one, without a second list: a destructor calls this, and a deque allocates when it is
  // made.
  std::unique_lock lock(mutex_);
  if (!failed_) failed_ = error;  // post() adds nothing from here on
  const WorkPtr running = current_.work;
  lock.unlock();
  if (running) running->fail(error);
  for (;;) {
    lock.lock();
    if (tasks_.empty()) return;
    Task dropped = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    dropped.work->fail(error);
  }
}

std::shared_ptr<const Request> Lane::running(Deadline* since) const {
  std::lock_guard lock(mutex_);
  if (since) *since = began_;
  return current_.request;
}

int64_t Lane::oldest() const {
  std::lock_guard lock(mutex_);
  if (current_.request) return current_.request->sequence;
  return tasks_.empty() ? 0 : tasks_.front().request->sequence;
}

void Lane::loop() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stop_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    Task task = std::move(tasks_.front());
    tasks_.pop_front();
    current_.request = task.request;
    current_.work = task.work;
    began_ = Clock::now();
    Deadline began = began_;
    lock.unlock();
    std::exception_ptr error;
    try {
      task.body();
    } catch (...) {
      error = std::current_exception();
      try {
        error = task.explain(error, began);
      } catch (const std::bad_alloc&) {  // the error as it was thrown
      }
    }
    lock.lock();
    current_ = {};
    lock.unlock();
    // Only now: whoever waits for it may leave the job at once, and this rank has finished it.
    if (error)
      task.work->fail(error);
    else
      task.work->finish();
    task = {};  // tensors may end here: without the lock
    lock.lock();
  }
}

}  // namespace tessera::distributed
