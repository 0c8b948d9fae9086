// resample and resample_backward: along one dimension by a table of places and weights, as the
// CPU's, backends/cpu/kernel_resample.cpp. Both read: the gradient of a place comes from the
// outputs that begin near it, whose places ascend, in the CPU's order.
#include "../kernels.h"
#include "../text.h"

namespace tessera::cuda {
namespace {

constexpr TextKernel kResample{"resample", R"(
typedef T::A A;
struct Params {
  const A* from; const int64_t* starts; const A* weights; A* to;
  int64_t numel, inner, from_length, to_length, taps;
};
TS_FN int64_t quotient(int64_t i, int64_t by) {
  return (i | by) >> 31 == 0 ? (int64_t)((unsigned)i / (unsigned)by) : i / by;
}
// The first place in [0, n) whose start is at least `value`.
TS_FN int64_t first_at(const int64_t* starts, int64_t n, int64_t value) {
  int64_t low = 0;
  while (low < n) {
    const int64_t middle = (low + n) / 2;
    if (starts[middle] < value) low = middle + 1;
    else n = middle;
  }
  return low;
}
TS_FN A gather(const Params& p, const A* from, int64_t i) {
  const int64_t start = p.starts[i], last = p.from_length - 1;
  const A* weights = p.weights + i * p.taps;
  A sum = weights[0] * from[max((int64_t)0, min(start, last)) * p.inner];
  for (int64_t k = 1; k < p.taps; ++k) {
    const A w = weights[k];
    if (w != A(0)) sum += w * from[max((int64_t)0, min(start + k, last)) * p.inner];
  }
  return sum;
}
TS_FN A spread(const Params& p, const A* from, int64_t at) {
  // What lies before the first place counts there, and what lies after the last.
  const int64_t n = p.from_length, last = p.to_length - 1;
  const int64_t begin = at == 0 ? 0 : first_at(p.starts, n, at - p.taps + 1);
  A sum = A(0);
  for (int64_t i = begin; i < n; ++i) {
    const int64_t start = p.starts[i];
    if (at != last && start > at) break;
    const int64_t low = at == 0 ? 0 : max((int64_t)0, at - start);
    const int64_t high = at == last ? p.taps : min(p.taps, at - start + 1);
    for (int64_t k = low; k < high; ++k) {
      const A w = p.weights[i * p.taps + k];
      if (w != A(0)) sum += w * from[i * p.inner];
    }
  }
  return sum;
}
extern "C" __global__ void __launch_bounds__(256) resample(const __grid_constant__ Params p) {
  for (int64_t i = thread(); i < p.numel; i += threads()) {
    const int64_t row = quotient(i, p.inner), outer = quotient(row, p.to_length);
    const A* from = p.from + outer * p.from_length * p.inner + (i - row * p.inner);
    const int64_t at = row - outer * p.to_length;
    p.to[i] = BACKWARD ? spread(p, from, at) : gather(p, from, at);
  }
})"};

template <bool kBackward>
Status run_resample(Device& d, CUstream stream, const KernelArgs& args) {
  const KernelTensor &in = args.inputs[0], &out = args.outputs[0];
  if (out.numel == 0) return ok();
  struct {
    const void *from, *starts, *weights;
    void* to;
    int64_t numel, inner, from_length, to_length, taps;
  } p{in.data,     args.inputs[1].data, args.inputs[2].data,    out.data, out.numel, out.sizes[2],
      in.sizes[1], out.sizes[1],        args.inputs[2].sizes[1]};
  return launch_text(d, stream, kResample, {def("T", out.dtype), def("BACKWARD", kBackward)},
                     {fill_blocks(d, out.numel), 256}, &p);
}

TS_CUDA_KERNEL("resample", run_resample<false>)
TS_CUDA_KERNEL("resample_backward", run_resample<true>)

}  // namespace
}  // namespace tessera::cuda
