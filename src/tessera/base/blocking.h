// Around work that takes long: lets the host language's other threads go on (Python's lock).
#pragma once

namespace tessera {

// Set by the binder; null without one. enter returns a token for leave, or null when there is
// nothing to give back.
extern void* (*blocking_enter)();
extern void (*blocking_leave)(void* token);

// Note [Order of locks]
// The scope lies outside every lock of ours: a thread that holds a stream's lock never waits for
// Python's, so a thread that holds Python's may wait for a stream's.
class BlockingScope {
 public:
  BlockingScope() : token_(blocking_enter ? blocking_enter() : nullptr) {}
  ~BlockingScope() {
    if (token_) blocking_leave(token_);
  }
  BlockingScope(const BlockingScope&) = delete;
  BlockingScope& operator=(const BlockingScope&) = delete;

 private:
  void* token_;
};

}  // namespace tessera
