// Text of the kernels that have a name of their own. Each is fixed text behind a few definitions.
#pragma once
#include <string>

#include "joins.h"
#include "tessera/base/dtype.h"

namespace tessera::cuda {

inline constexpr int kKernelDims = 16;

// One row: block (or, 32 threads, warp) per row. vectors > 0: the row stays in registers, that many
// vectors of vec elements a thread; 0: it is read twice.
struct SoftmaxText {
  DType dtype;
  bool log;
  bool columns;  // one thread a row; neighbours in memory are neighbouring rows
  int threads, vec, vectors;
  bool vector_loads;
};
inline constexpr int kSoftmaxWords = 8 + 2 * kKernelDims;
// `joins`: see Note [Company of a kernel]; of rows alone.
std::string softmax_text(const SoftmaxText& s, const std::string& joins = kNoJoins);

enum class Draw : uint8_t { kUniform, kNormal, kBernoulli, kRandomInt };
// `wide`: 64-bit random words. See tessera/ops/philox.h for the rule.
std::string random_text(Draw draw, DType dtype, bool wide);

// Numbers in steps: parameters 0 out, 1 n, 2 start and 3 step (as int64, of floats as double).
inline constexpr int kRangeWords = 4;
std::string arange_text(DType dtype);

// out[r, c] += bias[c]
std::string bias_add_text(DType dtype);
// [B, M, K] x [B, K, N], any strides, for dtypes that cuBLASLt has no product for.
std::string matmul_text(DType dtype);

}  // namespace tessera::cuda
