// What `tessera doctor` says of the CPU.
#include <cstdio>

#include "blas.h"
#include "conv.h"
#include "isa.h"
#include "library_call.h"
#include "thread_pool.h"

extern "C" __attribute__((visibility("default"))) const char* tessera_backend_about() {
  using namespace tessera::cpu;
  LibraryCall call;  // opens the libraries
  static constexpr const char* names[] = {"baseline", "AVX2", "AVX-512"};
  static thread_local char text[512];
  const char* onednn = onednn_release();
  std::snprintf(text, sizeof text, "instruction set: %s\nthreads: %d\nBLAS: %s\noneDNN: %s\n",
                names[g_isa], num_threads(),
                blas() ? blas_name() : "none found, own matrix products",
                onednn ? onednn : "none found, own convolutions (Debian: libdnnl-dev, then build)");
  return text;
}
