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

}  // namespace tessera::resample
