// x[a, :, b] with index tensors: where it reads or writes.
#pragma once
#include <vector>

#include "tessera/ops/index/layout.h"

namespace tessera {

struct IndexPlan {
  TensorBase view;                  // the tensor, its indexed dimensions side by side
  std::vector<TensorBase> indices;  // int64, expanded to one shape
  Dims numbers;                     // the user's dimension that each of them names
  int before = 0;                   // dimensions of the view in front of the indexed ones
  Dims shape;                       // of what is read or written

  // Arguments of the kernels; `combine` only where something is written.
  std::vector<int64_t> ints(IndexError error, const Combine* combine) const;
};

// Raises for what does not fit; masks are counted, which waits for their values.
IndexPlan plan_index(const TensorBase& self, std::span<const TensorBase> indices);

}  // namespace tessera
