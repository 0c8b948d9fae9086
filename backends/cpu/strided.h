// Moves blocks of elements between strided memory and dense tiles, by element size alone.
#pragma once
#include <cstddef>
#include <cstdint>

namespace tessera::cpu {

// dst[i * cols + j] = src[i * row_stride + j * col_stride], strides in elements.
void gather_block(void* dst, const void* src, int64_t rows, int64_t cols, int64_t row_stride,
                  int64_t col_stride, size_t itemsize);
// The inverse.
void scatter_block(void* dst, const void* src, int64_t rows, int64_t cols, int64_t row_stride,
                   int64_t col_stride, size_t itemsize);

// A run of n points in row-major order, beginning at `coords`, of a space with these sizes.
void gather_run(void* dst, const void* base, int ndim, const int64_t* sizes, const int64_t* strides,
                const int64_t* coords, int64_t n, size_t itemsize);
void scatter_run(void* base, const void* src, int ndim, const int64_t* sizes,
                 const int64_t* strides, const int64_t* coords, int64_t n, size_t itemsize);

// Coordinates of point number `linear` in row-major order.
void unravel(int64_t linear, int ndim, const int64_t* sizes, int64_t* coords);

}  // namespace tessera::cpu
