// Long rows, sorted by digits of eight bits from the last to the first, in one pass over memory
// each.
//
// Note [A pass over tiles]
// A row is cut into tiles. What a tile must know is how many elements of each digit are in the
// tiles before it, and it learns that while they are still at work: each tile first publishes the
// number of its own elements (a part), then, having added up what is published before it, the
// number up to and including its own (a sum). Looking back ends at the first sum. Tiles are
// numbered as blocks begin (tickets), so that whoever is waited for has begun. A word carries its
// number and what kind it is in its upper bits, hence no fence is needed. The words of the next
// pass are cleared by this one. A digit that all elements of a row have in common takes no pass:
// `plan` has a bit for each digit that counts.
#include "sorting.h"

namespace tessera::cuda {
namespace {

constexpr int kThreads = 512;
constexpr int64_t kCountThreads = 512;

// How often each digit occurs in each row, for all passes at once.
constexpr char kCountText[] = R"(
struct Params {
  const B* in; unsigned* counts; unsigned* words; int64_t num_words, n, chunk, chunks;
  unsigned long long flip;
};
extern "C" __global__ void __launch_bounds__(512) sort_count(const __grid_constant__ Params p) {
  constexpr int digits = sizeof(B);
  __shared__ unsigned counts[digits * 256];
  for (int i = threadIdx.x; i < digits * 256; i += 512) counts[i] = 0;
  for (int64_t i = thread(); i < p.num_words; i += threads()) p.words[i] = 0;
  __syncthreads();
  const int64_t row = blockIdx.x / p.chunks, begin = blockIdx.x % p.chunks * p.chunk;
  const int64_t end = begin + p.chunk < p.n ? begin + p.chunk : p.n;
  const B* in = p.in + row * p.n;
  auto count = [&](B x) {
    const B key = key_of(x) ^ (B)p.flip;
    #pragma unroll
    for (int d = 0; d < digits; ++d) atomicAdd(&counts[d * 256 + (unsigned)(key >> 8 * d & 255)], 1u);
  };
  int64_t i = begin + threadIdx.x;
  for (; i + 3 * 512 < end; i += 4 * 512) {
    B x[4];
    #pragma unroll
    for (int u = 0; u < 4; ++u) x[u] = in[i + u * 512];
    #pragma unroll
    for (int u = 0; u < 4; ++u) count(x[u]);
  }
  for (; i < end; i += 512) count(in[i]);
  __syncthreads();
  for (int k = threadIdx.x; k < digits * 256; k += 512)
    if (counts[k]) atomicAdd(&p.counts[row * (digits * 256) + k], counts[k]);
})";
constexpr TextKernel kCount{"sort_count", kJoined<kKeyText, kCountText>.data()};

// Turns the counts into places where the digits begin, and finds the digits that count.
constexpr char kPlanText[] = R"(
struct Params { unsigned* counts; unsigned* plan; int64_t n; };
extern "C" __global__ void __launch_bounds__(256) sort_plan(const __grid_constant__ Params p) {
  __shared__ unsigned sums[8];
  const int t = threadIdx.x;
  unsigned* counts = p.counts + (int64_t)blockIdx.x * (DIGITS * 256);
  unsigned plan = 0;
  for (int d = 0; d < DIGITS; ++d) {
    const unsigned c = counts[d * 256 + t], upto = sum_to_lane(c);
    if ((t & 31) == 31) sums[t / 32] = upto;
    const bool common = __syncthreads_or(c == (unsigned)p.n);
    unsigned before = 0;
    for (int w = 0; w < t / 32; ++w) before += sums[w];
    counts[d * 256 + t] = before + upto - c;
    plan |= (common ? 0u : 1u) << d;
    __syncthreads();
  }
  // Somebody has to bring the elements to where they are wanted.
  if (t == 0) p.plan[blockIdx.x] = plan ? plan : 1u << (DIGITS - 1);
})";
constexpr TextKernel kPlan{"sort_plan", kJoined<kWarpSumText, kPlanText>.data()};

