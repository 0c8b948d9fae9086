#include "failing_malloc.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
void __libc_free(void*);
}

namespace {

std::atomic<int64_t> g_count{0};
std::atomic<int64_t> g_nth{0};
std::atomic<int> g_which{0};
std::atomic<int> g_failed{0};
std::atomic<int64_t> g_live{0};
std::atomic<bool> g_trace{false};
thread_local bool t_inside __attribute__((tls_model("initial-exec"))) = false;

struct Sweep {
  int64_t first = 0, last = -1, step = 1;
  int64_t bad = 0, ended = 0;
  unsigned seconds = 60;
  bool on = false;
} g_sweep;

void print_stack() {
  void* frames[40];
  const int n = backtrace(frames, 40);
  backtrace_symbols_fd(frames, n, STDERR_FILENO);
}

// In a sweep: true in the child, in which the allocation fails.
bool fork_here(int64_t number) {
  const Sweep& s = g_sweep;
  if (number < s.first || number > s.last || (number - s.first) % s.step) return false;
  const pid_t child = _Fork();  // without the handlers of pthread_atfork: locks may be held
  if (child == 0) {
    g_sweep.on = false;
    const int null = open("/dev/null", O_WRONLY);
    if (null >= 0) dup2(null, STDOUT_FILENO);
    if (null >= 0 && !g_trace) dup2(null, STDERR_FILENO);
    alarm(s.seconds);
    return true;
  }
  if (child < 0) return false;
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  ++g_sweep.ended;
  if (WIFSIGNALED(status)) {
    ++g_sweep.bad;
    dprintf(STDERR_FILENO, "allocation %ld: ended by signal %d\n", static_cast<long>(number),
            WTERMSIG(status));
  }
  return false;
}

bool fails(int kind) {
  if (t_inside || !(g_which.load(std::memory_order_relaxed) & kind)) return false;
  const int64_t number = g_count.fetch_add(1) + 1;
  if (g_sweep.on) [[unlikely]] {
    t_inside = true;
    const bool child = fork_here(number);
    t_inside = false;
    if (child) {
      g_which.store(0);
      g_failed.store(1);
      errno = ENOMEM;
      return true;
    }
    return false;
  }
  if (number != g_nth.load(std::memory_order_relaxed)) return false;
  g_failed.store(1);
  if (g_trace) {
    t_inside = true;
    print_stack();
    t_inside = false;
  }
  errno = ENOMEM;
  return true;
}

void* counted(void* p) {
  if (p) g_live.fetch_add(1, std::memory_order_relaxed);
  return p;
}

void* new_bytes(size_t bytes) {
  if (fails(kFailNew)) throw std::bad_alloc();
  if (void* p = counted(__libc_malloc(bytes ? bytes : 1))) return p;
  throw std::bad_alloc();
}
void* new_aligned(size_t bytes, size_t align) {
  if (fails(kFailNew)) throw std::bad_alloc();
  if (void* p = counted(__libc_memalign(align, bytes ? bytes : 1))) return p;
  throw std::bad_alloc();
}

int (*g_main)(int, char**, char**) = nullptr;

int guarded_main(int argc, char** argv, char** environment) {
  const int which = kFailAll;
  if (const char* text = std::getenv("FAILING_MALLOC_SWEEP")) {
    long first = 1, last = 0, step = 1;
    std::sscanf(text, "%ld:%ld:%ld", &first, &last, &step);
    if (const char* seconds = std::getenv("FAILING_MALLOC_SECONDS"))
      g_sweep.seconds = static_cast<unsigned>(std::atoi(seconds));
    g_sweep.first = first;
    g_sweep.last = last;
    g_sweep.step = step > 0 ? step : 1;
    g_sweep.on = true;
    failing_malloc_arm(0, which);
    g_sweep.on = true;
  } else if (const char* at = std::getenv("FAILING_MALLOC_AT")) {
    g_trace = true;
    failing_malloc_arm(std::atoll(at), which);
  } else {
    return g_main(argc, argv, environment);
  }
  int status = 77;
  try {
    status = g_main(argc, argv, environment);
  } catch (...) {
  }
  g_which.store(0);
  if (g_sweep.on) {
    dprintf(STDERR_FILENO, "%ld allocations, %ld failed in turn, %ld of them ended badly\n",
            static_cast<long>(g_count.load()), static_cast<long>(g_sweep.ended),
            static_cast<long>(g_sweep.bad));
    if (g_sweep.bad) status = 78;
  }
  return status;
}

}  // namespace

