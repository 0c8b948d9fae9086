#include "tessera/base/blocking.h"

namespace tessera {
void* (*blocking_enter)() = nullptr;
void (*blocking_leave)(void*) = nullptr;

void set_blocking_hooks(void* (*enter)(), void (*leave)(void*)) {
  blocking_enter = enter;
  blocking_leave = leave;
}

#ifdef TESSERA_LOCK_CHECKS
namespace {
thread_local int open_scopes = 0;
}

void* BlockingScope::enter() {
  if (open_scopes++ == 0) require_no_mutex("a BlockingScope opens");
  return blocking_enter ? blocking_enter() : nullptr;
}

void BlockingScope::leave() {
  --open_scopes;
  if (!token_) return;
  require_no_mutex("a BlockingScope closes");
  blocking_leave(token_);
}
#endif
}  // namespace tessera
