// A small pool of worker threads for the CPU's loops.
//
// Note [The pool]
// One job runs at a time. A caller that finds the pool busy, or is itself a worker, runs its loop
// serially, so nothing waits for anything that could wait for it. Workers that wake late find the
// job closed and go back to sleep: the caller never waits for a thread that has not begun. After
// fork the child has a fresh pool with no threads, started again at first use.
#pragma once
#include <atomic>
#include <cstdint>
#include <new>
#include <type_traits>

namespace tessera::cpu {

// Runs part [begin, end) of a loop. Must not throw.
using RangeFn = void (*)(void* ctx, int64_t begin, int64_t end) noexcept;

// Calls fn on pieces of [begin, end) of at least `grain` iterations, on several threads where that
// gives more than one piece. Returns when all are done.
void parallel_for(int64_t begin, int64_t end, int64_t grain, RangeFn fn, void* ctx) noexcept;

// A piece that throws has run out of memory: std::bad_alloc is thrown when all pieces have ended.
template <class F>
void parallel_for(int64_t begin, int64_t end, int64_t grain, F&& f) {
  struct Loop {
    std::remove_reference_t<F>& f;
    std::atomic<bool> failed{false};
  } loop{f};
  parallel_for(
      begin, end, grain,
      [](void* ctx, int64_t b, int64_t e) noexcept {
        auto& l = *static_cast<Loop*>(ctx);
        try {
          l.f(b, e);
        } catch (...) {
          l.failed.store(true, std::memory_order_relaxed);
        }
      },
      &loop);
  if (loop.failed.load(std::memory_order_relaxed)) [[unlikely]]
    throw std::bad_alloc();
}

int num_threads() noexcept;
// True on a thread that is running a piece of a parallel_for.
bool in_parallel() noexcept;

}  // namespace tessera::cpu

extern "C" {
void tessera_cpu_set_num_threads(int n);
int tessera_cpu_get_num_threads();
}
