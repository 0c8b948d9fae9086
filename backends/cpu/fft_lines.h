// The lines of two tensors along one dimension, in groups of neighbours that are transformed
// together.
#pragma once
#include "kernels.h"

namespace tessera::cpu {

// Strides are in elements of each tensor's own dtype.
struct FftLines {
  int64_t in_step, out_step;             // along the line
  int64_t lane_size, in_lane, out_lane;  // the dimension that neighbours lie along
  int ndim = 0;                          // the others
  int64_t sizes[kMaxDims], in_strides[kMaxDims], out_strides[kMaxDims];
  int64_t outer = 1;

  FftLines(const KernelTensor& in, const KernelTensor& out, int dim);

  int64_t count() const { return outer * lane_size; }
  void offsets(int64_t index, int64_t* in, int64_t* out) const;
};

}  // namespace tessera::cpu
