#include "tessera/driver/ending.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <utility>
#include <vector>

#include "tessera/base/fork.h"

namespace tessera {

namespace {

struct Ends {
  Mutex mutex;
  std::vector<void (*)()> functions;
  bool promised = false;
  bool over = false;
};
Ends& ends() {
  static Ends* const all = new Ends;
  return *all;
}
Mutex& lock_of_ends() { return ends().mutex; }
const HeldDuringFork<ForkStage::kExitFunctions, lock_of_ends> g_at_fork;

struct OfThread {
  ~OfThread() { end_everything(); }
};

// While the library is loaded.
[[maybe_unused]] const bool g_noticed = [] {
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

void end_everything() {
  std::vector<void (*)()> functions;
  {
    std::lock_guard lock(ends().mutex);
    ends().over = true;
    functions = std::exchange(ends().functions, {});
  }
  while (!functions.empty()) {
    functions.back()();
    functions.pop_back();
  }
}

}  // namespace tessera
