// row_norm_backward: arguments and meaning as the CPU's, backends/cpu/kernel_row_norm_backward.cpp.
// Where a channel is one element and the row fits into registers, a block takes row after row and
// keeps the columns' sums in registers: everything is read once. Else the sums come first.
#include "pair_sums.h"

namespace tessera::cuda {
namespace {

constexpr char kParams[] = R"(
typedef L::A A;
struct Params {
  const G::S* g; const X::S* x; const A* means; const A* factors; const W::S* weight; X::S* dx;
  A* gx; A* gs; A* product; A* plain;
  int64_t rows, n, groups, channels, inner, chunk;
  JOIN_FIELDS
};
)";

constexpr auto kRowsText = join(kVectorText, kRowSumText, kParams, R"(
enum { UNITS = THREADS < 128 ? 256 / THREADS : 1, BLOCK = THREADS * UNITS, E = ITEMS * V };
extern "C" __global__ void __launch_bounds__(BLOCK, BLOCK < 256 ? 4 : BLOCK == 256 ? 2 : 1)
row_norm_backward(const __grid_constant__ Params p) {
  __shared__ A parts[2][64];
  __shared__ A columns[UNITS > 1 ? BLOCK * E : 1];
  const int64_t chunk = quotient(blockIdx.x, p.groups), group = blockIdx.x - chunk * p.groups;
  const int64_t begin = chunk * p.chunk, end = min(begin + p.chunk, p.rows / p.groups);
  const int unit = threadIdx.x / THREADS, lane = threadIdx.x % THREADS, n = (int)p.n;
  const W::S* weight = p.weight + group * p.channels;
  A sum_gx[E], sum_g[E];
  #pragma unroll
  for (int i = 0; i < E; ++i) sum_gx[i] = sum_g[i] = A(0);
  int turn = 0;
  for (int64_t first = begin; first < end; first += UNITS, turn ^= 1) {
    // Threads without a row of their own go along with another's.
    const bool live = first + unit < end;
    const int64_t r = (live ? first + unit : first) * p.groups + group;
    const X::S* x = p.x + r * p.n;
    Vec<G::S, V> gv[ITEMS];
    Vec<X::S, V> xv[ITEMS];
    #pragma unroll
    for (int k = 0; k < ITEMS; ++k) {
      const int j = (k * THREADS + lane) * V;
      if (j < n) {
#ifdef BEFORE
        Before::make(p.before, r, j, gv[k].v);
#else
        gv[k] = load_once((const Vec<G::S, V>*)(p.g + r * p.n + j));
#endif
        xv[k] = load_once((const Vec<X::S, V>*)(x + j));
      }
    }
    const A mean = p.means[r], factor = p.factors[r];
    A xh[E], gw[E], both[2] = {A(0), A(0)};
    #pragma unroll
    for (int k = 0; k < ITEMS; ++k) {
      const int j = (k * THREADS + lane) * V;
      if (j >= n) continue;
      Vec<W::S, V> w;
      if constexpr (WEIGHTED) w = *(const Vec<W::S, V>*)(weight + j);
      #pragma unroll
      for (int i = 0; i < V; ++i) {
        const A grad = (A)G::ld(gv[k].v[i]), h = ((A)X::ld(xv[k].v[i]) - mean) * factor;
        xh[k * V + i] = h;
        gw[k * V + i] = WEIGHTED ? grad * (A)W::ld(w.v[i]) : grad;
        both[0] += gw[k * V + i] * h;
        both[1] += gw[k * V + i];
        if (live) {
          sum_gx[k * V + i] += grad * h;
          sum_g[k * V + i] += grad;
        }
      }
    }
    row_sums(both, parts[turn]);
    const A b = both[0] / (A)n, a = CENTRED ? both[1] / (A)n : A(0);
    #pragma unroll
    for (int k = 0; k < ITEMS; ++k) {
      const int j = (k * THREADS + lane) * V;
      Vec<X::S, V> out;
      #pragma unroll
      for (int i = 0; i < V; ++i)
        out.v[i] = X::st((gw[k * V + i] - a - xh[k * V + i] * b) * factor);
      if (!live || j >= n) continue;
#ifdef AFTER
      After::take(p.after, r, j, out.v);
      if (!p.dx) continue;
#endif
      store_once((Vec<X::S, V>*)(p.dx + r * p.n + j), out);
    }
  }
  const int64_t to = chunk * p.groups * p.n + group * p.n;
  #pragma unroll
  for (int s = 0; s < 2; ++s) {
    A* out = (s == 0 ? p.gx : p.gs) + to;
    #pragma unroll
    for (int k = 0; k < ITEMS; ++k)
      #pragma unroll
      for (int i = 0; i < V; ++i) {
        const int j = (k * THREADS + lane) * V + i;
        const A value = s == 0 ? sum_gx[k * V + i] : sum_g[k * V + i];
        if constexpr (UNITS > 1) columns[unit * (THREADS * E) + j] = value;
        else if (j < n) out[j] = value;
      }
    if constexpr (UNITS > 1) {
      __syncthreads();
      for (int j = threadIdx.x; j < n; j += BLOCK) {
        A total = A(0);
        for (int u = 0; u < UNITS; ++u) total += columns[u * (THREADS * E) + j];
        out[j] = total;
      }
      __syncthreads();
    }
  }
})");
constexpr TextKernel kRows{"row_norm_backward", kRowsText.data()};

// The sums of a row from those of its channels, times their weights: a warp each.
constexpr auto kCoefficientsText = join(kParams, R"(
extern "C" __global__ void __launch_bounds__(256) row_coefficients(const __grid_constant__ Params p) {
  const int lane = threadIdx.x % 32;
  for (int64_t r = thread() / 32; r < p.rows; r += threads() / 32) {
    A product = A(0), plain = A(0);
    for (int64_t c = lane; c < p.channels; c += 32) {
      const A w = WEIGHTED ? (A)W::ld(p.weight[r % p.groups * p.channels + c]) : A(1);
      product += w * p.gx[r * p.channels + c];
      plain += w * p.gs[r * p.channels + c];
    }
    #pragma unroll
    for (int d = 16; d > 0; d /= 2) {
      product += __shfl_xor_sync(0xffffffffu, product, d);
      plain += __shfl_xor_sync(0xffffffffu, plain, d);
    }
    if (lane == 0) { p.product[r] = product; p.plain[r] = plain; }
  }
})");
constexpr TextKernel kCoefficients{"row_coefficients", kCoefficientsText.data()};

constexpr auto kApplyText = join(kVectorText, kParams, R"(
extern "C" __global__ void __launch_bounds__(256) row_backward_apply(const __grid_constant__ Params p) {
  const int64_t per = p.n / V, all = p.rows * per;
  const A count = (A)p.n;
  for (int64_t i = thread(); i < all; i += threads()) {
    const Vec<G::S, V> gv = load_once((const Vec<G::S, V>*)p.g + i);
    const Vec<X::S, V> xv = load_once((const Vec<X::S, V>*)p.x + i);
    const int64_t r = quotient(i, per), j = (i - r * per) * V;
    const A mean = p.means[r], factor = p.factors[r];
    const A a = CENTRED ? p.plain[r] / count : A(0), b = p.product[r] / count;
    const W::S* weight = p.weight + r % p.groups * p.channels;
    Vec<X::S, V> out;
    #pragma unroll
    for (int v = 0; v < V; ++v) {
      const A w = WEIGHTED ? (A)W::ld(weight[quotient(j + v, p.inner)]) : A(1);
      const A h = ((A)X::ld(xv.v[v]) - mean) * factor;
      out.v[v] = X::st(((A)G::ld(gv.v[v]) * w - a - h * b) * factor);
    }
    store_once((Vec<X::S, V>*)p.dx + i, out);
  }
})");
constexpr TextKernel kApply{"row_backward_apply", kApplyText.data()};

struct Params {
  const void *g, *x, *means, *factors, *weight;
  void *dx, *gx, *gs;
  CUdeviceptr product, plain;
  int64_t rows, n, groups, channels, inner, chunk;
};

void* pointer(CUdeviceptr p) { return reinterpret_cast<void*>(p); }

struct Backward {
  Device& d;
  CUstream stream;
  DType g, x, wide, w;
  bool centred, weighted;
  Params p;

