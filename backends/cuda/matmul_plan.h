// Products prepared for cuBLASLt: descriptors and the algorithm its heuristics chose, kept by
// shape.
#pragma once
#include <mutex>

#include "context.h"
#include "cublaslt_api.h"

namespace tessera::cuda {

// One operand as cuBLASLt takes it: rows side by side (or, transposed, columns).
struct MatrixView {
  const void* data;
  int64_t ld;
  int64_t batch_stride;
  bool transposed;
};

struct MatmulShape {
  DType dtype;
  bool bias;
  bool tf32;  // products of float32 may be rounded to 10 bits
  int64_t batch, m, n, k;
  MatrixView a, b;
  void* out;  // [batch, m, n], dense
};

inline constexpr size_t kMatmulWorkspace = 32u << 20;

// Runs it with fp32 (fp64) accumulation. *unsupported is set, and nothing run, when
// cuBLASLt has no algorithm for it.
Status run_cublaslt(Device& d, CUstream stream, const MatmulShape& shape, const void* bias,
                    bool* unsupported);

}  // namespace tessera::cuda
