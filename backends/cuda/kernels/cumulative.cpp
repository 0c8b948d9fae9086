// cumsum, cumprod, logcumsumexp, affine_scan, cummax and cummin.
#include "lines.h"
#include "scan.h"

namespace tessera::cuda {
namespace {

constexpr const char* kSum = R"(
typedef std::conditional_t<std::is_same_v<T::A, int64_t>, uint64_t, T::A> N;
struct State { N v; };
TS_FN State none() { return State{N(0)}; }
TS_FN State make(const T::A* x, int64_t) { return State{(N)x[0]}; }
TS_FN State join(const State& a, const State& b) { return State{a.v + b.v}; }
TS_FN void put(const State& s, T::S& y, int64_t&) { y = T::st((T::A)s.v); }
)";

constexpr const char* kProduct = R"(
typedef std::conditional_t<std::is_same_v<T::A, int64_t>, uint64_t, T::A> N;
struct State { N v; };
TS_FN State none() { return State{N(1)}; }
TS_FN State make(const T::A* x, int64_t) { return State{(N)x[0]}; }
TS_FN State join(const State& a, const State& b) { return State{a.v * b.v}; }
TS_FN void put(const State& s, T::S& y, int64_t&) { y = T::st((T::A)s.v); }
)";

// A number with an exponent of its own: the product of a part of a line may be out of the range of
// floats where the product from the line's beginning is not.
constexpr const char* kScaled = R"(
template <class F> struct Scaled { F m; int e; };
template <class F> TS_FN Scaled<F> scaled_of(F x) {
  Scaled<F> s; s.m = x; s.e = 0;
  if (x == F(0) || !isfinite(x)) return s;
  if constexpr (std::is_same_v<F, float>) s.m = ::frexpf(x, &s.e);
  else s.m = ::frexp(x, &s.e);
  return s;
}
template <class F> TS_FN Scaled<F> times(Scaled<F> a, Scaled<F> b) {
  Scaled<F> s; s.m = a.m * b.m; s.e = a.e + b.e;
  if (abs(s.m) < F(0.5)) { s.m *= F(2); s.e -= 1; }
  // No sum of two wraps.
  s.e = s.e > (1 << 29) ? 1 << 29 : s.e < -(1 << 29) ? -(1 << 29) : s.e;
  return s;
}
template <class F> TS_FN F value_of(Scaled<F> s) {
  if constexpr (std::is_same_v<F, float>) return ::ldexpf(s.m, s.e);
  else return ::ldexp(s.m, s.e);
}
)";

constexpr const char* kScaledProduct = R"(
struct State { Scaled<T::A> v; };
TS_FN State none() { State s; s.v.m = T::A(0.5); s.v.e = 1; return s; }
TS_FN State make(const T::A* x, int64_t) { return State{scaled_of(x[0])}; }
TS_FN State join(const State& a, const State& b) { return State{times(a.v, b.v)}; }
TS_FN void put(const State& s, T::S& y, int64_t&) { y = T::st(value_of(s.v)); }
)";

// The largest element m, and the sum of exp(x - m) over the others.
constexpr const char* kLogSumExp = R"(
struct State { T::A m, rest; };
TS_FN State none() { return State{-std::numeric_limits<T::A>::infinity(), T::A(0)}; }
TS_FN State make(const T::A* x, int64_t) { return State{x[0], T::A(0)}; }
TS_FN State join(const State& a, const State& b) {
  const bool first = a.m >= b.m || a.m != a.m;
  const State high = first ? a : b, low = first ? b : a;
  // Infinities that are equal weigh the same.
  const T::A weight = low.m == high.m ? T::A(1) : exp(low.m - high.m);
  return State{high.m, high.rest + weight * (T::A(1) + low.rest)};
}
TS_FN void put(const State& s, T::S& y, int64_t&) { y = T::st(s.m + log1p(s.rest)); }
)";

