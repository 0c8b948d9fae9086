// The way of a pointwise call: rules, then the pending stream or the backend.
#pragma once
#include "tessera/fuse/pointwise.h"
#include "tessera/ops/call.h"

namespace tessera {

enum class Target : uint8_t { kFresh, kInplace, kOut };

// No autograd here: dispatch has that. `out` is undefined for kFresh.
TensorBase call_pointwise(const Op& op, Args args, Target target, const TensorBase& out);

}  // namespace tessera
