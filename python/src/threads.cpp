// torch.set_num_threads() and its kin: the cpu backend's pool.
#include <dlfcn.h>
#include <nanobind/nanobind.h>

#include "py.h"
#include "scaffolding.h"
#include "tessera/driver/about.h"
#include "tessera/driver/cpu.h"

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

}  // namespace

void bind_threads(nb::module_& m) {
  m.def("_get_num_threads", [] { return cpu_function<int()>("tessera_cpu_get_num_threads")(); });
  m.def("_set_num_threads",
        [](int n) { cpu_function<void(int)>("tessera_cpu_set_num_threads")(n); });
}

}  // namespace tessera::python
