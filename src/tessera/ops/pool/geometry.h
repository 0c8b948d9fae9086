// Windows of pooling, in up to three dimensions.
#pragma once
#include "tessera/ops/call.h"

namespace tessera::pool {

// Regular windows step by `stride`; adaptive ones divide the input evenly among the outputs.
struct Windows {
  Dims in, out, kernel, stride, padding, dilation;
  bool adaptive = false;
  int spatial() const { return in.ndim(); }
};

// Arguments of a regular pool; raises as PyTorch does. `stride` may be empty: the kernel's.
Windows regular(const Op& op, const TensorBase& input, int n, const Dims& kernel,
                const Dims& stride, const Dims& padding, const Dims& dilation, bool ceil_mode);
Windows adaptive(const Op& op, const TensorBase& input, int n, const Dims& size);

// The windows as kernels read them, three dimensions: mode, in, out, kernel, stride, padding,
// dilation, then `more`.
Dims kernel_ints(const Windows& w, std::initializer_list<int64_t> more = {});
// [planes, d, h, w] of dense memory.
TensorBase planes(const TensorBase& t, int n);
// The shape of the output: that of the input with its last n sizes replaced.
Dims output_shape(const TensorBase& input, const Windows& w);

}  // namespace tessera::pool
