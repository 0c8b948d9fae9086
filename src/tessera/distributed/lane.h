// A thread that carries calls out one after the other.
#pragma once
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "tessera/distributed/group_backend.h"

namespace tessera::distributed {

class Lane {
 public:
  struct Task {
    std::shared_ptr<const Request> request;
    WorkPtr work;
    std::function<void()> body;  // may throw
    // Makes the error of what `body` threw.
    std::function<std::exception_ptr(std::exception_ptr thrown, Deadline began)> explain;
  };
  Lane() : thread_([this] { loop(); }) {}
  ~Lane();
  Lane(const Lane&) = delete;

  void post(Task task);
  // Fails what waits and what runs; later ones fail when they are posted.
  void fail_all(std::exception_ptr error);
  // The call that runs, and since when; null where none does.
  std::shared_ptr<const Request> running(Deadline* since = nullptr) const;
  // The number of the oldest call that is not done; 0 where all are.
  int64_t oldest() const;

 private:
  void loop();

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> tasks_;
  // The running call: `body` and `explain` are empty, so that copies do not allocate.
  Task current_;
  Deadline began_;
  std::exception_ptr failed_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace tessera::distributed
