// Which segment each position lies in.
#include <algorithm>

#include "kernels.h"
#include "thread_pool.h"

namespace tessera::cpu {

// inputs: dense lengths of segments, or where they begin, a row for each row of the output;
// outputs: the number of the segment of each position, -1 where there is none; ints: whether they
// are lengths, whether the last segment ends with the row.
Status segment_ids(const KernelArgs& args) {
  const KernelTensor &bounds = args.inputs[0], &out = args.outputs[0];
  const bool lengths = args.ints[0] != 0, open_end = args.ints[1] != 0;
  const int64_t given = bounds.sizes[bounds.ndim - 1], n = out.sizes[out.ndim - 1];
  if (out.numel == 0) return {};
  const int64_t segments = lengths || open_end ? given : std::max<int64_t>(0, given - 1);
  const int64_t* from = static_cast<const int64_t*>(bounds.data);
  int64_t* to = static_cast<int64_t*>(out.data);
  const int64_t rows = out.numel / n;
  parallel_for(0, rows, std::max<int64_t>(1, (1 << 15) / n), [&](int64_t b, int64_t e) {
    for (int64_t r = b; r < e; ++r) {
      const int64_t* bound = from + r * given;
      int64_t* ids = to + r * n;
      std::fill_n(ids, n, int64_t{-1});
      int64_t next = 0;
      for (int64_t s = 0; s < segments; ++s) {
        int64_t begin = lengths ? next : bound[s];
        int64_t end = lengths ? next + bound[s] : s + 1 < given ? bound[s + 1] : n;
        next = end;
        // Whatever the caller says, nothing outside the row is touched.
        begin = std::clamp<int64_t>(begin, 0, n);
        end = std::clamp<int64_t>(end, begin, n);
        std::fill(ids + begin, ids + end, s);
      }
    }
  });
  return {};
}

TS_KERNEL("segment_ids", segment_ids)

}  // namespace tessera::cpu
