// The threads of one block: who waits for whom.
#pragma once
#include "kernel_abi.h"

namespace emulator {

// Runs all threads of the current block (state.block) as fibers. Null, or why they cannot go on: a
// barrier that some threads never reach.
const char* run_block(State& state, KernelEntry entry, void** arguments);
// Forgets a block whose kernel was left in the middle.
void abandon_block();

// What kernels call.
const Runtime& runtime();
// Ends the kernel that runs on this thread; does not return.
[[noreturn]] void end_kernel(const char* why);

}  // namespace emulator
