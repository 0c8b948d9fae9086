// Casts of weights within an autocast region: a weight that several operators use is cast once.
#pragma once
#include "tessera/tensor/tensor.h"

namespace tessera::amp {

// Regions nest, and these say how deep; at the end of the outermost one the casts are forgotten. Of
// this thread.
int enter_region();
int leave_region();
void forget_casts();
bool cache_enabled();
void set_cache_enabled(bool on);

// The tensor in the lower precision. Leaves that want a gradient are kept: for this thread, stream
// and grad mode, until the tensor is written to. Nothing is kept while a graph is captured, which
// would read an old cast at its replays, or leave one that only a replay fills.
TensorBase lowered(const TensorBase& t, DType dtype);

}  // namespace tessera::amp
