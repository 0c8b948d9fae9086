#include "blas.h"

#include <dlfcn.h>

#include <initializer_list>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "library_call.h"
#include "tessera/base/library_path.h"
#include "thread_pool.h"

namespace tessera::cpu {

namespace {

char g_name[256] = "";

bool open_blas(Blas& out) {
  const char* asked = std::getenv("TESSERA_BLAS");
  if (asked && !std::strcmp(asked, "none")) return false;
  void* lib = nullptr;
  for (const char* name : {asked, "libopenblas.so.0", "libopenblas.so"})
    if (name && is_library_path(name) && !lib) lib = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!lib) return false;
  library_was_opened();
  out.sgemm = reinterpret_cast<decltype(out.sgemm)>(dlsym(lib, "cblas_sgemm"));
  out.dgemm = reinterpret_cast<decltype(out.dgemm)>(dlsym(lib, "cblas_dgemm"));
  out.cgemm = reinterpret_cast<decltype(out.cgemm)>(dlsym(lib, "cblas_cgemm"));
  out.zgemm = reinterpret_cast<decltype(out.zgemm)>(dlsym(lib, "cblas_zgemm"));
  out.set_num_threads =
      reinterpret_cast<decltype(out.set_num_threads)>(dlsym(lib, "openblas_set_num_threads"));
  if (!out.sgemm || !out.dgemm || !out.cgemm || !out.zgemm) return false;
  Dl_info info{};
  const void* address = reinterpret_cast<const void*>(out.sgemm);
  if (dladdr(address, &info) && info.dli_fname)
    std::snprintf(g_name, sizeof g_name, "%s", info.dli_fname);
  return true;
}

const Blas* opened() {
  static Blas table{};
  static const bool found = open_blas(table);
  return found ? &table : nullptr;
}

void use_threads(const Blas& table, int wanted) {
  static std::atomic<int> threads{0};
  if (table.set_num_threads && threads.exchange(wanted, std::memory_order_relaxed) != wanted)
    table.set_num_threads(wanted);
}

}  // namespace

const char* blas_name() noexcept {
  blas();
  return g_name;
}

const Blas* blas() noexcept {
  const Blas* table = opened();
  if (table) use_threads(*table, num_threads());
  return table;
}

void set_blas_threads(int n) noexcept {
  if (const Blas* table = opened()) use_threads(*table, n);
}

}  // namespace tessera::cpu
