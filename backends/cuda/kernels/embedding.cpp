// Rows of a table: brought to a norm, and the largest elements of bags of them.
#include <cmath>

#include "../kernels.h"
#include "../text.h"
#include "../walk.h"

namespace tessera::cuda {
namespace {

constexpr TextKernel kMark{"embedding_mark", R"(
struct Params { const INDEX::S* index; unsigned char* seen; ErrorSlot* slot; int64_t n, rows; Walk<1> walk; };
extern "C" __global__ void __launch_bounds__(256) embedding_mark(const __grid_constant__ Params p) {
  for (int64_t i = thread(); i < p.n; i += threads()) {
    const int64_t r = INDEX::ld(p.index[offset(p.walk, i)]);
    if (r < 0 || r >= p.rows) report(p.slot, (int)ERROR, r, p.rows, 0);
    else p.seen[r] = 1;
  }
})"};

// A warp a row. NORM: 0 the largest, 1 and 2 those, 3 any power.
constexpr TextKernel kRenorm{"embedding_renorm", R"(
struct Params {
  T::S* table; const unsigned char* seen; int64_t rows, columns, stride, step; double most, power;
};
extern "C" __global__ void __launch_bounds__(256) embedding_renorm(const __grid_constant__ Params p) {
  const int lane = threadIdx.x % 32;
  for (int64_t r = thread() / 32; r < p.rows; r += threads() / 32) {
    if (!p.seen[r]) continue;
    T::S* row = p.table + r * p.stride;
    double sum = 0;
    for (int64_t j = lane; j < p.columns; j += 32) {
      const double v = ::fabs((double)T::ld(row[j * p.step]));
      if constexpr (NORM == 0) sum = v > sum ? v : sum;
      else sum += NORM == 2 ? v * v : NORM == 1 ? v : ::pow(v, p.power);
    }
    #pragma unroll
    for (int by = 16; by > 0; by /= 2) {
      const double other = __shfl_xor_sync(0xffffffffu, sum, by);
      if constexpr (NORM == 0) sum = other > sum ? other : sum;
      else sum += other;
    }
    const double norm = NORM == 2 ? ::sqrt(sum) : NORM == 3 ? ::pow(sum, 1 / p.power) : sum;
    if (!(norm > p.most)) continue;
    const double scale = p.most / (norm + 1e-7);
    for (int64_t j = lane; j < p.columns; j += 32)
      row[j * p.step] = T::st(T::take((double)T::ld(row[j * p.step]) * scale));
  }
})"};

// outputs: the table; inputs: which of its rows; doubles: the largest norm, its kind.
Status run_renorm(Device& d, CUstream stream, const KernelArgs& args) {
  const KernelTensor &table = args.outputs[0], &index = args.inputs[0];
  if (!is_floating(table.dtype))
    return fail(Code::kUnsupported, "embedding_renorm_(): not implemented for this dtype");
  const int64_t rows = table.sizes[0];
  const double power = args.doubles[1];
  Scratch seen(d, stream);
  TS_TRY(seen.take(static_cast<size_t>(rows) + 1));
  TS_TRY(check(d,
               driver().cuMemsetD8Async(seen.address(), 0, static_cast<size_t>(rows) + 1, stream),
               "embedding_renorm_"));
  struct {
    const void* index;
    CUdeviceptr seen, slot;
    int64_t n, rows;
    Walk<1> walk;
  } mark{index.data, seen.address(), d.slot_on_device, index.numel, rows, {}};
  TS_TRY(make_walk(&mark.walk, index.ndim, index.sizes, {index.strides}));
  TS_TRY(launch_text(d, stream, kMark,
                     {def("INDEX", index.dtype), def("ERROR", code_of(DataError::kSelect))},
                     {fill_blocks(d, index.numel), 256}, &mark));
  struct {
    void* table;
    CUdeviceptr seen;
    int64_t rows, columns, stride, step;
    double most, power;
  } p{table.data,       seen.address(),  rows, table.sizes[1], table.strides[0],
      table.strides[1], args.doubles[0], power};
  const int norm = std::isinf(power) ? 0 : power == 1 ? 1 : power == 2 ? 2 : 3;
  return launch_text(d, stream, kRenorm, {def("T", table.dtype), def("NORM", norm)},
                     {fill_blocks(d, rows * 32), 256}, &p);
}

// The first and the last number of each bag. `range` begins with all bits set: as unsigned numbers
// the first is beyond all, and of the last the complement is kept, which the minimum makes larger.
constexpr TextKernel kRanges{"bag_ranges", R"(
struct Params { const int64_t* bag; unsigned long long* range; int64_t n, bags; };
extern "C" __global__ void __launch_bounds__(256) bag_ranges(const __grid_constant__ Params p) {
  for (int64_t i = thread(); i < p.n; i += threads()) {
    const int64_t b = p.bag[i];
    if (b < 0 || b >= p.bags) continue;
    atomicMin(&p.range[2 * b], (unsigned long long)i);
    atomicMin(&p.range[2 * b + 1], ~(unsigned long long)i);
  }
})"};

constexpr TextKernel kBagMax{"bag_max", R"(
struct Params {
  const T::S* table; const int64_t* index; const int64_t* bag; const unsigned long long* range;
  int64_t* out; ErrorSlot* slot; int64_t bags, rows, columns, stride, step;
};
extern "C" __global__ void __launch_bounds__(256) bag_max(const __grid_constant__ Params p) {
  for (int64_t e = thread(); e < p.bags * p.columns; e += threads()) {
    const int64_t b = e / p.columns, j = e - b * p.columns;
    int64_t best = -1;
    T::A top = T::A(0);
    if (p.range[2 * b] != ~0ull) {
      const int64_t end = (int64_t)~p.range[2 * b + 1];
      for (int64_t i = (int64_t)p.range[2 * b]; i <= end; ++i) {
        if (p.bag[i] != b) continue;
        const int64_t r = p.index[i];
        if (r < 0 || r >= p.rows) {
          report(p.slot, (int)ERROR, r, p.rows, 0);
          continue;
        }
        const T::A v = T::ld(p.table[r * p.stride + j * p.step]);
        if (best < 0 || v > top) {
          best = r;
          top = v;
        }
      }
    }
    p.out[e] = best;
  }
})"};

// inputs: a table, dense row numbers, the bag of each, -1 for none; outputs: for each bag and
// column the row with the largest element, -1 for an empty bag.
Status run_bag_max(Device& d, CUstream stream, const KernelArgs& args) {
  const KernelTensor &table = args.inputs[0], &index = args.inputs[1], &out = args.outputs[0];
  if (!is_floating(table.dtype))
    return fail(Code::kUnsupported, "embedding_bag(): not implemented for this dtype");
  if (out.numel == 0) return ok();
  const int64_t bags = out.sizes[0];
  Scratch range(d, stream);
  const size_t bytes = static_cast<size_t>(bags) * 16;
  TS_TRY(range.take(bytes));
  TS_TRY(check(d, driver().cuMemsetD8Async(range.address(), 0xff, bytes, stream), "embedding_bag"));
  struct {
    const void* bag;
    CUdeviceptr range;
    int64_t n, bags;
  } ranges{args.inputs[2].data, range.address(), index.numel, bags};
  TS_TRY(launch_text(d, stream, kRanges, {}, {fill_blocks(d, index.numel), 256}, &ranges));
  struct {
    const void *table, *index, *bag;
    CUdeviceptr range;
    void* out;
    CUdeviceptr slot;
    int64_t bags, rows, columns, stride, step;
  } p{table.data,       index.data, args.inputs[2].data, range.address(), out.data,
      d.slot_on_device, bags,       table.sizes[0],      table.sizes[1],  table.strides[0],
      table.strides[1]};
  return launch_text(d, stream, kBagMax,
                     {def("T", table.dtype), def("ERROR", code_of(DataError::kSelect))},
                     {fill_blocks(d, out.numel), 256}, &p);
}

TS_CUDA_KERNEL("embedding_renorm", run_renorm)
TS_CUDA_KERNEL("embedding_bag_max", run_bag_max)

}  // namespace
}  // namespace tessera::cuda
