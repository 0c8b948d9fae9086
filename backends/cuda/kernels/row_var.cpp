// var_mean of dense rows: a row is held in the registers of the threads that share it and read
// once, as row_norm holds it; its mean is taken first and the deviations from it second, whose sum
// takes the mean's rounding out again.
#include "row_var.h"

#include "row_plan.h"

namespace tessera::cuda {
namespace {

constexpr int64_t kLongestHeldRow = 8192, kShortHeldRow = 1024;

constexpr auto kText = join(kVectorText, kRowSumText, R"(
typedef X::A A;
struct Params {
  const X::S* x; X::S* var; X::S* mean;
  int64_t rows, n;
  double divisor;
  JOIN_FIELDS
};
)",
                            kRowLoadText, R"(
enum { ROWS = THREADS < 128 ? 256 / THREADS : 1, BLOCK = THREADS * ROWS };
extern "C" __global__ void __launch_bounds__(BLOCK) row_var(const __grid_constant__ Params p) {
  __shared__ A parts[3][32];
  __shared__ double wide_parts[64];
  const int64_t place = (int64_t)blockIdx.x * ROWS + threadIdx.x / THREADS;
  const bool live = place < p.rows;
  const int64_t r = live ? place : p.rows - 1;
  const int lane = threadIdx.x % THREADS, n = (int)p.n;
  Vec<X::S, V> in[ITEMS];
  #pragma unroll
  for (int k = 0; k < ITEMS; ++k) {
    const int j = (k * THREADS + lane) * V;
    if (j < n) in[k] = load_x(p, r, j);
  }
  A e[ITEMS * V], sum = A(0);
  #pragma unroll
  for (int k = 0; k < ITEMS; ++k)
    #pragma unroll
    for (int i = 0; i < V; ++i) {
      e[k * V + i] = (k * THREADS + lane) * V < n ? X::ld(in[k].v[i]) : A(0);
      sum += e[k * V + i];
    }
  const A count = (A)n;
  A mean = row_sum(sum, parts[0]) / count;
  A both[2] = {A(0), A(0)};
  #pragma unroll
  for (int k = 0; k < ITEMS; ++k)
    if ((k * THREADS + lane) * V < n)
      #pragma unroll
      for (int i = 0; i < V; ++i) {
        const A d = e[k * V + i] - mean;
        both[0] += d;
        both[1] += d * d;
      }
  row_sums(both, parts[1]);
  mean += both[0] / count;
  A m2 = both[1] - both[0] * both[0] / count;
  m2 = m2 < A(0) ? A(0) : m2;
  A var = m2 / (A)p.divisor;
  if constexpr (sizeof(A) == 4) {
    // Sums that left the range of floats, or a spread that is lost beside them: in double.
    const bool odd = !isfinite(m2) || m2 < A(1e-30);
    if (THREADS <= 32 ? __any_sync(0xffffffffu, odd) : odd) {
      double s = 0, q = 0;
      for (int j = lane; j < n; j += THREADS) s += (double)X::ld(one_x(p, r, j));
      const double m = row_sum(s, wide_parts) / n;
      for (int j = lane; j < n; j += THREADS) {
        const double d = (double)X::ld(one_x(p, r, j)) - m;
        q += d * d;
      }
      q = row_sum(q, wide_parts + 32);
      if (odd) {
        mean = (A)m;
        var = (A)(q / p.divisor);
      }
    }
  }
  if (!live || lane != 0) return;
  p.mean[r] = X::st(mean);
  const X::S made[1] = {X::st(var)};
#ifdef AFTER
  After::take(p.after, r, 0, made);
  if (!p.var) return;
#endif
  p.var[r] = made[0];
})");
constexpr TextKernel kKernel{"row_var", kText.data()};

struct Params {
  const void* x;
  void *var, *mean;
  int64_t rows, n;
  double divisor;
};

bool is_rows(const KernelArgs& args, int64_t* rows, int64_t* n) {
  const KernelTensor& x = args.inputs[0];
  int64_t expected = 1;
  *n = *rows = 1;
  bool last = true;  // the reduced dimensions are the last ones
  for (int i = x.ndim - 1; i >= 0; --i) {
    const bool reduced = std::count(args.ints, args.ints + args.num_ints, i) > 0;
    if (reduced && !last && x.sizes[i] != 1) return false;
    if (!reduced && x.sizes[i] != 1) last = false;
    if (x.sizes[i] != 1 && x.strides[i] != expected) return false;
    expected *= x.sizes[i];
    (reduced ? *n : *rows) *= x.sizes[i];
  }
  return true;
}

Status run(Device& d, CUstream stream, const KernelArgs& args, int64_t rows, int64_t n,
           const Joins* joins) {
  const KernelTensor& x = args.inputs[0];
  Params p{x.data,
           args.outputs[0].data,
           args.outputs[1].data,
           rows,
           n,
           std::max(0.0, static_cast<double>(n) - args.doubles[0])};
  const RowPlan plan = plan_row(n, x.dtype, x.dtype, true);
  const int per_block = plan.threads < 128 ? 256 / plan.threads : 1;
  return launch_text(
      d, stream, kKernel,
      {def("X", x.dtype), def("V", plan.vec), def("THREADS", plan.threads),
       def("ITEMS", plan.items), def("ALIGNED", reinterpret_cast<uintptr_t>(x.data) % 16 == 0)},
      {(rows + per_block - 1) / per_block, per_block * plan.threads}, &p, sizeof p, joins,
      plan.vec);
}

Status run_joined(Device& d, CUstream stream, const KernelArgs& args, const Joins& joins) {
  return run(d, stream, args, args.inputs[0].sizes[0], args.inputs[0].sizes[1], &joins);
}
// Few rows keep few blocks busy: those are cut into pieces instead.
bool holds(int64_t rows, int64_t n) {
  return n >= 2 && n <= (rows < 64 ? kShortHeldRow : kLongestHeldRow);
}
TS_CUDA_JOINED("var_mean", run_joined, holds)

}  // namespace

bool run_row_var(Device& d, CUstream stream, const KernelArgs& args, Status* status) {
  int64_t rows, n;
  if (!is_rows(args, &rows, &n) || !holds(rows, n)) return false;
  *status = run(d, stream, args, rows, n, nullptr);
  return true;
}

}  // namespace tessera::cuda
