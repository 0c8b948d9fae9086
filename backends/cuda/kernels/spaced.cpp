// linspace and logspace: the arithmetic of the CPU's, in double.
#include "../kernels.h"
#include "../text.h"

namespace tessera::cuda {
namespace {

constexpr TextKernel kSpaced{"spaced", R"(
struct Params { T::S* out; int64_t n; double start, end, step, half, base; };
extern "C" __global__ void __launch_bounds__(256) spaced(const __grid_constant__ Params p) {
  const double last = (double)(p.n - 1);
  for (int64_t i = thread(); i < p.n; i += threads()) {
    const double k = (double)i;
    // From the nearer end, so that both are exact.
    double v = k < p.half ? p.start + p.step * k : p.end - p.step * (last - k);
    if constexpr (POWERS) v = pow(p.base, v);
    p.out[i] = T::st((typename T::A)v);
  }
})"};

constexpr TextKernel kSpacedComplex{"spaced_complex", R"(
typedef Complex<double> C;
struct Params { T::S* out; int64_t n; C start, end, step; double half, base; };
extern "C" __global__ void __launch_bounds__(256) spaced_complex(const __grid_constant__ Params p) {
  typedef decltype(T::A().re) R;
  const double last = (double)(p.n - 1);
  for (int64_t i = thread(); i < p.n; i += threads()) {
    const double k = (double)i;
    C v = k < p.half ? p.start + p.step * C(k) : p.end - p.step * C(last - k);
    if constexpr (POWERS) v = pow(C(p.base), v);
    p.out[i] = T::st(T::A((R)v.re, (R)v.im));
  }
})"};

// The ends as the output's dtype can hold them.
double rounded(double v, DType t) {
  switch (reg_class(t)) {
    case RegClass::kI64:
      return v >= 0x1p63    ? static_cast<double>(INT64_MAX)
             : v <= -0x1p63 ? static_cast<double>(INT64_MIN)
                            : static_cast<double>(static_cast<int64_t>(v));
    case RegClass::kF32:
    case RegClass::kC64:
      return static_cast<double>(static_cast<float>(v));
    default:
      return v;
  }
}

template <bool kPowers>
Status run_spaced(Device& d, CUstream stream, const KernelArgs& args) {
  const KernelTensor& out = args.outputs[0];
  const double* n = args.doubles;
  const DType t = out.dtype;
  if (out.numel == 0) return ok();
  const double last = static_cast<double>(out.numel - 1);
  const double half = out.numel > 1 ? static_cast<double>(out.numel / 2) : 1;
  const Grid grid{fill_blocks(d, out.numel), 256};
  auto step = [&](double from, double to) { return out.numel > 1 ? (to - from) / last : 0; };
  if (is_complex(t)) {
    double from[2] = {rounded(n[0], t), rounded(n[1], t)},
           to[2] = {rounded(n[2], t), rounded(n[3], t)};
    struct {
      void* out;
      int64_t n;
      double start[2], end[2], step[2], half, base;
    } p{out.data, out.numel, {from[0], from[1]}, {to[0], to[1]}, {}, half, n[4]};
    for (int i = 0; i < 2; ++i) p.step[i] = step(from[i], to[i]);
    return launch_text(d, stream, kSpacedComplex, {def("T", t), def("POWERS", kPowers)}, grid, &p);
  }
  // One power alone is that of the number given, before it is cut to an integer.
  double start = kPowers && out.numel == 1 ? n[0] : rounded(n[0], t), end = rounded(n[2], t);
  struct {
    void* out;
    int64_t n;
    double start, end, step, half, base;
  } p{out.data, out.numel, start, end, step(start, end), half, n[4]};
  return launch_text(d, stream, kSpaced, {def("T", t), def("POWERS", kPowers)}, grid, &p);
}

TS_CUDA_KERNEL("linspace", run_spaced<false>)
TS_CUDA_KERNEL("logspace", run_spaced<true>)

}  // namespace
}  // namespace tessera::cuda
