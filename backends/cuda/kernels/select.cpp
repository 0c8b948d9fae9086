// The k first of long rows without sorting them.
//
// Note [Selection by digits]
// The key of the k-th element is found digit by digit from the first: a pass counts the next digit
// of the elements that have the digits found so far. `want` is the number of the element sought
// among those, from 1. What is below that key is taken as it comes, and of the elements equal to it
// the first `want`, which the chunks of a row number by counting theirs beforehand.
#include "select.h"

namespace tessera::cuda {
namespace {

constexpr char kStateText[] = R"(
struct Params {
  const B* in; unsigned* counts; unsigned long long* prefix; int64_t* want; const unsigned* nans;
  unsigned* equals; unsigned* filled; unsigned* places; B* values; int64_t* indices;
  int64_t rows, n, k, chunk, chunks; unsigned long long flip; int pass;
};
struct State { unsigned long long prefix; int64_t want; };
// What is known before p.pass. All threads of the block take part.
TS_FN State state_of(const Params& p, int64_t row, bool store) {
  State s{0, p.k};
  if (p.pass == 0) {
    if constexpr (MEDIAN) {
      const int64_t nans = p.nans ? p.nans[row] : 0, others = p.n - nans;
      s.want = nans && !SKIP_NAN ? others + 1 : (others - 1) / 2 + 1;
    }
  } else {
    __shared__ unsigned sums[8];
    __shared__ State found;
    const int t = threadIdx.x;
    const int64_t last = (p.pass - 1) * p.rows + row;
    s = {p.prefix[last], p.want[last]};
    const unsigned c = p.counts[last * 256 + t];
    unsigned upto = sum_to_lane(c);
    if (t % 32 == 31) sums[t / 32] = upto;
    __syncthreads();
    for (int w = 0; w < t / 32; ++w) upto += sums[w];
    if ((int64_t)(upto - c) < s.want && s.want <= (int64_t)upto)
      found = {s.prefix << 8 | (unsigned)t, s.want - (int64_t)(upto - c)};
    __syncthreads();
    s = found;
  }
  if (store && threadIdx.x == 0) {
    p.prefix[p.pass * p.rows + row] = s.prefix;
    p.want[p.pass * p.rows + row] = s.want;
  }
  return s;
}
TS_FN B key_at(const Params& p, B x) { return (B)(key_of(x) ^ (B)p.flip); }
)";

constexpr char kCountText[] = R"(
extern "C" __global__ void __launch_bounds__(256) select_count(const __grid_constant__ Params p) {
  __shared__ unsigned counts[256];
  const int t = threadIdx.x;
  const int64_t row = blockIdx.x / p.chunks, number = blockIdx.x % p.chunks, begin = number * p.chunk;
  const int64_t end = begin + p.chunk < p.n ? begin + p.chunk : p.n;
  counts[t] = 0;
  const State s = state_of(p, row, number == 0);
  __syncthreads();
  const B* in = p.in + row * p.n;
  const int shift = 8 * ((int)sizeof(B) - 1 - p.pass);
  auto count = [&](B x) {
    const unsigned long long upper = (unsigned long long)key_at(p, x) >> shift;
    if (upper >> 8 == s.prefix) atomicAdd(&counts[upper & 255], 1u);
  };
  int64_t i = begin + t;
  for (; i + 3 * 256 < end; i += 4 * 256) {
    B x[4];
    #pragma unroll
    for (int u = 0; u < 4; ++u) x[u] = in[i + u * 256];
    #pragma unroll
    for (int u = 0; u < 4; ++u) count(x[u]);
  }
  for (; i < end; i += 256) count(in[i]);
  __syncthreads();
  if (counts[t]) atomicAdd(&p.counts[(p.pass * p.rows + row) * 256 + t], counts[t]);
})";
constexpr TextKernel kCount{"select_count",
                            kJoined<kKeyText, kWarpSumText, kStateText, kCountText>.data()};

