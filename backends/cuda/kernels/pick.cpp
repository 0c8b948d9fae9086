// kthvalue, median, nanmedian and mode: one element of each line, selected, or found in the sorted
// line.
#include "select.h"

namespace tessera::cuda {
namespace {

// The lower one in the middle, in sorted rows. A NaN is the median of its line, unless they do not
// count; they are the last, so how many there are is found by halves.
constexpr char kMedianText[] = R"(
struct Params { const B* sorted; const int64_t* places; B* values; int64_t* indices; int64_t rows, n; };
extern "C" __global__ void __launch_bounds__(256) sorted_median(const __grid_constant__ Params p) {
  for (int64_t row = thread(); row < p.rows; row += threads()) {
    const B* x = p.sorted + row * p.n;
    int64_t low = 0, high = p.n;
    while (low < high) {
      const int64_t middle = low + (high - low) / 2;
      if (is_nan_bits(x[middle])) high = middle;
      else low = middle + 1;
    }
    const bool nan = low == 0 || (low < p.n && !SKIP_NAN);
    const int64_t at = row * p.n + (nan ? low : (low - 1) / 2);
    p.values[row] = p.sorted[at];
    p.indices[row] = p.places[at];
  }
})";
constexpr TextKernel kMedian{"sorted_median", kJoined<kKeyText, kMedianText>.data()};

// The longest run of equals in each sorted row, the first of several: its length in the upper half,
// its last place turned over in the lower.
constexpr char kLongestText[] = R"(
struct Params { const B* sorted; unsigned long long* best; int64_t n, chunk, chunks; };
extern "C" __global__ void __launch_bounds__(256) longest_run(const __grid_constant__ Params p) {
  const int64_t row = blockIdx.x / p.chunks, begin = blockIdx.x % p.chunks * p.chunk;
  const int64_t end = begin + p.chunk < p.n ? begin + p.chunk : p.n;
  const B* x = p.sorted + row * p.n;
  int64_t longest = 0, last = 0;
  for (int64_t i = begin + threadIdx.x; i < end; i += 256) {
    const B key = key_of(x[i]);
    if (i + 1 < p.n && key_of(x[i + 1]) == key) continue;
    if (i < longest || key_of(x[i - longest]) != key) continue;  // not longer
    int64_t low = 0, high = i - longest;  // where the run begins
    while (low < high) {
      const int64_t middle = low + (high - low) / 2;
      if (key_of(x[middle]) == key) high = middle;
      else low = middle + 1;
    }
    longest = i + 1 - low;
    last = i;
  }
  unsigned long long best =
      longest ? (unsigned long long)(longest - 1) << 32 | (unsigned)~(unsigned)last : 0;
  #pragma unroll
  for (int by = 16; by > 0; by /= 2) {
    const unsigned long long other = __shfl_xor_sync(0xffffffffu, best, by);
    best = other > best ? other : best;
  }
  if ((threadIdx.x & 31) == 0 && best) atomicMax(&p.best[row], best);
})";
constexpr TextKernel kLongest{"longest_run", kJoined<kKeyText, kLongestText>.data()};

constexpr TextKernel kMode{"take_mode", R"(
struct Params {
  const B* sorted; const int64_t* places; const unsigned long long* best; B* values;
  int64_t* indices; int64_t rows, n;
};
extern "C" __global__ void __launch_bounds__(256) take_mode(const __grid_constant__ Params p) {
  for (int64_t row = thread(); row < p.rows; row += threads()) {
    const int64_t at = row * p.n + (unsigned)~(unsigned)p.best[row];
    p.values[row] = p.sorted[at];
    p.indices[row] = p.places[at];
  }
})"};

// The lines in order, in memory of their own.
struct SortedLines {
  DenseLines in;
  Scratch room;
  SortRows rows{};

  SortedLines(Device& d, CUstream stream) : in(d, stream), room(d, stream) {}
  Status sort(Device& d, CUstream stream, const KernelArgs& args, const char* name) {
    const KernelTensor& self = args.inputs[0];
    const int64_t dim = args.ints[0];
    TS_TRY(check_sortable(self, self.ndim ? self.sizes[dim] : 1, name));
    TS_TRY(in.take(self, dim));
    Parts parts;
    parts.add(self.numel, itemsize(self.dtype));
    const size_t places = parts.add(self.numel, 8);
    TS_TRY(room.take(parts.bytes));
    rows = {self.dtype,
            in.rows(),
            in.n(),
            false,
            in.data(),
            part<void>(room, 0),
            part<int64_t>(room, places),
            in.n()};
    return sort_rows(d, stream, rows);
  }
};

