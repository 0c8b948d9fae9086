// What a compiled kernel and the emulated driver share. Free of includes: this text stands at the
// head of every kernel.
#pragma once

namespace emulator {

struct Index3 {
  unsigned x, y, z;
};

enum class WarpOp { kSync, kShuffle, kBallot };

// What only the scheduler of a block's threads can do.
struct Runtime {
  // Waits for all threads of the block; the number of them whose `predicate` held.
  int (*sync_block)(int predicate);
  // Waits for the warp's threads named by `mask`. A shuffle returns the value of lane `from`, a
  // ballot the lanes whose value is not zero.
  unsigned long long (*warp)(WarpOp op, unsigned mask, unsigned long long value, int from);
  unsigned (*active_mask)();
  void (*trap)(const char* why);
};

// One a module, exported as emulator_state. Launches of one module exclude each other.
struct State {
  Index3 thread, block, block_dim, grid_dim;
  void* dynamic_shared;
  const Runtime* runtime;
};

// Runs the current thread of the current block; with whole_block, all of its threads in turn.
using KernelEntry = void (*)(void** arguments, int whole_block);

}  // namespace emulator
