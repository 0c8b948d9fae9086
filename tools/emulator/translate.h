// CUDA C as NVRTC takes it to C++ as a host compiler takes it, where macros (shim.h) cannot do it.
#pragma once
#include <string>

namespace emulator {

struct Translation {
  std::string text;
  // Whether threads of a block wait for each other; else they can run one after another.
  bool waits = false;
};

// - asm("op.type %0, %1;" : "=f"(x) : "h"(y)) becomes emulated_ptx::op_type_0_1(x, y);
// - after each kernel stands EMULATED_KERNEL(its name, its launch bounds);
// - extern __shared__ T name[]; becomes a macro for the launch's dynamic memory.
// - the result of an operator's body in a group goes through emulated_result().
// Lines keep their numbers.
Translation translate(const std::string& source);

}  // namespace emulator
