#include "thread_pool.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <new>
#include <thread>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tessera::cpu {

namespace {

constexpr int kMaxThreads = 256;
// How long an idle worker watches for the next job before it sleeps: about 20 microseconds, longer
// than the gap between two operators of a program and short enough to leave a busy machine alone.
constexpr int kSpins = 400;
// Pieces per thread: more than one evens out threads that other processes slow down.
constexpr int64_t kPiecesPerThread = 4;

void relax() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

int default_threads() {
  for (const char* name : {"TESSERA_NUM_THREADS", "OMP_NUM_THREADS"}) {
    if (const char* text = std::getenv(name)) {
      int n = std::atoi(text);
      if (n > 0) return std::min(n, kMaxThreads);
    }
  }
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    return std::clamp(static_cast<int>(CPU_COUNT(&set)), 1, kMaxThreads);
  return std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, kMaxThreads);
}

thread_local bool tl_in_parallel = false;

struct Job {
  RangeFn fn;
  void* ctx;
  int64_t begin;
  int64_t end;
  int64_t piece;
  int64_t pieces;
};

// A job is open while its word has free seats. A worker takes one by lowering their number, in the
// same word as the job's number: so it cannot take a seat of a job that has been closed.
class Pool {
 public:
  bool try_acquire() { return !busy_.exchange(true, std::memory_order_acquire); }
  void release() { busy_.store(false, std::memory_order_release); }

  // Called by the one thread that holds the pool.
  void run(const Job& job, int threads) {
    start_workers(threads - 1);
    const uint64_t seats = static_cast<uint64_t>(threads - 1);
    job_ = job;
    next_.store(0, std::memory_order_relaxed);
    finished_.store(0, std::memory_order_relaxed);
    const uint64_t number = (word_.load(std::memory_order_relaxed) >> kSeatBits) + 1;
    word_.store(number << kSeatBits | seats, std::memory_order_seq_cst);
    if (sleepers_.load(std::memory_order_seq_cst) > 0) {
      // Whoever counted itself but does not wait yet holds the lock.
      std::lock_guard lock(mutex_);
      wake_.notify_all();
    }
    tl_in_parallel = true;
    work(job);
    tl_in_parallel = false;
    const uint64_t left =
        word_.exchange(number << kSeatBits, std::memory_order_acq_rel) & kSeatMask;
    const uint64_t joined = seats - left;
    for (int spins = 0; finished_.load(std::memory_order_acquire) != joined;) {
      if (++spins < 4000)
        relax();
      else
        std::this_thread::yield();
    }
  }

 private:
  static constexpr int kSeatBits = 16;
  static constexpr uint64_t kSeatMask = (uint64_t{1} << kSeatBits) - 1;

  void work(const Job& job) {
    for (;;) {
      int64_t i = next_.fetch_add(1, std::memory_order_relaxed);
      if (i >= job.pieces) return;
      int64_t b = job.begin + i * job.piece;
      job.fn(job.ctx, b, std::min(job.end, b + job.piece));
    }
  }

  void start_workers(int wanted) {
    for (; started_ < wanted; ++started_) {
      try {
        std::thread([this] { loop(); }).detach();
      } catch (...) {
        return;  // no more threads to be had: those that run do the work
      }
    }
  }

  // The word of a job after number `seen`.
  uint64_t wait_for_job(uint64_t seen) {
    for (int i = 0; i < kSpins; ++i) {
      const uint64_t word = word_.load(std::memory_order_acquire);
      if (word >> kSeatBits != seen) return word;
      relax();
    }
    std::unique_lock lock(mutex_);
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    uint64_t word;
    while ((word = word_.load(std::memory_order_seq_cst)) >> kSeatBits == seen) wake_.wait(lock);
    sleepers_.fetch_sub(1, std::memory_order_relaxed);
    return word;
  }

  void loop() {
    tl_in_parallel = true;
    uint64_t seen = 0;
    for (;;) {
      uint64_t word = wait_for_job(seen);
      bool joined = false;
      while (!joined && (word & kSeatMask) != 0)
        joined = word_.compare_exchange_weak(word, word - 1, std::memory_order_acq_rel,
                                             std::memory_order_acquire);
      seen = word >> kSeatBits;
      if (!joined) continue;
      work(Job(job_));
      finished_.fetch_add(1, std::memory_order_release);
    }
  }

  std::atomic<bool> busy_{false};
  std::mutex mutex_;
  std::condition_variable wake_;
  Job job_{};
  int started_ = 0;
  std::atomic<int> sleepers_{0};
  alignas(64) std::atomic<uint64_t> word_{0};
  alignas(64) std::atomic<int64_t> next_{0};
  alignas(64) std::atomic<uint64_t> finished_{0};
};

std::atomic<int> g_threads{0};
std::atomic<Pool*> g_pool{nullptr};

constinit std::mutex g_making;

// The child has no workers: it makes a pool of its own.
[[maybe_unused]] const int g_at_fork =
    pthread_atfork([] { g_making.lock(); }, [] { g_making.unlock(); },
                   [] {
                     g_pool.store(nullptr, std::memory_order_relaxed);
                     tl_in_parallel = false;
                     g_making.unlock();
                   });

// Never destroyed: its threads may outlive static destruction.
Pool* pool() {
  Pool* p = g_pool.load(std::memory_order_acquire);
  if (p) return p;
  std::lock_guard lock(g_making);
  p = g_pool.load(std::memory_order_acquire);
  if (!p) {
    p = new Pool;
    g_pool.store(p, std::memory_order_release);
  }
  return p;
}

}  // namespace

int num_threads() noexcept {
  int n = g_threads.load(std::memory_order_relaxed);
  if (n == 0) {
    n = default_threads();
    g_threads.store(n, std::memory_order_relaxed);
  }
  return n;
}

bool in_parallel() noexcept { return tl_in_parallel; }

void parallel_for(int64_t begin, int64_t end, int64_t grain, RangeFn fn, void* ctx) noexcept {
  int64_t n = end - begin;
  if (n <= 0) return;
  grain = std::max<int64_t>(grain, 1);
  int threads = num_threads();
  if (n <= grain || threads == 1 || tl_in_parallel) return fn(ctx, begin, end);
  Pool* p = pool();
  if (!p->try_acquire()) return fn(ctx, begin, end);
  int64_t pieces = std::min<int64_t>(threads * kPiecesPerThread, (n + grain - 1) / grain);
  int64_t piece = (n + pieces - 1) / pieces;
  pieces = (n + piece - 1) / piece;
  p->run({fn, ctx, begin, end, piece, pieces},
         static_cast<int>(std::min<int64_t>(threads, pieces)));
  p->release();
}

}  // namespace tessera::cpu

extern "C" {
__attribute__((visibility("default"))) void tessera_cpu_set_num_threads(int n) {
  tessera::cpu::g_threads.store(
      n > 0 ? std::min(n, tessera::cpu::kMaxThreads) : tessera::cpu::default_threads(),
      std::memory_order_relaxed);
}
__attribute__((visibility("default"))) int tessera_cpu_get_num_threads() {
  return tessera::cpu::num_threads();
}
}
