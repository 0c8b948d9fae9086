// cdist and cdist_backward: p-norms of the differences of all pairs of rows, as the CPU's,
// backends/cpu/kernel_distance.cpp.
#include <cmath>

#include "../kernels.h"
#include "../text.h"
#include "row_text.h"

namespace tessera::cuda {
namespace {

constexpr char kNorm[] = R"(
typedef T::A A;
enum { ZERO, ONE, TWO, INFINITE, GENERAL };
struct Params {
  const A* grad; const A* a; const A* b; const A* dist; A* out;
  int64_t batches, rows, others, m, tiles_down, tiles_across;
  double p;
};
// What a difference adds, and what becomes of the sum.
TS_FN A map(const Params& p, A d) {
  if constexpr (NORM == ZERO) return d != d ? d : d != A(0) ? A(1) : A(0);
  else if constexpr (NORM == TWO) return d * d;
  else if constexpr (NORM == GENERAL) return pow(abs(d), (A)p.p);
  else return abs(d);
}
TS_FN A join(A x, A y) {
  if constexpr (NORM == INFINITE) return max_nan(x, y);
  else return x + y;
}
TS_FN A finish(const Params& p, A sum) {
  if constexpr (NORM == TWO) return sqrt(sum);
  else if constexpr (NORM == GENERAL) return pow(sum, A(1) / (A)p.p);
  else return sum;
}
// What a difference adds to the gradient of its element.
TS_FN A slope(const Params& p, A g, A d, A dist) {
  if constexpr (NORM == ZERO) return A(0);
  else if constexpr (NORM == ONE) return g * sign(d);
  else if constexpr (NORM == TWO) return dist == A(0) ? A(0) : g * d / dist;
  else if constexpr (NORM == INFINITE) return abs(d) == dist ? g * sign(d) : A(0);
  else if (dist == A(0) || d == A(0)) return A(0);
  else return sign(d) * pow(abs(d), (A)p.p - A(1)) * g / pow(dist, (A)p.p - A(1));
}
)";

// Tiles of 32 x 32 pairs, four of them a thread; 16 columns of both operands at a time.
constexpr auto kTilesText = join(kNorm, R"(
extern "C" __global__ void __launch_bounds__(256) cdist(const __grid_constant__ Params p) {
  __shared__ A as[16][33], bs[16][33];
  const int64_t per = p.tiles_down * p.tiles_across;
  const int64_t batch = blockIdx.x / per, tile = blockIdx.x - batch * per;
  const int64_t row0 = tile / p.tiles_across * 32, other0 = tile % p.tiles_across * 32;
  const A* a = p.a + batch * p.rows * p.m;
  const A* b = p.b + batch * p.others * p.m;
  const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
  A sum[2][2] = {{A(0), A(0)}, {A(0), A(0)}};
  for (int64_t first = 0; first < p.m; first += 16) {
    const int64_t column = first + tx;
    #pragma unroll
    for (int h = 0; h < 32; h += 16) {
      const int64_t r = row0 + ty + h, o = other0 + ty + h;
      // Beyond the last row and column: numbers whose difference is zero.
      as[tx][ty + h] = r < p.rows && column < p.m ? a[r * p.m + column] : A(0);
      bs[tx][ty + h] = o < p.others && column < p.m ? b[o * p.m + column] : A(0);
    }
    __syncthreads();
    const int count = (int)min<int64_t>(16, p.m - first);
    for (int k = 0; k < count; ++k)
      #pragma unroll
      for (int y = 0; y < 2; ++y)
        #pragma unroll
        for (int x = 0; x < 2; ++x)
          sum[y][x] = join(sum[y][x], map(p, as[k][ty + 16 * y] - bs[k][tx + 16 * x]));
    __syncthreads();
  }
  #pragma unroll
  for (int y = 0; y < 2; ++y)
    #pragma unroll
    for (int x = 0; x < 2; ++x) {
      const int64_t r = row0 + ty + 16 * y, o = other0 + tx + 16 * x;
      if (r < p.rows && o < p.others)
        p.out[(batch * p.rows + r) * p.others + o] = finish(p, sum[y][x]);
    }
})");
constexpr TextKernel kTiles{"cdist", kTilesText.data()};

// A block a pair, where there are few pairs of long rows.
constexpr auto kPairsText = join(kNorm, R"(
extern "C" __global__ void __launch_bounds__(256) cdist_pairs(const __grid_constant__ Params p) {
  __shared__ A parts[8];
  const int64_t row = blockIdx.x / p.others, other = blockIdx.x - row * p.others;
  const A* a = p.a + row * p.m;
  const A* b = p.b + (row / p.rows * p.others + other) * p.m;
  A sum = A(0);
  #pragma unroll 4
  for (int64_t i = threadIdx.x; i < p.m; i += 256) sum = join(sum, map(p, a[i] - b[i]));
  #pragma unroll
  for (int d = 16; d > 0; d /= 2) sum = join(sum, __shfl_xor_sync(0xffffffffu, sum, d));
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x > 0) return;
  for (int w = 1; w < 8; ++w) sum = join(sum, parts[w]);
  p.out[blockIdx.x] = finish(p, sum);
})");
constexpr TextKernel kPairs{"cdist_pairs", kPairsText.data()};