// ints: dimension, k from 1.
Status run_kthvalue(Device& d, CUstream stream, const KernelArgs& args) {
  const KernelTensor& self = args.inputs[0];
  const int64_t dim = args.ints[0];
  if (args.outputs[0].numel == 0) return ok();
  TS_TRY(check_sortable(self, self.ndim ? self.sizes[dim] : 1, "kthvalue()"));
  DenseLines in(d, stream);
  TS_TRY(in.take(self, dim));
  const SortRows s{self.dtype,
                   in.rows(),
                   in.n(),
                   false,
                   in.data(),
                   args.outputs[0].data,
                   static_cast<int64_t*>(args.outputs[1].data),
                   1,
                   args.ints[1] - 1};
  return s.n > kShortRow ? select_rows(d, stream, s, Select::kKth) : sort_rows(d, stream, s);
}

// ints: dimension, do NaNs not count?
Status run_median(Device& d, CUstream stream, const KernelArgs& args) {
  if (args.outputs[0].numel == 0) return ok();
  const KernelTensor& self = args.inputs[0];
  const bool skip_nan = args.ints[1] != 0;
  if (self.ndim && self.sizes[args.ints[0]] > kShortRow) {
    TS_TRY(check_sortable(self, self.sizes[args.ints[0]], "median()"));
    DenseLines in(d, stream);
    TS_TRY(in.take(self, args.ints[0]));
    return select_rows(d, stream,
                       {self.dtype, in.rows(), in.n(), false, in.data(), args.outputs[0].data,
                        static_cast<int64_t*>(args.outputs[1].data), 1},
                       skip_nan ? Select::kNanMedian : Select::kMedian);
  }
  SortedLines sorted(d, stream);
  TS_TRY(sorted.sort(d, stream, args, "median()"));
  const SortRows& s = sorted.rows;
  struct {
    const void *sorted, *places;
    void *values, *indices;
    int64_t rows, n;
  } p{s.values, s.indices, args.outputs[0].data, args.outputs[1].data, s.rows, s.n};
  return launch_text(d, stream, kMedian, {TS_KEY_DEFS(s.dtype), def("SKIP_NAN", skip_nan ? 1 : 0)},
                     {fill_blocks(d, s.rows), 256}, &p);
}

// ints: dimension.
Status run_mode(Device& d, CUstream stream, const KernelArgs& args) {
  if (args.outputs[0].numel == 0) return ok();
  SortedLines sorted(d, stream);
  TS_TRY(sorted.sort(d, stream, args, "mode()"));
  const SortRows& s = sorted.rows;
  Scratch best(d, stream);
  const size_t bytes = static_cast<size_t>(s.rows) * 8;
  TS_TRY(best.take(bytes));
  TS_TRY(check(d, driver().cuMemsetD8Async(best.address(), 0, bytes, stream), "mode"));
  struct {
    const void* sorted;
    void* best;
    int64_t n, chunk, chunks;
  } p{s.values, part<void>(best, 0), s.n, std::max<int64_t>(4096, (s.n + 1023) / 1024), 0};
  p.chunks = (s.n + p.chunk - 1) / p.chunk;
  TS_TRY(launch_text(d, stream, kLongest, {TS_KEY_DEFS(s.dtype)}, {s.rows * p.chunks, 256}, &p));
  struct {
    const void *sorted, *places, *best;
    void *values, *indices;
    int64_t rows, n;
  } q{s.values, s.indices, part<void>(best, 0), args.outputs[0].data, args.outputs[1].data,
      s.rows,   s.n};
  return launch_text(d, stream, kMode, {def_bytes("B", static_cast<int64_t>(itemsize(s.dtype)))},
                     {fill_blocks(d, s.rows), 256}, &q);
}

TS_CUDA_KERNEL("kthvalue", run_kthvalue)
TS_CUDA_KERNEL("median", run_median)
TS_CUDA_KERNEL("mode", run_mode)

}  // namespace
}  // namespace tessera::cuda
