// Where a tensor is not zero: counted block by block, so that the positions can be written by many
// threads at once.
#pragma once
#include "tessera/ops/call.h"

namespace tessera {

inline constexpr int64_t kPositionBlock = 8192;  // elements of a block

struct Positions {
  TensorBase starts;  // how many come before each block, int64
  int64_t count = 0;
};

// Waits for the values.
Positions count_positions(const TensorBase& t);

}  // namespace tessera
