// Matrix products of float and double, of any layout and also from half types, on all threads.
#pragma once
#include <cstdint>

#include "tessera/base/dtype.h"

namespace tessera::cpu {

// Element (i, j) at i * row + j * col.
struct GemmOperand {
  const void* data;
  DType dtype;  // T's own, or a half type where T is float
  int64_t row, col;
};

// c = [c +] a * b + bias; c is dense by rows, the bias has n elements or is null. False if this
// machine has no fused multiply-add: nothing was done. Throws std::bad_alloc.
//
// Note [The order of a product]
// The sum over k is cut into blocks of kGemmDepth, each summed one after the other from zero; the
// blocks are added in order. Which thread computes an element, and in which piece, changes nothing.
inline constexpr int64_t kGemmDepth = 512;
template <class T>
bool gemm_blocked(int64_t m, int64_t n, int64_t k, const GemmOperand& a, const GemmOperand& b, T* c,
                  const T* bias, bool add = false);

}  // namespace tessera::cpu
