// Element by element: what reductions do to two pieces of memory. One set of loops for every
// engine, so that a result does not depend on the library that carried it.
#pragma once
#include <cstddef>

#include "tessera/base/dtype.h"

namespace tessera::distributed {

enum class ReduceOp : uint8_t { kSum, kAvg, kProduct, kMin, kMax, kBand, kBor, kBxor };
inline constexpr int kNumReduceOps = 8;
constexpr const char* reduce_name(ReduceOp op) {
  constexpr const char* names[kNumReduceOps] = {"SUM", "AVG",  "PRODUCT", "MIN",
                                                "MAX", "BAND", "BOR",     "BXOR"};
  return names[static_cast<int>(op)];
}

// c[i] = a[i] op b[i]; c may be a or b. kAvg adds: divide_by() follows at the end.
using ReduceFunction = void (*)(void* c, const void* a, const void* b, size_t n);
// Raises where the dtype has no such reduction.
ReduceFunction reduce_function(DType dtype, ReduceOp op);
void divide_by(void* data, size_t n, DType dtype, int by);

}  // namespace tessera::distributed
