// A small pool of worker threads for the CPU's loops.
//
// Note [The pool]
// One job runs at a time. A caller that finds the pool busy, or is itself a worker, runs its loop
// serially, so nothing waits for anything that could wait for it. Workers that wake late find the
// job closed and go back to sleep: the caller never waits for a thread that has not begun. After
// fork the child has a fresh pool with no threads, started again at first use.
#pragma once
#include <cstdint>
#include <type_traits>

namespace tessera::cpu {

// Runs part [begin, end) of a loop. Must not throw.
using RangeFn = void (*)(void* ctx, int64_t begin, int64_t end) noexcept;

// Calls fn on pieces of [begin, end) of at least `grain` iterations, on several threads where that
// gives more than one piece. Returns when all are done.
void parallel_for(int64_t begin, int64_t end, int64_t grain, RangeFn fn, void* ctx) noexcept;

template <class F>
void parallel_for(int64_t begin, int64_t end, int64_t grain, F&& f) noexcept {
  using Fn = std::remove_reference_t<F>;
  parallel_for(
      begin, end, grain,
      [](void* ctx, int64_t b, int64_t e) noexcept { (*static_cast<Fn*>(ctx))(b, e); },
      const_cast<void*>(static_cast<const void*>(&f)));
}

int num_threads() noexcept;
// True on a thread that is running a piece of a parallel_for.
bool in_parallel() noexcept;

}  // namespace tessera::cpu

extern "C" {
void tessera_cpu_set_num_threads(int n);
int tessera_cpu_get_num_threads();
}
