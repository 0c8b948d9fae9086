// The geometry of a convolution, in up to three dimensions.
#pragma once
#include "tessera/ops/call.h"

namespace tessera::conv {

struct Params {
  Dims stride, padding, dilation, output_padding;
  int64_t groups = 1;
  bool transposed = false;
  int spatial() const { return stride.ndim(); }
};

// A list of one number stands for all dimensions.
Dims spread(const Dims& given, int n, const char* name);
// Raises unless the lists have a value in range for each of n dimensions.
void check_params(const Params& p, int n);
// Raises unless the sizes are those of one convolution: what its three kernels rely on. The output
// may be smaller than it could be.
void check_sizes(const Op& op, const Dims& input, const Dims& weight, const Dims& output,
                 const Params& p);
// Raises as PyTorch does where input and weight do not go together.
void check(const TensorBase& input, const TensorBase& weight, const TensorBase& bias,
           const Params& p);
Dims output_size(const Dims& input, const Dims& weight, const Params& p);

}  // namespace tessera::conv
