// Transforms prepared for cuFFT, kept by shape and layout.
#pragma once
#include "context.h"

namespace tessera::cuda {

inline constexpr int kFftRank = 3;  // dimensions that cuFFT transforms at once

// Where one side of a transform lies. Element (b, i...) is b * distance + stride * (the place of
// i... in a dense array of the sizes `embed`), counted in the side's own numbers.
struct FftSide {
  DType dtype;
  long long embed[kFftRank];
  long long stride, distance;
};

struct FftShape {
  int rank;
  long long sizes[kFftRank];  // logical: of the longer side where one is half
  long long batch;
  FftSide in, out;
};

// Runs it on memory aligned as complex numbers are; nothing is scaled. Of complex numbers to real
// ones the input is destroyed.
Status run_cufft(Device& d, CUstream stream, const FftShape& shape, const void* in, void* out,
                 bool forward);

}  // namespace tessera::cuda
