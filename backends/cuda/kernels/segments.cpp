// Which segment each position lies in.
#include <algorithm>

#include "../kernels.h"
#include "../text.h"

namespace tessera::cuda {
namespace {

// A block a row: lengths become where segments begin, and where the last one ends.
constexpr TextKernel kBegins{"segment_begins", R"(
struct Params { const int64_t* lengths; int64_t* begins; int64_t rows, given; };
extern "C" __global__ void __launch_bounds__(256) segment_begins(const __grid_constant__ Params p) {
  __shared__ int64_t parts[8];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int64_t r = blockIdx.x; r < p.rows; r += gridDim.x) {
    const int64_t* from = p.lengths + r * p.given;
    int64_t* to = p.begins + r * (p.given + 1);
    int64_t before = 0;
    for (int64_t base = 0; base < p.given; base += 256) {
      const int64_t i = base + threadIdx.x;
      const int64_t mine = i < p.given ? from[i] : 0;
      int64_t sum = mine;
      #pragma unroll
      for (int by = 1; by < 32; by *= 2) {
        const int64_t other = __shfl_up_sync(0xffffffffu, sum, by);
        if (lane >= by) sum += other;
      }
      if (lane == 31) parts[warp] = sum;
      __syncthreads();
      int64_t lower = 0, all = 0;
      #pragma unroll
      for (int w = 0; w < 8; ++w) {
        if (w < warp) lower += parts[w];
        all += parts[w];
      }
      if (i < p.given) to[i] = before + lower + sum - mine;
      before += all;
      __syncthreads();
    }
    if (threadIdx.x == 0) to[p.given] = before;
  }
})"};

// The last segment that begins at or before a position has it, if it does not end before.
constexpr TextKernel kIds{"segment_ids", R"(
struct Params { const int64_t* bounds; int64_t* ids; int64_t total, n, given, segments; };
extern "C" __global__ void __launch_bounds__(256) segment_ids(const __grid_constant__ Params p) {
  for (int64_t i = thread(); i < p.total; i += threads()) {
    const int64_t r = i / p.n, at = i - r * p.n;
    const int64_t* bound = p.bounds + r * p.given;
    int64_t low = 0, high = p.segments;  // those below `low` begin at or before it
    while (low < high) {
      const int64_t middle = (low + high) / 2;
      if (bound[middle] <= at) low = middle + 1; else high = middle;
    }
    p.ids[i] = low > 0 && (low >= p.given || at < bound[low]) ? low - 1 : -1;
  }
})"};

// inputs: dense lengths of segments, or where they begin in rising order, a row for each row of the
// output; outputs: the number of the segment of each position, -1 where there is none; ints:
// whether they are lengths, whether the last segment ends with the row.
Status run_segment_ids(Device& d, CUstream stream, const KernelArgs& args) {
  const KernelTensor &bounds = args.inputs[0], &out = args.outputs[0];
  const bool lengths = args.ints[0] != 0, open_end = args.ints[1] != 0;
  if (out.numel == 0) return ok();
  const int64_t given = bounds.sizes[bounds.ndim - 1], n = out.sizes[out.ndim - 1];
  const int64_t rows = out.numel / n;
  struct {
    const void* bounds;
    void* ids;
    int64_t total, n, given, segments;
  } p{bounds.data, out.data, out.numel,
      n,           given,    lengths || open_end ? given : std::max<int64_t>(0, given - 1)};
  Scratch begins(d, stream);
  if (lengths) {
    TS_TRY(begins.take(static_cast<size_t>(rows * (given + 1)) * sizeof(int64_t)));
    struct {
      const void* lengths;
      CUdeviceptr begins;
      int64_t rows, given;
    } first{bounds.data, begins.address(), rows, given};
    TS_TRY(launch_text(d, stream, kBegins, {}, {std::min<int64_t>(rows, 65535), 256}, &first));
    p.bounds = reinterpret_cast<const void*>(begins.address());
    p.given = given + 1;
  }
  return launch_text(d, stream, kIds, {}, {fill_blocks(d, out.numel), 256}, &p);
}

TS_CUDA_KERNEL("segment_ids", run_segment_ids)

}  // namespace
}  // namespace tessera::cuda
