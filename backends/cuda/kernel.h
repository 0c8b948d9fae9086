// Kernels on a device, found by key. A launch whose kernel this thread has used lately takes no
// lock and builds no text.
#pragma once
#include "compile.h"
#include "context.h"

namespace tessera::cuda {

struct Kernel {
  Hash128 key;
  CUfunction function = nullptr;
};

struct Grid {
  int64_t blocks;
  int threads;
  int64_t y = 1;
  int64_t z = 1;
  int shared = 0;
};

// Null when it has not been built.
const Kernel* find_kernel(const Hash128& key);
Status build_kernel(Device& d, const Hash128& key, const std::string& text, const char* entry,
                    const char* what, const Kernel** out, Effort effort);

// The same, but null where it is not compiled yet: that is begun on another thread, and from the
// second time on waited for a little.
Status ask_kernel(Device& d, const Hash128& key, std::string text, const char* entry,
                  const char* what, const Kernel** out, Effort effort);

// While this lives, kernels that this thread has not compiled are asked for, not waited for, and
// once one was missing it launches nothing: for work that can be done otherwise meanwhile. After
// its first launch everything is waited for.
class PutOff {
 public:
  explicit PutOff(bool allowed);
  ~PutOff();
  PutOff(const PutOff&) = delete;
  PutOff& operator=(const PutOff&) = delete;
  bool missing() const { return missing_; }

 private:
  friend Status build_kernel(Device&, const Hash128&, const std::string&, const char*, const char*,
                             const Kernel**, Effort);
  friend Status launch(Device&, CUstream, const Kernel&, const Grid&, const void*, const char*);
  bool missing_ = false;
  bool launched_ = false;
};

// `make` returns the text; it is called only when the kernel is not there.
template <class Make>
Status get_kernel(Device& d, const Hash128& key, const char* entry, const char* what,
                  const Kernel** out, Make make, Effort effort = Effort::kFull) {
  *out = find_kernel(key);
  if (*out) [[likely]]
    return ok();
  return build_kernel(d, key, make(), entry, what, out, effort);
}

// Has the program had so many kernels made, for so few launches, that its structures seem never to
// repeat? Then operators run one by one, whose kernels are few. TESSERA_KERNEL_BUDGET sets how many
// are made before anybody counts.
bool makes_too_many_kernels();

// One argument: the parameter struct, by value.
Status launch(Device& d, CUstream stream, const Kernel& k, const Grid& grid, const void* params,
              const char* what);

}  // namespace tessera::cuda
