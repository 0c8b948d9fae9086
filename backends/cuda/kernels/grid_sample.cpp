// grid_sample and grid_sample_backward: the arithmetic of the CPU's,
// backends/cpu/kernel_grid_sample.cpp. A thread takes a place of the grid, for a few channels or,
// where the grid has a gradient, for all. The input's gradient is added up by atomics, so the last
// bits of places that several points of the grid read may differ from run to run.
#include <algorithm>

#include "../kernels.h"
#include "../text.h"
#include "row_text.h"

namespace tessera::cuda {
namespace {

constexpr char kPlaces[] = R"(
typedef T::A A;
enum { LINEAR, NEAREST, CUBIC };
enum { ZEROS, BORDER, REFLECTION };
enum { TAPS = MODE == CUBIC ? 4 : MODE == LINEAR ? 2 : 1 };
struct Params {
  const A* grad; const A* input; const A* grid; A* out; A* to_grid;
  int64_t samples, channels, in_points, out_points, size[3], step[3], padding, align, chunk, chunks;
};
struct Place { A at, slope; };
TS_FN Place clipped(Place p, int64_t size) {
  const A last = (A)(size - 1);
  if (p.at <= A(0)) return {A(0), A(0)};
  if (p.at >= last) return {last, A(0)};
  return p;
}
// Folded back at both ends as often as it takes.
TS_FN Place reflected(Place p, int64_t twice_low, int64_t twice_high) {
  if (twice_low == twice_high) return {A(0), A(0)};
  const A low = (A)twice_low / A(2), span = (A)(twice_high - twice_low) / A(2);
  A x = p.at - low, slope = p.slope;
  if (x < A(0)) { x = -x; slope = -slope; }
  const A extra = fmod(x, span);
  if (fmod(floor(x / span), A(2)) == A(0)) return {extra + low, slope};
  return {span - extra + low, -slope};
}
TS_FN Place unnormalised(const Params& p, A x, int d) {
  const A n = (A)p.size[d];
  if (p.align) return {(x + A(1)) / A(2) * (n - A(1)), (n - A(1)) / A(2)};
  return {((x + A(1)) * n - A(1)) / A(2), n / A(2)};
}
TS_FN Place padded(const Params& p, Place x, int d) {
  const int64_t size = p.size[d];
  if (p.padding == BORDER) {
    x = clipped(x, size);
  } else if (p.padding == REFLECTION) {
    x = p.align ? reflected(x, 0, 2 * (size - 1)) : reflected(x, -1, 2 * size - 1);
    x = clipped(x, size);
  }
  // Places that no number holds read nothing.
  if (!isfinite(x.at)) x = {A(-100), A(0)};
  return x;
}
TS_FN int64_t inside(const Params& p, A v, int d) {
  return v >= A(0) && v <= (A)(p.size[d] - 1) ? (int64_t)v : (int64_t)-1;
}
TS_FN void cubic_weights(A t, A* w, A* slope) {
  const A a = A(-0.75), x[4] = {t + A(1), t, A(1) - t, A(2) - t};
  #pragma unroll
  for (int i = 0; i < 4; ++i) {
    const A v = x[i];
    const bool inner = i == 1 || i == 2;
    w[i] = inner ? ((a + A(2)) * v - (a + A(3))) * v * v + A(1)
                 : ((v - A(5)) * v + A(8)) * v * a - A(4) * a;
    const A d = inner ? (A(3) * (a + A(2)) * v - A(2) * (a + A(3))) * v
                      : ((A(3) * v - A(10)) * v + A(8)) * a;
    slope[i] = i < 2 ? d : -d;
  }
}
// The elements one place is made of, and how their weights move with the grid's number. -1: outside.
struct Tap { int64_t at[DIMS][TAPS]; A weight[DIMS][TAPS], slope[DIMS][TAPS]; };
TS_FN void find_taps(const Params& p, const A* grid, Tap& t) {
  #pragma unroll
  for (int d = 0; d < DIMS; ++d) {
    Place x = unnormalised(p, grid[d], d);
    if constexpr (MODE == CUBIC) {
      const A whole = floor(x.at);
      cubic_weights(x.at - whole, t.weight[d], t.slope[d]);
      #pragma unroll
      for (int k = 0; k < TAPS; ++k) {
        t.at[d][k] = inside(p, padded(p, Place{whole - A(1) + (A)k, A(0)}, d).at, d);
        t.slope[d][k] *= x.slope;
      }
    } else if constexpr (MODE == NEAREST) {
      t.at[d][0] = inside(p, rint(padded(p, x, d).at), d);
      t.weight[d][0] = A(1);
      t.slope[d][0] = A(0);
    } else {
      x = padded(p, x, d);
      const A whole = floor(x.at), part = x.at - whole;
      t.at[d][0] = inside(p, whole, d);
      t.at[d][1] = inside(p, whole + A(1), d);
      t.weight[d][0] = A(1) - part;
      t.weight[d][1] = part;
      t.slope[d][0] = -x.slope;
      t.slope[d][1] = x.slope;
    }
  }
}
// f(place in the plane, indices of the taps) for every element inside, the last dimension slowest.
template <class F> TS_FN void each_tap(const Params& p, const Tap& t, F f) {
  #pragma unroll
  for (int k2 = 0; k2 < (DIMS == 3 ? TAPS : 1); ++k2)
    #pragma unroll
    for (int k1 = 0; k1 < TAPS; ++k1)
      #pragma unroll
      for (int k0 = 0; k0 < TAPS; ++k0) {
        const int k[3] = {k0, k1, k2};
        int64_t at = 0;
        bool in = true;
        #pragma unroll
        for (int d = 0; d < DIMS; ++d) {
          in = in && t.at[d][k[d]] >= 0;
          at += t.at[d][k[d]] * p.step[d];
        }
        if (in) f(at, k);
      }
}
TS_FN A product(const Tap& t, const int* k) {
  A w = A(1);
  #pragma unroll
  for (int d = 0; d < DIMS; ++d) w *= t.weight[d][k[d]];
  return w;
}
)";

constexpr auto kForwardText = join(kPlaces, R"(
extern "C" __global__ void __launch_bounds__(256) grid_sample(const __grid_constant__ Params p) {
  const int64_t all = p.samples * p.chunks * p.out_points;
  for (int64_t i = thread(); i < all; i += threads()) {
    const int64_t row = i / p.out_points, point = i - row * p.out_points;
    const int64_t n = row / p.chunks, first = (row - n * p.chunks) * p.chunk;
    Tap t;
    find_taps(p, p.grid + (n * p.out_points + point) * DIMS, t);
    const int64_t last = min(first + p.chunk, p.channels);
    for (int64_t c = first; c < last; ++c) {
      const A* plane = p.input + (n * p.channels + c) * p.in_points;
      A sum = A(0);
      each_tap(p, t, [&](int64_t at, const int* k) { sum += product(t, k) * plane[at]; });
      p.out[(n * p.channels + c) * p.out_points + point] = sum;
    }
  }
})");
constexpr TextKernel kForward{"grid_sample", kForwardText.data()};

constexpr auto kBackwardText = join(kPlaces, R"(
extern "C" __global__ void __launch_bounds__(256) grid_sample_backward(const __grid_constant__ Params p) {
  const int64_t all = p.samples * p.out_points;
  for (int64_t i = thread(); i < all; i += threads()) {
    const int64_t n = i / p.out_points, point = i - n * p.out_points;
    Tap t;
    find_taps(p, p.grid + i * DIMS, t);
    A slopes[3] = {A(0), A(0), A(0)};
    for (int64_t c = 0; c < p.channels; ++c) {
      const int64_t plane = (n * p.channels + c) * p.in_points;
      const A g = p.grad[(n * p.channels + c) * p.out_points + point];
      each_tap(p, t, [&](int64_t at, const int* k) {
        atomicAdd(p.out + plane + at, product(t, k) * g);
        if constexpr (MODE != NEAREST) {
          const A value = p.input[plane + at];
          #pragma unroll
          for (int d = 0; d < DIMS; ++d) {
            A slope = t.slope[d][k[d]];
            #pragma unroll
            for (int e = 0; e < DIMS; ++e)
              if (e != d) slope *= t.weight[e][k[e]];
            slopes[d] += slope * g * value;
          }
        }
      });
    }
    #pragma unroll
    for (int d = 0; d < DIMS; ++d) p.to_grid[i * DIMS + d] = slopes[d];
  }
})");
constexpr TextKernel kBackward{"grid_sample_backward", kBackwardText.data()};

struct Params {
  const void *grad, *input, *grid;
  void *out, *to_grid;
  int64_t samples, channels, in_points, out_points, size[3], step[3], padding, align, chunk, chunks;

