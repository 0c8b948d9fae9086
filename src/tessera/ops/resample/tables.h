// Where each output of a resampling comes from, along one dimension.
#pragma once
#include <vector>

#include "tessera/ops/call.h"

namespace tessera::resample {

enum class Mode { kNearest, kNearestExact, kLinear, kCubic };

// Output i is the sum over k < taps of weights[i * taps + k] times input clamp(starts[i] + k).
struct Table {
  int64_t taps = 1;
  std::vector<int64_t> starts;
  std::vector<double> weights;
};

// `scale`: what the program gave as factor, 0 where it gave a size only.
Table make_table(Mode mode, int64_t in, int64_t out, bool align_corners, double scale,
                 bool antialias);

// Makes the weights integers of 16 bits, as PyTorch does for uint8: sums of uint8 times them are
// exact in double, and are divided by the number that is returned, a power of two.
double quantize(Table& table, int64_t in);

}  // namespace tessera::resample
