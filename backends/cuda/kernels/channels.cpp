// Kernels over outer x channels x inner with numbers of each channel: arguments and meaning as the
// CPU's, backends/cpu/kernel_channels.cpp.
#include "pair_sums.h"

namespace tessera::cuda {
namespace {

// y = (x - m) * a + b, or with G: y = g * a + ((x - m) * b + c).
constexpr auto kAffineText = join(kVectorText, R"(
typedef L::A A;
struct Params {
  const X::S* g; const X::S* x; X::S* y;
  const M::S* m; const F::S* a; const B::S* b; const C::S* c;
  int64_t numel, channels, inner;
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
        const A x = X::ld(xv[u].v[v]) - n.m;
        if constexpr (TWO) out.v[v] = X::st(X::ld(gv[u].v[v]) * n.a + (x * n.b + n.c));
        else out.v[v] = X::st(x * n.a + n.b);
      }
      store_once((Vec<X::S, V>*)p.y + i, out);
    }
  }
})");
constexpr TextKernel kAffine{"channel_affine", kAffineText.data()};

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
  // Elements are read before they are written: a copy can lie where the results will.
  TS_TRY(x.take(in, out.data));
  if (kTwo) TS_TRY(g.take(args.inputs[0]));
  const void* numbers[4] = {};
  for (int i = 0; i < kVectors; ++i) {
    TS_TRY(dense[i].take(vectors[i]));
    if (vectors[i].numel > 0) numbers[i] = dense[i].data();
  }
  const int64_t channels = args.ints[1], inner = in.numel / (args.ints[0] * channels);
  struct {
    const void *g, *x;
    void* y;
    const void *m, *a, *b, *c;
    int64_t numel, channels, inner;
  } p{g.data(),   x.data(),   out.data, numbers[0], numbers[1],
      numbers[2], numbers[3], in.numel, channels,   inner};
  int vec = static_cast<int>(std::min<size_t>(16 / itemsize(in.dtype), 8));
  while (vec > 1 && ((inner == 1 ? channels : inner) % vec != 0 || !is_aligned(out.data))) vec /= 2;
  const DType wide = in.dtype == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
  return launch_text(
      d, stream, kAffine,
      {def("X", in.dtype), def("L", wide), def("M", vectors[0].dtype), def("F", vectors[1].dtype),
       def("B", vectors[2].dtype), def("C", vectors[kVectors - 1].dtype), def("V", vec),
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
