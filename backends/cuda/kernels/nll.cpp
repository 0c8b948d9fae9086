// The negative log likelihood of target classes, and its gradient. Input [n, classes, inner],
// targets [n, inner], all dense; sums are in double, in a tree that depends on sizes alone.
#include <algorithm>

#include "../kernels.h"
#include "../text.h"

namespace tessera::cuda {
namespace {

constexpr int64_t kPerBlock = 256;  // targets
constexpr int64_t kMostBlocks = 1024;

constexpr TextKernel kLosses{"nll_losses", R"(
struct Params {
  const T::S* x; const int64_t* target; const T::S* weight; T::S* loss; double* parts; ErrorSlot* slot;
  int64_t count, classes, inner, ignore;
};
extern "C" __global__ void __launch_bounds__(256) nll_losses(const __grid_constant__ Params p) {
  double total = 0, weights = 0;
  for (int64_t i = thread(); i < p.count; i += threads()) {
    const int64_t c = p.target[i];
    double l = 0;
    if (c != p.ignore) {
      if (c < 0 || c >= p.classes) {
        report(p.slot, (int)ERROR, c, p.classes, 0);
      } else {
        const int64_t row = i / p.inner;
        const double w = p.weight ? (double)T::ld(p.weight[c]) : 1.0;
        l = -(double)T::ld(p.x[(row * p.classes + c) * p.inner + i - row * p.inner]) * w;
        weights += w;
      }
    }
    if (EACH) p.loss[i] = T::st(T::take(l));
    total += l;
  }
  __shared__ double sums[2][8];
  #pragma unroll
  for (int by = 16; by > 0; by /= 2) {
    total += __shfl_xor_sync(0xffffffffu, total, by);
    weights += __shfl_xor_sync(0xffffffffu, weights, by);
  }
  if (threadIdx.x % 32 == 0) {
    sums[0][threadIdx.x / 32] = total;
    sums[1][threadIdx.x / 32] = weights;
  }
  __syncthreads();
  if (threadIdx.x < 2) {
    double sum = 0;
    for (int w = 0; w < 8; ++w) sum += sums[threadIdx.x][w];
    p.parts[blockIdx.x * 2 + threadIdx.x] = sum;
  }
})"};

constexpr TextKernel kTotal{"nll_total", R"(
struct Params { const double* parts; int64_t n; T::S* loss; T::S* weight; };
extern "C" __global__ void __launch_bounds__(32) nll_total(const __grid_constant__ Params p) {
  double total = 0, weights = 0;
  #pragma unroll 8
  for (int64_t i = threadIdx.x; i < p.n; i += 32) {
    total += p.parts[2 * i];
    weights += p.parts[2 * i + 1];
  }
  #pragma unroll
  for (int by = 16; by > 0; by /= 2) {
    total += __shfl_xor_sync(0xffffffffu, total, by);
    weights += __shfl_xor_sync(0xffffffffu, weights, by);
  }
  if (threadIdx.x != 0) return;
  if (REDUCTION != 0) p.loss[0] = T::st(T::take(REDUCTION == 1 ? total / weights : total));
  p.weight[0] = T::st(T::take(weights));
})"};

// Zeros but at the targets. HOW: 1 rows of classes are written in whole vectors; 2 planes of one
// class, where what lies behind the classes is long; 0 each element for itself.
constexpr TextKernel kGradient{"nll_gradient", R"(
typedef T::S S;
struct Params {
  const S* g; const int64_t* target; const S* total; const S* weight; S* out; ErrorSlot* slot;
  int64_t n, classes, inner, ignore;
};
TS_FN S value_at(const Params& p, int64_t i, int64_t c) {
  const double w = p.weight ? (double)T::ld(p.weight[c]) : 1.0;
  const double divisor = REDUCTION == 1 ? (double)T::ld(p.total[0]) : 1.0;
  return T::st(T::take(-(double)T::ld(p.g[REDUCTION == 0 ? i : 0]) * w / divisor));
}
TS_FN int64_t target_of(const Params& p, int64_t i) {
  const int64_t c = p.target[i];
  if (c == p.ignore) return -1;
  if (c >= 0 && c < p.classes) return c;
  report(p.slot, (int)ERROR, c, p.classes, 0);
  return -1;
}
extern "C" __global__ void __launch_bounds__(256) nll_gradient(const __grid_constant__ Params p) {
  const S zero = T::st(T::take(0.0));
  if constexpr (HOW == 1) {
    const int64_t vectors = p.classes / V;
    for (int64_t row = blockIdx.y; row < p.n; row += gridDim.y) {
      const int64_t c = target_of(p, row);
      const int64_t mine = c < 0 ? -1 : c / V;
      Vec<S, V>* out = (Vec<S, V>*)(p.out + row * p.classes);
      Vec<S, V> zeros;
      #pragma unroll
      for (int k = 0; k < V; ++k) zeros.v[k] = zero;
      for (int64_t j = thread(); j < vectors; j += threads()) {
        Vec<S, V> v = zeros;
        if (j == mine) {
          const S x = value_at(p, row, c);
          #pragma unroll
          for (int k = 0; k < V; ++k) v.v[k] = j * V + k == c ? x : zero;
        }
        out[j] = v;
      }
    }
  } else if constexpr (HOW == 2) {
    for (int64_t plane = blockIdx.y; plane < p.n * p.classes; plane += gridDim.y) {
      const int64_t row = plane / p.classes, c = plane - row * p.classes;
      for (int64_t j = thread(); j < p.inner; j += threads()) {
        const int64_t i = row * p.inner + j;
        p.out[plane * p.inner + j] = target_of(p, i) == c ? value_at(p, i, c) : zero;
      }
    }
  } else {
    const int64_t plane = p.classes * p.inner;
    for (int64_t e = thread(); e < p.n * plane; e += threads()) {
      const int64_t row = e / plane, rest = e - row * plane, c = rest / p.inner;
      const int64_t i = row * p.inner + rest - c * p.inner;
      p.out[e] = target_of(p, i) == c ? value_at(p, i, c) : zero;
    }
  }
})"};

Status check_dtype(DType t) {
  if (is_floating(t)) return ok();
  return fail(Code::kUnsupported, "nll_loss(): not implemented for %s", dtype_name(t));
}

// Inputs: input, target, and weights of classes if there are some. Outputs: loss, total weight.
// ints: ignore_index, reduction (0 none, 1 mean, 2 sum).
Status run_nll(Device& d, CUstream stream, const KernelArgs& args) {
  const KernelTensor &x = args.inputs[0], &loss = args.outputs[0];
  TS_TRY(check_dtype(x.dtype));
  const int64_t count = x.sizes[0] * x.sizes[2], reduction = args.ints[1];
  const int64_t blocks = std::clamp<int64_t>((count + kPerBlock - 1) / kPerBlock, 1, kMostBlocks);
  Scratch parts(d, stream);
  TS_TRY(parts.take(static_cast<size_t>(blocks) * 16));
  struct {
    const void *x, *target, *weight;
    void* loss;
    CUdeviceptr parts, slot;
    int64_t count, classes, inner, ignore;
  } p{x.data,      args.inputs[1].data, args.num_inputs > 2 ? args.inputs[2].data : nullptr,
      loss.data,   parts.address(),     d.slot_on_device,
      count,       x.sizes[1],          x.sizes[2],
      args.ints[0]};
  TS_TRY(launch_text(
      d, stream, kLosses,
      {def("T", x.dtype), def("EACH", reduction == 0), def("ERROR", code_of(DataError::kTarget))},
      {blocks, 256}, &p));
  struct {
    CUdeviceptr parts;
    int64_t n;
    void *loss, *weight;
  } total{parts.address(), blocks, loss.data, args.outputs[1].data};
  return launch_text(d, stream, kTotal, {def("T", x.dtype), def("REDUCTION", reduction)}, {1, 32},
                     &total);
}

// Inputs: gradient, target, total weight, and weights of classes if there are some.
Status run_nll_backward(Device& d, CUstream stream, const KernelArgs& args) {
  const KernelTensor& out = args.outputs[0];
  TS_TRY(check_dtype(out.dtype));
  if (out.numel == 0) return ok();
  struct {
    const void *g, *target, *total, *weight;
    void* out;
    CUdeviceptr slot;
    int64_t n, classes, inner, ignore;
  } p{args.inputs[0].data,
      args.inputs[1].data,
      args.inputs[2].data,
      args.num_inputs > 3 ? args.inputs[3].data : nullptr,
      out.data,
      d.slot_on_device,
      out.sizes[0],
      out.sizes[1],
      out.sizes[2],
      args.ints[0]};
  const int how = p.inner >= 128 ? 2 : p.inner == 1 && p.classes >= 64 ? 1 : 0;
  int64_t v = 16 / static_cast<int64_t>(itemsize(out.dtype));
  if (p.classes % v != 0 || reinterpret_cast<uintptr_t>(out.data) % 16 != 0) v = 1;
  Grid grid{fill_blocks(d, out.numel), 256};
  // A block writes up to 16 vectors a thread of a row or 16 elements of a plane, and these go on
  // side by side.
  if (how == 1) grid = {(p.classes / v + 4095) / 4096, 256, std::min<int64_t>(p.n, 65535)};
  if (how == 2) {
    const int64_t across = std::min<int64_t>((p.inner + 4095) / 4096, INT32_MAX);
    grid = {across, 256, std::min<int64_t>(p.n * p.classes, 65535)};
  }
  return launch_text(d, stream, kGradient,
                     {def("T", out.dtype), def("V", v), def("HOW", how),
                      def("REDUCTION", args.ints[1]), def("ERROR", code_of(DataError::kTarget))},
                     grid, &p);
}

TS_CUDA_KERNEL("nll_loss", run_nll)
TS_CUDA_KERNEL("nll_loss_backward", run_nll_backward)

}  // namespace
}  // namespace tessera::cuda
