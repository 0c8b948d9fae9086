// Attention in one kernel, where the device has one.
#pragma once
#include "tessera/ops/call.h"

namespace tessera::attention {

// softmax(q k^T * scale) v, keys after a query hidden where `causal`; heads of keys and values may
// be shared by several of queries where `grouped`. Undefined where there is no fused kernel for
// this call: its gradient too, if one is wanted.
TensorBase fused(const TensorBase& q, const TensorBase& k, const TensorBase& v, bool causal,
                 double scale, bool grouped);

}  // namespace tessera::attention
