// row_norm: arguments and meaning as the CPU's, backends/cpu/kernel_row_norm.cpp.
// Note [Rows]
// A row that fits stays in the registers of the threads that share it, and is read once; its mean
// is taken first and the deviations from it second, whose sum takes the mean's rounding out again.
// Longer rows are cut into pieces, whose moments are merged by another kernel. The trees depend on
// the length of a row alone.
#include "row_plan.h"

namespace tessera::cuda {
namespace {

constexpr char kParams[] = R"(
typedef X::A A;
struct Params {
  const X::S* x; X::S* y; A* means; A* factors; const W::S* weight; const B::S* bias;
  int64_t rows, n, groups, channels, inner, pieces;
  double* moments;
  double eps;
  JOIN_FIELDS
};
)";

// Weights of V elements from j of a row on. WEIGHTS 1: one each; 2: one a channel of several.
constexpr char kWeights[] = R"(
template <class T> TS_FN void weights(const typename T::S* of, int64_t base, int64_t j,
                                      int64_t inner, A (&out)[V]) {
  if constexpr (WEIGHTS == 1) {
    const Vec<typename T::S, V> v = *(const Vec<typename T::S, V>*)(of + base + j);
    #pragma unroll
    for (int i = 0; i < V; ++i) out[i] = (A)T::ld(v.v[i]);
  } else if constexpr (WHOLE) {  // a vector lies in one channel
    const A w = (A)T::ld(of[base + quotient(j, inner)]);
    #pragma unroll
    for (int i = 0; i < V; ++i) out[i] = w;
  } else {
    #pragma unroll
    for (int i = 0; i < V; ++i) out[i] = (A)T::ld(of[base + quotient(j + i, inner)]);
  }
}
TS_FN void scaled(const Params& p, int64_t r, int64_t j, A mean, A factor, const A* e) {
  const int64_t base = WEIGHTS != 0 ? r % p.groups * p.channels : 0;
  A w[V], b[V];
  #pragma unroll
  for (int i = 0; i < V; ++i) { w[i] = A(1); b[i] = A(0); }
  if (WEIGHTS != 0 && p.weight) weights<W>(p.weight, base, j, p.inner, w);
  if (WEIGHTS != 0 && p.bias) weights<B>(p.bias, base, j, p.inner, b);
  Vec<X::S, V> out;
  #pragma unroll
  for (int i = 0; i < V; ++i) out.v[i] = X::st((e[i] - mean) * factor * w[i] + b[i]);
#ifdef AFTER
  After::take(p.after, r, j, out.v);
  if (!p.y) return;
#endif
  store_once((Vec<X::S, V>*)(p.y + r * p.n + j), out);
}
)";

constexpr auto kRowNormText = join(kVectorText, kRowSumText, kParams, kRowLoadText, kWeights, R"(
enum { ROWS = THREADS < 128 ? 256 / THREADS : 1, BLOCK = THREADS * ROWS };
// In double, of a row whose sums or squares are beyond float, or whose deviation is hardly there.
TS_FN void wide_moments(const Params& p, int64_t r, int lane, double* parts, double& mean,
                        double& m2) {
  const int n = (int)p.n;
  double sum = 0;
  if constexpr (CENTRED) {
    for (int j = lane; j < n; j += THREADS) sum += (double)X::ld(one_x(p, r, j));
    sum = row_sum(sum, parts);
  }
  mean = sum / n;
  m2 = 0;
  for (int j = lane; j < n; j += THREADS) {
    const double d = (double)X::ld(one_x(p, r, j)) - mean;
    m2 += d * d;
  }
  m2 = row_sum(m2, parts + 32);
}
extern "C" __global__ void __launch_bounds__(BLOCK) row_norm(const __grid_constant__ Params p) {
  __shared__ A parts[3][32];
  __shared__ double wide_parts[64];
  const int64_t place = (int64_t)blockIdx.x * ROWS + threadIdx.x / THREADS;
  const bool live = place < p.rows;
  const int64_t r = live ? place : p.rows - 1;
  const int lane = threadIdx.x % THREADS, n = (int)p.n;
  A e[ITEMS * V];
  Vec<X::S, V> in[ITEMS];
  #pragma unroll
  for (int k = 0; k < ITEMS; ++k) {
    const int j = (k * THREADS + lane) * V;
    if (j < n) in[k] = load_x(p, r, j);
  }
  A sum = A(0);
  #pragma unroll
  for (int k = 0; k < ITEMS; ++k)
    #pragma unroll
    for (int i = 0; i < V; ++i) {
      e[k * V + i] = (k * THREADS + lane) * V < n ? X::ld(in[k].v[i]) : A(0);
      sum += e[k * V + i];
    }
  const A count = (A)n;
  A mean = A(0), first = A(0), second = A(0);
  if constexpr (CENTRED) mean = row_sum(sum, parts[0]) / count;
  #pragma unroll
  for (int k = 0; k < ITEMS; ++k)
    if ((k * THREADS + lane) * V < n)
      #pragma unroll
      for (int i = 0; i < V; ++i) {
        const A d = e[k * V + i] - mean;
        first += d;
        second += d * d;
      }
  if constexpr (!CENTRED) {
    second = row_sum(second, parts[1]);
  } else {
    A both[2] = {first, second};
    row_sums(both, parts[1]);
    first = both[0];
    second = both[1];
    mean += first / count;
    second -= first * first / count;
    second = second < A(0) ? A(0) : second;
  }
  const A variance = second / count + (A)p.eps;
  A factor = A(1) / sqrt(variance);
  if constexpr (sizeof(A) == 4) {
    bool odd = !isfinite(second) || variance < A(1e-30);
    if (THREADS <= 32 ? __any_sync(0xffffffffu, odd) : odd) {
      double m, m2;
      wide_moments(p, r, lane, wide_parts, m, m2);
      if (odd) {
        mean = (A)m;
        factor = (A)(1 / sqrt(m2 / n + p.eps));
      }
    }
  }
  if (!live) return;
  if (lane == 0) {
    p.means[r] = mean;
    p.factors[r] = factor;
  }
  #pragma unroll
  for (int k = 0; k < ITEMS; ++k) {
    const int j = (k * THREADS + lane) * V;
    if (j < n) scaled(p, r, j, mean, factor, e + k * V);
  }
})");
constexpr TextKernel kRowNorm{"row_norm", kRowNormText.data()};

