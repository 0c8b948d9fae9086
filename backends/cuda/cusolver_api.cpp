#include "cusolver_api.h"

#include "driver_api.h"
#include "library_api.h"

namespace tessera::cuda {
namespace {

bool load(LibraryApi<SolverApi>& s) {
  std::vector<const char*> solver_names = {"libcusolver.so.12", "libcusolver.so.11"};
  std::vector<const char*> blas_names = {"libcublas.so.13", "libcublas.so.12"};
  if (driver().version < 13000) {
    std::swap(solver_names[0], solver_names[1]);
    std::swap(blas_names[0], blas_names[1]);
  }
  // cuSOLVER needs cuBLAS: found first, it is the one that both use.
  void* blas = open_library(blas_names, &s.why);
  void* solver = blas ? open_library(solver_names, &s.why) : nullptr;
  if (!solver) return false;
#define TS_LOAD(f) \
  if (!s.find(solver, #f, s.api.f)) return false;
  TS_CUSOLVER_FUNCTIONS(TS_LOAD)
#undef TS_LOAD
#define TS_LOAD(f) s.find(solver, #f, s.api.f);
  TS_CUSOLVER_NEW_FUNCTIONS(TS_LOAD)
#undef TS_LOAD
#define TS_LOAD(f) \
  if (!s.find(blas, #f, s.api.f)) return false;
  TS_CUBLAS_FUNCTIONS(TS_LOAD)
#undef TS_LOAD
#define TS_LOAD(member, name) \
  if (!s.find(solver, "cusolverDn" #name, table.member)) return false;
#define TS_BLAS_LOAD(member, name) \
  if (!s.find(blas, "cublas" #name, table.member)) return false;
#define TS_LOAD_TABLE(table_name, L, OR, SY)     \
  if (![&](auto& table) {                        \
        TS_CUSOLVER_ROUTINES(TS_LOAD, L, OR, SY) \
        TS_CUBLAS_ROUTINES(TS_BLAS_LOAD, L)      \
        return true;                             \
      }(s.api.table_name))                       \
    return false;
  TS_LOAD_TABLE(f32, S, or, sy)
  TS_LOAD_TABLE(f64, D, or, sy)
  TS_LOAD_TABLE(c64, C, un, he)
  TS_LOAD_TABLE(c128, Z, un, he)
#undef TS_LOAD_TABLE
#undef TS_BLAS_LOAD
#undef TS_LOAD
  return true;
}

}  // namespace

const SolverApi* solver_api(const char** why) { return opened_once<SolverApi>(why, load); }

}  // namespace tessera::cuda
