// Arguments of kernels that draw random numbers. Their ints begin with a seed, an offset, and who
// draws: a generator's address on the CPU, 0 for Philox by seed and offset, or kStateInMemory.
#pragma once
#include "tessera/driver/program.h"

namespace tessera {

// The last input is two 64-bit numbers, a seed and an offset, read when the kernel runs; the offset
// among the ints is added to that one. So a captured kernel draws other numbers at every replay.
inline constexpr int64_t kStateInMemory = 1;

inline const unsigned long long* philox_state(const KernelArgs& a) {
  if (a.ints[2] != kStateInMemory) return nullptr;
  return static_cast<const unsigned long long*>(a.inputs[a.num_inputs - 1].data);
}

}  // namespace tessera
