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
  int64_t flags, benchmark_limit;  // of tessera/ops/conv/settings.h
};

// Any strides, any dtype.
Status conv_by_tiles(Device& d, CUstream stream, const ConvCall& c);

// Filters of one channel each, in two dimensions; *done says whether it was one.
Status conv_depthwise(Device& d, CUstream stream, const ConvCall& c, bool* done);

// By cuDNN, where that is there, takes it and is allowed; *done says whether. See
// $TESSERA_CUDNN in conv_cudnn.cpp.
Status conv_by_cudnn(Device& d, CUstream stream, const ConvCall& c, bool* done);
// All that it takes are to be its own.
bool conv_must_be_cudnn();

}  // namespace tessera::cuda
