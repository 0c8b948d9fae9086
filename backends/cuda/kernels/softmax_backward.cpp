// softmax_backward and log_softmax_backward: from the gradient g and the result y along a dimension
// to y * (g - sum(g * y)), and to g - exp(y) * sum(g). Both are read once where a line fits into
// the registers of a block, else twice.
#include "../kernels.h"
#include "lines.h"

namespace tessera::cuda {
namespace {

constexpr const char* kBackward = R"(
struct Params {
  const T::S *g, *y;
  T::S* out;
  int64_t stride[3];
  int64_t n, lines;
  Walk<3> walk;
};
typedef T::A A;
typedef Vec<T::S, V> Run;
constexpr int64_t kTile = (int64_t)kSeg * kRun * kRuns * kWarps;
TS_FN void add_terms(const Run (&g)[K], const Run (&y)[K], int64_t first, int64_t n, A& sum) {
  #pragma unroll
  for (int k = 0; k < kRuns; ++k)
    #pragma unroll
    for (int i = 0; i < kRun; ++i)
      if (first + k * (kSeg * kRun) + i < n) {
        const A grad = T::ld(g[k].v[i]);
        sum += LOG ? grad : grad * T::ld(y[k].v[i]);
      }
}
TS_FN void put_results(const Run (&g)[K], const Run (&y)[K], int64_t first, int64_t n, A sum,
                       T::S* out, int64_t stride) {
  #pragma unroll
  for (int k = 0; k < kRuns; ++k) {
    Run r;
    #pragma unroll
    for (int i = 0; i < kRun; ++i) {
      const A grad = T::ld(g[k].v[i]), value = T::ld(y[k].v[i]);
      r.v[i] = T::st(LOG ? grad - exp(value) * sum : value * (grad - sum));
    }
    store_run(out, stride, first + k * (kSeg * kRun), n, r);
  }
}
extern "C" __global__ void __launch_bounds__(THREADS) softmax_backward(const __grid_constant__ Params p) {
  __shared__ A parts[kGroups][kWarps][kLines];
  const int seg = seg_of(), row = line_of();
  const int part = threadIdx.x / 32 % kWarps, group = threadIdx.x / 32 / kWarps;
  const int64_t line = ((int64_t)blockIdx.x * kGroups + group) * kLines + row;
  const int64_t n = line < p.lines ? p.n : 0;
  int64_t o[3];
  offsets(p.walk, n > 0 ? line : 0, o);
  const T::S *from_g = p.g + o[0], *from_y = p.y + o[1];
  T::S* const to = p.out + o[2];
  const int64_t begin = part * (kRuns * kSeg * kRun) + seg * kRun;
  Run g[K], y[K];
  A sum = A(0);
  for (int64_t first = begin; first < n; first += kTile) {
    load_runs(from_g, p.stride[0], first, n, g);
    load_runs(from_y, p.stride[1], first, n, y);
    add_terms(g, y, first, n, sum);
    if constexpr (ONCE) break;
  }
  #pragma unroll
  for (int d = 1; d < kSeg; d *= 2) sum += from_other(sum, d * kUnit);
  if constexpr (kWarps > 1) {
    if (seg == 0) parts[group][part][row] = sum;
    __syncthreads();
    sum = A(0);
    #pragma unroll
    for (int w = 0; w < kWarps; ++w) sum += parts[group][w][row];
  }
  if constexpr (ONCE) {
    put_results(g, y, begin, n, sum, to, p.stride[2]);
  } else {
    for (int64_t first = begin; first < n; first += kTile) {
      load_runs(from_g, p.stride[0], first, n, g);
      load_runs(from_y, p.stride[1], first, n, y);
      put_results(g, y, first, n, sum, to, p.stride[2]);
    }
  }
}
)";

template <bool kLog>
Status run_backward(Device& d, CUstream stream, const KernelArgs& args) {
  static const auto& text = *new std::string(std::string(kLinesText) + kBackward);
  const KernelTensor &g = args.inputs[0], &y = args.inputs[1], &out = args.outputs[0];
  if (!is_floating(out.dtype) || g.dtype != out.dtype || y.dtype != out.dtype)
    return fail(Code::kUnsupported, "softmax_backward(): not implemented for %s",
                dtype_name(g.dtype));
  if (out.numel == 0) return ok();
  const int dim = static_cast<int>(args.ints[0]);
  struct {
    void *g, *y, *out;
    int64_t stride[3];
    int64_t n, lines;
    Walk<3> walk;
  } p{g.data, y.data, out.data, {1, 1, 1}, 1, 1, {}};
  if (out.ndim > 0) p.n = out.sizes[dim];
  p.lines = out.numel / p.n;
  TS_TRY(make_walk(&p.walk, out.ndim, out.sizes, {g.strides, y.strides, out.strides}, dim));
  if (p.n > 1)
    for (int i = 0; i < 3; ++i) p.stride[i] = (i == 0 ? g : i == 1 ? y : out).strides[dim];
  // An expanded gradient is read along the line like a dense one.
  const bool rows = p.stride[1] == 1 && p.stride[2] == 1;
  const int64_t bytes = static_cast<int64_t>(itemsize(out.dtype)), last = p.walk.nd - 1;
  int64_t run = rows && p.stride[0] == 1 ? vector_of(bytes) : 1;
  bool aligned = true;
  if (p.n % run != 0) run = 1;
  const void* data[3] = {g.data, y.data, out.data};
  for (int i = 0; i < 3; ++i) {
    aligned &= reinterpret_cast<uintptr_t>(data[i]) % 16 == 0;
    for (int k = 0; k < p.walk.nd; ++k)
      if (p.walk.strides[i][k] % run != 0) run = 1;
  }
  Spread s = spread_lines(p.n, p.lines, run, bytes <= 4 ? 16 : 8,
                          rows || last < 0 ? 0 : p.walk.sizes[last], 32);
  s.vector = run > 1 && aligned;
  const TextKernel kernel{"softmax_backward", text.c_str()};
  return launch_text(
      d, stream, kernel,
      {def("T", out.dtype), def("LOG", kLog), def("THREADS", s.threads()), def("SEG", s.seg),
       def("V", s.v), def("K", s.k), def("W", s.w), def("ACROSS", s.across),
       def("VECTOR", s.vector), def("REVERSE", false), def("ONCE", p.n <= s.tile())},
      {(p.lines + s.block_lines() - 1) / s.block_lines(), s.threads()}, &p);
}

TS_CUDA_KERNEL("softmax_backward", run_backward<false>)
TS_CUDA_KERNEL("log_softmax_backward", run_backward<true>)

}  // namespace
}  // namespace tessera::cuda
