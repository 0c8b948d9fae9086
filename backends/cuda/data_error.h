// What kernels find wrong in the data they are given. Written to the device's slot (`report` in a
// kernel's text), raised by the next call that waits for the device.
#pragma once
#include <cstdint>

namespace tessera::cuda {

// It lies in mapped page-locked memory, so reading it costs the host no call.
struct ErrorSlot {
  int32_t kind;  // 0: none; else 1 + a DataError
  int32_t dim;
  int64_t index;
  int64_t size;
};

enum class DataError : int32_t {
  // The words of the CPU's, tessera/ops/index/layout.h.
  kIndex,
  kGather,
  kSelect,
  kIndexCopy,
  kTake,
  kPoolIndex,
  kTarget,     // of nll_loss
  kCtcTarget,  // of ctc_loss
  // The words of backends/cpu/kernel_choices.cpp.
  kMultinomialNumber,
  kMultinomialNegative,
  kMultinomialSum,
  kPoissonRate,
  kCount,
};
// For a kernel's definitions.
constexpr int64_t code_of(DataError e) { return static_cast<int64_t>(e) + 1; }

}  // namespace tessera::cuda
