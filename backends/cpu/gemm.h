// Matrix products of our own: for small matrices, for integers, and where there is no BLAS.
#pragma once
#include <cstdint>

namespace tessera::cpu {

// c[i * n + j] = sum over k of a[i * a_row + p * a_col] * b[p * b_row + j], for float, double,
// complex and unsigned integers (which wrap, so they serve signed ones too). Each element is summed
// in order of p whatever the blocking.
template <class T>
void gemm(int64_t m, int64_t n, int64_t k, const T* a, int64_t a_row, int64_t a_col, const T* b,
          int64_t b_row, T* c);

}  // namespace tessera::cpu
