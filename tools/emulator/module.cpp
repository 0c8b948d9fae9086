#include "module.h"

#include <dlfcn.h>
#include <elf.h>
#include <setjmp.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "block.h"
#include "options.h"

namespace emulator {
namespace {

// ---- faults ------------------------------------------------------------------------------------

// Where a kernel that faults goes back to, and with what.
struct Guard {
  sigjmp_buf jump;
  volatile int signal = 0;
  void* volatile address = nullptr;
  const char* volatile why = nullptr;
};
thread_local Guard* t_guard = nullptr;

constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE};
struct sigaction g_before[65];

void on_signal(int number, siginfo_t* info, void* context) {
  if (Guard* g = t_guard) {
    g->signal = number;
    g->address = info->si_addr;
    siglongjmp(g->jump, 1);
  }
  // Not a kernel's: as if we were not here.
  const struct sigaction& before = g_before[number];
  if (before.sa_flags & SA_SIGINFO)
    before.sa_sigaction(number, info, context);
  else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN)
    before.sa_handler(number);
  else
    sigaction(number, &before, nullptr);
}

// The fault may be a stack's: the handler has its own.
void prepare_thread() {
  static const bool once = [] {
    for (int number : kSignals) {
      struct sigaction action {};
      action.sa_sigaction = on_signal;
      action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
      sigaction(number, &action, &g_before[number]);
    }
    return true;
  }();
  (void)once;
  thread_local bool ready = false;
  if (ready) return;
  ready = true;
  stack_t now{};
  if (sigaltstack(nullptr, &now) == 0 && !(now.ss_flags & SS_DISABLE)) return;
  stack_t fresh{};
  fresh.ss_size = 64u << 10;
  fresh.ss_sp = std::malloc(fresh.ss_size);
  sigaltstack(&fresh, nullptr);
}

CUresult report(const Function& f, const Guard& g) {
  const char* what = g.why                ? g.why
                     : g.signal == SIGILL ? "an address not aligned as its type asks"
                     : g.signal == SIGFPE ? "division of an integer by zero (a GPU would go on)"
                                          : "an address that is not there";
  const Index3 b = f.module->state->block, t = f.module->state->thread;
  std::fprintf(stderr, "emulated GPU: %s in kernel %s, block (%u, %u, %u), thread (%u, %u, %u)",
               what, f.name.c_str(), b.x, b.y, b.z, t.x, t.y, t.z);
  if (g.signal == SIGSEGV) std::fprintf(stderr, ", address %p", g.address);
  std::fprintf(stderr, "\n");
  if (g.why || g.signal == SIGFPE) return CUDA_ERROR_LAUNCH_FAILED;
  return g.signal == SIGILL ? CUDA_ERROR_MISALIGNED_ADDRESS : CUDA_ERROR_ILLEGAL_ADDRESS;
}

// ---- objects -----------------------------------------------------------------------------------

size_t object_bytes(const void* image) {
  Elf64_Ehdr h;
  std::memcpy(&h, image, sizeof h);
  if (std::memcmp(h.e_ident, ELFMAG, SELFMAG) != 0) return 0;
  return h.e_shoff + size_t{h.e_shnum} * h.e_shentsize;
}

// The dynamic linker knows libraries by name: each has one of its own.
void* open_object(const char* image, size_t bytes) {
  const char* folder = std::getenv("TMPDIR");
  std::string path = std::string(folder && *folder ? folder : "/tmp") + "/tessera-kernel-XXXXXX.so";
  int fd = mkstemps(path.data(), 3);
  if (fd < 0) return nullptr;
  size_t put = 0;
  while (put < bytes) {
    ssize_t n = write(fd, image + put, bytes - put);
    if (n <= 0) break;
    put += static_cast<size_t>(n);
  }
  close(fd);
  void* library = put == bytes ? dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
  if (!library) std::fprintf(stderr, "emulated GPU: a kernel does not load: %s\n", dlerror());
  unlink(path.c_str());
  return library;
}