  // Everything at once.
  Status whole_rows(const RowPlan& plan, const Joins* joins) {
    const int units = plan.threads < 128 ? 256 / plan.threads : 1;
    const int64_t rows = p.rows / p.groups, most = plan.threads == 128 ? 1024 : 512;
    p.chunk = std::max<int64_t>(2 * units, (p.rows + most - 1) / most);
    p.chunk = (p.chunk + units - 1) / units * units;
    const int64_t chunks = (rows + p.chunk - 1) / p.chunk, width = p.groups * p.n;
    void *gx = p.gx, *gs = p.gs;
    Scratch partials(d, stream);
    if (chunks > 1) {
      const size_t bytes = static_cast<size_t>(chunks * width) * itemsize(wide);
      TS_TRY(partials.take(2 * bytes));
      p.gx = pointer(partials.address());
      p.gs = pointer(partials.address() + bytes);
    }
    TS_TRY(launch_text(d, stream, kRows,
                       {def("G", g), def("X", x), def("L", wide), def("W", w), def("V", plan.vec),
                        def("THREADS", plan.threads), def("ITEMS", plan.items),
                        def("CENTRED", centred), def("WEIGHTED", weighted)},
                       {chunks * p.groups, units * plan.threads}, &p, sizeof p, joins, plan.vec));
    if (chunks == 1) return ok();
    return fold_sums(d, stream, partials.address(), chunks, width, chunks * width, wide, gx, gs);
  }

