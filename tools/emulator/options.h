// What $TESSERA_EMULATOR asks for: words with commas between, for instance "2x4GiB,async,shuffle".
#pragma once
#include <cstddef>
#include <cstdint>

namespace emulator {

struct Options {
  int devices = 1;
  size_t memory = size_t{4} << 30;  // of each device
  bool async = false;               // a thread for each stream; else all runs at the call
  int pages = 0;                    // 1: virtual memory management
  bool shuffle = false;             // threads of a block run in random order
  bool poison = true;               // fresh memory is filled with NaN, shared memory too
  size_t align = 256;               // of allocations; "exact": 16, so that they end at their end
  uint64_t seed = 1;                // of shuffle: "seed=7"
  bool idle = false;                // kernels and libraries do nothing: what is left is the host's
};

// What the compiler makes of any kernel when nothing runs: a compiler's time for each is too much
// where thousands are only met (tools/pack).
inline constexpr char kIdleImage[] = "a kernel that is never run";

// Read once. What it cannot read ends the process with a message.
const Options& options();

}  // namespace emulator
