#include "driver_api.h"

#include <dlfcn.h>

#include <string>

#include "dynlib.h"

namespace tessera::cuda {
namespace {

struct State {
  DriverApi api{};
  bool ready = false;
  std::string why;
};

constexpr int kOldestDriver = 12000;  // NVRTC 12's kernels need it

#define TS_CUDA_STRING_(x) #x
#define TS_CUDA_STRING(x) TS_CUDA_STRING_(x)

void load(State& s) {
  void* lib = open_library({"libcuda.so.1", "libcuda.so"}, nullptr);
  if (!lib) {
    s.why = "Found no NVIDIA driver on your system: libcuda.so.1 was not found";
    return;
  }
#define TS_CUDA_LOAD(f)                                                         \
  s.api.f = reinterpret_cast<decltype(s.api.f)>(dlsym(lib, TS_CUDA_STRING(f))); \
  if (!s.api.f) {                                                               \
    s.why = "the NVIDIA driver is too old: it has no " TS_CUDA_STRING(f);       \
    return;                                                                     \
  }
  TS_CUDA_DRIVER_FUNCTIONS(TS_CUDA_LOAD)
#undef TS_CUDA_LOAD
  void* elapsed = dlsym(lib, "cuEventElapsedTime_v2");
  if (!elapsed) elapsed = dlsym(lib, "cuEventElapsedTime");
  if (!elapsed) {
    s.why = "the NVIDIA driver is too old: it has no cuEventElapsedTime";
    return;
  }
  s.api.event_elapsed = reinterpret_cast<decltype(s.api.event_elapsed)>(elapsed);
  s.api.capture_info =
      reinterpret_cast<decltype(s.api.capture_info)>(dlsym(lib, "cuStreamGetCaptureInfo_v2"));
  if (!s.api.capture_info) {
    s.why = "the NVIDIA driver is too old: it has no cuStreamGetCaptureInfo_v2";
    return;
  }
  s.api.ctx_record_event =
      reinterpret_cast<decltype(s.api.ctx_record_event)>(dlsym(lib, "cuCtxRecordEvent"));
  CUresult r = s.api.cuInit(0);
  if (r != CUDA_SUCCESS) {
    const char *name = "unknown error", *text = "";
    s.api.cuGetErrorName(r, &name);
    s.api.cuGetErrorString(r, &text);
    s.why = std::string("the NVIDIA driver did not start: ") + name + " (" + text + ")";
    return;
  }
  s.api.cuDriverGetVersion(&s.api.version);
  if (s.api.version < kOldestDriver) {
    s.why = "The NVIDIA driver on your system is too old: it is one for CUDA " +
            std::to_string(s.api.version / 1000) + "." + std::to_string(s.api.version % 1000 / 10) +
            ", and 12.0 is needed";
    return;
  }
  s.ready = true;
}

State& state() {
  // Leaked: threads may still call the driver while the process ends.
  static State* s = [] {
    State* fresh = new State;
    load(*fresh);
    return fresh;
  }();
  return *s;
}

}  // namespace

const DriverApi* driver_api(const char** why) {
  State& s = state();
  if (why) *why = s.ready ? nullptr : s.why.c_str();
  return s.ready ? &s.api : nullptr;
}

const DriverApi& driver() { return state().api; }

}  // namespace tessera::cuda