  Status in_parts(int vec) {
    const PairOperands of{p.g, p.x, p.means, p.factors, g, x, wide};
    Scratch sums(d, stream);
    TS_TRY(sums.take(static_cast<size_t>(2 * p.rows) * itemsize(wide)));
    p.product = sums.address();
    p.plain = sums.address() + static_cast<CUdeviceptr>(p.rows) * itemsize(wide);
    if (p.inner == 1) {
      SegmentSums s{p.rows, p.n, 1, 0, 0, weighted ? p.weight : nullptr, w, p.groups};
      TS_TRY(segment_sums(d, stream, of, s, pointer(p.product), pointer(p.plain)));
      TS_TRY(column_sums(d, stream, of, p.rows / p.groups, p.groups * p.n, p.n, p.gx, p.gs));
    } else {
      SegmentSums s{p.rows * p.channels, p.inner, p.channels, 0, 0};
      TS_TRY(segment_sums(d, stream, of, s, p.gx, p.gs));
      TS_TRY(launch_text(
          d, stream, kCoefficients,
          {def("G", g), def("X", x), def("L", wide), def("W", w), def("WEIGHTED", weighted)},
          {fill_blocks(d, p.rows * 32), 256}, &p));
    }
    return launch_text(d, stream, kApply,
                       {def("G", g), def("X", x), def("L", wide), def("W", w), def("V", vec),
                        def("CENTRED", centred), def("WEIGHTED", weighted)},
                       {fill_blocks(d, p.rows * p.n / vec), 256}, &p);
  }
};

Status run_with(Device& d, CUstream stream, const KernelArgs& args, const Joins* joins) {
  const KernelTensor &grad = args.inputs[0], &in = args.inputs[1], &w = args.inputs[4];
  const DType wide = args.outputs[1].dtype;
  if (in.numel == 0) return ok();
  if (!is_floating(in.dtype) || !is_floating(grad.dtype) || args.inputs[2].dtype != wide ||
      args.inputs[3].dtype != wide)
    return fail(Code::kUnsupported, "row_norm_backward of %s is not implemented for CUDA",
                dtype_name(in.dtype));
  DenseOperand operands[5] = {{d, stream}, {d, stream}, {d, stream}, {d, stream}, {d, stream}};
  for (int i = joins && joins->before() ? 1 : 0; i < 5; ++i)
    TS_TRY(operands[i].take(args.inputs[i]));
  const int64_t rows = args.ints[0], n = in.numel / rows;
  Backward b{d,
             stream,
             grad.dtype,
             in.dtype,
             wide,
             w.dtype,
             args.ints[3] != 0,
             w.numel > 0,
             {operands[0].data(), operands[1].data(), operands[2].data(), operands[3].data(),
              operands[4].data(), args.outputs[0].data, args.outputs[1].data, args.outputs[2].data,
              0, 0, rows, n, args.ints[1], args.ints[2], n / args.ints[2], 0}};
  const bool aligned = is_aligned(args.outputs[0].data);
  const RowPlan plan = plan_row(n, grad.dtype, in.dtype, aligned, 16, 16, 512);
  if (b.p.inner == 1 && plan.items > 0) return b.whole_rows(plan, joins);
  if (joins)
    return fail(Code::kUnsupported, "row_norm_backward: nothing joins rows that are so long");
  return b.in_parts(plan.vec);
}

Status run_row_norm_backward(Device& d, CUstream stream, const KernelArgs& args) {
  return run_with(d, stream, args, nullptr);
}
Status run_joined(Device& d, CUstream stream, const KernelArgs& args, const Joins& joins) {
  return run_with(d, stream, args, &joins);
}
// As many as 512 threads hold, whatever the dtypes.
bool takes(int64_t, int64_t n) { return n <= 2048; }

TS_CUDA_KERNEL("row_norm_backward", run_row_norm_backward)
TS_CUDA_JOINED("row_norm_backward", run_joined, takes)

}  // namespace
}  // namespace tessera::cuda
