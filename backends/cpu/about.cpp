// What `tessera doctor` says of the CPU.
#include <cstdio>

#include "blas.h"
#include "isa.h"
#include "thread_pool.h"

extern "C" __attribute__((visibility("default"))) const char* tessera_backend_about() {
  using namespace tessera::cpu;
  static constexpr const char* names[] = {"baseline", "AVX2", "AVX-512"};
  static thread_local char text[512];
  std::snprintf(text, sizeof text, "instruction set: %s\nthreads: %d\nBLAS: %s\n", names[g_isa],
                num_threads(), blas() ? blas_name() : "none found, own matrix products");
  return text;
}
