#include "cudnn_handle.h"

#include <cstdlib>
#include <cstring>

namespace tessera::cuda {

CudnnHandle& cudnn_handle(const Device& d) {
  // Leaked: the driver may be gone before destructors run.
  static CudnnHandle* all = new CudnnHandle[kMaxDevices];
  return all[d.ordinal];
}

Status open_cudnn(const CudnnApi& api, CudnnHandle& h, CUstream stream) {
  if (!h.handle && h.broken.empty()) {
    cudnnStatus_t r = api.cudnnCreate(&h.handle);
    if (r != CUDNN_STATUS_SUCCESS) {
      char last[512] = "";
      api.cudnnGetLastErrorString(last, sizeof last);
      h.handle = nullptr;
      h.broken =
          std::string("it does not start: ") + api.cudnnGetErrorString(r) + " (" + last + ")";
    }
  }
  if (!h.handle) return ok();
  if (h.has_stream && h.stream == stream) return ok();
  cudnnStatus_t r = api.cudnnSetStream(h.handle, stream);
  if (r != CUDNN_STATUS_SUCCESS)
    return fail(Code::kFailed, "cuDNN: %s in choosing a stream", api.cudnnGetErrorString(r));
  h.stream = stream;
  h.has_stream = true;
  return ok();
}

CudnnUse cudnn_use() {
  static const CudnnUse asked = [] {
    const char* v = std::getenv("TESSERA_CUDNN");
    if (v && !std::strcmp(v, "0")) return CudnnUse::kNever;
    return v && !std::strcmp(v, "must") ? CudnnUse::kMust : CudnnUse::kWhereItCan;
  }();
  return asked;
}

Status cudnn_refuses(const char* what, const char* why) {
  return cudnn_use() == CudnnUse::kMust
             ? fail(Code::kFailed, "cuDNN does not take %s: %s", what, why)
             : ok();
}

// For torch.backends.cudnn.version(); 0 where it cannot be opened.
extern "C" [[gnu::visibility("default")]] int64_t tessera_cuda_cudnn_version() {
  const CudnnApi* api = cudnn_use() == CudnnUse::kNever ? nullptr : cudnn_api(nullptr);
  return api ? static_cast<int64_t>(api->cudnnGetVersion()) : 0;
}

}  // namespace tessera::cuda
