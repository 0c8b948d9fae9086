#include "radix_sort.h"

#include <algorithm>
#include <cstring>

#include "thread_pool.h"

namespace tessera::cpu {

namespace {

constexpr int64_t kShort = 96;  // below it, comparing is faster than counting
constexpr int64_t kBuckets = 256;
constexpr int kMaxParts = 16;

template <class P>
TS_INLINE unsigned digit(P x, int byte) {
  return static_cast<unsigned>(x >> (kHalfBits<P> + 8 * byte)) & 0xff;
}

// All bytes of the key counted in one pass over the data.
template <class P>
void count_all(const P* data, int64_t n, int bytes, int64_t (*counts)[kBuckets]) {
  std::memset(counts, 0, static_cast<size_t>(bytes) * sizeof *counts);
  for (int64_t i = 0; i < n; ++i)
    for (int b = 0; b < bytes; ++b) ++counts[b][digit(data[i], b)];
}

template <class P>
void scatter(const P* from, P* to, int64_t n, int byte, int64_t* at) {
  for (int64_t i = 0; i < n; ++i) to[at[digit(from[i], byte)]++] = from[i];
}

template <class P>
P* sort_serial(P* data, P* spare, int64_t n, int bytes) {
  int64_t counts[sizeof(HalfOf<P>)][kBuckets];
  count_all(data, n, bytes, counts);
  for (int b = 0; b < bytes; ++b) {
    if (counts[b][digit(data[0], b)] == n) continue;  // the byte is the same everywhere
    int64_t sum = 0;
    for (int64_t& c : counts[b]) {
      const int64_t here = c;
      c = sum;
      sum += here;
    }
    scatter(data, spare, n, b, counts[b]);
    std::swap(data, spare);
  }
  return data;
}

// Each thread counts and scatters a part; parts are in order, so the sort stays stable.
template <class P>
P* sort_parallel(P* data, P* spare, int64_t n, int bytes) {
  const int parts = std::min(num_threads(), kMaxParts);
  const int64_t part = (n + parts - 1) / parts;
  int64_t counts[kMaxParts][kBuckets];
  for (int b = 0; b < bytes; ++b) {
    parallel_for(0, parts, 1, [&](int64_t first, int64_t last) {
      for (int64_t p = first; p < last; ++p) {
        std::memset(counts[p], 0, sizeof counts[p]);
        for (int64_t i = p * part, end = std::min(n, i + part); i < end; ++i)
          ++counts[p][digit(data[i], b)];
      }
    });
    int64_t sum = 0, most = 0;
    for (int64_t v = 0; v < kBuckets; ++v) {
      const int64_t before = sum;
      for (int p = 0; p < parts; ++p) {
        const int64_t here = counts[p][v];
        counts[p][v] = sum;
        sum += here;
      }
      most = std::max(most, sum - before);
    }
    if (most == n) continue;
    parallel_for(0, parts, 1, [&](int64_t first, int64_t last) {
      for (int64_t p = first; p < last; ++p) {
        const int64_t begin = p * part;
        if (begin < n) scatter(data + begin, spare, std::min(part, n - begin), b, counts[p]);
      }
    });
    std::swap(data, spare);
  }
  return data;
}

}  // namespace

template <class P>
P* sort_packed(P* data, P* spare, int64_t n, int key_bytes, bool parallel) noexcept {
  if (n <= kShort) {
    std::sort(data, data + n);
    return data;
  }
  return parallel ? sort_parallel(data, spare, n, key_bytes)
                  : sort_serial(data, spare, n, key_bytes);
}

template uint64_t* sort_packed(uint64_t*, uint64_t*, int64_t, int, bool) noexcept;
template uint128* sort_packed(uint128*, uint128*, int64_t, int, bool) noexcept;

}  // namespace tessera::cpu
