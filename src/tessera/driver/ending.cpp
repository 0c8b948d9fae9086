#include "tessera/driver/ending.h"

#include <dlfcn.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <utility>
#include <vector>

#include "tessera/base/fork.h"

namespace tessera {

namespace {

struct Ends {
  Mutex mutex;
  std::vector<void (*)()> functions;
  std::vector<void (*)()> backends;  // in the order in which they are called
  bool promised = false;
  bool over = false;
};
std::atomic<bool> g_ending{false};

Ends& ends() {
  static Ends* const all = new Ends;
  return *all;
}
Mutex& lock_of_ends() { return ends().mutex; }
const HeldDuringFork<ForkStage::kExitFunctions, lock_of_ends> g_at_fork;

struct OfThread {
  ~OfThread() { renew_exit_handler(); }
};

// While the library is loaded.
[[maybe_unused]] const bool g_noticed = [] {
  renew_exit_handler();
  if (syscall(SYS_gettid) != getpid()) return false;
  static thread_local OfThread main_thread;
  (void)main_thread;
  promise_end();
  return true;
}();

}  // namespace

void promise_end() {
  std::lock_guard lock(ends().mutex);
  ends().promised = true;
}

bool at_end(void (*end)()) {
  std::lock_guard lock(ends().mutex);
  if (!ends().promised || ends().over) return false;
  ends().functions.push_back(end);
  return true;
}

void end_backend_at_end(void (*end)(), bool is_last) {
  std::lock_guard lock(ends().mutex);
  if (ends().over) return;
  std::vector<void (*)()>& all = ends().backends;
  all.insert(is_last ? all.end() : all.begin(), end);
}

void renew_exit_handler() { std::atexit(end_everything); }

bool is_ending() { return g_ending.load(std::memory_order_relaxed); }

void end_everything() {
  g_ending.store(true);
  std::vector<void (*)()> functions, backends;
  {
    std::lock_guard lock(ends().mutex);
    ends().over = true;
    functions = std::exchange(ends().functions, {});
    backends = std::exchange(ends().backends, {});
  }
  while (!functions.empty()) {
    functions.back()();
    functions.pop_back();
  }
  for (void (*end)() : backends) end();
}

}  // namespace tessera

// See [The end of the process].
extern "C" [[noreturn]] __attribute__((visibility("default"))) void exit(int status) noexcept {
  tessera::end_everything();
  using Exit = void (*)(int);
  if (auto next = reinterpret_cast<Exit>(dlsym(RTLD_NEXT, "exit"))) next(status);
  _exit(status);
}
