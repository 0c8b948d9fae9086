// Different values of a tensor, or different rows of a matrix: an order in which equals are
// neighbours, then groups of neighbours numbered by a scan.
#include "sorting.h"

namespace tessera::cuda {
namespace {

constexpr int64_t kChunk = 2048;

// Whether element or row i of the order begins a group, and how many do in each chunk. A NaN is a
// group of its own.
constexpr char kHeadsText[] = R"(
struct Params { const B* x; const int64_t* order; int64_t n, m; unsigned char* heads; int64_t* sums; };
TS_FN bool same(const B* a, const B* b, int64_t m) {
  for (int64_t j = 0; j < m; ++j)
    if (key_of(a[j]) != key_of(b[j]) || is_nan_bits(a[j])) return false;
  return true;
}
extern "C" __global__ void __launch_bounds__(256) unique_heads(const __grid_constant__ Params p) {
  __shared__ int count;
  if (threadIdx.x == 0) count = 0;
  __syncthreads();
  int mine = 0;
  for (int k = threadIdx.x; k < 2048; k += 256) {
    const int64_t i = (int64_t)blockIdx.x * 2048 + k;
    if (i >= p.n) break;
    bool head = i == 0;
    if (!head) {
      const int64_t a = p.order ? p.order[i - 1] : i - 1, b = p.order ? p.order[i] : i;
      head = !same(p.x + a * p.m, p.x + b * p.m, p.m);
    }
    p.heads[i] = head;
    mine += head;
  }
  if (mine) atomicAdd(&count, mine);
  __syncthreads();
  if (threadIdx.x == 0) p.sums[blockIdx.x] = count;
})";
constexpr TextKernel kHeads{"unique_heads", kJoined<kKeyText, kHeadsText>.data()};

// The sums of the chunks before each, by one block; and how many groups there are.
constexpr TextKernel kScan{"unique_scan", R"(
struct Params { int64_t* sums; int64_t chunks; int64_t* number; };
extern "C" __global__ void __launch_bounds__(1024) unique_scan(const __grid_constant__ Params p) {
  __shared__ int64_t warps[32];
  const int t = threadIdx.x, lane = t & 31;
  int64_t before = 0;
  for (int64_t base = 0; base < p.chunks; base += 1024) {
    const int64_t x = base + t < p.chunks ? p.sums[base + t] : 0;
    int64_t upto = x;
    for (int by = 1; by < 32; by *= 2) {
      const int64_t y = __shfl_up_sync(0xffffffffu, upto, by);
      if (lane >= by) upto += y;
    }
    if (lane == 31) warps[t / 32] = upto;
    __syncthreads();
    int64_t all = 0;
    for (int w = 0; w < 32; ++w) {
      if (w == t / 32) upto += all;
      all += warps[w];
    }
    if (base + t < p.chunks) p.sums[base + t] = before + upto - x;
    before += all;
    __syncthreads();
  }
  if (t == 0) *p.number = before;
})"};

// What is asked for of the groups. A thread has eight neighbours.
constexpr char kGroupsText[] = R"(
struct Params {
  const int64_t* order; const unsigned char* heads; const int64_t* sums; int64_t n;
  int64_t* first; int64_t* inverse; int64_t* starts;
};
extern "C" __global__ void __launch_bounds__(256) unique_groups(const __grid_constant__ Params p) {
  __shared__ unsigned warps[8];
  const int t = threadIdx.x;
  const int64_t begin = (int64_t)blockIdx.x * 2048 + t * 8;
  unsigned mine = 0;
  for (int k = 0; k < 8; ++k) mine += begin + k < p.n && p.heads[begin + k];
  const unsigned upto = sum_to_lane(mine);
  if ((t & 31) == 31) warps[t / 32] = upto;
  __syncthreads();
  int64_t group = p.sums[blockIdx.x] + upto - mine - 1;
  for (int w = 0; w < t / 32; ++w) group += warps[w];
  for (int k = 0; k < 8; ++k) {
    const int64_t i = begin + k;
    if (i >= p.n) break;
    const int64_t at = p.order ? p.order[i] : i;
    if (p.heads[i]) {
      p.first[++group] = at;
      if (p.starts) p.starts[group] = i;
    }
    if (p.inverse) p.inverse[at] = group;
  }
})";
constexpr TextKernel kGroups{"unique_groups", kJoined<kWarpSumText, kGroupsText>.data()};

