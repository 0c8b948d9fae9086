#include "stream.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <stdexcept>

#include "capture.h"
#include "device.h"
#include "notes.h"
#include "shown.h"
#include "state.h"

namespace tessera::vgpu {

namespace {
thread_local bool t_is_worker = false;
}

void Stream::start() {
  // Signals are for the program's own threads: Ctrl-C must not land on a worker.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    thread_ = std::thread([this] {
      t_is_worker = true;
      work();
      returned_.store(true);
      progress_.notify();
    });
  } catch (...) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_setname_np(thread_.native_handle(), "tessera_vgpu");
}

void Stream::stop() {
  closed_.store(true);
  wake();
  if (thread_.joinable()) thread_.join();
}

bool Stream::stop_until(Clock::time_point deadline) {
  wake();
  if (!thread_.joinable()) return true;
  if (!progress_.wait_until(deadline, [&] { return returned_.load(); })) {
    thread_.detach();
    return false;
  }
  thread_.join();
  return true;
}

Stream::~Stream() {
  stop();
  for (Task* t = first_; t;) {
    Task* next = t->next;
    t->destroy(t);
    t = next;
  }
}

void Stream::wake() {
  work_.notify();
  progress_.notify();
}

// The workers have ended, and their queues were empty: see [The end of a virtual GPU].
uint64_t Stream::submit_at_end(Task* task) {
  if (Status status = state().usable_at_end(); !status.ok()) {
    task->destroy(task);
    throw std::runtime_error(status.message);
  }
  Status status = task->run(task, *this);
  if (!status.ok()) device_.report(status);
  task->destroy(task);
  const uint64_t position = submitted_.load() + 1;
  submitted_.store(position);
  completed_.store(position);
  return position;
}

uint64_t Stream::submit(Task* task) {
  NotedCall call(task);
  uint64_t position;
  {
    std::lock_guard lock(mutex_);
    if (capture_) [[unlikely]] {
      try {
        capture_->add(*this, task);
      } catch (...) {
        task->destroy(task);
        throw;
      }
      return submitted_.load();
    }
    if (stopping.load()) [[unlikely]]
      return submit_at_end(task);
    (last_ ? last_->next : first_) = task;
    last_ = task;
    position = submitted_.load(std::memory_order_relaxed) + 1;
    submitted_.store(position);
  }
  work_.notify();
  // As on a real device, a host far ahead waits: queued tasks hold memory. It waits for half of
  // them, not for one, or the two threads would wake each other at every task from then on.
  if (position > kDepth && !reached(position - kDepth)) [[unlikely]]
    wait(position - kDepth / 2);
  return position;
}

std::shared_ptr<Capture> Stream::capture() {
  std::lock_guard lock(mutex_);
  return capture_;
}

void Stream::set_capture(std::shared_ptr<Capture> capture) {
  std::lock_guard lock(mutex_);
  capture_ = std::move(capture);
}

bool Stream::wait(uint64_t position) {
  progress_.wait([&] { return reached(position) || stopping.load(); });
  if (reached(position)) [[likely]]
    return true;
  if (!t_is_worker) (void)state().usable_at_end();
  return false;
}

bool Stream::wait_until(uint64_t position, Clock::time_point deadline) {
  return progress_.wait_until(deadline, [&] { return reached(position); });
}

Task* Stream::take_all() {
  std::lock_guard lock(mutex_);
  Task* list = first_;
  first_ = last_ = nullptr;
  return list;
}

void Stream::work() {
  uint64_t done = 0;
  Task* list = nullptr;
  auto ready = [&] { return submitted_.load() != done || closed_.load() || stopping.load(); };
  const int device = device_.index();
  bool working = false;
  while (!stopping.load()) {
    if (!list) {
      if (working && !ready()) {
        end_work(device);
        working = false;
      }
      work_.wait(ready);
      list = take_all();
      if (!list && closed_.load()) break;
      continue;
    }
    if (!working) begin_work(device);
    working = true;
    Task* task = list;
    list = task->next;
    Status status = run_noted(*task, *this, task->correlation);
    if (!status.ok()) device_.report(status);
    task->destroy(task);
    completed_.store(++done);
    progress_.notify();
  }
  if (working) end_work(device);
  while (list) {
    Task* next = list->next;
    list->destroy(list);
    list = next;
  }
}

void Stream::model_transfer(int64_t bytes, double rate) {
  if (rate <= 0) return;
  const auto now = Clock::now();
  if (busy_until_ < now) busy_until_ = now;
  busy_until_ += std::chrono::nanoseconds(static_cast<int64_t>(static_cast<double>(bytes) / rate));
  // Sleeping is only exact to tens of microseconds: short debts add up until they are worth it.
  if (busy_until_ - now < std::chrono::microseconds(100)) return;
  // In slices, so that a modelled hour does not hold up the end of the process.
  constexpr auto kSlice = std::chrono::milliseconds(20);
  for (auto t = now; t < busy_until_ && !ending.load() && !stopping.load(); t = Clock::now())
    std::this_thread::sleep_until(std::min(busy_until_, t + kSlice));
}

}  // namespace tessera::vgpu
