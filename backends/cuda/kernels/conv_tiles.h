// A convolution or one of its gradients, as its kernels are called.
#pragma once
#include "../context.h"

namespace tessera::cuda {

enum class ConvKind : uint8_t { kForward, kBackwardInput, kBackwardWeight };

// Five dimensions each; one of input, output and weight is the result, as `kind` says.
struct ConvCall {
  ConvKind kind;
  KernelTensor input, output, weight;
  const void* bias;  // dense, of a forward one; or null
  int64_t stride[3], padding[3], dilation[3], groups;
};

// Any strides, any dtype.
Status conv_by_tiles(Device& d, CUstream stream, const ConvCall& c);

}  // namespace tessera::cuda
