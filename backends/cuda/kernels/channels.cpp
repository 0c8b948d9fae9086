// Kernels over outer x channels x inner with numbers of each channel: arguments and meaning as the
// CPU's, backends/cpu/kernel_channels.cpp.
#include "pair_sums.h"

namespace tessera::cuda {
namespace {

// y = (x - m) * a + b, or with G: y = g * a + ((x - m) * b + c).
constexpr char kNumbers[] = R"(
typedef L::A A;
struct Params {
  const X::S* g; const X::S* x; X::S* y;
  const M::S* m; const F::S* a; const B::S* b; const C::S* c;
  int64_t numel, channels, inner, tiles_down, tiles_across;
};
template <class T> TS_FN A number(const typename T::S* of, int64_t i, A otherwise) {
  return of ? (A)T::ld(of[i]) : otherwise;
}
struct Numbers { A m, a, b, c; };
TS_FN Numbers numbers(const Params& p, int64_t channel) {
  Numbers n;
  n.m = number<M>(p.m, channel, A(0));
  n.a = number<F>(p.a, channel, A(1));
  n.b = number<B>(p.b, channel, A(0));
  n.c = TWO ? number<C>(p.c, channel, A(0)) : A(0);
  return n;
}
TS_FN X::S result(A g, A x, const Numbers& n) {
  x -= n.m;
  return X::st(TWO ? g * n.a + (x * n.b + n.c) : x * n.a + n.b);
}
)";

constexpr auto kAffineText = join(kVectorText, kNumbers, R"(
extern "C" __global__ void __launch_bounds__(256) channel_affine(const __grid_constant__ Params p) {
  enum { U = TWO ? 2 : 4 };
  const int64_t all = p.numel / V;
  for (int64_t first = thread(); first < all; first += threads() * U) {
    Vec<X::S, V> gv[U], xv[U];
    #pragma unroll
    for (int u = 0; u < U; ++u) {
      const int64_t i = first + u * threads();
      if (i >= all) continue;
      xv[u] = load_once((const Vec<X::S, V>*)p.x + i);
      if constexpr (TWO) gv[u] = load_once((const Vec<X::S, V>*)p.g + i);
    }
    #pragma unroll
    for (int u = 0; u < U; ++u) {
      const int64_t i = first + u * threads();
      if (i >= all) continue;
      // Where V > 1 a vector lies in one channel, or is one element of each of V channels.
      const int64_t row = quotient(i * V, p.inner), channel = row - quotient(row, p.channels) * p.channels;
      Numbers n;
      if constexpr (!ACROSS) n = numbers(p, channel);
      Vec<X::S, V> out;
      #pragma unroll
      for (int v = 0; v < V; ++v) {
        if constexpr (ACROSS) n = numbers(p, channel + v);
        out.v[v] = result(TWO ? X::ld(gv[u].v[v]) : A(0), X::ld(xv[u].v[v]), n);
      }
      store_once((Vec<X::S, V>*)p.y + i, out);
    }
  }
})");
constexpr TextKernel kAffine{"channel_affine", kAffineText.data()};

// Operands that have their channels last, by tiles of 32 x 32 through shared memory; the result has
// them where they were named.
constexpr auto kTilesText = join(kVectorText, kNumbers, R"(
extern "C" __global__ void __launch_bounds__(256) channel_affine_tiles(const __grid_constant__ Params p) {
  __shared__ A gs[G_LAST ? 32 : 1][33], xs[X_LAST ? 32 : 1][33];
  const int tx = threadIdx.x % 32, ty = threadIdx.x / 32;
  const int64_t row = quotient(blockIdx.x, p.tiles_across), n = quotient(row, p.tiles_down);
  const int64_t c0 = (row - n * p.tiles_down) * 32, i0 = (blockIdx.x - row * p.tiles_across) * 32;
  #pragma unroll
  for (int k = ty; k < 32; k += 8) {
    const int64_t at = (n * p.inner + i0 + k) * p.channels + c0 + tx;
    if (i0 + k >= p.inner || c0 + tx >= p.channels) continue;
    if constexpr (G_LAST) gs[k][tx] = X::ld(p.g[at]);
    if constexpr (X_LAST) xs[k][tx] = X::ld(p.x[at]);
  }
  __syncthreads();
  #pragma unroll
  for (int k = ty; k < 32; k += 8) {
    if (i0 + tx >= p.inner || c0 + k >= p.channels) continue;
    const int64_t at = (n * p.channels + c0 + k) * p.inner + i0 + tx;
    const A x = X_LAST ? xs[X_LAST ? tx : 0][k] : X::ld(p.x[at]);
    A g = A(0);
    if constexpr (TWO) g = G_LAST ? gs[G_LAST ? tx : 0][k] : X::ld(p.g[at]);
    p.y[at] = result(g, x, numbers(p, c0 + k));
  }
})");
constexpr TextKernel kTiles{"channel_affine_tiles", kTilesText.data()};

template <bool kTwo>
Status run_affine(Device& d, CUstream stream, const KernelArgs& args) {
  const char* name = kTwo ? "channel_affine2" : "channel_affine";
  const KernelTensor &in = args.inputs[kTwo ? 1 : 0], &out = args.outputs[0];
  const KernelTensor* vectors = args.inputs + (kTwo ? 2 : 1);
  constexpr int kVectors = kTwo ? 4 : 3;
  if (in.numel == 0) return ok();
  if (!is_floating(in.dtype) || args.inputs[0].dtype != in.dtype || out.dtype != in.dtype)
    return fail(Code::kUnsupported, "%s of %s is not implemented for CUDA", name,
                dtype_name(in.dtype));
  DenseOperand x(d, stream), g(d, stream);
  DenseOperand dense[4] = {{d, stream}, {d, stream}, {d, stream}, {d, stream}};
  const int64_t outer = args.ints[0], channels = args.ints[1];
  const int64_t inner = in.numel / (outer * channels);
  struct {
    const void *g, *x;
    void* y;
    const void* numbers[4];
    int64_t numel, channels, inner, tiles_down, tiles_across;
  } p{args.inputs[0].data,  in.data,          out.data, {}, in.numel, channels, inner,
      (channels + 31) / 32, (inner + 31) / 32};
  for (int i = 0; i < kVectors; ++i) {
    TS_TRY(dense[i].take(vectors[i]));
    if (vectors[i].numel > 0) p.numbers[i] = dense[i].data();
  }
  const DType wide = in.dtype == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
  const Def types[] = {def("X", in.dtype),         def("L", wide),
                       def("M", vectors[0].dtype), def("F", vectors[1].dtype),
                       def("B", vectors[2].dtype), def("C", vectors[kVectors - 1].dtype)};
  const KernelTensor& grad = args.inputs[0];
  const bool x_last = is_channels_last(in) && !is_dense(in);
  const bool g_last = kTwo && is_channels_last(grad) && !is_dense(grad);
  if ((x_last || g_last) && channels >= 8 && inner >= 8) {
    if (!x_last) TS_TRY(x.take(in));
    if (kTwo && !g_last) TS_TRY(g.take(grad));
    if (!x_last) p.x = x.data();
    if (!g_last) p.g = g.data();
    return launch_text(d, stream, kTiles,
                       {types[0], types[1], types[2], types[3], types[4], types[5],
                        def("G_LAST", g_last), def("X_LAST", x_last), def("TWO", kTwo)},
                       {outer * p.tiles_down * p.tiles_across, 256}, &p);
  }
  // Elements are read before they are written: a copy can lie where the results will.
  TS_TRY(x.take(in, out.data));
  if (kTwo) TS_TRY(g.take(grad));
  p.x = x.data();
  p.g = g.data();
  int vec = static_cast<int>(std::min<size_t>(16 / itemsize(in.dtype), 8));
  while (vec > 1 && ((inner == 1 ? channels : inner) % vec != 0 || !is_aligned(out.data))) vec /= 2;
  return launch_text(d, stream, kAffine,
                     {types[0], types[1], types[2], types[3], types[4], types[5], def("V", vec),
                      def("ACROSS", inner == 1), def("TWO", kTwo)},
                     {fill_blocks(d, in.numel / vec / (kTwo ? 2 : 4)), 256}, &p);
}

Status run_channel_sums(Device& d, CUstream stream, const KernelArgs& args) {
  const KernelTensor &grad = args.inputs[0], &in = args.inputs[1], &mean = args.inputs[2];
  const int64_t outer = args.ints[0], channels = args.ints[1];
  if (in.numel == 0) return ok();
  const DType wide = args.outputs[0].dtype;
  if (!is_floating(in.dtype) || !is_floating(grad.dtype) || mean.dtype != wide)
    return fail(Code::kUnsupported, "channel_sums of %s is not implemented for CUDA",
                dtype_name(in.dtype));
  const int64_t inner = in.numel / (outer * channels);
  DenseOperand g(d, stream), x(d, stream), m(d, stream);
  TS_TRY(m.take(mean));
  PairOperands of{grad.data, in.data, m.data(), nullptr, grad.dtype, in.dtype, wide};
  const bool last = is_channels_last(grad) && is_channels_last(in) && is_aligned(grad.data) &&
                    is_aligned(in.data);
  if (!last) {
    TS_TRY(g.take(grad));
    TS_TRY(x.take(in));
    of.g = g.data();
    of.x = x.data();
  }
  if (last || inner == 1)
    return column_sums(d, stream, of, outer * inner, channels, 0, args.outputs[0].data,
                       args.outputs[1].data);
  return segment_sums(d, stream, of, {outer * channels, inner, 1, channels, channels},
                      args.outputs[0].data, args.outputs[1].data);
}

TS_CUDA_KERNEL("channel_affine", run_affine<false>)
TS_CUDA_KERNEL("channel_affine2", run_affine<true>)
TS_CUDA_KERNEL("channel_sums", run_channel_sums)

}  // namespace
}  // namespace tessera::cuda
