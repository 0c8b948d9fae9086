// libnvrtc as a struct of function pointers, opened at the first compilation.
//
// Note [Why NVRTC is read and not loaded in the background]
// A cold load takes up to half a second, nearly all of it reading 110 MB. So a thread reads the
// file at the first use of CUDA, while the context is being made, and the load itself, some 10 ms
// then, waits until it is needed. Loading (or compiling) on a thread is not safe: NVRTC registers
// destructors as it goes, and in a process that ends meanwhile they run under the thread; about
// one such process in seven crashed.
#pragma once
#include <nvrtc.h>

#include <string>

// One a line, which the formatter does not leave so.
// clang-format off
#define TS_NVRTC_FUNCTIONS(X)  \
  X(nvrtcVersion)              \
  X(nvrtcGetErrorString)       \
  X(nvrtcCreateProgram)        \
  X(nvrtcDestroyProgram)       \
  X(nvrtcCompileProgram)       \
  X(nvrtcGetProgramLogSize)    \
  X(nvrtcGetProgramLog)        \
  X(nvrtcGetPTXSize)           \
  X(nvrtcGetPTX)               \
  X(nvrtcGetCUBINSize)         \
  X(nvrtcGetCUBIN)             \
  X(nvrtcGetNumSupportedArchs) \
  X(nvrtcGetSupportedArchs)
// clang-format on

namespace tessera::cuda {

struct NvrtcApi {
#define TS_NVRTC_MEMBER(f) decltype(&::f) f;
  TS_NVRTC_FUNCTIONS(TS_NVRTC_MEMBER)
#undef TS_NVRTC_MEMBER
  int major;
  int minor;
};

// Starts reading; returns at once. A driver of CUDA 12 cannot load what NVRTC 13 compiles, so its
// version decides which one is tried first.
void prepare_nvrtc(int driver_version);
// What it was told; 0 before.
int cuda_driver_version();
// Loads it. Null on failure; *why says the reason.
const NvrtcApi* nvrtc_api(std::string* why);

}  // namespace tessera::cuda
