// Around work that takes long: lets the host language's other threads go on (Python's lock).
#pragma once
#include "tessera/base/mutex.h"

namespace tessera {

// Null without a host language. enter returns a token for leave, or null when there is nothing to
// give back.
extern void* (*blocking_enter)();
extern void (*blocking_leave)(void* token);
void set_blocking_hooks(void* (*enter)(), void (*leave)(void* token));

// Note [Order of locks]
// Python's lock comes before every lock of the core: a thread that holds a Mutex never waits for
// Python's lock, so a thread that holds Python's lock may wait for a Mutex. A BlockingScope takes
// Python's lock again at its end, so it is opened before a Mutex is locked. A scope inside a scope
// does nothing and is allowed under a Mutex. Builds with TESSERA_LOCK_CHECKS abort where a thread
// opens its outermost scope, or takes Python's lock, while it holds a Mutex.
// The order of the core's own locks is that of ForkStage in base/fork.h.
class BlockingScope {
 public:
  BlockingScope() : token_(enter()) {}
  ~BlockingScope() { leave(); }
  BlockingScope(const BlockingScope&) = delete;
  BlockingScope& operator=(const BlockingScope&) = delete;

 private:
#ifdef TESSERA_LOCK_CHECKS
  static void* enter();
  void leave();
#else
  static void* enter() { return blocking_enter ? blocking_enter() : nullptr; }
  void leave() {
    if (token_) blocking_leave(token_);
  }
#endif

  void* token_;
};

}  // namespace tessera
