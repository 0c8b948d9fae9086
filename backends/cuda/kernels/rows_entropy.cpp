// The cross entropy of rows [n, classes] against classes, and its gradient, from the numbers before
// the softmax. A row is read once forward and once backward; nothing as large as the input is made
// but the gradient. Arithmetic is in float, or double for double; sums over rows in double.
#include <algorithm>

#include "../kernels.h"
#include "../text.h"
#include "join.h"
#include "row_text.h"

namespace tessera::cuda {
namespace {

// A block, or a warp of one, takes a row.
constexpr auto kForwardText = join(kVectorText, R"(
typedef L::A A;
struct Params {
  const X::S* x; const int64_t* target; const A* weight; A* log_sums; R::S* loss; double* parts;
  ErrorSlot* slot;
  int64_t n, classes, ignore;
};
// The largest number so far, and the sum of exponentials below it.
struct Sum { A top, sum; };
TS_FN Sum both(Sum a, Sum b) {
  const A top = a.top > b.top ? a.top : b.top;
  if (top == -INFINITY) return {top, a.sum + b.sum};  // of nothing, or of NaN
  return {top, a.sum * exp(a.top - top) + b.sum * exp(b.top - top)};
}
TS_FN Sum shifted(Sum s, int by) {
  return {__shfl_xor_sync(0xffffffffu, s.top, by), __shfl_xor_sync(0xffffffffu, s.sum, by)};
}
extern "C" __global__ void __launch_bounds__(256) rows_entropy(const __grid_constant__ Params p) {
  const int lane = threadIdx.x % THREADS;
  const int64_t row = (int64_t)blockIdx.x * (256 / THREADS) + threadIdx.x / THREADS;
  const bool live = row < p.n;
  const X::S* x = p.x + (live ? row : 0) * p.classes;
  Sum s = {-INFINITY, A(0)};
  bool nan = false;
  for (int64_t j = lane * V; j < p.classes; j += THREADS * V) {
    const Vec<X::S, V> v = load_once((const Vec<X::S, V>*)(x + j));
    A e[V];
    A top = s.top;
    #pragma unroll
    for (int i = 0; i < V; ++i) {
      e[i] = (A)X::ld(v.v[i]);
      nan |= e[i] != e[i];
      top = e[i] > top ? e[i] : top;
    }
    if (top == -INFINITY) continue;
    A sum = s.sum * exp(s.top - top);
    #pragma unroll
    for (int i = 0; i < V; ++i) sum += exp(e[i] - top);
    s = {top, sum};
  }
  if (nan) s.sum = NAN;
  #pragma unroll
  for (int by = 16; by > 0; by /= 2) s = both(s, shifted(s, by));
  if constexpr (THREADS > 32) {
    __shared__ Sum warps[8];
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = s;
    __syncthreads();
    s = warps[0];
    for (int w = 1; w < THREADS / 32; ++w) s = both(s, warps[w]);
  }
  if (!live || lane != 0) return;
  const A log_sum = s.top == -INFINITY ? (A)NAN : s.top + log(s.sum);
  p.log_sums[row] = log_sum;
  const int64_t c = p.target[row];
  double loss = 0, weight = 0;
  if (c != p.ignore) {
    if (c < 0 || c >= p.classes) {
      report(p.slot, (int)ERROR, c, p.classes, 0);
    } else {
      weight = p.weight ? (double)p.weight[c] : 1.0;
      loss = ((double)log_sum - (double)X::ld(x[c])) * weight;
    }
  }
  if (EACH) p.loss[row] = R::st(R::take(loss));
  p.parts[2 * row] = loss;
  p.parts[2 * row + 1] = weight;
})");
constexpr TextKernel kForward{"rows_entropy", kForwardText.text};

constexpr TextKernel kTotal{"rows_entropy_total", R"(
struct Params { const double* parts; int64_t n; R::S* loss; L::S* weight; };
extern "C" __global__ void __launch_bounds__(512) rows_entropy_total(const __grid_constant__ Params p) {
  double sums[2] = {0, 0};
  for (int64_t i = threadIdx.x; i < p.n; i += 512) {
    sums[0] += p.parts[2 * i];
    sums[1] += p.parts[2 * i + 1];
  }
  __shared__ double warps[2][16];
  #pragma unroll
  for (int k = 0; k < 2; ++k) {
    #pragma unroll
    for (int by = 16; by > 0; by /= 2) sums[k] += __shfl_xor_sync(0xffffffffu, sums[k], by);
    if (threadIdx.x % 32 == 0) warps[k][threadIdx.x / 32] = sums[k];
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  double loss = 0, weight = 0;
  for (int w = 0; w < 16; ++w) { loss += warps[0][w]; weight += warps[1][w]; }
  if (REDUCTION != 0) p.loss[0] = R::st(R::take(REDUCTION == 1 ? loss / weight : loss));
  p.weight[0] = L::st(L::take(weight));
})"};

constexpr auto kBackwardText = join(kVectorText, R"(
typedef L::A A;
struct Params {
  const A* g; const X::S* x; const int64_t* target; const A* total; const A* log_sums;
  const A* weight; X::S* dx; ErrorSlot* slot;
  int64_t n, classes, ignore;
};
extern "C" __global__ void __launch_bounds__(256) rows_entropy_backward(const __grid_constant__ Params p) {
  const int lane = threadIdx.x % THREADS;
  const int64_t row = (int64_t)blockIdx.x * (256 / THREADS) + threadIdx.x / THREADS;
  if (row >= p.n) return;
  const int64_t c = p.target[row];
  A factor = A(0);
  if (c >= 0 && c < p.classes && c != p.ignore) {
    factor = p.g[REDUCTION == 0 ? row : 0] * (p.weight ? p.weight[c] : A(1));
    if (REDUCTION == 1) factor = factor / p.total[0];
  } else if (c != p.ignore && lane == 0) {
    report(p.slot, (int)ERROR, c, p.classes, 0);
  }
  const bool counts = c >= 0 && c < p.classes && c != p.ignore;
  const A log_sum = p.log_sums[row];
  const X::S* x = p.x + row * p.classes;
  X::S* dx = p.dx + row * p.classes;
  for (int64_t j = lane * V; j < p.classes; j += THREADS * V) {
    Vec<X::S, V> v = load_once((const Vec<X::S, V>*)(x + j));
    #pragma unroll
    for (int i = 0; i < V; ++i) {
      const A share = exp((A)X::ld(v.v[i]) - log_sum) - (j + i == c ? A(1) : A(0));
      v.v[i] = X::st(X::take(counts ? share * factor : A(0)));
    }
    store_once((Vec<X::S, V>*)(dx + j), v);
  }
})");
constexpr TextKernel kBackward{"rows_entropy_backward", kBackwardText.text};

struct Shape {
  int64_t v, threads, blocks;
};
Shape shape_of(const KernelTensor& x, const void* other) {
  const int64_t v = 16 / static_cast<int64_t>(itemsize(x.dtype));
  const bool whole = x.sizes[1] % v == 0 && reinterpret_cast<uintptr_t>(x.data) % 16 == 0 &&
                     reinterpret_cast<uintptr_t>(other) % 16 == 0;
  const int64_t threads = x.sizes[1] > 2048 ? 256 : 32, rows = 256 / threads;
  return {whole ? v : 1, threads, (x.sizes[0] + rows - 1) / rows};
}

Status check_dtype(DType t) {
  if (is_floating(t)) return ok();
  return fail(Code::kUnsupported, "cross_entropy(): not implemented for %s", dtype_name(t));
}

// Inputs: x, target, and weights of classes if there are some. Outputs: loss, total weight, log
// sums. ints: ignore_index, reduction (0 none, 1 mean, 2 sum).
Status run_forward(Device& d, CUstream stream, const KernelArgs& args) {
  const KernelTensor &x = args.inputs[0], &loss = args.outputs[0], &sums = args.outputs[2];
  TS_TRY(check_dtype(x.dtype));
  const int64_t n = x.sizes[0], reduction = args.ints[1];
  Scratch parts(d, stream);
  TS_TRY(parts.take(static_cast<size_t>(std::max<int64_t>(n, 1)) * 16));
  struct {
    const void *x, *target, *weight;
    void *log_sums, *loss;
    CUdeviceptr parts, slot;
    int64_t n, classes, ignore;
  } p{x.data,
      args.inputs[1].data,
      args.num_inputs > 2 ? args.inputs[2].data : nullptr,
      sums.data,
      loss.data,
      parts.address(),
      d.slot_on_device,
      n,
      x.sizes[1],
      args.ints[0]};
  const Shape s = shape_of(x, nullptr);
  TS_TRY(launch_text(d, stream, kForward,
                     {def("X", x.dtype), def("L", sums.dtype), def("R", loss.dtype), def("V", s.v),
                      def("THREADS", s.threads), def("EACH", reduction == 0),
                      def("ERROR", code_of(DataError::kTarget))},
                     {s.blocks, 256}, &p));
  struct {
    CUdeviceptr parts;
    int64_t n;
    void *loss, *weight;
  } total{parts.address(), n, loss.data, args.outputs[1].data};
  return launch_text(d, stream, kTotal,
                     {def("R", loss.dtype), def("L", sums.dtype), def("REDUCTION", reduction)},
                     {1, 512}, &total);
}

// Inputs: gradient, x, target, total weight, log sums, and weights of classes if there are some.
Status run_backward(Device& d, CUstream stream, const KernelArgs& args) {
  const KernelTensor &x = args.inputs[1], &dx = args.outputs[0], &sums = args.inputs[4];
  TS_TRY(check_dtype(x.dtype));
  if (x.numel == 0) return ok();
  struct {
    const void *g, *x, *target, *total, *log_sums, *weight;
    void* dx;
    CUdeviceptr slot;
    int64_t n, classes, ignore;
  } p{args.inputs[0].data,
      x.data,
      args.inputs[2].data,
      args.inputs[3].data,
      sums.data,
      args.num_inputs > 5 ? args.inputs[5].data : nullptr,
      dx.data,
      d.slot_on_device,
      x.sizes[0],
      x.sizes[1],
      args.ints[0]};
  const Shape s = shape_of(x, dx.data);
  return launch_text(
      d, stream, kBackward,
      {def("X", x.dtype), def("L", sums.dtype), def("V", s.v), def("THREADS", s.threads),
       def("REDUCTION", args.ints[1]), def("ERROR", code_of(DataError::kTarget))},
      {s.blocks, 256}, &p);
}

TS_CUDA_KERNEL("rows_entropy", run_forward)
TS_CUDA_KERNEL("rows_entropy_backward", run_backward)

}  // namespace
}  // namespace tessera::cuda
