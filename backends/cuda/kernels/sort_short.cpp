// Short rows, several a block: a bitonic network in shared memory, on keys with their places.
#include "sorting.h"

namespace tessera::cuda {
namespace {

constexpr int kThreads = 256;

// A block holds p.elements (a power of two) in rows of p.padded (another). What fills a row up is
// greater than everything in it.
constexpr char kText[] = R"(
struct Params {
  const B* in; const unsigned* places; B* values; int64_t* indices; int64_t source_n;
  int64_t rows, n, keep, skip; unsigned long long flip; int padded, log_padded, elements;
};
struct Pair { unsigned long long key; unsigned place; };
TS_FN unsigned long long packed(unsigned long long key, unsigned place, unsigned long long*) {
  return key << 32 | place;
}
TS_FN Pair packed(unsigned long long key, unsigned place, Pair*) { return {key, place}; }
TS_FN unsigned place_of(unsigned long long p) { return (unsigned)p; }
TS_FN unsigned place_of(const Pair& p) { return p.place; }
TS_FN bool greater(unsigned long long a, unsigned long long b) { return a > b; }
TS_FN bool greater(const Pair& a, const Pair& b) {
  return a.key > b.key || (a.key == b.key && a.place > b.place);
}
typedef std::conditional_t<sizeof(B) == 8, Pair, unsigned long long> Packed;

extern "C" __global__ void __launch_bounds__(256) sort_short(const __grid_constant__ Params p) {
  extern __shared__ uint4 room[];
  Packed* s = (Packed*)room;
  const int mask = p.padded - 1;
  const int64_t first_row = (int64_t)blockIdx.x * (p.elements >> p.log_padded);
  for (int e = threadIdx.x; e < p.elements; e += 256) {
    const int64_t row = first_row + (e >> p.log_padded);
    const int at = e & mask;
    unsigned long long key = ~0ull;
    unsigned place = p.places ? ~0u : (unsigned)at;
    if (row < p.rows && at < p.n) {
      if (p.places) place = p.places[row * p.n + at];
      key = (B)(key_of(p.in[row * p.source_n + place]) ^ (B)p.flip);
    }
    s[e] = packed(sizeof(B) == 8 ? key : key & 0xffffffffull, place, (Packed*)nullptr);
  }
  __syncthreads();
  for (int size = 2; size <= p.padded; size <<= 1) {
    for (int stride = size >> 1; stride > 0; stride >>= 1) {
      for (int t = threadIdx.x; t < p.elements / 2; t += 256) {
        const int i = 2 * t - (t & (stride - 1)), j = i + stride;
        const Packed a = s[i], b = s[j];
        const bool ascending = (i & mask & size) == 0;
        if (greater(a, b) == ascending) {
          s[i] = b;
          s[j] = a;
        }
      }
      // A warp keeps to its own 64 elements while strides are up to 32.
      if (stride > 32 || (stride == 1 && size > 32)) __syncthreads();
      else __syncwarp();
    }
  }
  __syncthreads();
  for (int e = threadIdx.x; e < p.elements; e += 256) {
    const int64_t row = first_row + (e >> p.log_padded);
    const int64_t at = (e & mask) - p.skip;
    if (row >= p.rows || at < 0 || at >= p.keep) continue;
    const unsigned place = place_of(s[e]);
    if (p.values) p.values[row * p.keep + at] = p.in[row * p.source_n + place];
    if (p.indices) p.indices[row * p.keep + at] = place;
  }
})";
constexpr TextKernel kSortShort{"sort_short", kJoined<kKeyText, kText>.data()};

}  // namespace

Status sort_short_rows(Device& d, CUstream stream, const SortRows& s) {
  struct {
    const void *in, *places;
    void* values;
    int64_t *indices, source_n;
    int64_t rows, n, keep, skip;
    uint64_t flip;
    int padded, log_padded, elements;
  } p{s.in,   s.places, s.values, s.indices, s.places ? s.source_n : s.n,
      s.rows, s.n,      s.keep,   s.skip,    s.descending ? ~uint64_t{0} : 0,
      2,      1,        0};
  while (p.padded < s.n) {
    p.padded *= 2;
    ++p.log_padded;
  }
  p.elements = std::max(p.padded, 2 * kThreads);
  const int64_t per_block = p.elements / p.padded, blocks = (s.rows + per_block - 1) / per_block;
  const int bytes = p.elements * (itemsize(s.dtype) == 8 ? 16 : 8);
  return launch_text(d, stream, kSortShort, {TS_KEY_DEFS(s.dtype)}, {blocks, kThreads, 1, 1, bytes},
                     &p);
}

}  // namespace tessera::cuda
