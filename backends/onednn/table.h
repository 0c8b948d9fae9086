// What the library around oneDNN offers to the CPU backend. Plain data, so that the two are
// compiled apart and either may be missing.
#pragma once
#include <cstdint>

namespace tessera::onednn {

inline constexpr int kVersion = 3;

struct Conv {
  int kind;  // 0 forward, 1 gradient by the input, 2 by the weight
  int threads;
  bool has_bias;
  int64_t n, c, o, groups;
  int64_t in[3], out[3], kernel[3], stride[3], padding[3], dilation[3];
};

// kUnsupported: oneDNN does not take it, and nothing was written.
enum class Outcome : int { kDone, kUnsupported, kNoMemory };

struct Table {
  int version;
  // Dense float32 tensors: input [n, c, ...], weight [o, c / groups, ...], output [n, o, ...].
  Outcome (*conv)(const Conv* c, const float* input, const float* weight, const float* bias,
                  const float* output, float* result);
  const char* (*release)();  // of oneDNN: "2.6.3"
};

}  // namespace tessera::onednn

extern "C" __attribute__((visibility("default"))) const tessera::onednn::Table*
tessera_onednn_table();