constexpr TextKernel kSizes{"unique_sizes", R"(
struct Params { const int64_t* starts; const int64_t* number; int64_t n; int64_t* counts; };
extern "C" __global__ void __launch_bounds__(256) unique_sizes(const __grid_constant__ Params p) {
  const int64_t groups = *p.number;
  for (int64_t g = thread(); g < groups; g += threads())
    p.counts[g] = (g + 1 < groups ? p.starts[g + 1] : p.n) - p.starts[g];
})"};

// Merges neighbouring runs of `width` rows, already in order, to runs of twice that: each row finds
// its place by halves in the other run. Of equal rows the first stays first.
constexpr char kMergeText[] = R"(
struct Params { const B* x; const int64_t* from; int64_t* to; int64_t n, m, width; };
TS_FN int compare(const B* a, const B* b, int64_t m) {
  for (int64_t j = 0; j < m; ++j) {
    const B x = key_of(a[j]), y = key_of(b[j]);
    if (x != y) return x < y ? -1 : 1;
  }
  return 0;
}
extern "C" __global__ void __launch_bounds__(256) merge_rows(const __grid_constant__ Params p) {
  for (int64_t i = thread(); i < p.n; i += threads()) {
    const int64_t pair = i / (2 * p.width) * (2 * p.width);
    const int64_t middle = pair + p.width < p.n ? pair + p.width : p.n;
    const int64_t end = pair + 2 * p.width < p.n ? pair + 2 * p.width : p.n;
    const bool left = i < middle;
    const int64_t me = p.from ? p.from[i] : i;
    int64_t low = left ? middle : pair, high = left ? end : middle;
    const int64_t begin = low;
    while (low < high) {
      const int64_t at = low + (high - low) / 2, other = p.from ? p.from[at] : at;
      const int order = compare(p.x + other * p.m, p.x + me * p.m, p.m);
      if (left ? order < 0 : order <= 0) low = at + 1;
      else high = at;
    }
    p.to[(left ? i : i - middle + pair) + (low - begin)] = me;
  }
})";
constexpr TextKernel kMerge{"merge_rows", kJoined<kKeyText, kMergeText>.data()};

template <class T>
T* wanted(const KernelTensor& t) {
  return t.numel > 0 ? static_cast<T*>(t.data) : nullptr;
}

// Groups of rows of m elements at x, in an order (null: as they are). in_order: x itself has been
// brought into it.
Status find_groups(Device& d, CUstream stream, const KernelArgs& args, DType dtype, const void* x,
                   bool in_order, const int64_t* order, int64_t n, int64_t m) {
  const KernelTensor *out = args.outputs, &counts = out[2];
  const int64_t chunks = (n + kChunk - 1) / kChunk;
  Parts parts;
  const size_t heads = parts.add(n, 1), sums = parts.add(chunks, 8);
  const size_t starts = parts.add(counts.numel ? n : 0, 8);
  Scratch room(d, stream);
  TS_TRY(room.take(parts.bytes));
  void* number = out[3].data;
  struct {
    const void *x, *order;
    int64_t n, m;
    void *heads, *sums;
  } p{x, in_order ? nullptr : order, n, m, part<void>(room, heads), part<void>(room, sums)};
  TS_TRY(launch_text(d, stream, kHeads, {TS_KEY_DEFS(dtype)}, {chunks, 256}, &p));
  struct {
    void* sums;
    int64_t chunks;
    void* number;
  } scan{p.sums, chunks, number};
  TS_TRY(launch_text(d, stream, kScan, {}, {1, 1024}, &scan));
  struct {
    const void *order, *heads, *sums;
    int64_t n;
    void *first, *inverse, *starts;
  } groups{order,
           p.heads,
           p.sums,
           n,
           out[0].data,
           wanted<void>(out[1]),
           counts.numel ? part<void>(room, starts) : nullptr};
  TS_TRY(launch_text(d, stream, kGroups, {}, {chunks, 256}, &groups));
  if (counts.numel == 0) return ok();
  struct {
    const void *starts, *number;
    int64_t n;
    void* counts;
  } sizes{groups.starts, number, n, counts.data};
  return launch_text(d, stream, kSizes, {}, {fill_blocks(d, n), 256}, &sizes);
}

