// A few rows times a matrix whose columns are dense: what a linear layer does to a small batch.
// Packing the matrix would take longer than the products.
#pragma once
#include <cstdint>

namespace tessera::cpu {

// c[i * n + j] = sum over p < k of a[i * a_row + p] * b[j * b_col + p] + bias[j], where bias may be
// null. False if this machine has no fused multiply-add: nothing was done.
//
// Lane l of 64 bytes takes elements l, l + lanes, ... by fused multiply-adds, what is left over
// filled up with zeros; the lanes are added by halves. The same bits on every instruction set.
template <class T>
bool gemm_dots(int64_t m, int64_t n, int64_t k, const T* a, int64_t a_row, const T* b,
               int64_t b_col, T* c, const T* bias);

}  // namespace tessera::cpu
