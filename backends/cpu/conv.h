// What the convolution kernels share: sizes read off the arguments, and products of matrices.
#pragma once
#include "kernels.h"

namespace tessera::cpu {

// Arrays of depth, height, width. Input n, c; output n, o.
struct ConvShape {
  int64_t n, c, o, groups;
  int64_t in[3], out[3], kernel[3], stride[3], padding[3], dilation[3];

  int64_t in_points() const { return in[0] * in[1] * in[2]; }
  int64_t out_points() const { return out[0] * out[1] * out[2]; }
  int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
  // Rows of the unfolded input of one group.
  int64_t rows() const { return c / groups * taps(); }
  // The unfolded input is the input itself.
  bool is_pointwise() const;
};
// `input`, `output`, `weight` in five dimensions; ints: stride, padding, dilation, groups.
ConvShape conv_shape(const KernelTensor& input, const KernelTensor& output,
                     const KernelTensor& weight, const int64_t* ints);

enum class ConvKind : int { kForward, kBackwardInput, kBackwardWeight };
// By oneDNN, where that is there and takes it; false: to be done otherwise. Dense float32 tensors.
// Throws std::bad_alloc: another algorithm would give other bits when memory is short.
bool conv_by_onednn(ConvKind kind, const ConvShape& s, const float* input, const float* weight,
                    const float* bias, const float* output, float* result);
// "2.6.3"; null where it is not there.
const char* onednn_release() noexcept;

// Every group has one input channel: kernel_conv_depthwise.cpp has loops for that, of float and
// double.
bool is_depthwise(const ConvShape& s);
template <class T>
Status depthwise_forward(const ConvShape& s, const T* input, const T* weight, const T* bias,
                         T* out);
template <class T>
Status depthwise_backward_input(const ConvShape& s, const T* grad, const T* weight, T* result);
template <class T>
Status depthwise_backward_weight(const ConvShape& s, const T* grad, const T* input, T* result);

}  // namespace tessera::cpu
