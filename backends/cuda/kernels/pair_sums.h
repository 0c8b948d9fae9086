// Sums of g * (x - mean) * factor and of g, two at a time: what the gradients of norms are made of.
//
// Note [Pair sums]
// Two stages, both of an order that depends on sizes alone: blocks leave partial sums in memory,
// row after row of them, and `fold_sums` adds the rows. No atomics, so the same bits every time.
#pragma once
#include "row_plan.h"

namespace tessera::cuda {

// What the sums are of: dense and aligned memory; mean and factor are of dtype `wide`.
struct PairOperands {
  const void *g, *x, *mean;
  const void* factor;  // null: one
  DType g_dtype, x_dtype, wide;
};

// Sums of rows x n partial sums over the rows, for two arrays: first, first + gap.
Status fold_sums(Device& d, CUstream stream, CUdeviceptr partials, int64_t rows, int64_t n,
                 int64_t gap, DType wide, void* to_first, void* to_second);

// Of `segments` of n elements side by side. The mean is that of (segment / every) % means, where
// `means` 0 is none to wrap around at. With weights g counts as g * weight, where the weight of
// element j of segment s is [s % weight_rows, j]. The results lie at [segment], or, where
// `channels` > 0, are summed over the segments of the same segment % channels.
struct SegmentSums {
  int64_t segments, n, every, means, channels;
  const void* weight = nullptr;
  DType weight_dtype = DType::kFloat32;
  int64_t weight_rows = 1;
};
Status segment_sums(Device& d, CUstream stream, const PairOperands& of, const SegmentSums& s,
                    void* to_gx, void* to_g);

// Of the columns of a matrix. The mean is that of the column; or, where `width` > 0, of
// row * (columns / width) + column / width.
Status column_sums(Device& d, CUstream stream, const PairOperands& of, int64_t rows,
                   int64_t columns, int64_t width, void* to_gx, void* to_g);

}  // namespace tessera::cuda