// The imaginary part's sheet is a matter of the order of additions: one after the other.
constexpr TextKernel kComplexLogSumExp{"logcumsumexp_complex", R"(
typedef Complex<double> C;
struct Params { const T::S* x; T::S* y; int64_t n, lines, xs, ys; Walk<2> walk; };
TS_FN C step(C acc, C x) {
  const double inf = std::numeric_limits<double>::infinity();
  if (isnan(acc) || isnan(x)) return C((double)NAN, (double)NAN);
  const C low = x.re < acc.re ? x : acc, high = x.re < acc.re ? acc : x;
  if (low.re == high.re && (low.re == inf || low.re == -inf))
    return low.re < 0 ? low : log(exp(low) + exp(high));
  const C e = exp(low - high);
  const double size = 0.5 * log1p(e.re * (2 + e.re) + e.im * e.im);
  return high + C(size, atan2(e.im, 1 + e.re));
}
extern "C" __global__ void __launch_bounds__(256) logcumsumexp_complex(const __grid_constant__ Params p) {
  typedef decltype(T::A().re) R;
  for (int64_t line = thread(); line < p.lines; line += threads()) {
    int64_t o[2];
    offsets(p.walk, line, o);
    C acc(-std::numeric_limits<double>::infinity(), 0.0);
    for (int64_t j = 0; j < p.n; ++j) {
      acc = step(acc, C(p.x[o[0] + j * p.xs]));
      p.y[o[1] + j * p.ys] = T::A((R)acc.re, (R)acc.im);
    }
  }
})"};

// y = g + a * y before: two of them, one after the other, are one.
constexpr const char* kAffine = R"(
struct State { double g; Scaled<double> a; };
TS_FN State none() { State s; s.g = 0; s.a.m = 0.5; s.a.e = 1; return s; }
TS_FN State make(const T::A* x, int64_t j) {
  State s; s.g = (double)x[1]; s.a = scaled_of((double)x[0]);
  // The first factor meets nothing: it may be infinite.
  if (j == 0) { s.a.m = 0; s.a.e = 0; }
  return s;
}
TS_FN State join(const State& a, const State& b) {
  Scaled<double> carried; carried.m = b.a.m * a.g; carried.e = b.a.e;
  State s; s.g = b.g + value_of(carried); s.a = times(a.a, b.a);
  return s;
}
TS_FN void put(const State& s, T::S& y, int64_t&) { y = T::st((T::A)s.g); }
)";
constexpr const char* kComplexAffine = R"(
typedef Complex<double> C;
struct State { C g, a; };
TS_FN State none() { return State{C(0.0), C(1.0)}; }
TS_FN State make(const T::A* x, int64_t j) { return State{C(x[1]), j == 0 ? C(0.0) : C(x[0])}; }
TS_FN State join(const State& a, const State& b) { return State{b.g + b.a * a.g, a.a * b.a}; }
TS_FN void put(const State& s, T::S& y, int64_t&) {
  typedef decltype(T::A().re) R;
  y = T::A((R)s.g.re, (R)s.g.im);
}
)";

// A NaN takes the place of a number, and stays; of equals the later one.
constexpr const char* kExtreme = R"(
enum { LARGEST = OPTION & 1 };
typedef std::conditional_t<(OPTION & 2) != 0, int64_t, int> Index;
struct State { T::A v; Index at; };
TS_FN State none() { return State{T::A(0), (Index)-1}; }
TS_FN State make(const T::A* x, int64_t j) { return State{x[0], (Index)j}; }
TS_FN State join(const State& a, const State& b) {
  const bool beats = LARGEST ? b.v >= a.v : b.v <= a.v;
  const bool take = b.v != b.v || (a.v == a.v && beats);
  return b.at >= 0 && (a.at < 0 || take) ? b : a;
}
TS_FN void put(const State& s, T::S& y, int64_t& z) { y = T::st(s.v); z = s.at; }
)";

Status refuse(const KernelArgs& args, const char* name) {
  return fail(Code::kUnsupported, "%s(): not implemented for %s", name,
              dtype_name(args.inputs[0].dtype));
}

Status run_cumsum(Device& d, CUstream stream, const KernelArgs& args) {
  static const ScanOp& op = *new ScanOp(make_scan("cumsum", kSum));
  if (args.inputs[0].dtype == DType::kBool) return refuse(args, "cumsum");
  return run_scan(d, stream, op, args, args.ints[0], args.ints[1] != 0);
}