Status no_groups(Device& d, CUstream stream, const KernelArgs& args) {
  return check(
      d,
      driver().cuMemsetD8Async(reinterpret_cast<CUdeviceptr>(args.outputs[3].data), 0, 8, stream),
      "unique");
}

// inputs: dense values; outputs: the first place of each different value in their order, the number
// of the value of each element, how often it occurs, how many there are. The second and third may
// be empty: not wanted.
Status run_unique_values(Device& d, CUstream stream, const KernelArgs& args) {
  const KernelTensor& in = args.inputs[0];
  TS_TRY(check_sortable(in, in.numel, "unique()"));
  if (in.numel == 0) return no_groups(d, stream, args);
  Parts parts;
  const size_t values = parts.add(in.numel, itemsize(in.dtype)), places = parts.add(in.numel, 8);
  Scratch room(d, stream);
  TS_TRY(room.take(parts.bytes));
  const SortRows s{
      in.dtype, 1, in.numel, false, in.data, part<void>(room, values), part<int64_t>(room, places),
      in.numel};
  TS_TRY(sort_rows(d, stream, s));
  return find_groups(d, stream, args, in.dtype, s.values, true, s.indices, in.numel, 1);
}

// The same of the rows of a dense matrix; ints: whether they are sorted first.
Status run_unique_rows(Device& d, CUstream stream, const KernelArgs& args) {
  const KernelTensor& in = args.inputs[0];
  const int64_t n = in.sizes[0];
  int64_t m = in.sizes[1];
  const bool sorted = args.ints[0] != 0;
  DType dtype = in.dtype;
  if (tessera::is_complex(dtype)) {
    if (sorted) return fail(Code::kUnsupported, "complex numbers have no order");
    // Equal where both parts are.
    dtype = dtype == DType::kComplex64 ? DType::kFloat32 : DType::kFloat64;
    m *= 2;
  }
  if (n == 0) return no_groups(d, stream, args);
  if (!sorted) return find_groups(d, stream, args, dtype, in.data, true, nullptr, n, m);
  Parts parts;
  size_t orders[2];
  for (size_t& o : orders) o = parts.add(n, 8);
  Scratch room(d, stream);
  TS_TRY(room.take(parts.bytes));
  struct {
    const void* x;
    void *from, *to;
    int64_t n, m, width;
  } p{in.data, nullptr, part<void>(room, orders[0]), n, m, 1};
  do {
    TS_TRY(launch_text(d, stream, kMerge, {TS_KEY_DEFS(dtype)}, {fill_blocks(d, n), 256}, &p));
    p.from = p.to;
    p.to = part<void>(room, p.from == part<void>(room, orders[0]) ? orders[1] : orders[0]);
    p.width *= 2;
  } while (p.width < n);
  return find_groups(d, stream, args, dtype, in.data, false, static_cast<const int64_t*>(p.from), n,
                     m);
}

TS_CUDA_KERNEL("unique_values", run_unique_values)
TS_CUDA_KERNEL("unique_rows", run_unique_rows)

}  // namespace
}  // namespace tessera::cuda
