#include "pair_sums.h"

namespace tessera::cuda {
namespace {

constexpr TextKernel kFold{"fold_sums", R"(
typedef X::A A;
struct Params { const A* from; A* first; A* second; int64_t rows, n, gap, chunk; };
// 32 columns a block; blockIdx.y: which rows, blockIdx.z: which array.
extern "C" __global__ void __launch_bounds__(512) fold_sums(const __grid_constant__ Params p) {
  __shared__ A parts[16][33];
  const int x = threadIdx.x % 32, y = threadIdx.x / 32;
  const int64_t column = (int64_t)blockIdx.x * 32 + x;
  const int64_t begin = blockIdx.y * p.chunk, end = min(begin + p.chunk, p.rows);
  const A* from = p.from + blockIdx.z * p.gap + column;
  A sum = A(0);
  if (column < p.n)
    #pragma unroll 4
    for (int64_t r = begin + y; r < end; r += 16) sum += from[r * p.n];
  parts[y][x] = sum;
  __syncthreads();
  #pragma unroll
  for (int half = 8; half > 0; half /= 2) {
    if (y < half) parts[y][x] += parts[y + half][x];
    __syncthreads();
  }
  A* to = blockIdx.z == 0 ? p.first : p.second;
  if (y == 0 && column < p.n) to[blockIdx.y * p.n + column] = parts[0][x];
})"};

constexpr auto kSegmentsText = join(kVectorText, kRowSumText, R"(
typedef L::A A;
struct Params {
  const G::S* g; const X::S* x; const A* mean; const A* factor; const W::S* weight;
  A* gx; A* gs;
  int64_t segments, n, every, means, weight_rows, pieces;
};
enum { UNITS = THREADS < 128 ? 256 / THREADS : 1 };
extern "C" __global__ void __launch_bounds__(256) segment_sums(const __grid_constant__ Params p) {
  __shared__ A parts[2][32];
  const int64_t unit = (int64_t)blockIdx.x * UNITS + threadIdx.x / THREADS;
  const bool live = unit < p.segments * p.pieces;
  const int64_t piece = quotient(unit, p.segments), s = unit - piece * p.segments;
  const int64_t begin = live ? piece * PIECE : 0, end = live ? min<int64_t>(begin + PIECE, p.n) : 0;
  int64_t m = live ? quotient(s, p.every) : 0;
  if (p.means > 0) m %= p.means;
  const A mean = p.mean[m], factor = FACTOR ? p.factor[m] : A(1);
  const G::S* g = p.g + s * p.n;
  const X::S* x = p.x + s * p.n;
  const W::S* weight = WEIGHTED ? p.weight + s % p.weight_rows * p.n : nullptr;
  A gx[V], gs[V];
  #pragma unroll
  for (int i = 0; i < V; ++i) gx[i] = gs[i] = A(0);
  #pragma unroll 4
  for (int64_t j = begin + (threadIdx.x % THREADS) * V; j < end; j += THREADS * V) {
    const Vec<G::S, V> gv = *(const Vec<G::S, V>*)(g + j);
    const Vec<X::S, V> xv = *(const Vec<X::S, V>*)(x + j);
    #pragma unroll
    for (int i = 0; i < V; ++i) {
      A grad = (A)G::ld(gv.v[i]);
      if constexpr (WEIGHTED) grad *= (A)W::ld(weight[j + i]);
      gx[i] += grad * (((A)X::ld(xv.v[i]) - mean) * factor);
      gs[i] += grad;
    }
  }
  #pragma unroll
  for (int i = 1; i < V; ++i) { gx[0] += gx[i]; gs[0] += gs[i]; }
  const A one = row_sum(gx[0], parts[0]), two = row_sum(gs[0], parts[1]);
  if (live && threadIdx.x % THREADS == 0) { p.gx[unit] = one; p.gs[unit] = two; }
})");
constexpr TextKernel kSegments{"segment_sums", kSegmentsText.data()};

constexpr auto kColumnsText = join(kVectorText, R"(
typedef L::A A;
struct Params {
  const G::S* g; const X::S* x; const A* mean; const A* factor; A* gx; A* gs;
  int64_t rows, n, width, chunk;
};
enum { UP = 256 / ACROSS };
extern "C" __global__ void __launch_bounds__(256) column_sums(const __grid_constant__ Params p) {
  __shared__ A parts[256 * V];
  const int tx = threadIdx.x % ACROSS, ty = threadIdx.x / ACROSS;
  const int64_t column = ((int64_t)blockIdx.x * ACROSS + tx) * V;
  const int64_t begin = blockIdx.y * p.chunk, end = min(begin + p.chunk, p.rows);
  A gx[V], gs[V], mean[V];
  #pragma unroll
  for (int i = 0; i < V; ++i) {
    gx[i] = gs[i] = A(0);
    mean[i] = !BY_ROW && column < p.n ? p.mean[column + i] : A(0);
  }
  if (column < p.n)
    #pragma unroll 4
    for (int64_t r = begin + ty; r < end; r += UP) {
      const Vec<G::S, V> gv = *(const Vec<G::S, V>*)(p.g + r * p.n + column);
      const Vec<X::S, V> xv = *(const Vec<X::S, V>*)(p.x + r * p.n + column);
      #pragma unroll
      for (int i = 0; i < V; ++i) {
        A m = mean[i], f = A(1);
        if constexpr (BY_ROW) {
          const int64_t s = r * quotient(p.n, p.width) + quotient(column + i, p.width);
          m = p.mean[s];
          f = p.factor[s];
        }
        const A grad = (A)G::ld(gv.v[i]);
        gx[i] += grad * (((A)X::ld(xv.v[i]) - m) * f);
        gs[i] += grad;
      }
    }
  #pragma unroll
  for (int k = 0; k < 2; ++k) {
    #pragma unroll
    for (int i = 0; i < V; ++i) parts[(ty * V + i) * ACROSS + tx] = k == 0 ? gx[i] : gs[i];
    __syncthreads();
    #pragma unroll
    for (int half = UP / 2; half > 0; half /= 2) {
      if (ty < half)
        #pragma unroll
        for (int i = 0; i < V; ++i)
          parts[(ty * V + i) * ACROSS + tx] += parts[((ty + half) * V + i) * ACROSS + tx];
      __syncthreads();
    }
    if (ty == 0 && column < p.n)
      #pragma unroll
      for (int i = 0; i < V; ++i)
        (k == 0 ? p.gx : p.gs)[blockIdx.y * p.n + column + i] = parts[i * ACROSS + tx];
    __syncthreads();
  }
})");
constexpr TextKernel kColumns{"column_sums", kColumnsText.data()};

// Elements of one access to rows of n in both operands.
int vector_of(const PairOperands& of, int64_t n) {
  const int64_t item = static_cast<int64_t>(std::max(itemsize(of.g_dtype), itemsize(of.x_dtype)));
  int vec = static_cast<int>(std::min<int64_t>(16 / item, 8));
  while (n % vec != 0) vec /= 2;
  return vec;
}

CUdeviceptr after(CUdeviceptr p, int64_t elements, DType t) {
  return p + static_cast<CUdeviceptr>(elements) * itemsize(t);
}

}  // namespace

Status fold_sums(Device& d, CUstream stream, CUdeviceptr partials, int64_t rows, int64_t n,
                 int64_t gap, DType wide, void* to_first, void* to_second) {
  constexpr int64_t kRows = 2048, kChunk = 256;
  struct {
    CUdeviceptr from;
    void *first, *second;
    int64_t rows, n, gap, chunk;
  } p{partials, to_first, to_second, rows, n, gap, rows};
  const int64_t blocks = (n + 31) / 32;
  if (rows > kRows) {
    // Rows of rows; a grid's second dimension ends at 65535.
    p.chunk = std::max(kChunk, (p.rows + 65534) / 65535);
    const int64_t left = (p.rows + p.chunk - 1) / p.chunk;
    Scratch next(d, stream);
    TS_TRY(next.take(static_cast<size_t>(2 * left * n) * itemsize(wide)));
    p.first = reinterpret_cast<void*>(next.address());
    p.second = reinterpret_cast<void*>(after(next.address(), left * n, wide));
    TS_TRY(launch_text(d, stream, kFold, {def("X", wide)}, {blocks, 512, left, 2}, &p));
    return fold_sums(d, stream, next.address(), left, n, left * n, wide, to_first, to_second);
  }
  return launch_text(d, stream, kFold, {def("X", wide)}, {blocks, 512, 1, 2}, &p);
}

Status segment_sums(Device& d, CUstream stream, const PairOperands& of, const SegmentSums& s,
                    void* to_gx, void* to_g) {
  const int64_t pieces = (s.n + kRowPiece - 1) / kRowPiece;
  const int64_t sums = pieces * s.segments;
  const bool folded = pieces > 1 || s.channels > 0;
  Scratch memory(d, stream);
  struct {
    const void *g, *x, *mean, *factor, *weight;
    void *gx, *gs;
    int64_t segments, n, every, means, weight_rows, pieces;
  } p{of.g,       of.x, of.mean, of.factor, s.weight,      to_gx, to_g,
      s.segments, s.n,  s.every, s.means,   s.weight_rows, pieces};
  if (folded) {
    TS_TRY(memory.take(static_cast<size_t>(2 * sums) * itemsize(of.wide)));
    p.gx = reinterpret_cast<void*>(memory.address());
    p.gs = reinterpret_cast<void*>(after(memory.address(), sums, of.wide));
  }
  const int vec = vector_of(of, s.n);
  int threads = 4;
  while (threads < 32 && int64_t{threads} * vec * 4 < s.n) threads *= 2;
  if (s.n > int64_t{32} * vec * 8) threads = 256;
  const int units = threads < 128 ? 256 / threads : 1;
  TS_TRY(launch_text(
      d, stream, kSegments,
      {def("G", of.g_dtype), def("X", of.x_dtype), def("L", of.wide), def("W", s.weight_dtype),
       def("V", vec), def("THREADS", threads), def("PIECE", kRowPiece),
       def("FACTOR", of.factor != nullptr), def("WEIGHTED", s.weight != nullptr)},
      {(sums + units - 1) / units, 256}, &p));
  if (!folded) return ok();
  const int64_t columns = s.channels > 0 ? s.channels : s.segments;
  return fold_sums(d, stream, memory.address(), sums / columns, columns, sums, of.wide, to_gx,
                   to_g);
}

Status column_sums(Device& d, CUstream stream, const PairOperands& of, int64_t rows,
                   int64_t columns, int64_t width, void* to_gx, void* to_g) {
  const int vec = vector_of(of, columns);
  int across = 1;
  while (across < 32 && int64_t{across} * vec < columns) across *= 2;
  const int64_t wide_blocks = (columns + across * vec - 1) / (across * vec);
  // Enough blocks for any device, each with several rows for every thread.
  const int64_t chunk = std::max<int64_t>(256 / across * 4, (rows * wide_blocks + 1023) / 1024);
  const int64_t chunks = (rows + chunk - 1) / chunk;
  Scratch memory(d, stream);
  struct {
    const void *g, *x, *mean, *factor;
    void *gx, *gs;
    int64_t rows, n, width, chunk;
  } p{of.g, of.x, of.mean, of.factor, to_gx, to_g, rows, columns, width, chunk};
  if (chunks > 1) {
    TS_TRY(memory.take(static_cast<size_t>(2 * chunks * columns) * itemsize(of.wide)));
    p.gx = reinterpret_cast<void*>(memory.address());
    p.gs = reinterpret_cast<void*>(after(memory.address(), chunks * columns, of.wide));
  }
  TS_TRY(launch_text(d, stream, kColumns,
                     {def("G", of.g_dtype), def("X", of.x_dtype), def("L", of.wide), def("V", vec),
                      def("ACROSS", across), def("BY_ROW", width > 0)},
                     {wide_blocks, 256, chunks}, &p));
  if (chunks == 1) return ok();
  return fold_sums(d, stream, memory.address(), chunks, columns, chunks * columns, of.wide, to_gx,
                   to_g);
}

}  // namespace tessera::cuda