constexpr char kEqualsText[] = R"(
extern "C" __global__ void __launch_bounds__(256) select_equals(const __grid_constant__ Params p) {
  __shared__ unsigned count;
  const int64_t row = blockIdx.x / p.chunks, number = blockIdx.x % p.chunks, begin = number * p.chunk;
  const int64_t end = begin + p.chunk < p.n ? begin + p.chunk : p.n;
  if (threadIdx.x == 0) count = 0;
  const State s = state_of(p, row, number == 0);
  __syncthreads();
  unsigned mine = 0;
  #pragma unroll 4
  for (int64_t i = begin + threadIdx.x; i < end; i += 256)
    mine += key_at(p, p.in[row * p.n + i]) == (B)s.prefix;
  if (mine) atomicAdd(&count, mine);
  __syncthreads();
  if (threadIdx.x == 0) p.equals[blockIdx.x] = count;
})";
constexpr TextKernel kEquals{"select_equals",
                             kJoined<kKeyText, kWarpSumText, kStateText, kEqualsText>.data()};

// KTH: only the element itself.
constexpr char kCollectText[] = R"(
extern "C" __global__ void __launch_bounds__(256) select_collect(const __grid_constant__ Params p) {
  __shared__ unsigned long long before;
  __shared__ unsigned sums[8];
  const int t = threadIdx.x;
  const int64_t row = blockIdx.x / p.chunks, number = blockIdx.x % p.chunks, begin = number * p.chunk;
  const int64_t end = begin + p.chunk < p.n ? begin + p.chunk : p.n;
  const B key = (B)p.prefix[(int64_t)sizeof(B) * p.rows + row];
  const int64_t want = p.want[(int64_t)sizeof(B) * p.rows + row];
  const unsigned* equals = p.equals + row * p.chunks;
  if (t == 0) before = 0;
  __syncthreads();
  unsigned long long part = 0;
  for (int64_t c = t; c < number; c += 256) part += equals[c];
  if (part) atomicAdd(&before, part);
  __syncthreads();
  int64_t rank = before;
  // Whether the equals of this chunk are among those wanted.
  const bool ties = equals[number] && rank < want && (!KTH || rank + equals[number] >= want);
  if (KTH && !ties) return;
  const B* in = p.in + row * p.n;
  for (int64_t base = begin; base < end; base += 256) {
    const int64_t i = base + t;
    B x = 0, mine = 0;
    if (i < end) mine = key_at(p, x = in[i]);
    if (!KTH && i < end && mine < key)
      p.places[row * p.k + atomicAdd(&p.filled[row], 1u)] = (unsigned)i;
    if (!ties) continue;
    const bool equal = i < end && mine == key;
    const unsigned lanes = __ballot_sync(0xffffffffu, equal);
    if (t % 32 == 0) sums[t / 32] = __popc(lanes);
    if (!__syncthreads_or(equal)) continue;
    int64_t mine_at = rank + __popc(lanes & ((1u << (t & 31)) - 1));
    for (int w = 0; w < 8; ++w) {
      if (w < t / 32) mine_at += sums[w];
      rank += sums[w];
    }
    if (KTH && equal && mine_at == want - 1) {
      p.values[row] = x;
      p.indices[row] = i;
    }
    if (!KTH && equal && mine_at < want) p.places[row * p.k + p.k - want + mine_at] = (unsigned)i;
    __syncthreads();
  }
})";
constexpr TextKernel kCollect{"select_collect",
                              kJoined<kKeyText, kWarpSumText, kStateText, kCollectText>.data()};

