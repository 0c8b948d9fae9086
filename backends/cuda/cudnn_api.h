// libcudnn as a struct of function pointers, opened at the first convolution: its graph API alone.
#pragma once
#include <cudnn_graph.h>

#include <string>

// One a line, which the formatter does not leave so.
// clang-format off
#define TS_CUDNN_FUNCTIONS(X)      \
  X(cudnnGetVersion)               \
  X(cudnnGetErrorString)           \
  X(cudnnGetLastErrorString)       \
  X(cudnnCreate)                   \
  X(cudnnSetStream)                \
  X(cudnnBackendCreateDescriptor)  \
  X(cudnnBackendDestroyDescriptor) \
  X(cudnnBackendSetAttribute)      \
  X(cudnnBackendGetAttribute)      \
  X(cudnnBackendFinalize)          \
  X(cudnnBackendExecute)
// clang-format on

namespace tessera::cuda {

struct CudnnApi {
#define TS_CUDNN_MEMBER(f) decltype(&::f) f;
  TS_CUDNN_FUNCTIONS(TS_CUDNN_MEMBER)
#undef TS_CUDNN_MEMBER
};

// Null if it cannot be opened; *why says the reason.
const CudnnApi* cudnn_api(const char** why);

}  // namespace tessera::cuda
