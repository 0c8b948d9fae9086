// Points counted, or their weights added up, in the cells of a grid. Counts are integers, so that
// their order does not matter; weights are added in double as they come.
#include "../kernels.h"
#include "../text.h"

namespace tessera::cuda {
namespace {

constexpr int kMostAxes = 16;

// BINS: 0 evenly spaced, by division alone; 1 and then by the edges of the neighbours; 2 by edges.
constexpr TextKernel kHistogram{"histogram", R"(
struct Axis { const T::S* edges; int64_t count; };
struct Params {
  const T::S *x, *weight;
  char* sums;
  int64_t n, dims, cells;
  Axis axes[16];
};
typedef T::A F;
TS_FN F rounded(F x) { return T::ld(T::st(x)); }
// The last edge that is not above x, within [low, high).
TS_FN int64_t below(const Axis& a, F x, int64_t low, int64_t high) {
  while (low < high) {
    const int64_t mid = low + (high - low) / 2;
    if (T::ld(a.edges[mid]) > x) high = mid;
    else low = mid + 1;
  }
  return low - 1;
}
// -1: outside, or a NaN.
TS_FN int64_t cell(const Axis& a, F x) {
  const F left = T::ld(a.edges[0]), right = T::ld(a.edges[a.count - 1]);
  if (!(x >= left && x <= right)) return -1;
  int64_t at;
  if constexpr (BINS == 2) {
    at = below(a, x, 0, a.count);
  } else {
    const F width = rounded(right - left), cells = rounded((F)(a.count - 1));
    const F place = rounded(rounded(rounded(x - left) * cells) / width);
    if (!(place >= F(0))) return -1;
    at = place < (F)a.count ? (int64_t)place : a.count;
    if constexpr (BINS == 1)
      at = below(a, x, at > 0 ? at - 1 : 0, at + 2 < a.count ? at + 2 : a.count);
  }
  return at < a.count - 2 ? at : a.count - 2;
}
extern "C" __global__ void __launch_bounds__(256) histogram(const __grid_constant__ Params p) {
  __shared__ unsigned counts[SHARED ? 4096 : 1];
  if constexpr (SHARED) {
    for (int i = threadIdx.x; i < p.cells; i += 256) counts[i] = 0;
    __syncthreads();
  }
  for (int64_t i = thread(); i < p.n; i += threads()) {
    int64_t at = 0;
    for (int64_t d = 0; d < p.dims && at >= 0; ++d) {
      const int64_t c = cell(p.axes[d], T::ld(p.x[i * p.dims + d]));
      at = c < 0 ? -1 : at * (p.axes[d].count - 1) + c;
    }
    if (at < 0) continue;
    if constexpr (WEIGHTED) atomicAdd((double*)p.sums + at, (double)T::ld(p.weight[i]));
    else if constexpr (SHARED) atomicAdd(counts + at, 1u);
    else atomicAdd((unsigned long long*)p.sums + at, 1ull);
  }
  if constexpr (SHARED) {
    __syncthreads();
    for (int i = threadIdx.x; i < p.cells; i += 256)
      if (counts[i] > 0) atomicAdd((unsigned long long*)p.sums + i, (unsigned long long)counts[i]);
  }
}
)"};

constexpr TextKernel kRounded{"histogram_rounded", R"(
struct Params { const char* sums; T::S* out; int64_t cells; };
extern "C" __global__ void __launch_bounds__(256) histogram_rounded(const __grid_constant__ Params p) {
  for (int64_t i = thread(); i < p.cells; i += threads()) {
    if constexpr (WEIGHTED) p.out[i] = T::st((T::A)((const double*)p.sums)[i]);
    else p.out[i] = T::st((T::A)((const unsigned long long*)p.sums)[i]);
  }
}
)"};

Status run_histogram(Device& d, CUstream stream, const KernelArgs& args) {
  const KernelTensor &points = args.inputs[0], &out = args.outputs[0];
  if (!is_floating(points.dtype))
    return fail(Code::kUnsupported, "histogram(): not implemented for %s",
                dtype_name(points.dtype));
  const bool weighted = args.ints[1] != 0;
  const KernelTensor* edges = args.inputs + (weighted ? 2 : 1);
  const int dims = args.num_inputs - (weighted ? 2 : 1);
  if (dims > kMostAxes)
    return fail(Code::kUnsupported,
                "histogram(): more than %d dimensions are not implemented "
                "for CUDA",
                kMostAxes);
  struct {
    void *x, *weight;
    CUdeviceptr sums;
    int64_t n, dims, cells;
    struct {
      void* edges;
      int64_t count;
    } axes[kMostAxes];
  } p{points.data, weighted ? args.inputs[1].data : nullptr, 0, points.sizes[0], dims, out.numel,
      {}};
  for (int i = 0; i < dims; ++i) p.axes[i] = {edges[i].data, edges[i].numel};
  Scratch sums(d, stream);
  const size_t bytes = static_cast<size_t>(out.numel) * 8;
  TS_TRY(sums.take(bytes));
  TS_TRY(check(d, driver().cuMemsetD8Async(sums.address(), 0, bytes, stream), "histogram"));
  p.sums = sums.address();
  if (p.n > 0)
    TS_TRY(launch_text(d, stream, kHistogram,
                       {def("T", points.dtype), def("BINS", args.ints[0]),
                        def("WEIGHTED", weighted), def("SHARED", !weighted && p.cells <= 4096)},
                       {fill_blocks(d, p.n), 256}, &p));
  struct {
    CUdeviceptr sums;
    void* out;
    int64_t cells;
  } r{p.sums, out.data, out.numel};
  return launch_text(d, stream, kRounded, {def("T", out.dtype), def("WEIGHTED", weighted)},
                     {fill_blocks(d, out.numel), 256}, &r);
}

TS_CUDA_KERNEL("histogram", run_histogram)

}  // namespace
}  // namespace tessera::cuda
