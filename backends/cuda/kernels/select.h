// Elements of rows by their number in order, without sorting the rows.
#pragma once
#include "sorting.h"

namespace tessera::cuda {

enum class Select : uint8_t {
  kFirst,      // the first s.keep of each row, in order; at most kShortRow
  kKth,        // the one numbered s.skip
  kMedian,     // the lower one in the middle, or the first NaN
  kNanMedian,  // the lower one in the middle of what is no NaN
};
Status select_rows(Device& d, CUstream stream, const SortRows& s, Select what);

}  // namespace tessera::cuda
