// Elements moved between windows and the places that indices name: the gradient of the largest
// elements, and unpooling. Every result is the same each time: nothing depends on which thread
// comes first.
#include "../data_error.h"
#include "pool_text.h"

namespace tessera::cuda {
namespace {

// Each place gathers from the windows that may have found it, in their order.
constexpr auto kScatterWindowsWhole = join(kPoolText, R"(
typedef Vec<T::S, V> Values;
typedef Vec<int64_t, V> Places;
struct Params { const T::S* from; const int64_t* at; T::S* to; int64_t n, inner; Windows w; };
extern "C" __global__ void __launch_bounds__(256)
pool_scatter_windows(const __grid_constant__ Params p) {
  const I inner = (I)p.inner, h = (I)p.w.out[1], w = (I)p.w.out[2];
  for (I i = (I)thread(); i < (I)p.n; i += (I)threads()) {
    const Place to = place_of(i, p.w.in, inner / V);
    const Holders z = holders_of(p.w, 0, to.at[0]), y = holders_of(p.w, 1, to.at[1]),
                  x = holders_of(p.w, 2, to.at[2]);
    const I first = to.outer * ((I)p.w.out[0] * h * w) * inner + to.c * V;
    const int64_t own = (to.at[0] * (I)p.w.in[1] + to.at[1]) * (I)p.w.in[2] + to.at[2];
    T::A sum[V] = {};
    for (I a = z.first; a < z.last; ++a)
      for (I b = y.first; b < y.last; ++b)
        for (I c = x.first; c < x.last; ++c) {
          const I there = first + ((a * h + b) * w + c) * inner;
          const Places at = *(const Places*)(p.at + there);
          const Values s = *(const Values*)(p.from + there);
          #pragma unroll
          for (int v = 0; v < V; ++v)
            if (at.v[v] == own) sum[v] = sum[v] + T::ld(s.v[v]);
        }
    Values r;
    #pragma unroll
    for (int v = 0; v < V; ++v) r.v[v] = T::st(sum[v]);
    *(Values*)(p.to + (int64_t)i * V) = r;
  }
})");
constexpr TextKernel kScatterWindows{"pool_scatter_windows", kScatterWindowsWhole.text};

// Where no windows are known: a thread for each plane, one element after another.
constexpr TextKernel kScatterPlanes{"pool_scatter_planes", R"(
struct Params {
  const T::S* from; const int64_t* at; T::S* to; int64_t planes, inner, points, count;
  ErrorSlot* slot;
};
extern "C" __global__ void __launch_bounds__(256)
pool_scatter_planes(const __grid_constant__ Params p) {
  for (int64_t n = thread(); n < p.planes; n += threads()) {
    const int64_t outer = n / p.inner, c = n - outer * p.inner;
    const int64_t own = outer * p.count * p.inner + c;
    T::S* to = p.to + outer * p.points * p.inner + c;
    for (int64_t i = 0; i < p.points; ++i) to[i * p.inner] = T::st(T::A());
    for (int64_t i = 0; i < p.count; ++i) {
      const int64_t place = p.at[own + i * p.inner];
      if (place < 0 || place >= p.points) {
        report(p.slot, KIND, place, p.points, 0);
        continue;
      }
      T::S& there = to[place * p.inner];
      there = T::st(T::ld(there) + T::ld(p.from[own + i * p.inner]));
    }
  }
})"};

// The last of those that go to a place has it: the largest number + 1, then the elements.
constexpr TextKernel kClaim{"pool_claim", R"(
struct Params {
  const int64_t* at; N* last; int64_t n, inner, points, count; ErrorSlot* slot;
};
extern "C" __global__ void __launch_bounds__(256) pool_claim(const __grid_constant__ Params p) {
  for (int64_t i = thread(); i < p.n; i += threads()) {
    const int64_t q = i / p.inner, c = i - q * p.inner, outer = q / p.count;
    const int64_t place = p.at[i];
    if (place < 0 || place >= p.points)
      report(p.slot, KIND, place, p.points, 0);
    else
      atomicMax(p.last + (outer * p.points + place) * p.inner + c, (N)(q - outer * p.count + 1));
  }
})"};
constexpr TextKernel kAssign{"pool_assign", R"(
struct Params { const S* from; const N* last; S* to; int64_t n, inner, points, count; };
extern "C" __global__ void __launch_bounds__(256) pool_assign(const __grid_constant__ Params p) {
  for (int64_t i = thread(); i < p.n; i += threads()) {
    const int64_t q = i / p.inner, c = i - q * p.inner, outer = q / p.points;
    const int64_t last = (int64_t)p.last[i];
    S s = S();
    if (last > 0) s = p.from[(outer * p.count + last - 1) * p.inner + c];
    p.to[i] = s;
  }
})"};

constexpr TextKernel kGather{"pool_gather", R"(
struct Params {
  const S* from; const int64_t* at; S* to; int64_t n, inner, points, count; ErrorSlot* slot;
};
extern "C" __global__ void __launch_bounds__(256) pool_gather(const __grid_constant__ Params p) {
  for (int64_t i = thread(); i < p.n; i += threads()) {
    const int64_t q = i / p.inner, c = i - q * p.inner, outer = q / p.count;
    const int64_t place = p.at[i];
    S s = S();
    if (place < 0 || place >= p.points)
      report(p.slot, KIND, place, p.points, 0);
    else
      s = p.from[(outer * p.points + place) * p.inner + c];
    p.to[i] = s;
  }
})"};

constexpr int64_t kWrong = code_of(DataError::kPoolIndex);

Status run_scatter(Device& d, CUstream stream, const KernelArgs& a) {
  const KernelTensor &from = a.inputs[0], &at = a.inputs[1], &to = a.outputs[0];
  const DType t = to.dtype;
  if (to.numel == 0) return ok();
  const int64_t inner = pool_inner(to);
  if (a.num_ints > 0) {
    const PoolWindows w = pool_windows(a);
    const int v = pool_vector(inner, t, {from.data, at.data, to.data});
    struct {
      const void *from, *at;
      void* to;
      int64_t n, inner;
      PoolWindows w;
    } p{from.data, at.data, to.data, to.numel / v, inner, w};
    return launch_text(d, stream, kScatterWindows,
                       {def("T", t), def("V", v), def("WIDE", pool_wide({to.numel, from.numel}))},
                       {fill_blocks(d, p.n), 256}, &p);
  }
  struct {
    const void *from, *at;
    void* to;
    int64_t planes, inner, points, count;
    CUdeviceptr slot;
  } p{from.data, at.data,         to.data,         to.sizes[0] * inner,
      inner,     pool_points(to), pool_points(at), d.slot_on_device};
  return launch_text(d, stream, kScatterPlanes, {def("T", t), def("KIND", kWrong)},
                     {fill_blocks(d, p.planes), 256}, &p);
}

Status run_assign(Device& d, CUstream stream, const KernelArgs& a) {
  const KernelTensor &from = a.inputs[0], &at = a.inputs[1], &to = a.outputs[0];
  const int64_t inner = pool_inner(at), points = pool_points(to), count = pool_points(at);
  const int64_t number = count < INT32_MAX ? 4 : 8;
  const size_t bytes = static_cast<size_t>(std::max<int64_t>(to.numel, 1) * number);
  Scratch last(d, stream);
  TS_TRY(last.take(bytes));
  TS_TRY(check(d, driver().cuMemsetD8Async(last.address(), 0, bytes, stream), "unpooling"));
  struct {
    const void* at;
    CUdeviceptr last;
    int64_t n, inner, points, count;
    CUdeviceptr slot;
  } claim{at.data, last.address(), at.numel, inner, points, count, d.slot_on_device};
  TS_TRY(launch_text(d, stream, kClaim, {def_bytes("N", number), def("KIND", kWrong)},
                     {fill_blocks(d, at.numel), 256}, &claim));
  if (to.numel == 0) return ok();
  struct {
    const void* from;
    CUdeviceptr last;
    void* to;
    int64_t n, inner, points, count;
  } move{from.data, last.address(), to.data, to.numel, inner, points, count};
  const auto size = static_cast<int64_t>(itemsize(to.dtype));
  return launch_text(d, stream, kAssign, {def_bytes("S", size), def_bytes("N", number)},
                     {fill_blocks(d, to.numel), 256}, &move);
}

Status run_gather(Device& d, CUstream stream, const KernelArgs& a) {
  const KernelTensor &from = a.inputs[0], &at = a.inputs[1], &to = a.outputs[0];
  if (to.numel == 0) return ok();
  struct {
    const void *from, *at;
    void* to;
    int64_t n, inner, points, count;
    CUdeviceptr slot;
  } p{from.data,      at.data,           to.data,         to.numel,
      pool_inner(at), pool_points(from), pool_points(at), d.slot_on_device};
  return launch_text(
      d, stream, kGather,
      {def_bytes("S", static_cast<int64_t>(itemsize(to.dtype))), def("KIND", kWrong)},
      {fill_blocks(d, to.numel), 256}, &p);
}

TS_CUDA_KERNEL("pool_scatter", run_scatter)
TS_CUDA_KERNEL("pool_assign", run_assign)
TS_CUDA_KERNEL("pool_gather", run_gather)

}  // namespace
}  // namespace tessera::cuda
