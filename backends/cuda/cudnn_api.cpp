#include "cudnn_api.h"

#include <dlfcn.h>

#include "dynlib.h"

namespace tessera::cuda {
namespace {

struct State {
  CudnnApi api{};
  bool ready = false;
  std::string why;
};

void load(State& s) {
  void* lib = open_library({"libcudnn.so.9"}, &s.why);
  if (!lib) return;
#define TS_CUDNN_LOAD(f)                                         \
  s.api.f = reinterpret_cast<decltype(s.api.f)>(dlsym(lib, #f)); \
  if (!s.api.f) {                                                \
    s.why = "libcudnn has no " #f;                               \
    return;                                                      \
  }
  TS_CUDNN_FUNCTIONS(TS_CUDNN_LOAD)
#undef TS_CUDNN_LOAD
  s.ready = true;
}

}  // namespace

const CudnnApi* cudnn_api(const char** why) {
  static State* s = [] {
    State* fresh = new State;
    load(*fresh);
    return fresh;
  }();
  if (why) *why = s->why.c_str();
  return s->ready ? &s->api : nullptr;
}

}  // namespace tessera::cuda
