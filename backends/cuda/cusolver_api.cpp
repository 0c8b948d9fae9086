#include "cusolver_api.h"

#include <dlfcn.h>

#include "driver_api.h"
#include "dynlib.h"

namespace tessera::cuda {
namespace {

struct State {
  SolverApi api{};
  bool ready = false;
  std::string why;
};

template <class F>
bool find(State& s, void* lib, const char* name, F*& to) {
  to = reinterpret_cast<F*>(dlsym(lib, name));
  if (!to) s.why = std::string("the library has no ") + name;
  return to;
}

void load(State& s) {
  std::vector<const char*> solver_names = {"libcusolver.so.12", "libcusolver.so.11"};
  std::vector<const char*> blas_names = {"libcublas.so.13", "libcublas.so.12"};
  if (driver().version < 13000) {
    std::swap(solver_names[0], solver_names[1]);
    std::swap(blas_names[0], blas_names[1]);
  }
  // cuSOLVER needs cuBLAS: found first, it is the one that both use.
  void* blas = open_library(blas_names, &s.why);
  void* solver = blas ? open_library(solver_names, &s.why) : nullptr;
  if (!solver) return;
#define TS_LOAD(f) \
  if (!find(s, solver, #f, s.api.f)) return;
  TS_CUSOLVER_FUNCTIONS(TS_LOAD)
#undef TS_LOAD
#define TS_LOAD(f) find(s, solver, #f, s.api.f);
  TS_CUSOLVER_NEW_FUNCTIONS(TS_LOAD)
#undef TS_LOAD
#define TS_LOAD(f) \
  if (!find(s, blas, #f, s.api.f)) return;
  TS_CUBLAS_FUNCTIONS(TS_LOAD)
#undef TS_LOAD
#define TS_LOAD(member, name) \
  if (!find(s, solver, "cusolverDn" #name, table.member)) return false;
#define TS_BLAS_LOAD(member, name) \
  if (!find(s, blas, "cublas" #name, table.member)) return false;
#define TS_LOAD_TABLE(table_name, L, OR, SY)     \
  if (![&](auto& table) {                        \
        TS_CUSOLVER_ROUTINES(TS_LOAD, L, OR, SY) \
        TS_CUBLAS_ROUTINES(TS_BLAS_LOAD, L)      \
        return true;                             \
      }(s.api.table_name))                       \
    return;
  TS_LOAD_TABLE(f32, S, or, sy)
  TS_LOAD_TABLE(f64, D, or, sy)
  TS_LOAD_TABLE(c64, C, un, he)
  TS_LOAD_TABLE(c128, Z, un, he)
#undef TS_LOAD_TABLE
#undef TS_BLAS_LOAD
#undef TS_LOAD
  s.ready = true;
}

}  // namespace

const SolverApi* solver_api(const char** why) {
  static State* s = [] {
    State* fresh = new State;
    load(*fresh);
    return fresh;
  }();
  if (why) *why = s->why.c_str();
  return s->ready ? &s->api : nullptr;
}

}  // namespace tessera::cuda
