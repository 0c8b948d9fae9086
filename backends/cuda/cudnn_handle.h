// One handle of cuDNN's a device, for all kernels that call it.
#pragma once
#include <mutex>

#include "context.h"
#include "cudnn_api.h"

namespace tessera::cuda {

struct CudnnHandle {
  // Held during a launch too: a handle has one stream.
  std::mutex mutex;
  cudnnHandle_t handle = nullptr;
  CUstream stream = nullptr;
  bool has_stream = false;
  std::string broken;  // why there is no handle
};
CudnnHandle& cudnn_handle(const Device& d);
// Makes it, and gives it the stream; null in it where cuDNN does not start. Under its mutex.
Status open_cudnn(const CudnnApi& api, CudnnHandle& h, CUstream stream);

// $TESSERA_CUDNN: "0" never, "must" an error where it does not take something; else whatever can.
enum class CudnnUse { kNever, kWhereItCan, kMust };
CudnnUse cudnn_use();
// What it does not take: `what` ("a convolution"); an error where it must.
Status cudnn_refuses(const char* what, const char* why);

}  // namespace tessera::cuda