extern "C" {

void failing_malloc_arm(int64_t nth, int which) {
  g_which.store(0);
  g_failed.store(0);
  g_count.store(0);
  g_nth.store(nth);
  g_which.store(which);
}
int64_t failing_malloc_count() { return g_count.load(); }
int failing_malloc_failed() { return g_failed.load(); }
void failing_malloc_trace(int on) {
  t_inside = true;
  void* frames[4];
  backtrace(frames, 4);  // loads libgcc now
  t_inside = false;
  g_trace = on != 0;
}
int64_t failing_malloc_live() { return g_live.load(); }

void* malloc(size_t bytes) { return fails(kFailMalloc) ? nullptr : counted(__libc_malloc(bytes)); }
void* calloc(size_t n, size_t bytes) {
  return fails(kFailMalloc) ? nullptr : counted(__libc_calloc(n, bytes));
}
void* realloc(void* p, size_t bytes) {
  if (bytes && fails(kFailMalloc)) return nullptr;
  void* made = __libc_realloc(p, bytes);
  if (!p) return counted(made);
  if (!bytes) g_live.fetch_sub(1, std::memory_order_relaxed);
  return made;
}
void* memalign(size_t align, size_t bytes) {
  return fails(kFailAligned) ? nullptr : counted(__libc_memalign(align, bytes));
}
void* aligned_alloc(size_t align, size_t bytes) { return memalign(align, bytes); }
int posix_memalign(void** out, size_t align, size_t bytes) {
  void* p = memalign(align, bytes);
  if (!p) return ENOMEM;
  *out = p;
  return 0;
}
void free(void* p) {
  if (!p) return;
  g_live.fetch_sub(1, std::memory_order_relaxed);
  __libc_free(p);
}

// Between the program's start and its main(), to distinguish an exception that leaves main() from
// a terminate().
int __libc_start_main(int (*main)(int, char**, char**), int argc, char** argv, void (*init)(),
                      void (*fini)(), void (*rtld_fini)(), void* stack_end) {
  using Start =
      int (*)(int (*)(int, char**, char**), int, char**, void (*)(), void (*)(), void (*)(), void*);
  g_main = main;
  auto start = reinterpret_cast<Start>(dlsym(RTLD_NEXT, "__libc_start_main"));
  return start(guarded_main, argc, argv, init, fini, rtld_fini, stack_end);
}

}  // extern "C"

void* operator new(size_t bytes) { return new_bytes(bytes); }
void* operator new[](size_t bytes) { return new_bytes(bytes); }
void* operator new(size_t bytes, std::align_val_t a) {
  return new_aligned(bytes, static_cast<size_t>(a));
}
void* operator new[](size_t bytes, std::align_val_t a) {
  return new_aligned(bytes, static_cast<size_t>(a));
}
void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  return fails(kFailNew) ? nullptr : counted(__libc_malloc(bytes ? bytes : 1));
}
void* operator new[](size_t bytes, const std::nothrow_t&) noexcept {
  return fails(kFailNew) ? nullptr : counted(__libc_malloc(bytes ? bytes : 1));
}
void operator delete(void* p) noexcept { free(p); }
void operator delete[](void* p) noexcept { free(p); }
void operator delete(void* p, size_t) noexcept { free(p); }
void operator delete[](void* p, size_t) noexcept { free(p); }
void operator delete(void* p, std::align_val_t) noexcept { free(p); }
void operator delete[](void* p, std::align_val_t) noexcept { free(p); }
void operator delete(void* p, size_t, std::align_val_t) noexcept { free(p); }
void operator delete[](void* p, size_t, std::align_val_t) noexcept { free(p); }
