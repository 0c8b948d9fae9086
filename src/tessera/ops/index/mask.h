// Writing where a mask is true.
#pragma once
#include "tessera/ops/call.h"

namespace tessera {

// out = value where mask, deferred like any pointwise operator; without autograd.
void fill_masked(const Op& op, const TensorBase& out, const TensorBase& mask,
                 const TensorBase& value);

}  // namespace tessera
