#include "nvrtc_api.h"

#include <dlfcn.h>

#include <atomic>
#include <thread>

#include "dynlib.h"

namespace tessera::cuda {
namespace {

struct State {
  NvrtcApi api{};
  bool ready = false;
  std::string why;
};

std::atomic<int> g_driver_version{0};

std::vector<const char*> names() {
  int version = g_driver_version.load();
  if (version != 0 && version < 13000) return {"libnvrtc.so.12", "libnvrtc.so.13"};
  return {"libnvrtc.so.13", "libnvrtc.so.12"};
}

void load(State& s) {
  void* lib = open_library(names(), &s.why);
  if (!lib) return;
#define TS_NVRTC_LOAD(f)                                         \
  s.api.f = reinterpret_cast<decltype(s.api.f)>(dlsym(lib, #f)); \
  if (!s.api.f) {                                                \
    s.why = "libnvrtc is too old: it has no " #f;                \
    return;                                                      \
  }
  TS_NVRTC_FUNCTIONS(TS_NVRTC_LOAD)
#undef TS_NVRTC_LOAD
  s.api.nvrtcVersion(&s.api.major, &s.api.minor);
  s.ready = true;
}

}  // namespace

void prepare_nvrtc(int driver_version) {
  if (g_driver_version.exchange(driver_version) != 0) return;
  try {
    std::thread([] {
      try {
        read_ahead(names());
      } catch (const std::bad_alloc&) {  // the load will read it
      }
    }).detach();
  } catch (...) {
    // The load will read it.
  }
}

int cuda_driver_version() { return g_driver_version.load(); }

const NvrtcApi* nvrtc_api(std::string* why) {
  // Leaked: other threads may compile while the process ends.
  static State* s = [] {
    State* fresh = new State;
    load(*fresh);
    return fresh;
  }();
  if (!s->ready && why) *why = s->why;
  return s->ready ? &s->api : nullptr;
}

}  // namespace tessera::cuda
