// A convolution as a graph of cuDNN's.
#pragma once
#include "cudnn_plan.h"

namespace tessera::cuda {

struct CudnnTensor {
  int64_t sizes[5], strides[5];
  int64_t alignment;
};

// x: the input, w: the weight, y: the output; `kind` says which of them is computed.
struct CudnnConv {
  enum class Kind : uint8_t { kForward, kBackwardData, kBackwardFilter };
  Kind kind;
  DType dtype;
  int spatial;  // 2 or 3
  CudnnTensor x, w, y;
  int64_t stride[3], padding[3], dilation[3];
};
// Names of the tensors in plans.
inline constexpr int64_t kCudnnX = 1, kCudnnW = 2, kCudnnY = 3;

// A graph of the one operation.
Status cudnn_conv_graph(const CudnnApi& api, cudnnHandle_t handle, const CudnnConv& conv,
                        CudnnParts* parts);

}  // namespace tessera::cuda
