// Sizes given as one number or as one for each dimension.
#pragma once
#include "tessera/face/ints.h"

namespace tessera::nn {

inline Dims each(int n, std::span<const int64_t> v) {
  return v.size() == 1 ? Dims(static_cast<size_t>(n), v[0]) : Dims(v);
}

}  // namespace tessera::nn
