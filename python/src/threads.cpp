// What a program allows its backends: torch.set_num_threads() and its kin for the cpu's pool, and
// torch.backends.cudnn.
#include <dlfcn.h>
#include <nanobind/nanobind.h>

#include <cstring>

#include "py.h"
#include "scaffolding.h"
#include "tessera/driver/about.h"
#include "tessera/driver/cpu.h"
#include "tessera/ops/attention/settings.h"
#include "tessera/ops/conv/settings.h"
#include "tessera/ops/linalg/settings.h"

namespace tessera::python {

namespace nb = nanobind;

namespace {

// A function that the cpu backend exports beside its table.
template <class F>
F* cpu_function(const char* name) {
  cpu();  // loads it
  void* library = dlopen(backend_file("cpu").c_str(), RTLD_NOW | RTLD_NOLOAD);
  void* found = library ? dlsym(library, name) : nullptr;
  if (!found) raise(ErrorKind::kRuntime, cat("the cpu backend has no function ", name));
  return reinterpret_cast<F*>(found);
}

// 0 where it is not used.
int64_t cudnn_version() {
  const Backend* backend = accelerator();
  if (!backend || std::strcmp(backend->name, "cuda") != 0) return 0;
  void* library = dlopen(backend_file("cuda").c_str(), RTLD_NOW | RTLD_NOLOAD);
  void* found = library ? dlsym(library, "tessera_cuda_cudnn_version") : nullptr;
  return found ? reinterpret_cast<int64_t (*)()>(found)() : 0;
}

}  // namespace

void bind_threads(nb::module_& m) {
  m.def("_get_num_threads", [] { return cpu_function<int()>("tessera_cpu_get_num_threads")(); });
  m.def("_set_num_threads",
        [](int n) { cpu_function<void(int)>("tessera_cpu_set_num_threads")(n); });
  m.def("_set_conv_flag",
        [](int64_t flag, bool on) { conv::set_flag(static_cast<conv::Flag>(flag), on); });
  m.def("_set_conv_benchmark_limit", &conv::set_benchmark_limit);
  m.def("_set_attention_ways", &attention::set_ways);
  m.def("_set_matmul_tf32", &linalg::set_allow_tf32);
  m.def("_cudnn_version", &cudnn_version);
}

}  // namespace tessera::python
