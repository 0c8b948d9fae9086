// What a program allows convolutions on an accelerator: torch.backends.cudnn's settings.
#pragma once
#include <cstdint>

namespace tessera::conv {

// Bits of `flags`, the first of the two ints that follow a strided kernel's own.
enum Flag : int64_t {
  kVendorLibrary = 1,  // cuDNN may do it
  kBenchmark = 2,      // several ways are timed at the first use of a shape
  kDeterministic = 4,
  kAllowTf32 = 8,                   // float32 in TensorFloat-32
  kDeterministicAlgorithms = 1024,  // as kDeterministic, for all of the program
};

int64_t flags();
void set_flag(Flag flag, bool on);
// How many ways are timed; 0: all.
int64_t benchmark_limit();
void set_benchmark_limit(int64_t limit);

}  // namespace tessera::conv
