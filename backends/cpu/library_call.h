// Calls of OpenBLAS, LAPACK and oneDNN, which a fork and the end of the process wait for.
#pragma once

namespace tessera::cpu {

// Note [Libraries during a fork]
// These libraries hold locks of their own during a call, and OpenBLAS stops its threads when the
// process forks. A fork next to a call would leave the locks taken in the child, and could lose the
// work of the threads in the parent. So a fork waits until no call is under way, and calls wait for
// the end of a fork.
//
// Note [Other libraries at the end of the process]
// The exit handlers of these libraries tear them down while other threads may still be inside. When
// the process begins to end, tessera_backend_end() waits until no thread is inside a library, for
// at most 5 s. After that only the thread that ends the process may enter one; other threads wait
// in the constructor for the process to end.
//
// A scope covers a whole kernel, on the thread that called it: the threads of the pool call the
// libraries inside it, and a scope inside a scope does nothing.
class LibraryCall {
 public:
  LibraryCall() noexcept;
  ~LibraryCall();
  LibraryCall(const LibraryCall&) = delete;
  LibraryCall& operator=(const LibraryCall&) = delete;
};

// Returns true once the process has begun to end.
bool libraries_are_closed() noexcept;

// Registers the core's exit handler again (driver/ending.h), so that it runs before those of a
// library that has been opened or used for the first time just now.
void renew_library_end() noexcept;

// Called after a library was loaded. Registers the handlers for a fork again (Note [Locks during a
// fork] in base/fork.h), and the exit handler.
void library_was_opened() noexcept;

}  // namespace tessera::cpu
