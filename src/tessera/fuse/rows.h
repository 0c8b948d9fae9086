// Operands seen as rows, for work that joins a kernel.
#pragma once
#include "tessera/fuse/pending.h"

namespace tessera::fuse {

// The strides of an operand over `shape` as rows x n; false where it has more than two.
bool row_strides(const PendingOperand& o, const Dims& shape, int64_t rows, int64_t n, int64_t* down,
                 int64_t* along);

// Elements of a row of the kernel's output.
int64_t rows_after(const PendingKernel& call);

// A reduction as the backend takes it: dimensions sorted into kept and reduced, and merged.
struct Reduction {
  Reduction(const ReduceBody& body, DType in, const Dims& sizes, const Dims& strides,
            std::span<const int64_t> dims, DType out);
  Reduction(const Reduction&) = delete;

  Dims kept_sizes, kept_strides, reduced_sizes, reduced_strides;
  ReduceProgram program;  // without addresses
};

}  // namespace tessera::fuse
