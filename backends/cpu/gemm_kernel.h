// The innermost loops of matrix products of float and double.
#pragma once
#include <cstdint>

namespace tessera::cpu {

// A piece of c = a * b: rows and columns below the kernel's own number of them.
template <class T>
struct GemmPiece {
  const T* a;  // element (i, p) at i * a_row + p * a_step
  int64_t a_row, a_step;
  const T* b;  // row p at b + p * b_step; whole vectors may be read
  int64_t b_step;
  T* c;  // row i at c + i * c_row
  int64_t c_row;
  int64_t k;
  int64_t rows, cols;
  bool add;       // to what is in c
  const T* bias;  // of each column, added last; may be null
};

template <class T>
struct GemmKernel {
  int64_t rows, cols;  // at most, of a piece
  int64_t vector;      // elements that are read of b at a time
  // Each element of c is the sum over p of a product, one after the other by fused multiply-adds
  // from zero, then added: the same bits on every instruction set.
  void (*run)(const GemmPiece<T>& piece);
};

// Of the instruction set in use. Without fused multiply-adds in hardware: null.
template <class T>
const GemmKernel<T>* gemm_kernel() noexcept;

}  // namespace tessera::cpu
