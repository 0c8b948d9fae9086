#include "fft_lines.h"

#include <algorithm>

namespace tessera::cpu {

FftLines::FftLines(const KernelTensor& in, const KernelTensor& out, int dim)
    : in_step(in.strides[dim]), out_step(out.strides[dim]), lane_size(1), in_lane(0), out_lane(0) {
  // Dimensions that step through both tensors as one are one.
  for (int d = 0; d < in.ndim; ++d) {
    if (d == dim || in.sizes[d] == 1) continue;
    const int64_t size = in.sizes[d], a = in.strides[d], b = out.strides[d];
    if (ndim > 0 && in_strides[ndim - 1] == size * a && out_strides[ndim - 1] == size * b) {
      sizes[ndim - 1] *= size;
      in_strides[ndim - 1] = a;
      out_strides[ndim - 1] = b;
      continue;
    }
    sizes[ndim] = size;
    in_strides[ndim] = a;
    out_strides[ndim++] = b;
  }
  if (ndim > 0) {  // neighbours are those closest to each other
    int near = 0;
    for (int d = 1; d < ndim; ++d)
      if (std::abs(out_strides[d]) <= std::abs(out_strides[near])) near = d;
    lane_size = sizes[near];
    in_lane = in_strides[near];
    out_lane = out_strides[near];
    --ndim;
    for (int d = near; d < ndim; ++d) {
      sizes[d] = sizes[d + 1];
      in_strides[d] = in_strides[d + 1];
      out_strides[d] = out_strides[d + 1];
    }
  }
  for (int d = 0; d < ndim; ++d) outer *= sizes[d];
}

void FftLines::offsets(int64_t index, int64_t* in, int64_t* out) const {
  *in = *out = 0;
  for (int d = ndim - 1; d >= 0; --d) {
    const int64_t at = index % sizes[d];
    index /= sizes[d];
    *in += at * in_strides[d];
    *out += at * out_strides[d];
  }
}

}  // namespace tessera::cpu