Status run_cumprod(Device& d, CUstream stream, const KernelArgs& args) {
  static const ScanOp& plain = *new ScanOp(make_scan("cumprod", kProduct));
  static const ScanOp& scaled =
      *new ScanOp(make_scan("cumprod_scaled", std::string(kScaled) + kScaledProduct));
  if (args.inputs[0].dtype == DType::kBool) return refuse(args, "cumprod");
  const ScanOp& op = is_floating(args.inputs[0].dtype) ? scaled : plain;
  return run_scan(d, stream, op, args, args.ints[0], args.ints[1] != 0);
}

Status run_logcumsumexp(Device& d, CUstream stream, const KernelArgs& args) {
  const KernelTensor &x = args.inputs[0], &y = args.outputs[0];
  if (!is_complex(x.dtype)) {
    static const ScanOp& op = *new ScanOp(make_scan("logcumsumexp", kLogSumExp));
    if (!is_floating(x.dtype)) return refuse(args, "logcumsumexp");
    return run_scan(d, stream, op, args, args.ints[0], args.ints[1] != 0);
  }
  if (x.numel == 0) return ok();
  const int dim = static_cast<int>(args.ints[0]);
  struct {
    char *x, *y;
    int64_t n, lines, xs, ys;
    Walk<2> walk;
  } p{static_cast<char*>(x.data), static_cast<char*>(y.data), 1, x.numel, 1, 1, {}};
  TS_TRY(make_walk(&p.walk, x.ndim, x.sizes, {x.strides, y.strides}, dim));
  if (x.ndim > 0) {
    p.n = x.sizes[dim];
    p.lines = x.numel / p.n;
    p.xs = x.strides[dim];
    p.ys = y.strides[dim];
  }
  if (args.ints[1]) {
    const int64_t bytes = static_cast<int64_t>(itemsize(x.dtype));
    p.x += (p.n - 1) * p.xs * bytes;
    p.y += (p.n - 1) * p.ys * bytes;
    p.xs = -p.xs;
    p.ys = -p.ys;
  }
  return launch_text(d, stream, kComplexLogSumExp, {def("T", x.dtype)},
                     {fill_blocks(d, p.lines), 256}, &p);
}

Status run_affine_scan(Device& d, CUstream stream, const KernelArgs& args) {
  static const ScanOp& real =
      *new ScanOp(make_scan("affine_scan", std::string(kScaled) + kAffine, true, 2));
  static const ScanOp& complex =
      *new ScanOp(make_scan("affine_scan_complex", kComplexAffine, true, 2));
  const DType t = args.inputs[0].dtype;
  if (!is_floating(t) && !is_complex(t)) return refuse(args, "affine_scan");
  return run_scan(d, stream, is_complex(t) ? complex : real, args, args.ints[0], args.ints[1] != 0);
}

template <bool kMax>
Status run_extreme(Device& d, CUstream stream, const KernelArgs& args) {
  static const ScanOp& op = *new ScanOp(make_scan("cumulative_extreme", kExtreme, false, 1, 2));
  const KernelTensor& x = args.inputs[0];
  if (is_complex(x.dtype)) return refuse(args, kMax ? "cummax" : "cummin");
  const bool wide = x.ndim > 0 && x.sizes[args.ints[0]] > INT32_MAX;
  return run_scan(d, stream, op, args, args.ints[0], false, (kMax ? 1 : 0) | (wide ? 2 : 0));
}

TS_CUDA_KERNEL("cumsum", run_cumsum)
TS_CUDA_KERNEL("cumprod", run_cumprod)
TS_CUDA_KERNEL("logcumsumexp", run_logcumsumexp)
TS_CUDA_KERNEL("affine_scan", run_affine_scan)
TS_CUDA_KERNEL("cummax", run_extreme<true>)
TS_CUDA_KERNEL("cummin", run_extreme<false>)

}  // namespace
}  // namespace tessera::cuda
