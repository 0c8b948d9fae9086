// A matrix times a vector, which is read once: bound by memory, so nothing is packed.
#pragma once
#include "gemm_blocked.h"

namespace tessera::cpu {

// y[i] = sum over p < k of m(i, p) * x[p], for i < rows; x has stride x_step. False where neither
// rows nor columns of the matrix are dense, or the vector is of a half type: nothing was done. The
// sum is that of a row (in lanes) or of a column (one after the other, by blocks), by the layout of
// the matrix.
template <class T>
bool gemv(int64_t rows, int64_t k, const GemmOperand& matrix, const T* x, int64_t x_step, T* y);

}  // namespace tessera::cpu
