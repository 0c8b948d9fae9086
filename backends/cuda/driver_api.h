// libcuda.so.1 as a struct of function pointers. The names go through cuda.h's own macros, so each
// member has the version of the function that the header declares (cuMemAlloc is cuMemAlloc_v2).
#pragma once
#include <cuda.h>

// One a line, which the formatter does not leave so.
// clang-format off
#define TS_CUDA_DRIVER_FUNCTIONS(X) \
  X(cuInit)                         \
  X(cuDriverGetVersion)             \
  X(cuGetErrorName)                 \
  X(cuGetErrorString)               \
  X(cuDeviceGetCount)               \
  X(cuDeviceGet)                    \
  X(cuDeviceGetName)                \
  X(cuDeviceGetAttribute)           \
  X(cuDeviceTotalMem)               \
  X(cuDevicePrimaryCtxRetain)       \
  X(cuCtxSetCurrent)                \
  X(cuCtxGetCurrent)                \
  X(cuCtxSynchronize)               \
  X(cuMemGetInfo)                   \
  X(cuMemAlloc)                     \
  X(cuMemFree)                      \
  X(cuMemHostAlloc)                 \
  X(cuMemFreeHost)                  \
  X(cuMemHostGetDevicePointer)      \
  X(cuPointerGetAttribute)          \
  X(cuStreamCreateWithPriority)     \
  X(cuStreamDestroy)                \
  X(cuStreamQuery)                  \
  X(cuStreamSynchronize)            \
  X(cuStreamWaitEvent)              \
  X(cuEventCreate)                  \
  X(cuEventDestroy)                 \
  X(cuEventRecord)                  \
  X(cuEventQuery)                   \
  X(cuEventSynchronize)             \
  X(cuMemcpyHtoDAsync)              \
  X(cuMemcpyDtoHAsync)              \
  X(cuMemcpyDtoDAsync)              \
  X(cuMemcpyPeerAsync)              \
  X(cuMemsetD8Async)                \
  X(cuModuleLoadData)               \
  X(cuModuleGetFunction)            \
  X(cuFuncSetAttribute)             \
  X(cuLaunchKernel)                 \
  X(cuDeviceGetUuid)                \
  X(cuDeviceCanAccessPeer)          \
  X(cuCtxGetStreamPriorityRange)    \
  X(cuMemGetAllocationGranularity)  \
  X(cuMemAddressReserve)            \
  X(cuMemAddressFree)               \
  X(cuMemCreate)                    \
  X(cuMemRelease)                   \
  X(cuMemMap)                       \
  X(cuMemUnmap)                     \
  X(cuMemSetAccess)                 \
  X(cuStreamBeginCapture)           \
  X(cuStreamEndCapture)             \
  X(cuStreamIsCapturing)            \
  X(cuThreadExchangeStreamCaptureMode) \
  X(cuGraphCreate)                  \
  X(cuGraphAddKernelNode)           \
  X(cuGraphExecKernelNodeSetParams) \
  X(cuGraphInstantiate)             \
  X(cuGraphLaunch)                  \
  X(cuGraphExecDestroy)             \
  X(cuGraphDestroy)
// clang-format on

namespace tessera::cuda {

struct DriverApi {
#define TS_CUDA_MEMBER(f) decltype(&::f) f;
  TS_CUDA_DRIVER_FUNCTIONS(TS_CUDA_MEMBER)
#undef TS_CUDA_MEMBER
  // Apart, as older drivers know only its first version, which has the same signature.
  CUresult (*event_elapsed)(float*, CUevent, CUevent);
  // In the version that drivers for CUDA 12 have.
  CUresult (*capture_info)(CUstream, CUstreamCaptureStatus*, cuuint64_t*, CUgraph*,
                           const CUgraphNode**, size_t*);
  // cuCtxRecordEvent; null in older drivers.
  CUresult (*ctx_record_event)(CUcontext, CUevent);
  int version;  // 13000 for CUDA 13.0
};

// Opened and initialised (cuInit) once. Null on failure; *why then says the reason to a user.
const DriverApi* driver_api(const char** why);
// After driver_api has succeeded.
const DriverApi& driver();

}  // namespace tessera::cuda