// Mean and sum of squared deviations of each piece, in double.
constexpr auto kRowMomentsText = join(kVectorText, kRowSumText, kParams, R"(
enum { ITEMS = PIECE / (THREADS * V) };
extern "C" __global__ void __launch_bounds__(THREADS) row_moments(const __grid_constant__ Params p) {
  __shared__ double parts[3][32];
  const int64_t r = quotient(blockIdx.x, p.pieces), piece = blockIdx.x - r * p.pieces;
  const X::S* x = p.x + r * p.n + piece * PIECE;
  const int n = (int)min<int64_t>(PIECE, p.n - piece * PIECE);
  // Of this thread: blocks of up to 16 elements, merged one by one.
  A mean = A(0), m2 = A(0), seen = A(0);
  enum { U = 16 / V };
  for (int k = 0; k < ITEMS; k += U) {
    Vec<X::S, V> in[U];
    A sum = A(0), part = A(0), count = A(0);
    #pragma unroll
    for (int u = 0; u < U; ++u) {
      const int j = ((k + u) * THREADS + (int)threadIdx.x) * V;
      if (j < n) in[u] = *(const Vec<X::S, V>*)(x + j);
    }
    #pragma unroll
    for (int u = 0; u < U; ++u)
      if (((k + u) * THREADS + (int)threadIdx.x) * V < n) {
        count += A(V);
        #pragma unroll
        for (int i = 0; i < V; ++i) sum += X::ld(in[u].v[i]);
      }
    if (count == A(0)) break;
    const A here = CENTRED ? sum / count : A(0);
    #pragma unroll
    for (int u = 0; u < U; ++u)
      if (((k + u) * THREADS + (int)threadIdx.x) * V < n)
        #pragma unroll
        for (int i = 0; i < V; ++i) {
          const A d = X::ld(in[u].v[i]) - here;
          part += d * d;
        }
    const A delta = here - mean, all = seen + count;
    mean += delta * (count / all);
    m2 += part + delta * delta * (seen * count / all);
    seen = all;
  }
  const double count = (double)n;
  double m = CENTRED ? row_sum((double)mean * (double)seen, parts[0]) / count : 0;
  double d = (double)mean - m;
  double s = row_sum((double)m2 + d * d * (double)seen, parts[1]);
  if (sizeof(A) == 4 && !isfinite(s)) {
    double sum = 0;
    __syncthreads();
    if constexpr (CENTRED) {
      for (int j = threadIdx.x; j < n; j += THREADS) sum += (double)X::ld(x[j]);
      sum = row_sum(sum, parts[0]);
    }
    m = sum / count;
    s = 0;
    for (int j = threadIdx.x; j < n; j += THREADS) {
      d = (double)X::ld(x[j]) - m;
      s += d * d;
    }
    s = row_sum(s, parts[2]);
  }
  if (threadIdx.x == 0) {
    p.moments[2 * (int64_t)blockIdx.x] = m;
    p.moments[2 * (int64_t)blockIdx.x + 1] = s;
  }
})");
constexpr TextKernel kRowMoments{"row_moments", kRowMomentsText.data()};

// The pieces of a row in their order, a thread a row: there are few.
constexpr auto kRowMergeText = join(kParams, R"(
extern "C" __global__ void __launch_bounds__(256) row_merge(const __grid_constant__ Params p) {
  for (int64_t r = thread(); r < p.rows; r += threads()) {
    const double* m = p.moments + 2 * r * p.pieces;
    double mean = 0, m2 = 0, seen = 0;
    for (int64_t i = 0; i < p.pieces; ++i) {
      const double count = (double)min<int64_t>(PIECE, p.n - i * PIECE), all = seen + count;
      const double d = m[2 * i] - mean;
      mean += d * (count / all);
      m2 += m[2 * i + 1] + d * d * (seen * count / all);
      seen = all;
    }
    p.means[r] = (A)mean;
    p.factors[r] = (A)(1 / sqrt(m2 / (double)p.n + p.eps));
  }
})");
constexpr TextKernel kRowMerge{"row_merge", kRowMergeText.data()};