constexpr char kPassText[] = R"(
typedef std::conditional_t<WIDE, unsigned long long, unsigned> Word;
struct Params {
  const B* in; B* keys[2]; unsigned* places[2]; B* values; int64_t* indices;
  const unsigned* starts; const unsigned* plan; Word* words[2]; unsigned* ticket;
  int64_t n, tiles, keep; unsigned long long flip; unsigned skip; int pass;
};
enum { WARPS = THREADS / 32, TILE = THREADS * ITEMS, KIND_AT = 8 * sizeof(Word) - 2 };
TS_FN Word look(const Word* at) { return *(const volatile Word*)at; }
TS_FN void publish(Word* at, unsigned n, int kind) {
  *(volatile Word*)at = (Word)kind << KIND_AT | (Word)n;
}
extern "C" __global__ void __launch_bounds__(THREADS, 2) sort_pass(const __grid_constant__ Params p) {
  extern __shared__ uint4 room[];
  B* tile_keys = (B*)room;
  unsigned* tile_places = (unsigned*)(tile_keys + TILE);
  __shared__ unsigned counts[WARPS][256], bases[256], sums[8], ticket;
  const int t = threadIdx.x, lane = t & 31, warp = t / 32;
  if (t == 0) ticket = atomicAdd(p.ticket, 1u);
  #pragma unroll
  for (int w = 0; w < WARPS; ++w)
    if (t < 256) counts[w][t] = 0;
  __syncthreads();
  const int64_t number = ticket, row = number / p.tiles, tile = number - row * p.tiles;
  if (t < 256) p.words[p.pass + 1 & 1][number * 256 + t] = 0;
  const unsigned plan = p.plan[row];
  if (!(plan >> p.pass & 1)) return;
  const int before = __popc(plan & ((1u << p.pass) - 1));
  const bool last = plan >> p.pass == 1;
  const int shift = 8 * p.pass;
  const B flip = (B)p.flip;
  auto digit_of = [&](B x) { return (unsigned)((B)(key_of(x) ^ flip) >> shift & 255); };

  // A warp has its elements side by side, so that its lanes times its items are in order.
  const int64_t begin = row * p.n + tile * TILE;
  const int valid = p.n - tile * TILE < TILE ? (int)(p.n - tile * TILE) : TILE;
  const int mine = warp * (32 * ITEMS) + lane;
  const B* from = (before ? p.keys[before - 1 & 1] : p.in) + begin;
  B keys[ITEMS];
  #pragma unroll
  for (int i = 0; i < ITEMS; ++i)
    keys[i] = mine + 32 * i < valid ? from[mine + 32 * i] : (B)0;
  // What is missing in the last tile counts as the last elements of the last digit.
  auto digit = [&](int i) { return mine + 32 * i < valid ? digit_of(keys[i]) : 255u; };
  #pragma unroll
  for (int i = 0; i < ITEMS; ++i) atomicAdd(&counts[warp][digit(i)], 1u);
  __syncthreads();

  // A thread a digit: how many there are in the tile, and where each warp's begin.
  Word* word = p.words[p.pass & 1] + number * 256 + t;
  unsigned total = 0, upto = 0, start = 0;
  if (t < 256) {
    #pragma unroll
    for (int w = 0; w < WARPS; ++w) total += counts[w][t];
    if (tile == 0) {
      start = p.starts[(row * sizeof(B) + p.pass) * 256 + t];
      publish(word, start + total, 2);
    } else {
      publish(word, total, 1);
    }
    upto = sum_to_lane(total);
    if (lane == 31) sums[warp] = upto;
  }
  __syncthreads();
  unsigned in_tile = 0;
  if (t < 256) {
    for (int w = 0; w < warp; ++w) in_tile += sums[w];
    in_tile += upto - total;
    unsigned at = in_tile;
    #pragma unroll
    for (int w = 0; w < WARPS; ++w) {
      const unsigned c = counts[w][t];
      counts[w][t] = at;
      at += c;
    }
  }
  __syncthreads();

  unsigned ranks[ITEMS];
  const unsigned lower = (1u << lane) - 1;
  #pragma unroll
  for (int i = 0; i < ITEMS; ++i) {
    const unsigned d = digit(i), same = lanes_with(d), ahead = __popc(same & lower);
    const unsigned first = counts[warp][d];
    __syncwarp();
    if (ahead == 0) counts[warp][d] = first + __popc(same);
    __syncwarp();
    ranks[i] = first + ahead;
    tile_keys[ranks[i]] = keys[i];
  }
  unsigned places[ITEMS];
  const unsigned* places_from = p.places[before - 1 & 1] + begin;
  #pragma unroll
  for (int i = 0; i < ITEMS; ++i) {
    const int at = mine + 32 * i;
    places[i] = before == 0 ? (unsigned)(tile * TILE) + at : at < valid ? places_from[at] : 0u;
  }

  if (t < 256) {
    if (tile > 0) {
      const Word* back = word - 256;
      int64_t left = tile;
      for (bool found = false; !found;) {
        Word seen[4];
        #pragma unroll
        for (int u = 0; u < 4; ++u) seen[u] = u < left ? look(back - u * 256) : (Word)0;
        #pragma unroll
        for (int u = 0; u < 4; ++u) {
          const int kind = (int)(seen[u] >> KIND_AT);
          if (found || kind == 0) break;
          start += (unsigned)(seen[u] & ~((Word)3 << KIND_AT));
          found = kind == 2;
          back -= 256;
          --left;
        }
      }
      publish(word, start + total, 2);
    }
    bases[t] = start - in_tile;
  }
  #pragma unroll
  for (int i = 0; i < ITEMS; ++i) tile_places[ranks[i]] = places[i];
  __syncthreads();

  B* to = p.keys[before & 1] + row * p.n;
  unsigned* places_to = p.places[before & 1] + row * p.n;
  #pragma unroll
  for (int i = 0; i < ITEMS; ++i) {
    const int k = t + THREADS * i;
    if (k >= valid) continue;
    const B key = tile_keys[k];
    const unsigned at = bases[digit_of(key)] + k;
    if (!last) {
      to[at] = key;
      places_to[at] = tile_places[k];
    } else if (at - p.skip < p.keep) {
      if (p.values) p.values[row * p.keep + (at - p.skip)] = key;
      if (p.indices) p.indices[row * p.keep + (at - p.skip)] = tile_places[k];
    }
  }
})";
constexpr TextKernel kPass{"sort_pass",
                           kJoined<kKeyText, kWarpSumText, kLanesText, kPassText>.data()};

}  // namespace

