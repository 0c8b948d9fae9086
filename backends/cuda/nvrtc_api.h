// libnvrtc as a struct of function pointers, opened in the background at the first use of CUDA: a
// cold load takes about half a second, which then overlaps with the program's own start.
#pragma once
#include <nvrtc.h>

#include <string>

#define TS_NVRTC_FUNCTIONS(X)                                                                \
  X(nvrtcVersion)                                                                            \
  X(nvrtcGetErrorString) X(nvrtcCreateProgram) X(nvrtcDestroyProgram) X(nvrtcCompileProgram) \
      X(nvrtcGetProgramLogSize) X(nvrtcGetProgramLog) X(nvrtcGetPTXSize) X(nvrtcGetPTX)      \
          X(nvrtcGetCUBINSize) X(nvrtcGetCUBIN) X(nvrtcGetNumSupportedArchs)                 \
              X(nvrtcGetSupportedArchs)

namespace tessera::cuda {

struct NvrtcApi {
#define TS_NVRTC_MEMBER(f) decltype(&::f) f;
  TS_NVRTC_FUNCTIONS(TS_NVRTC_MEMBER)
#undef TS_NVRTC_MEMBER
  int major;
  int minor;
};

// Starts loading; returns at once. A driver of CUDA 12 cannot load what NVRTC 13 compiles, so its
// version decides which one is tried first.
void load_nvrtc_in_background(int driver_version);
// Waits for the load (starting it if nobody has). Null on failure; *why says the reason.
const NvrtcApi* nvrtc_api(std::string* why);

}  // namespace tessera::cuda
