// Batches of matrix products of floats by our own loops.
#pragma once
#include "tessera/driver/backend.h"

namespace tessera::cpu {

// The kernel "matmul" for float16, bfloat16, float32 and float64. False where the machine has no
// fused multiply-add: nothing was done then. Throws std::bad_alloc.
bool matmul_floats(const KernelArgs& args);

}  // namespace tessera::cpu
