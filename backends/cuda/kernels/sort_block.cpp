// Rows that one block holds: sorted by digits in shared memory, from the last to the first.
#include "sorting.h"

namespace tessera::cuda {
namespace {

// What fills the last places up has the greatest key there is and comes after all that have it too.
// Digits that all elements have in common are passed over.
constexpr char kText[] = R"(
struct Params {
  const B* in; B* values; int64_t* indices; int64_t n, keep, skip; unsigned long long flip;
};
extern "C" __global__ void __launch_bounds__(256) sort_block(const __grid_constant__ Params p) {
  constexpr int TILE = 256 * ITEMS, WARPS = 8;
  __shared__ B tile_keys[TILE];
  __shared__ unsigned short tile_places[TILE];
  __shared__ unsigned counts[WARPS][256], sums[WARPS];
  const int t = threadIdx.x, lane = t & 31, warp = t / 32, mine = warp * (32 * ITEMS) + lane;
  const int64_t row = blockIdx.x;
  const B* in = p.in + row * p.n;
  B keys[ITEMS];
  unsigned short places[ITEMS];
  #pragma unroll
  for (int i = 0; i < ITEMS; ++i) {
    const int at = mine + 32 * i;
    keys[i] = at < p.n ? (B)(key_of(in[at]) ^ (B)p.flip) : (B)~(B)0;
    places[i] = (unsigned short)at;
  }
  const unsigned lower = (1u << lane) - 1;
  #pragma unroll 1
  for (int shift = 0; shift < 8 * (int)sizeof(B); shift += 8) {
    #pragma unroll
    for (int w = 0; w < WARPS; ++w) counts[w][t] = 0;
    __syncthreads();
    unsigned ranks[ITEMS];
    #pragma unroll
    for (int i = 0; i < ITEMS; ++i) {
      const unsigned d = (unsigned)(keys[i] >> shift & 255), same = lanes_with(d);
      const unsigned ahead = __popc(same & lower), first = counts[warp][d];
      __syncwarp();
      if (ahead == 0) counts[warp][d] = first + __popc(same);
      __syncwarp();
      ranks[i] = first + ahead;
    }
    __syncthreads();
    unsigned total = 0;
    #pragma unroll
    for (int w = 0; w < WARPS; ++w) total += counts[w][t];
    const unsigned upto = sum_to_lane(total);
    if (lane == 31) sums[warp] = upto;
    if (__syncthreads_or(total == TILE)) continue;
    unsigned at = upto - total;
    for (int w = 0; w < warp; ++w) at += sums[w];
    #pragma unroll
    for (int w = 0; w < WARPS; ++w) {
      const unsigned c = counts[w][t];
      counts[w][t] = at;
      at += c;
    }
    __syncthreads();
    #pragma unroll
    for (int i = 0; i < ITEMS; ++i) {
      const unsigned to = counts[warp][(unsigned)(keys[i] >> shift & 255)] + ranks[i];
      tile_keys[to] = keys[i];
      tile_places[to] = places[i];
    }
    __syncthreads();
    #pragma unroll
    for (int i = 0; i < ITEMS; ++i) {
      keys[i] = tile_keys[mine + 32 * i];
      places[i] = tile_places[mine + 32 * i];
    }
  }
  #pragma unroll
  for (int i = 0; i < ITEMS; ++i) {
    const int64_t at = mine + 32 * i - p.skip;
    if (at < 0 || at >= p.keep) continue;
    if (p.values) p.values[row * p.keep + at] = in[places[i]];
    if (p.indices) p.indices[row * p.keep + at] = places[i];
  }
})";
constexpr TextKernel kSortBlock{"sort_block",
                                kJoined<kKeyText, kWarpSumText, kLanesText, kText>.data()};

}  // namespace

Status sort_block_rows(Device& d, CUstream stream, const SortRows& s) {
  struct {
    const void* in;
    void* values;
    int64_t *indices, n, keep, skip;
    uint64_t flip;
  } p{s.in, s.values, s.indices, s.n, s.keep, s.skip, s.descending ? ~uint64_t{0} : 0};
  const int items = s.n <= 512 ? 2 : s.n <= 1024 ? 4 : 8;
  return launch_text(d, stream, kSortBlock, {TS_KEY_DEFS(s.dtype), def("ITEMS", items)},
                     {s.rows, 256}, &p);
}

}  // namespace tessera::cuda