constexpr char kNansText[] = R"(
struct Params { const B* in; unsigned* nans; int64_t n, chunk, chunks; };
extern "C" __global__ void __launch_bounds__(256) count_nans(const __grid_constant__ Params p) {
  const int64_t row = blockIdx.x / p.chunks, begin = blockIdx.x % p.chunks * p.chunk;
  const int64_t end = begin + p.chunk < p.n ? begin + p.chunk : p.n;
  unsigned mine = 0;
  #pragma unroll 4
  for (int64_t i = begin + threadIdx.x; i < end; i += 256) mine += is_nan_bits(p.in[row * p.n + i]);
  if (mine) atomicAdd(&p.nans[row], mine);
})";
constexpr TextKernel kNans{"count_nans", kJoined<kKeyText, kNansText>.data()};

}  // namespace

Status select_rows(Device& d, CUstream stream, const SortRows& s, Select what) {
  const int64_t digits = static_cast<int64_t>(itemsize(s.dtype)), numel = s.rows * s.n;
  const bool kth = what != Select::kFirst,
             median = what == Select::kMedian || what == Select::kNanMedian;
  const int64_t wanted = int64_t{d.multiprocessors} * 8;
  const int64_t chunk =
      std::max<int64_t>(4096, ((numel + wanted - 1) / wanted + 1023) / 1024 * 1024);
  const int64_t chunks = (s.n + chunk - 1) / chunk, blocks = s.rows * chunks;
  const bool may_be_nan = median && is_floating(s.dtype);

  Parts parts;
  const size_t counts = parts.add(digits * s.rows * 256, 4), filled = parts.add(s.rows, 4);
  const size_t nans = parts.add(s.rows, 4), cleared = parts.bytes;
  const size_t prefix = parts.add((digits + 1) * s.rows, 8),
               want = parts.add((digits + 1) * s.rows, 8);
  const size_t equals = parts.add(blocks, 4), places = parts.add(kth ? 0 : s.rows * s.keep, 4);
  Scratch room(d, stream);
  TS_TRY(room.take(parts.bytes));
  TS_TRY(check(d, driver().cuMemsetD8Async(room.address(), 0, cleared, stream), "selecting"));
  if (may_be_nan) {
    struct {
      const void* in;
      void* nans;
      int64_t n, chunk, chunks;
    } p{s.in, part<void>(room, nans), s.n, chunk, chunks};
    TS_TRY(launch_text(d, stream, kNans, {TS_KEY_DEFS(s.dtype)}, {blocks, 256}, &p));
  }
  struct {
    const void* in;
    void *counts, *prefix, *want, *nans, *equals, *filled;
    uint32_t* places;
    void *values, *indices;
    int64_t rows, n, k, chunk, chunks;
    uint64_t flip;
    int pass;
  } p{s.in,
      part<void>(room, counts),
      part<void>(room, prefix),
      part<void>(room, want),
      may_be_nan ? part<void>(room, nans) : nullptr,
      part<void>(room, equals),
      part<void>(room, filled),
      part<uint32_t>(room, places),
      s.values,
      s.indices,
      s.rows,
      s.n,
      what == Select::kKth ? s.skip + 1 : s.keep,
      chunk,
      chunks,
      s.descending ? ~uint64_t{0} : 0,
      0};
  const Def is_median = def("MEDIAN", median ? 1 : 0);
  const Def skip_nan = def("SKIP_NAN", what == Select::kNanMedian ? 1 : 0);
  for (; p.pass < digits; ++p.pass)
    TS_TRY(launch_text(d, stream, kCount, {TS_KEY_DEFS(s.dtype), is_median, skip_nan},
                       {blocks, 256}, &p));
  TS_TRY(launch_text(d, stream, kEquals, {TS_KEY_DEFS(s.dtype), is_median, skip_nan}, {blocks, 256},
                     &p));
  TS_TRY(launch_text(d, stream, kCollect,
                     {TS_KEY_DEFS(s.dtype), is_median, skip_nan, def("KTH", kth ? 1 : 0)},
                     {blocks, 256}, &p));
  if (kth) return ok();
  SortRows found = s;
  found.n = s.keep;
  found.places = p.places;
  found.source_n = s.n;
  return sort_short_rows(d, stream, found);
}

}  // namespace tessera::cuda
