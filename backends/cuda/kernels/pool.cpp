// Pools: the largest element of each window with its place, averages, and the averages' gradient,
// which each element gathers from the windows that hold it.
#include "pool_text.h"

namespace tessera::cuda {
namespace {

// V channels a thread, or (LANES 32) a warp for each window. NaN wins; of equals the first.
constexpr auto kMaxWhole = join(kPoolText, R"(
typedef Vec<T::S, V> Values;
struct Params { const T::S* in; T::S* values; int64_t* indices; int64_t n, inner; Windows w; };
TS_FN bool wins(T::A v, T::A than) { return v > than || (v != v && than == than); }
extern "C" __global__ void __launch_bounds__(256) pool_max(const __grid_constant__ Params p) {
  const I inner = (I)p.inner, h = (I)p.w.in[1], w = (I)p.w.in[2];
  for (I i = (I)(thread() / LANES); i < (I)p.n; i += (I)(threads() / LANES)) {
    const Place to = place_of(i, p.w.out, inner / V);
    const Range z = range_of(p.w, 0, to.at[0]), y = range_of(p.w, 1, to.at[1]),
                x = range_of(p.w, 2, to.at[2]);
    const T::S* in = p.in + to.outer * ((I)p.w.in[0] * h * w) * inner + to.c * V;
    T::A largest[V];
    Values kept;
    I best[V];
    #pragma unroll
    for (int v = 0; v < V; ++v) {
      largest[v] = T::A();
      best[v] = (z.first * h + y.first) * w + x.first;
      // Steps may jump over an input that is shorter than they are: then this is the result.
      kept.v[v] = T::st((T::A)-std::numeric_limits<T::A>::infinity());
      if (std::is_same_v<T::A, int64_t>) kept.v[v] = (T::S)LOWEST;
    }
    if constexpr (LANES == 1) {
      bool any = false;
      for (I a = z.first; a < z.last; a += z.step)
        for (I b = y.first; b < y.last; b += y.step)
          for (I c = x.first; c < x.last; c += x.step) {
            const I at = (a * h + b) * w + c;
            const Values s = *(const Values*)(in + at * inner);
            #pragma unroll
            for (int v = 0; v < V; ++v) {
              const T::A value = T::ld(s.v[v]);
              if (!any || wins(value, largest[v])) {
                largest[v] = value;
                kept.v[v] = s.v[v];
                best[v] = at;
              }
            }
            any = true;
          }
      *(Values*)(p.values + (int64_t)i * V) = kept;
      #pragma unroll
      for (int v = 0; v < V; ++v) p.indices[(int64_t)i * V + v] = best[v];
    } else {
      const int lane = threadIdx.x & 31;
      const I nx = (x.last - x.first + x.step - 1) / x.step;
      const I ny = (y.last - y.first + y.step - 1) / y.step;
      const I nz = (z.last - z.first + z.step - 1) / z.step;
      I at = -1;
      const I count = nx > 0 && ny > 0 && nz > 0 ? nx * ny * nz : 0;
      for (I k = lane; k < count; k += 32) {
        const I r = k / nx, q = r / ny;
        const I here = ((z.first + q * z.step) * h + y.first + (r - q * ny) * y.step) * w +
                       x.first + (k - r * nx) * x.step;
        const T::A value = T::ld(in[here]);
        if (at < 0 || wins(value, largest[0])) largest[0] = value, at = here;
      }
      for (int by = 16; by > 0; by >>= 1) {
        const T::A value = __shfl_xor_sync(0xffffffffu, largest[0], by);
        const I there = __shfl_xor_sync(0xffffffffu, at, by);
        const bool equal = !wins(value, largest[0]) && !wins(largest[0], value);
        if (there >= 0 && (at < 0 || wins(value, largest[0]) || (equal && there < at)))
          largest[0] = value, at = there;
      }
      if (lane == 0) {
        p.values[i] = at < 0 ? kept.v[0] : in[at];
        p.indices[i] = at < 0 ? best[0] : at;
      }
    }
  }
})");
constexpr TextKernel kMax{"pool_max", kMaxWhole.text};

constexpr auto kAverageText = join(kPoolText, R"(
TS_FN I divisor_of(const Windows& w, const Range& z, const Range& y, const Range& x) {
  if (w.divisor) return (I)w.divisor;
  if (w.adaptive || w.include_pad) return z.whole * y.whole * x.whole;
  return (z.last - z.first) * (y.last - y.first) * (x.last - x.first);
}
typedef Vec<T::S, V> Values;
struct Params { const T::S* in; T::S* out; int64_t n, inner; Windows w; };
)");

constexpr auto kAverageWhole = join(kAverageText.text, R"(
extern "C" __global__ void __launch_bounds__(256) pool_avg(const __grid_constant__ Params p) {
  const I inner = (I)p.inner, h = (I)p.w.in[1], w = (I)p.w.in[2];
  for (I i = (I)(thread() / LANES); i < (I)p.n; i += (I)(threads() / LANES)) {
    const Place to = place_of(i, p.w.out, inner / V);
    const Range z = range_of(p.w, 0, to.at[0]), y = range_of(p.w, 1, to.at[1]),
                x = range_of(p.w, 2, to.at[2]);
    const T::S* in = p.in + to.outer * ((I)p.w.in[0] * h * w) * inner + to.c * V;
    const T::A by = (T::A)divisor_of(p.w, z, y, x);
    T::A sum[V] = {};
    if constexpr (LANES == 1) {
      for (I a = z.first; a < z.last; ++a)
        for (I b = y.first; b < y.last; ++b)
          for (I c = x.first; c < x.last; ++c) {
            const Values s = *(const Values*)(in + ((a * h + b) * w + c) * inner);
            #pragma unroll
            for (int v = 0; v < V; ++v) sum[v] += T::ld(s.v[v]);
          }
      Values r;
      #pragma unroll
      for (int v = 0; v < V; ++v) r.v[v] = T::st(sum[v] / by);
      *(Values*)(p.out + (int64_t)i * V) = r;
    } else {
      const int lane = threadIdx.x & 31;
      const I nx = x.last - x.first, ny = y.last - y.first, nz = z.last - z.first;
      const I count = nx > 0 && ny > 0 && nz > 0 ? nx * ny * nz : 0;
      for (I k = lane; k < count; k += 32) {
        const I r = k / nx, q = r / ny;
        sum[0] += T::ld(in[((z.first + q) * h + y.first + r - q * ny) * w + x.first + k - r * nx]);
      }
      for (int with = 16; with > 0; with >>= 1)
        sum[0] += __shfl_xor_sync(0xffffffffu, sum[0], with);
      if (lane == 0) p.out[i] = T::st(sum[0] / by);
    }
  }
})");
constexpr TextKernel kAverage{"pool_avg", kAverageWhole.text};

// in: the averages' gradient. The order of the sum is the windows'.
constexpr auto kAverageBackwardWhole = join(kAverageText.text, R"(
extern "C" __global__ void __launch_bounds__(256)
pool_avg_backward(const __grid_constant__ Params p) {
  const I inner = (I)p.inner, h = (I)p.w.out[1], w = (I)p.w.out[2];
  for (I i = (I)thread(); i < (I)p.n; i += (I)threads()) {
    const Place to = place_of(i, p.w.in, inner / V);
    const Holders z = holders_of(p.w, 0, to.at[0]), y = holders_of(p.w, 1, to.at[1]),
                  x = holders_of(p.w, 2, to.at[2]);
    const T::S* in = p.in + to.outer * ((I)p.w.out[0] * h * w) * inner + to.c * V;
    T::A sum[V] = {};
    for (I a = z.first; a < z.last; ++a) {
      const Range rz = range_of(p.w, 0, a);
      for (I b = y.first; b < y.last; ++b) {
        const Range ry = range_of(p.w, 1, b);
        for (I c = x.first; c < x.last; ++c) {
          const T::A by = (T::A)divisor_of(p.w, rz, ry, range_of(p.w, 2, c));
          const Values s = *(const Values*)(in + ((a * h + b) * w + c) * inner);
          #pragma unroll
          for (int v = 0; v < V; ++v) sum[v] += T::ld(s.v[v]) / by;
        }
      }
    }
    Values r;
    #pragma unroll
    for (int v = 0; v < V; ++v) r.v[v] = T::st(sum[v]);
    *(Values*)(p.out + (int64_t)i * V) = r;
  }
})");
constexpr TextKernel kAverageBackward{"pool_avg_backward", kAverageBackwardWhole.text};

// A warp for each window where windows are long and would be walked by threads far apart.
int lanes_for(int64_t inner, const PoolWindows& w) {
  return inner == 1 && pool_volume(w) >= 64 ? 32 : 1;
}

int64_t lowest(DType t) {
  switch (t) {
    case DType::kUInt8:
      return 0;
    case DType::kInt8:
      return INT8_MIN;
    case DType::kInt16:
      return INT16_MIN;
    case DType::kInt32:
      return INT32_MIN;
    default:
      return -INT64_MAX;
  }
}

Status run_max(Device& d, CUstream stream, const KernelArgs& a) {
  const KernelTensor &in = a.inputs[0], &values = a.outputs[0], &indices = a.outputs[1];
  const DType t = in.dtype;
  if (is_complex(t) || t == DType::kBool)
    return fail(Code::kUnsupported, "max_pool is not implemented for %s", dtype_name(t));
  if (values.numel == 0) return ok();
  const PoolWindows w = pool_windows(a);
  const int64_t inner = pool_inner(in);
  const int lanes = lanes_for(inner, w), v = pool_vector(inner, t, {in.data, values.data});
  struct {
    const void* in;
    void *values, *indices;
    int64_t n, inner;
    PoolWindows w;
  } p{in.data, values.data, indices.data, values.numel / v, inner, w};
  return launch_text(d, stream, kMax,
                     {def("T", t), def("V", v), def("LANES", lanes), def("LOWEST", lowest(t)),
                      def("WIDE", pool_wide({in.numel, values.numel * lanes}))},
                     {fill_blocks(d, p.n * lanes), 256}, &p);
}

bool has_averages(DType t) { return is_floating(t) || t == DType::kInt64; }

Status run_average(Device& d, CUstream stream, const KernelArgs& a) {
  const KernelTensor &in = a.inputs[0], &out = a.outputs[0];
  const DType t = out.dtype;
  if (!has_averages(t))
    return fail(Code::kUnsupported, "avg_pool is not implemented for %s", dtype_name(t));
  if (out.numel == 0) return ok();
  const PoolWindows w = pool_windows(a);
  const int64_t inner = pool_inner(in);
  const int lanes = lanes_for(inner, w), v = pool_vector(inner, t, {in.data, out.data});
  struct {
    const void* in;
    void* out;
    int64_t n, inner;
    PoolWindows w;
  } p{in.data, out.data, out.numel / v, inner, w};
  return launch_text(d, stream, kAverage,
                     {def("T", t), def("V", v), def("LANES", lanes),
                      def("WIDE", pool_wide({in.numel, out.numel * lanes, w.divisor}))},
                     {fill_blocks(d, p.n * lanes), 256}, &p);
}

Status run_average_backward(Device& d, CUstream stream, const KernelArgs& a) {
  const KernelTensor &in = a.inputs[0], &out = a.outputs[0];
  const DType t = out.dtype;
  if (!has_averages(t))
    return fail(Code::kUnsupported, "avg_pool is not implemented for %s", dtype_name(t));
  if (out.numel == 0) return ok();
  const PoolWindows w = pool_windows(a);
  const int64_t inner = pool_inner(in);
  const int v = pool_vector(inner, t, {in.data, out.data});
  struct {
    const void* in;
    void* out;
    int64_t n, inner;
    PoolWindows w;
  } p{in.data, out.data, out.numel / v, inner, w};
  return launch_text(
      d, stream, kAverageBackward,
      {def("T", t), def("V", v), def("WIDE", pool_wide({in.numel, out.numel, w.divisor}))},
      {fill_blocks(d, p.n), 256}, &p);
}

TS_CUDA_KERNEL("pool_max", run_max)
TS_CUDA_KERNEL("pool_avg", run_average)
TS_CUDA_KERNEL("pool_avg_backward", run_average_backward)

}  // namespace
}  // namespace tessera::cuda
