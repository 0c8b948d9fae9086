// Elements of strided memory named by offsets: read, written and combined, in the order given.
#pragma once
#include <cstdint>

#include "tessera/driver/program.h"

namespace tessera::cpu {

// What becomes of an element that is written. The order is that of the records' numbers.
enum class Combine : uint8_t { kAssign, kAdd, kMul, kMin, kMax };
inline constexpr int kNumCombines = 5;

// dst[k] = base[at[k]], offsets in elements.
using ReadPointsFn = void (*)(void* dst, const void* base, const int64_t* at, int64_t n);
// base[at[k]] = combine(base[at[k]], src[k]), one after the other.
using WritePointsFn = void (*)(void* base, const int64_t* at, const void* src, int64_t n);
// dst[k] = combine(dst[k], src[k]) for dense runs.
using CombineRunFn = void (*)(void* dst, const void* src, int64_t n);

// A run of a dimension whose elements are `step` apart, each moved on by an index of its own:
// dst[k] = base[k * step + index[k] * stride].
using ReadRunFn = void (*)(void* dst, const void* base, const int64_t* index, int64_t n,
                           int64_t step, int64_t stride);
using WriteRunFn = void (*)(void* base, const int64_t* index, const void* src, int64_t n,
                            int64_t step, int64_t stride);

ReadPointsFn read_points(DType dtype);
ReadRunFn read_run(DType dtype);
WriteRunFn write_run(Combine combine, DType dtype);
// Packs offsets within [low, high) to the front, and what belongs to them; returns how many.
int64_t keep_within(int64_t low, int64_t high, int64_t* at, void* with, int64_t n, size_t itemsize);
// Null where the dtype has no such combination (the order of complex numbers).
WritePointsFn write_points(Combine combine, DType dtype);
CombineRunFn combine_run(Combine combine, DType dtype);

// A walk over the points of a space in row-major order: the offset of each, tile by tile.
class OffsetWalk {
 public:
  // `skip` is a dimension that does not count in offsets, or -1.
  OffsetWalk(int ndim, const int64_t* sizes, const int64_t* strides, int skip = -1);
  // Offsets of points [first, first + n).
  void offsets(int64_t first, int64_t n, int64_t* out) const;

 private:
  int ndim_;
  const int64_t* sizes_;
  int64_t strides_[kMaxDims];
};

// Points [first, first + n) of a tensor as a dense tile; its own memory where it is dense already.
class TileReader {
 public:
  explicit TileReader(const KernelTensor& t);
  const void* tile(int64_t first, int64_t n, void* room) const;
  bool dense() const { return dense_; }

 private:
  const KernelTensor& t_;
  bool dense_;
};

bool is_dense(const KernelTensor& t);

}  // namespace tessera::cpu
