// Functions that run when the process begins to end, while every library is still initialized.
//
// Note [The end of the process]
// Exit handlers run in reverse order of registration, and the destructors of a library's static
// objects are exit handlers too. A handler registered before libdnnl was opened runs after libdnnl
// was torn down, when a kernel may still be inside it. So end_everything() is called by the first
// of these that comes:
//  - Python's finalization (Py_AtExit), before exit();
//  - a handler that a thread-local object of the main thread registers in its destructor. exit()
//    destroys thread-local objects before it runs handlers, so that handler is the newest and the
//    first. pthread_exit() in main() only registers it;
//  - exit() itself, in programs that are linked with this library: it defines that function and
//    calls libc's. A thread other than the main one may call exit() while a library registers its
//    destructors, so no order of handlers is enough there;
//  - a handler that is registered again whenever a library has been opened (renew_exit_handler),
//    where this library was opened by dlopen and another thread calls exit().
// os._exit(), quick_exit() and signals run none of these, and no destructor either.
#pragma once

namespace tessera {

// Called by a language that will call end_everything() before exit(), whatever thread loaded the
// library.
void promise_end();
// Runs all registered functions once, at_end() functions first. Later calls do nothing.
void end_everything();
// Returns true once end_everything() has begun. From then on other threads may stay blocked inside
// a backend with locks held, so destructors take none: they leave memory to the system.
bool is_ending();
// Registers a function that ends threads. Returns false where the end is not promised or has begun;
// then the function is not called.
bool at_end(void (*end)());

// A backend exports `extern "C" void tessera_backend_end()` to have it called at the end: device
// backends wait there until their queues are empty, for a limited time; the CPU backend, which runs
// their kernels, comes last.
inline constexpr const char* kBackendEndName = "tessera_backend_end";
void end_backend_at_end(void (*end)(), bool is_last);

// Registers end_everything() with exit() once more, so that it runs before the destructors of the
// libraries that were opened so far. A backend that opens libraries exports
// `extern "C" void tessera_backend_take_renew(void (*renew)())` to be handed this function.
void renew_exit_handler();
inline constexpr const char* kBackendTakeRenewName = "tessera_backend_take_renew";

}  // namespace tessera