Status sort_long_rows(Device& d, CUstream stream, const SortRows& s) {
  const int64_t item = static_cast<int64_t>(itemsize(s.dtype)), digits = item;
  // Two blocks a multiprocessor where it has 164 KiB or more; Turing's 64 KiB hold a smaller one.
  // Rows of one tile have one of about their size.
  const bool small = d.max_shared < 96 * 1024;
  const int64_t most = item == 8 ? (small ? 7 : 10) : small ? 11 : 16;
  const int64_t items = s.n <= kThreads * 8 ? std::min<int64_t>(8, most) : most;
  const int64_t tile = kThreads * items;
  const int64_t tiles = (s.n + tile - 1) / tile, all_tiles = s.rows * tiles, numel = s.rows * s.n;
  if (all_tiles >= int64_t{1} << 31)
    return fail(Code::kUnsupported, "sorting so many rows is not implemented for CUDA");
  const bool wide = s.n >= int64_t{1} << 30;
  const size_t word = wide ? 8 : 4;
  const uint64_t flip = s.descending ? ~uint64_t{0} : 0;

  Parts parts;
  const size_t tickets = parts.add(digits, 4), counts = parts.add(s.rows * digits * 256, 4);
  const size_t cleared = parts.bytes;
  const size_t plan = parts.add(s.rows, 4);
  size_t words[2], keys[2] = {}, places[2] = {};
  for (size_t& w : words) w = parts.add(all_tiles * 256, word);
  // One digit is sorted from where the elements are to where they go.
  for (int i = 0; digits > 1 && i < 2; ++i) {
    keys[i] = parts.add(numel, static_cast<size_t>(item));
    places[i] = parts.add(numel, 4);
  }
  Scratch room(d, stream);
  TS_TRY(room.take(parts.bytes));
  TS_TRY(check(d, driver().cuMemsetD8Async(room.address(), 0, cleared, stream), "sorting"));

  // As many blocks as fill the device, and rows of some length each.
  const int64_t wanted = int64_t{d.multiprocessors} * 4;
  int64_t chunk = std::max<int64_t>(16 * kCountThreads, (numel + wanted - 1) / wanted);
  chunk = (chunk + kCountThreads * 4 - 1) / (kCountThreads * 4) * (kCountThreads * 4);
  const int64_t chunks = (s.n + chunk - 1) / chunk;
  struct {
    const void* in;
    void *counts, *words;
    int64_t num_words, n, chunk, chunks;
    uint64_t flip;
  } count{s.in,
          part<void>(room, counts),
          part<void>(room, words[0]),
          all_tiles * 256 * static_cast<int64_t>(word / 4),
          s.n,
          chunk,
          chunks,
          flip};
  TS_TRY(launch_text(d, stream, kCount, {TS_KEY_DEFS(s.dtype)}, {s.rows * chunks, kCountThreads},
                     &count));
  struct {
    void *counts, *plan;
    int64_t n;
  } planned{part<void>(room, counts), part<void>(room, plan), s.n};
  TS_TRY(launch_text(d, stream, kPlan, {def("DIGITS", digits)}, {s.rows, 256}, &planned));

  struct {
    const void* in;
    void *keys[2], *places[2], *values, *indices, *starts, *plan, *words[2], *ticket;
    int64_t n, tiles, keep;
    uint64_t flip;
    uint32_t skip;
    int pass;
  } p{s.in,
      {part<void>(room, keys[0]), part<void>(room, keys[1])},
      {part<void>(room, places[0]), part<void>(room, places[1])},
      s.values,
      s.indices,
      part<void>(room, counts),
      part<void>(room, plan),
      {part<void>(room, words[0]), part<void>(room, words[1])},
      nullptr,
      s.n,
      tiles,
      s.keep,
      flip,
      static_cast<uint32_t>(s.skip),
      0};
  const Kernel* kernel = nullptr;
  TS_TRY(find_text_kernel(d, kPass,
                          {TS_KEY_DEFS(s.dtype), def("WIDE", wide ? 1 : 0),
                           def("THREADS", kThreads), def("ITEMS", items)},
                          &kernel));
  // Beside it the kernel has shared memory of its own: together they may be more than a block has
  // without asking.
  const int shared = static_cast<int>(tile * (item + 4));
  TS_TRY(check(d,
               driver().cuFuncSetAttribute(kernel->function,
                                           CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, shared),
               "sorting"));
  for (int pass = 0; pass < digits; ++pass) {
    p.pass = pass;
    p.ticket = part<uint32_t>(room, tickets) + pass;
    TS_TRY(launch(d, stream, *kernel, {all_tiles, kThreads, 1, 1, shared}, &p, "sorting"));
  }
  return ok();
}

}  // namespace tessera::cuda
