#include "library_call.h"

#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <mutex>

#include "thread_pool.h"

namespace tessera::cpu {

namespace {

constinit std::atomic<int> g_calls{0};  // under way
constinit std::atomic<bool> g_forking{false};
constinit std::mutex g_fork;  // held during a fork
constinit thread_local bool t_forking = false;
constinit std::atomic<void (*)()> g_renew_core{nullptr};
constinit thread_local int t_depth = 0;  // kernels may call kernels

// The handlers may be registered several times; the newest registration does the work.
void before_fork() {
  if (t_forking) return;
  g_fork.lock();
  t_forking = true;
  g_forking.store(true);
  while (g_calls.load() != 0) sched_yield();
}

void after_fork() {
  if (!t_forking) return;
  t_forking = false;
  g_forking.store(false);
  g_fork.unlock();
}

// After the handlers of this library's other locks, which a call under way may need: they run later.
void watch_forks() { pthread_atfork(before_fork, after_fork, after_fork); }

}  // namespace

LibraryCall::LibraryCall() noexcept {
  if (in_parallel() || t_depth++ > 0) return;
  for (;;) {
    g_calls.fetch_add(1);
    if (!g_forking.load()) [[likely]]
      return;
    g_calls.fetch_sub(1);
    std::lock_guard wait(g_fork);
  }
}

LibraryCall::~LibraryCall() {
  if (in_parallel() || --t_depth > 0) return;
  g_calls.fetch_sub(1, std::memory_order_release);
}

void renew_fork_handlers() noexcept {
  watch_forks();
  if (auto renew = g_renew_core.load(std::memory_order_acquire)) renew();
}

}  // namespace tessera::cpu

extern "C" {
// Called by the core when it has loaded this library.
__attribute__((visibility("default"))) void tessera_renew_fork_handlers_with(void (*renew)()) {
  tessera::cpu::g_renew_core.store(renew, std::memory_order_release);
  tessera::cpu::watch_forks();
}
}
