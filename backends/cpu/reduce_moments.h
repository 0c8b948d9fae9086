// Moments by the engine of reductions: the accumulator is a mean and a sum of squared deviations.
#pragma once
#include "tessera/driver/backend.h"

namespace tessera::cpu {

// Of float or double; null for other classes. Accumulators have two parts of 8 bytes: n means, then
// n sums of squared deviations. There is no finish.
const ReduceBody::Loops* moments_loops(RegClass cls) noexcept;

}  // namespace tessera::cpu
