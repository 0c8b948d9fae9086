#include "library_call.h"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "thread_pool.h"

namespace tessera::cpu {

namespace {

constexpr auto kLimit = std::chrono::seconds(5);

constinit std::atomic<int> g_calls{0};  // under way
constinit std::atomic<bool> g_forking{false};
constinit std::mutex g_fork;  // held during a fork
constinit std::atomic<bool> g_closed{false};
constinit std::atomic<pid_t> g_ending_thread{0};
constinit std::atomic<void (*)()> g_renew_fork_handlers{nullptr};
constinit std::atomic<void (*)()> g_renew_end{nullptr};
constinit thread_local bool t_forking = false;
constinit thread_local int t_depth = 0;  // kernels may call kernels

// The handlers may be registered several times; the newest registration does the work.
void before_fork() {
  if (t_forking) return;
  g_fork.lock();
  t_forking = true;
  g_forking.store(true);
  // A call that was abandoned at the end of the process does not return.
  while (g_calls.load() != 0 && !g_closed.load()) sched_yield();
}

void after_fork() {
  if (!t_forking) return;
  t_forking = false;
  g_forking.store(false);
  g_fork.unlock();
}

// A child has none of the threads that made calls.
void after_fork_in_child() {
  g_calls.store(0, std::memory_order_relaxed);
  after_fork();
}

// After the handlers of this library's other locks, which a call under way may need: they run
// later.
void watch_forks() { pthread_atfork(before_fork, after_fork, after_fork_in_child); }

void leave_now(int status, void*) {
  std::fflush(nullptr);
  _exit(status);
}

}  // namespace

// Sequentially consistent: either this thread sees the gate closed, or the thread that forks or
// ends the process sees the call.
LibraryCall::LibraryCall() noexcept {
  if (in_parallel() || t_depth++ > 0) return;
  for (;;) {
    g_calls.fetch_add(1);
    const bool may_enter = !g_closed.load() || gettid() == g_ending_thread.load();
    if (may_enter && !g_forking.load()) [[likely]]
      return;
    g_calls.fetch_sub(1);
    if (!may_enter)
      for (;;) pause();
    std::lock_guard wait(g_fork);
  }
}

LibraryCall::~LibraryCall() {
  if (in_parallel() || --t_depth > 0) return;
  g_calls.fetch_sub(1, std::memory_order_release);
}

bool libraries_are_closed() noexcept { return g_closed.load(std::memory_order_relaxed); }

void renew_library_end() noexcept {
  if (auto renew = g_renew_end.load(std::memory_order_acquire)) renew();
}

void library_was_opened() noexcept {
  watch_forks();
  if (auto renew = g_renew_fork_handlers.load(std::memory_order_acquire)) renew();
  renew_library_end();
}

}  // namespace tessera::cpu

extern "C" {
// Called by the core when it has loaded this library.
__attribute__((visibility("default"))) void tessera_renew_fork_handlers_with(void (*renew)()) {
  tessera::cpu::g_renew_fork_handlers.store(renew, std::memory_order_release);
  tessera::cpu::watch_forks();
}

__attribute__((visibility("default"))) void tessera_backend_take_renew(void (*renew)()) {
  tessera::cpu::g_renew_end.store(renew, std::memory_order_release);
}

__attribute__((visibility("default"))) void tessera_backend_end() {
  using namespace tessera::cpu;
  if (g_closed.load()) return;
  g_ending_thread.store(gettid());
  g_closed.store(true);
  const auto deadline = std::chrono::steady_clock::now() + kLimit;
  while (g_calls.load() > 0 && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  if (g_calls.load() == 0) return;
  std::fprintf(stderr,
               "tessera: a thread was inside a library %d s after the process began to end; it was "
               "abandoned\n",
               static_cast<int>(kLimit.count()));
  // The libraries must not be torn down under it.
  on_exit(leave_now, nullptr);
}
}