  Params(const KernelTensor& in, const KernelTensor& places, const int64_t* ints)
      : grad(nullptr),
        input(in.data),
        grid(places.data),
        out(nullptr),
        to_grid(nullptr),
        samples(in.sizes[0]),
        channels(in.sizes[1]),
        in_points(1),
        size{},
        step{},
        padding(ints[1]),
        align(ints[2]),
        chunk(0),
        chunks(0) {
    const int dims = in.ndim - 2;
    for (int d = 0; d < dims; ++d) {
      size[d] = in.sizes[in.ndim - 1 - d];
      step[d] = in_points;
      in_points *= size[d];
    }
    out_points = samples > 0 ? places.numel / samples / dims : 0;
  }
};

Status run_grid_sample(Device& d, CUstream stream, const KernelArgs& args) {
  const KernelTensor& in = args.inputs[0];
  if (args.outputs[0].numel == 0) return ok();
  Params p(in, args.inputs[1], args.ints);
  p.out = args.outputs[0].data;
  // Finding a place costs about as much as a few channels.
  p.chunk = std::min<int64_t>(p.channels, 8);
  p.chunks = (p.channels + p.chunk - 1) / p.chunk;
  return launch_text(d, stream, kForward,
                     {def("T", in.dtype), def("MODE", args.ints[0]), def("DIMS", in.ndim - 2)},
                     {fill_blocks(d, p.samples * p.chunks * p.out_points), 256}, &p);
}

Status run_grid_sample_backward(Device& d, CUstream stream, const KernelArgs& args) {
  const KernelTensor& in = args.inputs[1];
  if (args.inputs[0].numel == 0) return ok();
  Params p(in, args.inputs[2], args.ints);
  p.grad = args.inputs[0].data;
  p.out = args.outputs[0].data;
  p.to_grid = args.outputs[1].data;
  return launch_text(d, stream, kBackward,
                     {def("T", in.dtype), def("MODE", args.ints[0]), def("DIMS", in.ndim - 2)},
                     {fill_blocks(d, p.samples * p.out_points), 256}, &p);
}

TS_CUDA_KERNEL("grid_sample", run_grid_sample)
TS_CUDA_KERNEL("grid_sample_backward", run_grid_sample_backward)

}  // namespace
}  // namespace tessera::cuda
