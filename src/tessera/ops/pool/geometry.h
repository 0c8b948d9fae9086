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
// The windows of a pool that has been done; no kernel: adaptive ones.
Windows done(const Dims& input, const Dims& output, int n, const Dims& kernel = {},
             const Dims& stride = {}, const Dims& padding = {}, const Dims& dilation = {});

// The order of memory that a pool over `t` works in: channels last where `t` lies so on an
// accelerator, whose threads then read neighbours; else plane after plane.
MemoryFormat format_of(const TensorBase& t, int n);
// Memory dense in that order as kernels take it: [planes, d, h, w], or [batch, d, h, w, channels].
TensorBase planes(const TensorBase& t, int n, MemoryFormat format);
// The shape of the output: that of the input with its last n sizes replaced.
Dims output_shape(const TensorBase& input, const Windows& w);

}  // namespace tessera::pool