constexpr auto kRowApplyText = join(kVectorText, kParams, kWeights, R"(
extern "C" __global__ void __launch_bounds__(256) row_apply(const __grid_constant__ Params p) {
  const int64_t per = p.n / V, all = p.rows * per;
  enum { U = 2 };
  for (int64_t first = thread(); first < all; first += threads() * U) {
    Vec<X::S, V> in[U];
    #pragma unroll
    for (int u = 0; u < U; ++u) {
      const int64_t i = first + u * threads();
      if (i < all) in[u] = load_once((const Vec<X::S, V>*)p.x + i);
    }
    #pragma unroll
    for (int u = 0; u < U; ++u) {
      const int64_t i = first + u * threads();
      if (i >= all) break;
      const int64_t r = quotient(i, per), j = (i - r * per) * V;
      A e[V];
      #pragma unroll
      for (int v = 0; v < V; ++v) e[v] = X::ld(in[u].v[v]);
      scaled(p, r, j, p.means[r], p.factors[r], e);
    }
  }
})");
constexpr TextKernel kRowApply{"row_apply", kRowApplyText.data()};

struct Params {
  const void* x;
  void *y, *means, *factors;
  const void *weight, *bias;
  int64_t rows, n, groups, channels, inner, pieces;
  CUdeviceptr moments;
  double eps;
};

Status run_with(Device& d, CUstream stream, const KernelArgs& args, const Joins* joins) {
  const KernelTensor &in = args.inputs[0], &w = args.inputs[1], &b = args.inputs[2];
  if (!is_floating(in.dtype))
    return fail(Code::kUnsupported, "row_norm: not implemented for %s", dtype_name(in.dtype));
  if (in.numel == 0) return ok();
  DenseOperand x(d, stream), weight(d, stream), bias(d, stream);
  if (!joins || !joins->before()) TS_TRY(x.take(in));
  TS_TRY(weight.take(w));
  TS_TRY(bias.take(b));
  const int64_t rows = args.ints[0], groups = args.ints[1], channels = args.ints[2];
  const bool centred = args.ints[3] != 0;
  Params p{x.data(),
           args.outputs[0].data,
           args.outputs[1].data,
           args.outputs[2].data,
           w.numel > 0 ? weight.data() : nullptr,
           b.numel > 0 ? bias.data() : nullptr,
           rows,
           in.numel / rows,
           groups,
           channels,
           in.numel / rows / channels,
           1,
           0,
           args.doubles[0]};
  const RowPlan plan = plan_row(p.n, in.dtype, in.dtype, is_aligned(p.y));
  const int weights = !p.weight && !p.bias ? 0 : p.inner == 1 ? 1 : 2;
  const Def types[] = {def("X", in.dtype), def("W", w.dtype), def("B", b.dtype)};
  const Def whole = def("WHOLE", p.inner % plan.vec == 0);
  if (plan.items > 0) {
    const int per_block = plan.threads < 128 ? 256 / plan.threads : 1;
    return launch_text(
        d, stream, kRowNorm,
        {types[0], types[1], types[2], def("V", plan.vec), def("THREADS", plan.threads),
         def("ITEMS", plan.items), def("CENTRED", centred), def("WEIGHTS", weights),
         def("ALIGNED", true), whole},
        {(rows + per_block - 1) / per_block, per_block * plan.threads}, &p, sizeof p, joins,
        plan.vec);
  }
  if (joins) return fail(Code::kUnsupported, "row_norm: nothing joins rows that are so long");
  p.pieces = (p.n + kRowPiece - 1) / kRowPiece;
  Scratch moments(d, stream);
  TS_TRY(moments.take(static_cast<size_t>(rows * p.pieces) * 2 * sizeof(double)));
  p.moments = moments.address();
  TS_TRY(launch_text(d, stream, kRowMoments,
                     {types[0], types[1], types[2], def("V", plan.vec), def("THREADS", 256),
                      def("CENTRED", centred), def("PIECE", kRowPiece)},
                     {rows * p.pieces, 256}, &p));
  TS_TRY(launch_text(d, stream, kRowMerge, {types[0], types[1], types[2], def("PIECE", kRowPiece)},
                     {fill_blocks(d, rows), 256}, &p));
  return launch_text(
      d, stream, kRowApply,
      {types[0], types[1], types[2], def("V", plan.vec), def("WEIGHTS", weights), whole},
      {fill_blocks(d, in.numel / plan.vec / 2), 256}, &p);
}

Status run_row_norm(Device& d, CUstream stream, const KernelArgs& args) {
  return run_with(d, stream, args, nullptr);
}
Status run_joined(Device& d, CUstream stream, const KernelArgs& args, const Joins& joins) {
  return run_with(d, stream, args, &joins);
}

TS_CUDA_KERNEL("row_norm", run_row_norm)
TS_CUDA_JOINED("row_norm", run_joined)

}  // namespace
}  // namespace tessera::cuda
