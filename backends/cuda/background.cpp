#include "background.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <thread>
#include <unordered_map>

namespace tessera::cuda {
namespace {

struct Job {
  std::string text;
  int arch;
  Effort effort;
  bool done = false;
  std::unique_ptr<Compilation> result;
};

// What is waiting at the end is compiled for the next process, as long as nobody notices.
constexpr auto kAtExit = std::chrono::seconds(2);

class Queue {
 public:
  static Queue& get() {
    static Queue* const q = new Queue;
    return *q;
  }

  void add(const Hash128& key, std::string text, int arch, Effort effort) {
    std::lock_guard lock(mutex_);
    constexpr size_t kMost = 256;
    if (stopping_ || jobs_.count(key) || waiting_.size() >= kMost) return;
    waiting_.push_back(key);
    try {
      jobs_.emplace(key, Job{std::move(text), arch, effort, false, nullptr});
    } catch (...) {
      waiting_.pop_back();
      throw;
    }
    // NVRTC 13 takes one program at a time in a process; others may take more.
    const size_t most = std::clamp<size_t>(std::thread::hardware_concurrency() / 2, 1, 4);
    if (idle_ < waiting_.size() && threads_.size() < most) try {
        threads_.emplace_back([this] { work(); });
      } catch (...) {  // no more threads to be had: those that run compile it, or its first user
        if (threads_.empty()) {
          jobs_.erase(key);
          waiting_.pop_back();
        }
      }
    wake_.notify_one();
  }

  std::unique_ptr<Compilation> take(const Hash128& key, std::chrono::milliseconds patience) {
    std::unique_lock lock(mutex_);
    auto it = jobs_.find(key);
    if (it == jobs_.end()) return nullptr;
    if (!it->second.done) {
      // Somebody waits for it: it goes to the front.
      auto at = std::find(waiting_.begin(), waiting_.end(), key);
      if (at != waiting_.end()) std::rotate(waiting_.begin(), at, at + 1);
      done_.wait_for(lock, patience, [&] {
        it = jobs_.find(key);
        return it == jobs_.end() || it->second.done || stopping_;
      });
      it = jobs_.find(key);
      if (it == jobs_.end() || !it->second.done) return nullptr;
    }
    std::unique_ptr<Compilation> result = std::move(it->second.result);
    jobs_.erase(it);
    return result;
  }

  bool has(const Hash128& key) {
    std::lock_guard lock(mutex_);
    return jobs_.count(key) != 0;
  }

  void stop() {
    if (getpid() != owner_) return;  // a fork has none of the threads
    std::vector<std::thread> threads;
    {
      std::lock_guard lock(mutex_);
      stopping_ = true;
      deadline_ = std::chrono::steady_clock::now() + kAtExit;
      threads.swap(threads_);
    }
    wake_.notify_all();
    done_.notify_all();
    for (std::thread& t : threads) t.join();
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      ++idle_;
      wake_.wait(lock, [&] { return stopping_ || !waiting_.empty(); });
      --idle_;
      if (stopping_ && (waiting_.empty() || std::chrono::steady_clock::now() > deadline_)) return;
      const Hash128 key = waiting_.front();
      waiting_.pop_front();
      // It stays in the table until it is done, whoever asks.
      Job& job = jobs_.at(key);
      lock.unlock();
      std::unique_ptr<Compilation> result;  // null: no memory; the kernel's first user compiles it
      try {
        result = std::make_unique<Compilation>();
        if (!compile_text(job.text, job.arch, &result->image, &result->error, job.effort))
          result->image.clear();
      } catch (const std::bad_alloc&) {
        result.reset();
      }
      // Where exit() is called on a thread that nobody watches. What the compiler clears then was
      // made by now, and handlers run in reverse.
      static const int at_exit = std::atexit(end_compilations);
      (void)at_exit;
      lock.lock();
      job.result = std::move(result);
      job.text.clear();
      job.done = true;
      done_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_, done_;
  std::unordered_map<Hash128, Job, HashOfHash> jobs_;  // nodes: a job stays where it is
  std::deque<Hash128> waiting_;
  std::vector<std::thread> threads_;
  size_t idle_ = 0;
  bool stopping_ = false;
  const pid_t owner_ = getpid();
  std::chrono::steady_clock::time_point deadline_;
};

}  // namespace

void compile_later(const Hash128& key, std::string text, int arch, Effort effort) {
  Queue::get().add(key, std::move(text), arch, effort);
}
std::unique_ptr<Compilation> take_compiled(const Hash128& key, std::chrono::milliseconds patience) {
  return Queue::get().take(key, patience);
}
void end_compilations() { Queue::get().stop(); }
bool is_being_compiled(const Hash128& key) { return Queue::get().has(key); }

}  // namespace tessera::cuda
