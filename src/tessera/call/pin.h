// Page-locked copies of host tensors.
#pragma once
#include <span>
#include <vector>

#include "tessera/tensor/tensor.h"

namespace tessera {

// Each in pinned memory; one that is there already stays itself. No part of a graph.
std::vector<TensorBase> pinned(std::span<const TensorBase> tensors);
inline TensorBase pinned(const TensorBase& t) { return std::move(pinned({&t, 1})[0]); }

}  // namespace tessera
