// A filter of its own for each channel, in two dimensions: each element is read by few others, so
// the work is moving memory. Forward, and the gradient by the input.
#include <algorithm>

#include "../kernels.h"
#include "../text.h"
#include "conv_tiles.h"

namespace tessera::cuda {
namespace {

// V channels of a point a thread (LAST), or a point of a plane. K: the filter's size if both sides
// are that, else 0. BACK: a gradient by the input, where steps of the stride are left out
// (STEPPED).
constexpr TextKernel kDepthwise{"conv_depthwise", R"(
typedef T::A A;
typedef Vec<T::S, V> Values;
struct Params {
  const T::S *data, *weight, *bias;
  T::S* out;
  int64_t n, weight_c, weight_y, weight_x;
  int channels, out_y, out_x, data_y, data_x, k_y, k_x;
  int stride_y, stride_x, padding_y, padding_x, dilation_y, dilation_x;
};
TS_FN float mad(float a, float b, float c) { return fmaf(a, b, c); }
TS_FN double mad(double a, double b, double c) { return fma(a, b, c); }
// The place that a tap reads for place `to`; outside: none.
TS_FN int place(int to, int tap, int stride, int padding, int dilation) {
  if (!BACK) return to * stride - padding + tap * dilation;
  const int at = to + padding - tap * dilation;
  if (!STEPPED) return at;
  const int q = at / stride;
  return at >= 0 && q * stride == at ? q : -1;
}
extern "C" __global__ void __launch_bounds__(256) conv_depthwise(const __grid_constant__ Params p) {
  const int k_y = K ? (int)K : p.k_y, k_x = K ? (int)K : p.k_x, n = (int)p.n;
  for (int i = (int)thread(); i < n; i += (int)threads()) {
    int r = i, c = 0;
    if (LAST) {
      const int vectors = p.channels / V;
      r = i / vectors;
      c = (i - r * vectors) * V;
    }
    int q = r / p.out_x;
    const int x = r - q * p.out_x;
    r = q / p.out_y;
    const int y = q - r * p.out_y;
    if (!LAST) c = r % p.channels;
    const int step = LAST ? p.channels : 1;
    const T::S* data = p.data + (int64_t)r * p.data_y * p.data_x * step + (LAST ? c : 0);
    const T::S* weight = p.weight + c * p.weight_c;
    A sum[V] = {};
    #pragma unroll
    for (int a = 0; a < k_y; ++a) {
      const int from_y = place(y, a, p.stride_y, p.padding_y, p.dilation_y);
      if ((unsigned)from_y >= (unsigned)p.data_y) continue;
      #pragma unroll
      for (int b = 0; b < k_x; ++b) {
        const int from_x = place(x, b, p.stride_x, p.padding_x, p.dilation_x);
        if ((unsigned)from_x >= (unsigned)p.data_x) continue;
        const Values s = *(const Values*)(data + (from_y * p.data_x + from_x) * step);
        #pragma unroll
        for (int v = 0; v < V; ++v)
          sum[v] = mad(T::ld(weight[v * p.weight_c + a * p.weight_y + b * p.weight_x]),
                       T::ld(s.v[v]), sum[v]);
      }
    }
    Values result;
    #pragma unroll
    for (int v = 0; v < V; ++v)
      result.v[v] = T::st(p.bias ? sum[v] + T::ld(p.bias[c + v]) : sum[v]);
    *(Values*)(p.out + (int64_t)i * V) = result;
  }
})"};

// Dense plane after plane, or with channels last. Only dimensions longer than one tell.
bool is_dense(const KernelTensor& t, bool last) {
  int64_t step = last ? t.sizes[1] : 1, usual[5];
  for (int d = 4; d >= 2; --d) {
    usual[d] = step;
    step *= t.sizes[d];
  }
  usual[1] = last ? 1 : step;
  usual[0] = last ? step : step * t.sizes[1];
  for (int d = 0; d < 5; ++d)
    if (t.sizes[d] > 1 && t.strides[d] != usual[d]) return false;
  return true;
}

}  // namespace

Status conv_depthwise(Device& d, CUstream stream, const ConvCall& c, bool* done) {
  *done = false;
  const DType t = c.output.dtype;
  const bool back = c.kind == ConvKind::kBackwardInput;
  if (c.kind == ConvKind::kBackwardWeight || !is_floating(t)) return ok();
  const int64_t channels = c.input.sizes[1];
  if (c.groups != channels || c.output.sizes[1] != channels || c.padding[0] != 0) return ok();
  for (const KernelTensor* s : {&c.input, &c.output, &c.weight})
    if (s->sizes[2] != 1) return ok();
  // A grid's stride beyond the end still fits into 32 bits.
  if (std::max(c.input.numel, c.output.numel) >= int64_t{1} << 30) return ok();
  const bool first = is_dense(c.input, false) && is_dense(c.output, false),
             last = !first && is_dense(c.input, true) && is_dense(c.output, true);
  if (!first && !last) return ok();
  const KernelTensor &data = back ? c.output : c.input, &out = back ? c.input : c.output;
  int64_t v = last ? 16 / static_cast<int64_t>(itemsize(t)) : 1;
  for (const void* p : {data.data, out.data})
    if (channels % v || reinterpret_cast<uintptr_t>(p) % 16) v = 1;
  auto number = [](int64_t x) { return static_cast<int32_t>(x); };
  struct {
    const void *data, *weight, *bias;
    void* out;
    int64_t n, weight_c, weight_y, weight_x;
    int32_t channels, out_y, out_x, data_y, data_x, k_y, k_x;
    int32_t stride_y, stride_x, padding_y, padding_x, dilation_y, dilation_x;
  } p{data.data,
      c.weight.data,
      c.bias,
      out.data,
      out.numel / v,
      c.weight.strides[0],
      c.weight.strides[3],
      c.weight.strides[4],
      number(channels),
      number(out.sizes[3]),
      number(out.sizes[4]),
      number(data.sizes[3]),
      number(data.sizes[4]),
      number(c.weight.sizes[3]),
      number(c.weight.sizes[4]),
      number(c.stride[1]),
      number(c.stride[2]),
      number(c.padding[1]),
      number(c.padding[2]),
      number(c.dilation[1]),
      number(c.dilation[2])};
  const int32_t k = p.k_y == p.k_x && (p.k_y == 3 || p.k_y == 5) ? p.k_y : 0;
  *done = true;
  return launch_text(d, stream, kDepthwise,
                     {def("T", t), def("V", v), def("LAST", last), def("K", k), def("BACK", back),
                      def("STEPPED", p.stride_y != 1 || p.stride_x != 1)},
                     {fill_blocks(d, p.n), 256}, &p);
}

}  // namespace tessera::cuda
