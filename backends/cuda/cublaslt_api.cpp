#include "cublaslt_api.h"

#include <dlfcn.h>

#include "driver_api.h"
#include "dynlib.h"

namespace tessera::cuda {
namespace {

struct State {
  CublasLtApi api{};
  bool ready = false;
  std::string why;
};

void load(State& s) {
  std::vector<const char*> names = {"libcublasLt.so.13", "libcublasLt.so.12"};
  if (driver().version < 13000) names = {"libcublasLt.so.12", "libcublasLt.so.13"};
  void* lib = open_library(names, &s.why);
  if (!lib) return;
#define TS_CUBLASLT_LOAD(f)                                      \
  s.api.f = reinterpret_cast<decltype(s.api.f)>(dlsym(lib, #f)); \
  if (!s.api.f) {                                                \
    s.why = "libcublasLt has no " #f;                            \
    return;                                                      \
  }
  TS_CUBLASLT_FUNCTIONS(TS_CUBLASLT_LOAD)
#undef TS_CUBLASLT_LOAD
  s.ready = true;
}

}  // namespace

const CublasLtApi* cublaslt_api(const char** why) {
  static State* s = [] {
    State* fresh = new State;
    load(*fresh);
    return fresh;
  }();
  if (why) *why = s->why.c_str();
  return s->ready ? &s->api : nullptr;
}

}  // namespace tessera::cuda