// Of each element of a the sum over the rows of b, in their order.
constexpr auto kBackwardText = join(kNorm, R"(
extern "C" __global__ void __launch_bounds__(256) cdist_backward(const __grid_constant__ Params p) {
  const int64_t all = p.batches * p.rows * p.m;
  for (int64_t i = thread(); i < all; i += threads()) {
    const int64_t row = i / p.m, column = i - row * p.m;
    const A* b = p.b + row / p.rows * p.others * p.m + column;
    const A* g = p.grad + row * p.others;
    const A* dist = p.dist + row * p.others;
    const A value = p.a[i];
    A sum = A(0);
    #pragma unroll 4
    for (int64_t r = 0; r < p.others; ++r) sum += slope(p, g[r], value - b[r * p.m], dist[r]);
    p.out[i] = sum;
  }
})");
constexpr TextKernel kBackward{"cdist_backward", kBackwardText.data()};

struct Params {
  const void *grad, *a, *b, *dist;
  void* out;
  int64_t batches, rows, others, m, tiles_down, tiles_across;
  double p;
};

int norm_of(double p) { return p == 0 ? 0 : p == 1 ? 1 : p == 2 ? 2 : std::isinf(p) ? 3 : 4; }

Status check_dtype(DType t) {
  if (t == DType::kFloat32 || t == DType::kFloat64) return ok();
  return fail(Code::kUnsupported, "cdist(): not implemented for %s", dtype_name(t));
}

Status run_cdist(Device& d, CUstream stream, const KernelArgs& args) {
  const KernelTensor &a = args.inputs[0], &b = args.inputs[1], &out = args.outputs[0];
  TS_TRY(check_dtype(a.dtype));
  if (out.numel == 0) return ok();
  Params p{nullptr,
           a.data,
           b.data,
           nullptr,
           out.data,
           a.sizes[0],
           a.sizes[1],
           b.sizes[1],
           a.sizes[2],
           (a.sizes[1] + 31) / 32,
           (b.sizes[1] + 31) / 32,
           args.doubles[0]};
  const int64_t tiles = p.batches * p.tiles_down * p.tiles_across;
  const Def type = def("T", a.dtype), norm = def("NORM", norm_of(args.doubles[0]));
  if (p.m >= 512 && tiles < 64)
    return launch_text(d, stream, kPairs, {type, norm}, {out.numel, 256}, &p);
  return launch_text(d, stream, kTiles, {type, norm}, {tiles, 256}, &p);
}

Status run_cdist_backward(Device& d, CUstream stream, const KernelArgs& args) {
  const KernelTensor &a = args.inputs[1], &b = args.inputs[2], &out = args.outputs[0];
  TS_TRY(check_dtype(a.dtype));
  if (out.numel == 0) return ok();
  Params p{args.inputs[0].data,
           a.data,
           b.data,
           args.inputs[3].data,
           out.data,
           a.sizes[0],
           a.sizes[1],
           b.sizes[1],
           a.sizes[2],
           0,
           0,
           args.doubles[0]};
  return launch_text(d, stream, kBackward,
                     {def("T", a.dtype), def("NORM", norm_of(args.doubles[0]))},
                     {fill_blocks(d, out.numel), 256}, &p);
}

TS_CUDA_KERNEL("cdist", run_cdist)
TS_CUDA_KERNEL("cdist_backward", run_cdist_backward)

}  // namespace
}  // namespace tessera::cuda
