#include "lapack.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#include "blas.h"
#include "library_call.h"
#include "tessera/base/library_path.h"

namespace tessera::cpu {

namespace {

void* open_library() {
  const char* asked = std::getenv("TESSERA_LAPACK");
  if (asked && !std::strcmp(asked, "none")) return nullptr;
  void* lib = nullptr;
  if (asked && is_library_path(asked)) lib = dlopen(asked, RTLD_NOW | RTLD_LOCAL);
  // OpenBLAS carries LAPACK, unless it was built without.
  const char* same = blas_name();
  if (!lib && is_library_path(same)) lib = dlopen(same, RTLD_NOW | RTLD_LOCAL);
  if (lib && dlsym(lib, "dgesdd_")) return lib;
  for (const char* name : {"liblapack.so.3", "libopenblas.so.0", "liblapack.so"}) {
    lib = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (lib && dlsym(lib, "dgesdd_")) return lib;
  }
  return nullptr;
}

void* library() {
  static void* const lib = [] {
    void* opened = open_library();
    if (opened) library_was_opened();
    return opened;
  }();
  return lib;
}

template <class T>
constexpr char prefix() {
  if (is_complex_v<T>) return std::is_same_v<real_t<T>, float> ? 'c' : 'z';
  return std::is_same_v<T, float> ? 's' : 'd';
}

template <class T, class F>
bool find(F& to, const char* real_name, const char* complex_name = nullptr) {
  char name[16];
  const char* base = is_complex_v<T> && complex_name ? complex_name : real_name;
  std::snprintf(name, sizeof name, "%c%s_", prefix<T>(), base);
  to = reinterpret_cast<F>(dlsym(library(), name));
  return to != nullptr;
}

template <class T>
bool fill(Lapack<T>& l) {
  return library() && find<T>(l.potrf, "potrf") && find<T>(l.potri, "potri") &&
         find<T>(l.potrs, "potrs") && find<T>(l.getrf, "getrf") && find<T>(l.getrs, "getrs") &&
         find<T>(l.geqrf, "geqrf") && find<T>(l.orgqr, "orgqr", "ungqr") &&
         find<T>(l.ormqr, "ormqr", "unmqr") && find<T>(l.trsm, "trsm") &&
         find<T>(l.sytrf, "sytrf") && find<T>(l.sytrs, "sytrs") &&
         find<T>(l.hetrf, "sytrf", "hetrf") && find<T>(l.hetrs, "sytrs", "hetrs") &&
         find<T>(l.gels, "gels") && find<T>(l.syevd, "syevd", "heevd") && find<T>(l.geev, "geev") &&
         find<T>(l.gesdd, "gesdd") && find<T>(l.gelsd, "gelsd") && find<T>(l.gelss, "gelss") &&
         find<T>(l.gelsy, "gelsy");
}

}  // namespace

template <class T>
const Lapack<T>* lapack() noexcept {
  static Lapack<T> table{};
  static const bool found = fill(table);
  if (!found) return nullptr;
  blas();  // brings its number of threads up to date
  return &table;
}
template const Lapack<float>* lapack<float>() noexcept;
template const Lapack<double>* lapack<double>() noexcept;
template const Lapack<c64>* lapack<c64>() noexcept;
template const Lapack<c128>* lapack<c128>() noexcept;

Status no_lapack() noexcept {
  return fail(Code::kUnsupported,
              "needs LAPACK, and no library that has it could be opened. Install the package "
              "libopenblas0 (Debian, Ubuntu) or openblas (Fedora, conda), or name a library in "
              "TESSERA_LAPACK");
}

OneBlasThread::OneBlasThread() noexcept { set_blas_threads(1); }
OneBlasThread::~OneBlasThread() { blas(); }

}  // namespace tessera::cpu
