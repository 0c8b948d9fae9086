// libcudnn's recurrent networks as a struct of function pointers: apart from its graph API, so that
// convolutions do without them.
#pragma once
#include <cudnn_adv.h>

// One a line, which the formatter does not leave so.
// clang-format off
#define TS_CUDNN_RNN_FUNCTIONS(X)  \
  X(cudnnGetErrorString)           \
  X(cudnnGetLastErrorString)       \
  X(cudnnCreateTensorDescriptor)   \
  X(cudnnDestroyTensorDescriptor)  \
  X(cudnnSetTensorNdDescriptor)    \
  X(cudnnGetTensorNdDescriptor)    \
  X(cudnnCreateDropoutDescriptor)  \
  X(cudnnDestroyDropoutDescriptor) \
  X(cudnnSetDropoutDescriptor)     \
  X(cudnnCreateRNNDescriptor)      \
  X(cudnnDestroyRNNDescriptor)     \
  X(cudnnSetRNNDescriptor_v8)      \
  X(cudnnCreateRNNDataDescriptor)  \
  X(cudnnDestroyRNNDataDescriptor) \
  X(cudnnSetRNNDataDescriptor)     \
  X(cudnnGetRNNTempSpaceSizes)     \
  X(cudnnGetRNNWeightSpaceSize)    \
  X(cudnnGetRNNWeightParams)       \
  X(cudnnRNNForward)               \
  X(cudnnRNNBackwardData_v8)       \
  X(cudnnRNNBackwardWeights_v8)
// clang-format on

namespace tessera::cuda {

struct CudnnRnnApi {
#define TS_CUDNN_MEMBER(f) decltype(&::f) f;
  TS_CUDNN_RNN_FUNCTIONS(TS_CUDNN_MEMBER)
#undef TS_CUDNN_MEMBER
};

// Null if it cannot be opened; *why says the reason.
const CudnnRnnApi* cudnn_rnn_api(const char** why);

}  // namespace tessera::cuda