void run_blocks(const Function& f, const Launch& launch, void** arguments, Guard& guard) {
  Module& m = *f.module;
  State& s = *m.state;
  bool poison = options().poison && m.shared_end > m.shared_begin;
  for (unsigned z = 0; z < launch.grid.z; ++z)
    for (unsigned y = 0; y < launch.grid.y; ++y)
      for (unsigned x = 0; x < launch.grid.x; ++x) {
        s.block = {x, y, z};
        if (poison)
          std::memset(m.shared_begin, 0xff, static_cast<size_t>(m.shared_end - m.shared_begin));
        if (s.dynamic_shared) std::memset(s.dynamic_shared, 0xff, launch.dynamic_shared);
        if (!m.waits) {
          f.entry(arguments, 1);
        } else if (const char* why = run_block(s, f.entry, arguments)) {
          guard.why = why;
          return;
        }
      }
}

}  // namespace

void end_kernel(const char* why) {
  Guard* g = t_guard;
  if (!g) std::abort();
  g->why = why;
  siglongjmp(g->jump, 1);
}

CUresult load_module(const void* image, Module** out) {
  if (options().idle && !std::memcmp(image, kIdleImage, sizeof kIdleImage)) {
    *out = new Module;
    return CUDA_SUCCESS;
  }
  size_t bytes = object_bytes(image);
  if (bytes == 0) return CUDA_ERROR_INVALID_IMAGE;
  void* library = open_object(static_cast<const char*>(image), bytes);
  if (!library) return CUDA_ERROR_INVALID_IMAGE;
  auto get = [&](const char* name) { return dlsym(library, name); };
  using Edge = char* (*)();
  auto* m = new Module;
  m->library = library;
  m->state = static_cast<State*>(get("emulator_state"));
  const int* waits = static_cast<const int*>(get("emulator_waits"));
  Edge begin = reinterpret_cast<Edge>(get("emulator_shared_begin"));
  Edge end = reinterpret_cast<Edge>(get("emulator_shared_end"));
  if (!m->state || !waits || !begin || !end) {
    delete m;
    return CUDA_ERROR_INVALID_IMAGE;
  }
  m->waits = *waits != 0;
  m->shared_begin = begin();
  m->shared_end = end();
  m->state->runtime = &runtime();
  if (m->shared_end - m->shared_begin > kShared) return CUDA_ERROR_INVALID_IMAGE;
  *out = m;
  return CUDA_SUCCESS;
}

CUresult find_function(Module* m, const char* name, Function** out) {
  if (!m->library) {
    *out = new Function{m, nullptr, name};
    return CUDA_SUCCESS;
  }
  auto get = [&](const char* what) {
    return dlsym(m->library, (std::string(what) + name).c_str());
  };
  auto entry = reinterpret_cast<KernelEntry>(get("emulator_entry_"));
  auto about = reinterpret_cast<int (*)(int)>(get("emulator_about_"));
  if (!entry || !about) return CUDA_ERROR_NOT_FOUND;
  auto* f = new Function{m, entry, name, static_cast<unsigned>(about(-1))};
  for (int i = 0; int bytes = about(i); ++i) f->parameters.push_back(static_cast<size_t>(bytes));
  *out = f;
  return CUDA_SUCCESS;
}

CUresult run_kernel(const Function& f, const Launch& launch, void** arguments) {
  prepare_thread();
  Module& m = *f.module;
  std::lock_guard lock(m.running);
  m.state->grid_dim = launch.grid;
  m.state->block_dim = launch.block;
  std::vector<double> dynamic((launch.dynamic_shared + 15) / 16 * 2);
  m.state->dynamic_shared = dynamic.empty() ? nullptr : dynamic.data();
  Guard guard;
  t_guard = &guard;
  if (sigsetjmp(guard.jump, 0) == 0) run_blocks(f, launch, arguments, guard);
  t_guard = nullptr;
  if (!guard.signal && !guard.why) return CUDA_SUCCESS;
  abandon_block();
  return report(f, guard);
}

}  // namespace emulator
