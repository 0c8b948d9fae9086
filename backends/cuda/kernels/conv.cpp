// Convolution, its gradient by the input (which is the transposed kind too) and by the weight.
#include <algorithm>

#include "../kernels.h"
#include "conv_tiles.h"

namespace tessera::cuda {
namespace {

// Of tensors and ints of a call: see tessera/ops/conv/convolution.cpp.
template <ConvKind kind>
Status run_conv(Device& d, CUstream stream, const KernelArgs& a) {
  const KernelTensor &result = a.outputs[0], &x = a.inputs[0], &y = a.inputs[1];
  if (result.dtype == DType::kBool)
    return fail(Code::kUnsupported, "convolution is not implemented for %s",
                dtype_name(result.dtype));
  if (result.numel == 0) return ok();
  ConvCall c{};
  c.kind = kind;
  c.input = kind == ConvKind::kForward ? x : kind == ConvKind::kBackwardInput ? result : y;
  c.output = kind == ConvKind::kForward ? result : x;
  c.weight = kind == ConvKind::kBackwardWeight ? result : y;
  c.bias = a.num_inputs > 2 ? a.inputs[2].data : nullptr;
  std::copy_n(a.ints, 3, c.stride);
  std::copy_n(a.ints + 3, 3, c.padding);
  std::copy_n(a.ints + 6, 3, c.dilation);
  c.groups = a.ints[9];
  if (a.num_ints > 11) {
    c.flags = a.ints[10];
    c.benchmark_limit = a.ints[11];
  }
  bool done = false;
#ifdef TESSERA_CUDNN
  // Planes of a channel each are ours: cuDNN would lay them out anew.
  const bool planes = c.groups > 1 && c.groups == c.input.sizes[1] &&
                      c.input.strides[1] >= c.input.strides[4] && !conv_must_be_cudnn();
  if (planes) TS_TRY(conv_depthwise(d, stream, c, &done));
  if (done) return ok();
  TS_TRY(conv_by_cudnn(d, stream, c, &done));
  if (done) return ok();
#endif
  TS_TRY(conv_depthwise(d, stream, c, &done));
  if (done) return ok();
  return conv_by_tiles(d, stream, c);
}

TS_CUDA_KERNEL("conv_forward", run_conv<ConvKind::kForward>)
TS_CUDA_KERNEL("conv_backward_input", run_conv<ConvKind::kBackwardInput>)
TS_CUDA_KERNEL("conv_backward_weight", run_conv<ConvKind::kBackwardWeight>)
// As they lie: any strides, and halves as halves.
TS_CUDA_KERNEL("conv_forward_strided", run_conv<ConvKind::kForward>)
TS_CUDA_KERNEL("conv_backward_input_strided", run_conv<ConvKind::kBackwardInput>)
TS_CUDA_KERNEL("conv_backward_weight_strided", run_conv<ConvKind::kBackwardWeight>)

}  // namespace
}  // namespace tessera::cuda
