#include "tessera/base/fork.h"

#include <pthread.h>

#include <iterator>

namespace tessera {

namespace {

struct Stage {
  void (*lock)();
  void (*unlock)();
  void (*unlock_in_child)();
};

// Read by the handlers without a lock. Entries are set while libraries are loaded.
constinit Stage g_stages[static_cast<int>(ForkStage::kCount)] = {};
constinit std::mutex g_forking;  // one thread forks at a time
constinit thread_local bool t_forking = false;

void before() {
  if (t_forking) return;
  g_forking.lock();
  t_forking = true;
  for (const Stage& s : g_stages)
    if (s.lock) s.lock();
}

void after(bool in_child) {
  if (!t_forking) return;
  for (auto s = std::rbegin(g_stages); s != std::rend(g_stages); ++s)
    if (s->lock) (in_child && s->unlock_in_child ? s->unlock_in_child : s->unlock)();
  t_forking = false;
  g_forking.unlock();
}

}  // namespace

AtFork::AtFork(ForkStage stage, void (*lock)(), void (*unlock)(), void (*unlock_in_child)()) {
  g_stages[static_cast<int>(stage)] = {lock, unlock, unlock_in_child};
  static const bool registered = (renew_fork_handlers(), true);
  (void)registered;
}

void renew_fork_handlers() {
  pthread_atfork(
      before, [] { after(false); }, [] { after(true); });
}

}  // namespace tessera
