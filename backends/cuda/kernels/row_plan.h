// How threads share rows of n elements.
#pragma once
#include <algorithm>

#include "../kernels.h"
#include "../text.h"
#include "dense_operand.h"
#include "row_text.h"

namespace tessera::cuda {

// Elements of a piece of a row that is too long for registers.
inline constexpr int64_t kRowPiece = 16 * 1024;

struct RowPlan {
  int vec;      // elements of one access
  int threads;  // that share a row: a part of a warp, a warp, or a block of 128 and more
  int items;    // accesses of a thread; 0: the row is too long
};

// Rows of operands of two dtypes, dense and aligned at their beginnings. `in_block`: elements that
// a thread may hold where several warps share a row; `in_warp`: where one does.
inline RowPlan plan_row(int64_t n, DType a, DType b, bool aligned, int in_block = 16,
                        int in_warp = 32, int most_threads = 1024) {
  const int64_t item = static_cast<int64_t>(std::max(itemsize(a), itemsize(b)));
  const int shrink = item == 8 ? 2 : 1;
  int vec = static_cast<int>(std::min<int64_t>(16 / item, 8));
  while (vec > 1 && (!aligned || n % vec != 0)) vec /= 2;
  RowPlan p{vec, 0, 0};
  const int64_t need = (n + vec - 1) / vec;
  for (int threads = 4; threads <= most_threads; threads *= 2) {
    if (threads == 64) continue;
    const int most = (threads <= 32 ? in_warp : in_block) / shrink / vec;
    // Fewer threads than a warp only where each has little to do.
    const int64_t items = threads < 32 ? std::min(most, std::max(1, 4 / vec)) : most;
    if (need > threads * items) continue;
    p.threads = threads;
    for (p.items = 1; int64_t{p.items} * threads < need;) p.items *= 2;
    break;
  }
  return p;
}

}  // namespace tessera::cuda
