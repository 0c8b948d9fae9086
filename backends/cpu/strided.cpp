#include "strided.h"

#include <algorithm>
#include <cstring>

#include "tessera/driver/program.h"
#include "transpose.h"

namespace tessera::cpu {

namespace {

template <bool kGather, class T>
inline void move(T* strided, T* dense) {
  if constexpr (kGather)
    *dense = *strided;
  else
    *strided = *dense;
}

// Along one row; the dense side has stride 1.
template <bool kGather, class T>
void move_row(T* dense, T* strided, int64_t n, int64_t stride) {
  if (stride == 1) {
    if constexpr (kGather)
      std::memcpy(dense, strided, static_cast<size_t>(n) * sizeof(T));
    else
      std::memcpy(strided, dense, static_cast<size_t>(n) * sizeof(T));
  } else if (kGather && stride == 0) {
    std::fill_n(dense, n, *strided);
  } else {
    for (int64_t j = 0; j < n; ++j) move<kGather>(strided + j * stride, dense + j);
  }
}

template <bool kGather, class T>
void move_block(T* dense, T* strided, int64_t rows, int64_t cols, int64_t rs, int64_t cs) {
  if (rows == 1) return move_row<kGather>(dense, strided, cols, cs);
  if (cols == 1) return move_row<kGather>(dense, strided, rows, rs);
  // Whole cache lines of the strided side before the next: its shorter stride goes innermost.
  if (cs != 0 && std::abs(rs) < std::abs(cs)) {
    if (rs == 1) {
      if constexpr (kGather)
        return transpose(dense, cols, strided, cs, rows, cols, sizeof(T));
      else
        return transpose(strided, cs, dense, cols, cols, rows, sizeof(T));
    }
    for (int64_t j = 0; j < cols; ++j)
      for (int64_t i = 0; i < rows; ++i)
        move<kGather>(strided + j * cs + i * rs, dense + i * cols + j);
  } else if (cols < 16) {
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < cols; ++j)
        move<kGather>(strided + i * rs + j * cs, dense + i * cols + j);
  } else {
    for (int64_t i = 0; i < rows; ++i)
      move_row<kGather>(dense + i * cols, strided + i * rs, cols, cs);
  }
}

template <bool kGather>
void move_block(void* dense, void* strided, int64_t rows, int64_t cols, int64_t rs, int64_t cs,
                size_t itemsize) {
  switch (itemsize) {
    case 1:
      return move_block<kGather>(static_cast<uint8_t*>(dense), static_cast<uint8_t*>(strided), rows,
                                 cols, rs, cs);
    case 2:
      return move_block<kGather>(static_cast<uint16_t*>(dense), static_cast<uint16_t*>(strided),
                                 rows, cols, rs, cs);
    case 4:
      return move_block<kGather>(static_cast<uint32_t*>(dense), static_cast<uint32_t*>(strided),
                                 rows, cols, rs, cs);
    case 8:
      return move_block<kGather>(static_cast<uint64_t*>(dense), static_cast<uint64_t*>(strided),
                                 rows, cols, rs, cs);
    default:
      return move_block<kGather>(static_cast<c128*>(dense), static_cast<c128*>(strided), rows, cols,
                                 rs, cs);
  }
}

// The run is cut into planes of the last two dimensions, and there into the rest of a begun row,
// whole rows, and the beginning of a last one.
template <bool kGather>
void move_run(void* dense_, void* base_, int ndim, const int64_t* sizes, const int64_t* strides,
              const int64_t* from, int64_t n, size_t itemsize) {
  char* dense = static_cast<char*>(dense_);
  char* base = static_cast<char*>(base_);
  if (ndim == 0) return move_block<kGather>(dense, base, 1, 1, 0, 0, itemsize);
  const int64_t size = static_cast<int64_t>(itemsize);
  const int64_t cols = sizes[ndim - 1], cs = strides[ndim - 1];
  int64_t at = 0;
  for (int d = 0; d < ndim; ++d) at += from[d] * strides[d];
  int64_t left_in_row = cols - from[ndim - 1];
  if (n <= left_in_row) return move_block<kGather>(dense, base + at * size, 1, n, 0, cs, itemsize);
  int64_t coords[kMaxDims];
  for (int d = 0; d < ndim; ++d) coords[d] = from[d];
  const int64_t rows = ndim > 1 ? sizes[ndim - 2] : 1, rs = ndim > 1 ? strides[ndim - 2] : 0;
  for (;;) {
    int64_t& col = coords[ndim - 1];
    int64_t take_rows = 1, take_cols = std::min(n, cols - col);
    if (col == 0 && n >= cols && ndim > 1) {
      take_rows = std::min(rows - coords[ndim - 2], n / cols);
      take_cols = cols;
    }
    move_block<kGather>(dense, base + at * size, take_rows, take_cols, rs, cs, itemsize);
    n -= take_rows * take_cols;
    if (n == 0) return;
    dense += take_rows * take_cols * size;
    // The next point: here the row is always finished.
    at += (take_rows * rs) - col * cs;
    col = 0;
    int d = ndim - 2;
    coords[d] += take_rows;
    while (coords[d] == sizes[d] && d > 0) {
      at -= sizes[d] * strides[d];
      coords[d] = 0;
      --d;
      ++coords[d];
      at += strides[d];
    }
  }
}

}  // namespace

void gather_block(void* dst, const void* src, int64_t rows, int64_t cols, int64_t row_stride,
                  int64_t col_stride, size_t itemsize) {
  move_block<true>(dst, const_cast<void*>(src), rows, cols, row_stride, col_stride, itemsize);
}
void scatter_block(void* dst, const void* src, int64_t rows, int64_t cols, int64_t row_stride,
                   int64_t col_stride, size_t itemsize) {
  move_block<false>(const_cast<void*>(src), dst, rows, cols, row_stride, col_stride, itemsize);
}
void gather_run(void* dst, const void* base, int ndim, const int64_t* sizes, const int64_t* strides,
                const int64_t* coords, int64_t n, size_t itemsize) {
  move_run<true>(dst, const_cast<void*>(base), ndim, sizes, strides, coords, n, itemsize);
}
void scatter_run(void* base, const void* src, int ndim, const int64_t* sizes,
                 const int64_t* strides, const int64_t* coords, int64_t n, size_t itemsize) {
  move_run<false>(const_cast<void*>(src), base, ndim, sizes, strides, coords, n, itemsize);
}

void unravel(int64_t linear, int ndim, const int64_t* sizes, int64_t* coords) {
  for (int d = ndim - 1; d >= 0; --d) {
    coords[d] = linear % sizes[d];
    linear /= sizes[d];
  }
}

}  // namespace tessera::cpu
