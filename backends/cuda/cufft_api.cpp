#include "cufft_api.h"

#include <dlfcn.h>

#include "driver_api.h"
#include "dynlib.h"

namespace tessera::cuda {
namespace {

struct State {
  CufftApi api{};
  bool ready = false;
  std::string why;
};

void load(State& s) {
  std::vector<const char*> names = {"libcufft.so.12", "libcufft.so.11"};
  if (driver().version < 13000) names = {"libcufft.so.11", "libcufft.so.12"};
  void* lib = open_library(names, &s.why);
  if (!lib) return;
#define TS_CUFFT_LOAD(f)                                         \
  s.api.f = reinterpret_cast<decltype(s.api.f)>(dlsym(lib, #f)); \
  if (!s.api.f) {                                                \
    s.why = "libcufft has no " #f;                               \
    return;                                                      \
  }
  TS_CUFFT_FUNCTIONS(TS_CUFFT_LOAD)
#undef TS_CUFFT_LOAD
  s.ready = true;
}

}  // namespace

const CufftApi* cufft_api(const char** why) {
  static State* s = [] {
    State* fresh = new State;
    load(*fresh);
    return fresh;
  }();
  if (why) *why = s->why.c_str();
  return s->ready ? &s->api : nullptr;
}

}  // namespace tessera::cuda
