// Calls of OpenBLAS, LAPACK and oneDNN, which a fork waits for.
#pragma once

namespace tessera::cpu {

// Note [Libraries during a fork]
// These libraries hold locks of their own during a call, and OpenBLAS stops its threads when the
// process forks. A fork next to a call would leave the locks taken in the child, and could lose the
// work of the threads in the parent. So a fork waits until no call is under way, and calls wait for
// the end of a fork. A scope covers a whole kernel, on the thread that called it: the threads of
// the pool call the libraries inside it.
class LibraryCall {
 public:
  LibraryCall() noexcept;
  ~LibraryCall();
  LibraryCall(const LibraryCall&) = delete;
  LibraryCall& operator=(const LibraryCall&) = delete;
};

// Registers again, after a library that has handlers for a fork was loaded; see Note [Locks during
// a fork] in base/fork.h.
void renew_fork_handlers() noexcept;

}  // namespace tessera::cpu
