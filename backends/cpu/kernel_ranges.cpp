// arange, linspace and logspace: numbers in steps, into a dense vector.
#include <algorithm>
#include <cmath>
#include <complex>

#include "convert.h"
#include "convert_scalar.h"
#include "kernels.h"
#include "thread_pool.h"

namespace tessera::cpu {

namespace {

constexpr int64_t kTile = 512;
constexpr int64_t kGrain = 16;  // tiles

// Elements [first, first + n) are value(first, 0) .. value(first, n - 1): into memory where that is
// in register form, else by way of registers of type R. The second number is small, so that
// compilers can turn vectors of it into floating point.
template <class R, class Value>
Status fill_by(const KernelTensor& out, Value value) {
  const ConvertFn store = converts().store[static_cast<int>(out.dtype)];
  const int64_t item = static_cast<int64_t>(itemsize(out.dtype));
  const bool direct = is_register_form(out.dtype);
  parallel_for(0, (out.numel + kTile - 1) / kTile, kGrain, [&](int64_t b, int64_t e) {
    alignas(64) R tile[kTile];
    for (int64_t t = b; t < e; ++t) {
      const int64_t first = t * kTile;
      const int n = static_cast<int>(std::min(kTile, out.numel - first));
      char* at = static_cast<char*>(out.data) + first * item;
      R* to = direct ? reinterpret_cast<R*>(at) : tile;
      for (int i = 0; i < n; ++i) to[i] = cast<R>(value(first, i));
      if (!direct) store(at, tile, n);
    }
  });
  return {};
}

// Real numbers in registers of the output's class.
template <class Value>
Status fill_reals(const KernelTensor& out, Value value) {
  switch (reg_class(out.dtype)) {
    case RegClass::kF32:
      return fill_by<float>(out, value);
    case RegClass::kF64:
      return fill_by<double>(out, value);
    case RegClass::kI64:
      return fill_by<int64_t>(out, value);
    default:
      return fail(Code::kUnsupported, "not implemented for %s", dtype_name(out.dtype));
  }
}

// As many numbers as `n` at even distances, counted from the nearer end so that both ends are
// exact.
template <class T>
struct Spaced {
  T start, end, step;
  double last, half;

  Spaced(T from, T to, int64_t n)
      : start(from), end(to), step(0), last(static_cast<double>(n - 1)) {
    if (n > 1) step = (end - start) / T(last);
    half = n > 1 ? static_cast<double>(n / 2) : 1;
  }
  T operator()(int64_t first, int i) const {
    const double k = static_cast<double>(first) + static_cast<double>(i);
    const T from_start = start + step * T(k), from_end = end - step * T(last - k);
    return k < half ? from_start : from_end;
  }
};

// The ends as the output's dtype can hold them.
double rounded(double v, DType dtype) {
  switch (reg_class(dtype)) {
    case RegClass::kI64:
      return static_cast<double>(float_to_int(v));
    case RegClass::kF32:
    case RegClass::kC64:
      return static_cast<double>(static_cast<float>(v));
    default:
      return v;
  }
}

Status spaced(const KernelArgs& args, bool powers) {
  const KernelTensor& out = args.outputs[0];
  const double* d = args.doubles;
  const double base = d[4];
  const DType t = out.dtype;
  if (is_complex(t)) {
    using C = std::complex<double>;
    Spaced<C> ramp(C(rounded(d[0], t), rounded(d[1], t)), C(rounded(d[2], t), rounded(d[3], t)),
                   out.numel);
    auto value = [&](int64_t first, int i) {
      C v = powers ? std::pow(C(base), ramp(first, i)) : ramp(first, i);
      return c128(v.real(), v.imag());
    };
    return t == DType::kComplex64 ? fill_by<c64>(out, value) : fill_by<c128>(out, value);
  }
  // One power alone is that of the number given, before it is cut to an integer.
  double start = powers && out.numel == 1 ? d[0] : rounded(d[0], t);
  Spaced<double> ramp(start, rounded(d[2], t), out.numel);
  if (powers)
    return fill_reals(out, [&](int64_t first, int i) { return std::pow(base, ramp(first, i)); });
  return fill_reals(out, ramp);
}

}  // namespace

Status arange(const KernelArgs& args) {
  const KernelTensor& out = args.outputs[0];
  if (reg_class(out.dtype) == RegClass::kI64) {
    const uint64_t start = static_cast<uint64_t>(args.ints[0]);
    const uint64_t step = static_cast<uint64_t>(args.ints[1]);
    return fill_by<int64_t>(out, [=](int64_t first, int i) {
      return static_cast<int64_t>(start + step * static_cast<uint64_t>(first + i));
    });
  }
  const double start = args.doubles[0], step = args.doubles[1];
  return fill_reals(out, [=](int64_t first, int i) {
    return start + step * (static_cast<double>(first) + static_cast<double>(i));
  });
}

Status linspace(const KernelArgs& args) { return spaced(args, false); }
Status logspace(const KernelArgs& args) { return spaced(args, true); }

TS_KERNEL("arange", arange)
TS_KERNEL("linspace", linspace)
TS_KERNEL("logspace", logspace)

}  // namespace tessera::cpu
