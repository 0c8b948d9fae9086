#include "nvrtc_api.h"

#include <dlfcn.h>

#include <condition_variable>
#include <mutex>
#include <thread>

#include "dynlib.h"

namespace tessera::cuda {
namespace {

struct State {
  std::mutex mutex;
  std::condition_variable changed;
  bool started = false, done = false, ready = false;
  NvrtcApi api{};
  std::string why;
};
// Leaked: the loading thread may outlive main.
State& state() {
  static State* s = new State;
  return *s;
}

bool load(NvrtcApi& api, int driver_version, std::string& why) {
  std::vector<const char*> names = {"libnvrtc.so.13", "libnvrtc.so.12"};
  if (driver_version < 13000) names = {"libnvrtc.so.12", "libnvrtc.so.13"};
  void* lib = open_library(names, &why);
  if (!lib) return false;
#define TS_NVRTC_LOAD(f)                                     \
  api.f = reinterpret_cast<decltype(api.f)>(dlsym(lib, #f)); \
  if (!api.f) {                                              \
    why = "libnvrtc is too old: it has no " #f;              \
    return false;                                            \
  }
  TS_NVRTC_FUNCTIONS(TS_NVRTC_LOAD)
#undef TS_NVRTC_LOAD
  api.nvrtcVersion(&api.major, &api.minor);
  return true;
}

// The first compilation opens NVRTC's second library; do that here as well.
void warm_up(const NvrtcApi& api) {
  nvrtcProgram program;
  const char* text = "extern \"C\" __global__ void warm(float* p) { *p = 0; }";
  if (api.nvrtcCreateProgram(&program, text, "warm.cu", 0, nullptr, nullptr) != NVRTC_SUCCESS)
    return;
  api.nvrtcCompileProgram(program, 0, nullptr);
  api.nvrtcDestroyProgram(&program);
}

}  // namespace

void load_nvrtc_in_background(int driver_version) {
  State& s = state();
  {
    std::lock_guard lock(s.mutex);
    if (s.started) return;
    s.started = true;
  }
  auto work = [&s, driver_version] {
    bool ready = load(s.api, driver_version, s.why);
    if (ready) warm_up(s.api);
    std::lock_guard lock(s.mutex);
    s.ready = ready;
    s.done = true;
    s.changed.notify_all();
  };
  try {
    std::thread(work).detach();
  } catch (...) {
    work();
  }
}

const NvrtcApi* nvrtc_api(std::string* why) {
  load_nvrtc_in_background(13000);
  State& s = state();
  std::unique_lock lock(s.mutex);
  s.changed.wait(lock, [&] { return s.done; });
  if (!s.ready && why) *why = s.why;
  return s.ready ? &s.api : nullptr;
}

}  // namespace tessera::cuda
