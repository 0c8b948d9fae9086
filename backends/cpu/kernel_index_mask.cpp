// Elements that are not zero: counted in blocks, then written by many threads at once.
#include <algorithm>

#include "convert_scalar.h"
#include "kernels.h"
#include "points.h"
#include "strided.h"
#include "thread_pool.h"

namespace tessera::cpu {

namespace {

constexpr int64_t kTile = 512;

using TestFn = void (*)(uint8_t* out, const void* in, int64_t n);

TestFn not_zero(DType t) {
  return with_type(t, []<class T>(std::type_identity<T>) -> TestFn {
    return [](uint8_t* out, const void* in, int64_t n) {
      for (int64_t k = 0; k < n; ++k) {
        if constexpr (std::is_same_v<T, bool>)
          out[k] = static_cast<const uint8_t*>(in)[k] != 0;
        else
          out[k] = cast<bool>(static_cast<const T*>(in)[k]);
      }
    };
  });
}

// Calls f(first, n, found) for tiles of a block; found[k] says whether element first + k counts.
template <class F>
void for_tiles(const TileReader& reader, TestFn test, int64_t begin, int64_t end, F&& f) {
  alignas(64) char room[kTile * 16];
  uint8_t found[kTile];
  for (int64_t i = begin; i < end; i += kTile) {
    const int64_t n = std::min(kTile, end - i);
    test(found, reader.tile(i, n, room), n);
    f(i, n, found);
  }
}

// Calls f(begin, end, start) for each block: its elements, and how many that count come before.
template <class F>
void for_blocks(int64_t numel, int64_t block, const KernelTensor& starts, F&& f) {
  const int64_t* start = static_cast<const int64_t*>(starts.data);
  const int64_t blocks = (numel + block - 1) / block;
  parallel_for(0, blocks, 2, [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; ++i)
      if (start[i + 1] > start[i]) f(i * block, std::min(numel, (i + 1) * block), start[i]);
  });
}

// The offsets of those that count, packed to the front.
int64_t keep(int64_t* at, const uint8_t* found, int64_t n) {
  int64_t kept = 0;
  for (int64_t k = 0; k < n; ++k) {
    at[kept] = at[k];
    kept += found[k];
  }
  return kept;
}

}  // namespace

// outputs: starts of the blocks and the sum of all; ints: elements of a block.
Status count_nonzero_blocks(const KernelArgs& args) {
  const KernelTensor& t = args.inputs[0];
  const int64_t block = args.ints[0], blocks = args.outputs[0].numel - 1;
  int64_t* starts = static_cast<int64_t*>(args.outputs[0].data);
  const TileReader reader(t);
  const TestFn test = not_zero(t.dtype);
  parallel_for(0, blocks, 2, [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; ++i) {
      int64_t count = 0;
      for_tiles(reader, test, i * block, std::min(t.numel, (i + 1) * block),
                [&](int64_t, int64_t n, const uint8_t* found) {
                  for (int64_t k = 0; k < n; ++k) count += found[k];
                });
      starts[i + 1] = count;
    }
  });
  starts[0] = 0;
  for (int64_t i = 0; i < blocks; ++i) starts[i + 1] += starts[i];
  return {};
}

// outputs: a row of coordinates for each, or with one dimension the number of each in row-major
// order.
Status nonzero(const KernelArgs& args) {
  const KernelTensor &t = args.inputs[0], &out = args.outputs[0];
  int64_t* to = static_cast<int64_t*>(out.data);
  const TileReader reader(t);
  const TestFn test = not_zero(t.dtype);
  const bool flat = out.ndim == 1 || t.ndim == 1;
  for_blocks(t.numel, args.ints[0], args.inputs[1], [&](int64_t b, int64_t e, int64_t start) {
    int64_t* next = to + start * (flat ? 1 : t.ndim);
    for_tiles(reader, test, b, e, [&](int64_t first, int64_t n, const uint8_t* found) {
      if (flat) {
        for (int64_t k = 0; k < n; ++k)
          if (found[k]) *next++ = first + k;
        return;
      }
      // Along a row only the last coordinate moves.
      const int last = t.ndim - 1;
      int64_t coords[kMaxDims];
      for (int64_t k = 0; k < n;) {
        unravel(first + k, t.ndim, t.sizes, coords);
        const int64_t m = std::min(n - k, t.sizes[last] - coords[last]);
        for (int64_t j = 0; j < m; ++j) {
          if (!found[k + j]) continue;
          for (int d = 0; d < last; ++d) next[d] = coords[d];
          next[last] = coords[last] + j;
          next += t.ndim;
        }
        k += m;
      }
    });
  });
  return {};
}

// inputs: a tensor and a mask of one shape, starts.
Status masked_select(const KernelArgs& args) {
  const KernelTensor &t = args.inputs[0], &mask = args.inputs[1];
  const TileReader reader(mask);
  const TestFn test = not_zero(mask.dtype);
  const OffsetWalk walk(t.ndim, t.sizes, t.strides);
  const ReadPointsFn points = read_points(t.dtype);
  const int64_t item = static_cast<int64_t>(itemsize(t.dtype));
  for_blocks(t.numel, args.ints[0], args.inputs[2], [&](int64_t b, int64_t e, int64_t start) {
    int64_t at[kTile];
    char* to = static_cast<char*>(args.outputs[0].data) + start * item;
    for_tiles(reader, test, b, e, [&](int64_t first, int64_t n, const uint8_t* found) {
      walk.offsets(first, n, at);
      const int64_t kept = keep(at, found, n);
      points(to, t.data, at, kept);
      to += kept * item;
    });
  });
  return {};
}

// inputs: a mask of the output's shape, a dense source, starts.
Status masked_scatter(const KernelArgs& args) {
  const KernelTensor &mask = args.inputs[0], &source = args.inputs[1], &t = args.outputs[0];
  const TileReader reader(mask);
  const TestFn test = not_zero(mask.dtype);
  const OffsetWalk walk(t.ndim, t.sizes, t.strides);
  const WritePointsFn points = write_points(Combine::kAssign, t.dtype);
  const int64_t item = static_cast<int64_t>(itemsize(t.dtype));
  for_blocks(t.numel, args.ints[0], args.inputs[2], [&](int64_t b, int64_t e, int64_t start) {
    int64_t at[kTile];
    const char* from = static_cast<const char*>(source.data) + start * item;
    for_tiles(reader, test, b, e, [&](int64_t first, int64_t n, const uint8_t* found) {
      walk.offsets(first, n, at);
      const int64_t kept = keep(at, found, n);
      points(t.data, at, from, kept);
      from += kept * item;
    });
  });
  return {};
}

TS_KERNEL("count_nonzero_blocks", count_nonzero_blocks)
TS_KERNEL("nonzero", nonzero)
TS_KERNEL("masked_select", masked_select)
TS_KERNEL("masked_scatter", masked_scatter)

}  // namespace tessera::cpu
