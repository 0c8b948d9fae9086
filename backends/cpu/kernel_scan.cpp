// cumsum, cumprod and logcumsumexp along a dimension, from either end.
//
// Note [The order of a scan]
// A line is scanned one element after the other, float in double. Sums whose accumulator is wider
// than the elements (or an integer) are cut into blocks of kBlock: each block's own prefix, begun
// at zero, is added to the total of the blocks before it. So one long line can be scanned by
// several threads, and the result is a function of its length alone. Products are not cut: a
// block's own product may overflow where the line's does not.
#include <algorithm>
#include <complex>

#include "along.h"
#include "convert_scalar.h"
#include "kernels.h"
#include "scratch.h"
#include "thread_pool.h"

namespace tessera::cpu {

namespace {

constexpr int64_t kBlock = 16384;
constexpr int64_t kChunk = 256;    // elements in registers at a time
constexpr int kTogether = 4;       // lines at a time: one waits for each addition, four do not
constexpr int64_t kColumns = 128;  // neighbouring lines at a time, where lines lie side by side
constexpr int64_t kGrain = 16 * 1024;

template <class R>
struct Wider {
  using type = R;
};
template <>
struct Wider<float> {
  using type = double;
};
template <>
struct Wider<int64_t> {
  using type = uint64_t;  // wraps
};
template <>
struct Wider<c64> {
  using type = c128;
};

struct Sum {
  static constexpr const char* kName = "cumsum()";
  template <class A>
  static A init() {
    return A(0);
  }
  template <class A>
  static TS_INLINE A step(A acc, A x) {
    return acc + x;
  }
};
struct Product {
  static constexpr const char* kName = "cumprod()";
  template <class A>
  static A init() {
    return A(1);
  }
  template <class A>
  static TS_INLINE A step(A acc, A x) {
    return acc * x;
  }
};
struct LogSumExp {
  static constexpr const char* kName = "logcumsumexp()";
  template <class A>
  static A init() {
    if constexpr (is_complex_v<A>)
      return A(-std::numeric_limits<double>::infinity(), 0);
    else
      return -std::numeric_limits<double>::infinity();
  }
  static double step(double acc, double x) {
    const double low = std::isnan(acc) ? acc : std::min(x, acc);
    const double high = std::isnan(acc) ? acc : std::max(x, acc);
    if (low == high && !std::isfinite(low)) return x;
    return std::log1p(std::exp(low - high)) + high;
  }
  static c128 step(c128 acc_, c128 x_) {
    using C = std::complex<double>;
    const C acc(acc_.re, acc_.im), x(x_.re, x_.im);
    auto made = [](C v) { return c128(v.real(), v.imag()); };
    auto is_nan = [](C v) { return std::isnan(v.real()) || std::isnan(v.imag()); };
    if (is_nan(acc) || is_nan(x)) return c128(std::nan(""), std::nan(""));
    const C low = x.real() < acc.real() ? x : acc, high = x.real() < acc.real() ? acc : x;
    if (low.real() == high.real() && !std::isfinite(low.real()))
      return made(low.real() < 0 ? low : std::log(std::exp(low) + std::exp(high)));
    // log1p of a complex number: by its parts, so that a small one is not lost beside the 1.
    const C e = std::exp(low - high);
    const double size = 0.5 * std::log1p(e.real() * (2 + e.real()) + e.imag() * e.imag());
    return made(high + C(size, std::atan2(e.imag(), 1 + e.real())));
  }
};

template <class Op, class R>
inline constexpr bool kBlocked = std::is_same_v<Op, Sum> &&
                                 (std::is_same_v<R, int64_t> ||
                                  !std::is_same_v<typename Wider<R>::type, R>);

template <class A, class R>
TS_INLINE A widened(R x) {
  return static_cast<A>(x);
}
template <class R, class A>
TS_INLINE R narrowed(A x) {
  return static_cast<R>(x);
}

// `count` elements of K stretches at once. acc[k] begins at the neutral element and is what the
// stretch comes to; before[k] is added to what is stored.
template <class Op, class R, int K, bool kStore = true>
void scan_stretches(const Along& in, const Along& out, char* const* in_lines,
                    char* const* out_lines, const int64_t* first, int64_t count,
                    typename Wider<R>::type* acc, const typename Wider<R>::type* before) {
  using A = typename Wider<R>::type;
  alignas(64) R read[K][kChunk];
  alignas(64) R written[K][kChunk];
  alignas(64) R raw[kChunk];
  const bool direct = out.stride == 1 && is_register_form(out.t.dtype);
  A a[K], b[K];
  for (int k = 0; k < K; ++k) {
    a[k] = acc[k];
    if constexpr (kStore) b[k] = before[k];
  }
  for (int64_t at = 0; at < count; at += kChunk) {
    const int64_t n = std::min(kChunk, count - at);
    const R* src[K];
    R* dst[K];
    for (int k = 0; k < K; ++k) {
      src[k] = static_cast<const R*>(in.load(in_lines[k], first[k] + at, n, read[k], raw));
      dst[k] = direct && kStore ? reinterpret_cast<R*>(out_lines[k]) + first[k] + at : written[k];
    }
    for (int64_t i = 0; i < n; ++i) {
      for (int k = 0; k < K; ++k) {
        a[k] = Op::step(a[k], widened<A>(src[k][i]));
        if constexpr (kStore && kBlocked<Op, R>)
          dst[k][i] = narrowed<R>(b[k] + a[k]);
        else if constexpr (kStore)
          dst[k][i] = narrowed<R>(a[k]);
      }
    }
    if (!direct && kStore)
      for (int k = 0; k < K; ++k) out.store(out_lines[k], first[k] + at, n, written[k], raw);
  }
  for (int k = 0; k < K; ++k) acc[k] = a[k];
}

// K whole lines.
template <class Op, class R, int K>
void scan_lines(const Along& in, const Along& out, int64_t line) {
  using A = typename Wider<R>::type;
  char *from[K], *to[K];
  A before[K];
  for (int k = 0; k < K; ++k) {
    from[k] = in.line(line + k);
    to[k] = out.line(line + k);
    before[k] = A(0);
  }
  const int64_t step = kBlocked<Op, R> ? kBlock : in.n;
  for (int64_t at = 0; at < in.n; at += step) {
    int64_t first[K];
    A acc[K];
    for (int k = 0; k < K; ++k) {
      first[k] = at;
      acc[k] = Op::template init<A>();
    }
    scan_stretches<Op, R, K>(in, out, from, to, first, std::min(step, in.n - at), acc, before);
    for (int k = 0; k < K; ++k) before[k] = before[k] + acc[k];
  }
}

// Blocks [b, e) of one line, kTogether at once: their totals, or with kStore the scan, to which the
// totals before each block are given.
template <class Op, class R, bool kStore>
void scan_blocks(const Along& in, const Along& out, int64_t line, int64_t b, int64_t e,
                 typename Wider<R>::type* totals) {
  using A = typename Wider<R>::type;
  char *from[kTogether], *to[kTogether];
  for (int k = 0; k < kTogether; ++k) {
    from[k] = in.line(line);
    to[k] = out.line(line);
  }
  while (b < e) {
    int64_t first[kTogether];
    A acc[kTogether];
    for (int k = 0; k < kTogether; ++k) {
      first[k] = (b + k) * kBlock;
      acc[k] = Op::template init<A>();
    }
    int done = 1;
    if (e - b >= kTogether && (b + kTogether) * kBlock <= in.n) {
      scan_stretches<Op, R, kTogether, kStore>(in, out, from, to, first, kBlock, acc, totals + b);
      done = kTogether;
    } else {
      scan_stretches<Op, R, 1, kStore>(in, out, from, to, first,
                                       std::min(kBlock, in.n - b * kBlock), acc, totals + b);
    }
    if (!kStore) std::copy_n(acc, done, totals + b);
    b += done;
  }
}

// Few long lines: every thread has blocks of the same one.
template <class Op, class R>
Status scan_long(const Along& in, const Along& out) {
  using A = typename Wider<R>::type;
  const int64_t blocks = (in.n + kBlock - 1) / kBlock;
  OutOfScratch failure;
  Scratch scratch(static_cast<size_t>(blocks) * sizeof(A), failure);
  if (!scratch.get()) return failure.status(Op::kName);
  A* totals = static_cast<A*>(scratch.get());
  for (int64_t line = 0; line < in.lines(); ++line) {
    parallel_for(0, blocks, kTogether, [&](int64_t b, int64_t e) {
      scan_blocks<Op, R, false>(in, out, line, b, e, totals);
    });
    A before = A(0);
    for (int64_t b = 0; b < blocks; ++b) {
      const A total = totals[b];
      totals[b] = before;
      before = before + total;
    }
    parallel_for(0, blocks, kTogether, [&](int64_t b, int64_t e) {
      scan_blocks<Op, R, true>(in, out, line, b, e, totals);
    });
  }
  return {};
}

// Lines [first, first + cols) of a block of lines that lie side by side.
template <class Op, class R>
void scan_columns(const Along& in, const Along& out, int64_t o, int64_t first, int64_t cols) {
  using A = typename Wider<R>::type;
  alignas(64) R read[kColumns];
  alignas(64) R written[kColumns];
  alignas(64) R raw[kColumns];
  alignas(64) A acc[kColumns];
  alignas(64) A before[kColumns];
  const char* from = in.block(o);
  char* to = out.block(o);
  const bool direct = is_register_form(out.t.dtype);
  std::fill_n(acc, cols, Op::template init<A>());
  std::fill_n(before, cols, A(0));
  for (int64_t k = 0; k < in.n; ++k) {
    if (kBlocked<Op, R> && k > 0 && k % kBlock == 0) {
      for (int64_t j = 0; j < cols; ++j) before[j] = before[j] + acc[j];
      std::fill_n(acc, cols, Op::template init<A>());
    }
    const R* x = static_cast<const R*>(in.load_across(from, k, first, cols, read, raw));
    R* y = direct ? reinterpret_cast<R*>(to) + k * out.stride + first : written;
    for (int64_t j = 0; j < cols; ++j) {
      acc[j] = Op::step(acc[j], widened<A>(x[j]));
      if constexpr (kBlocked<Op, R>)
        y[j] = narrowed<R>(before[j] + acc[j]);
      else
        y[j] = narrowed<R>(acc[j]);
    }
    if (!direct) out.store_across(to, k, first, cols, written);
  }
}

template <class Op, class R>
Status scan_as(const KernelArgs& args) {
  Along in(args.inputs[0], args.ints[0]), out(args.outputs[0], args.ints[0]);
  if (in.t.numel == 0) return {};
  if (args.ints[1]) {
    in.reverse();
    out.reverse();
  }
  if (in.inner > 1 && (in.inner_dense || in.stride != 1)) {
    const int64_t tiles = (in.inner + kColumns - 1) / kColumns;
    const int64_t grain = std::max<int64_t>(1, kGrain / (in.n * std::min(kColumns, in.inner)));
    parallel_for(0, in.outer * tiles, grain, [&](int64_t b, int64_t e) {
      for (int64_t t = b; t < e; ++t) {
        const int64_t first = t % tiles * kColumns;
        scan_columns<Op, R>(in, out, t / tiles, first, std::min(kColumns, in.inner - first));
      }
    });
    return {};
  }
  if constexpr (kBlocked<Op, R>)
    if (in.lines() < 2 * num_threads() && in.n >= 4 * kBlock && num_threads() > 1)
      return scan_long<Op, R>(in, out);
  const int64_t grain = std::max<int64_t>(kTogether, kGrain / in.n);
  parallel_for(0, in.lines(), grain, [&](int64_t b, int64_t e) {
    for (; b + kTogether <= e; b += kTogether) scan_lines<Op, R, kTogether>(in, out, b);
    for (; b < e; ++b) scan_lines<Op, R, 1>(in, out, b);
  });
  return {};
}

template <class Op>
Status scan(const KernelArgs& args) {
  switch (reg_class(args.inputs[0].dtype)) {
    case RegClass::kF32:
      return scan_as<Op, float>(args);
    case RegClass::kF64:
      return scan_as<Op, double>(args);
    case RegClass::kC64:
      return scan_as<Op, c64>(args);
    case RegClass::kC128:
      return scan_as<Op, c128>(args);
    case RegClass::kI64:
      if constexpr (!std::is_same_v<Op, LogSumExp>) return scan_as<Op, int64_t>(args);
      break;
    case RegClass::kB8:
      break;
  }
  return fail(Code::kUnsupported, "%s: not implemented for %s", Op::kName,
              dtype_name(args.inputs[0].dtype));
}

}  // namespace

Status cumsum(const KernelArgs& args) { return scan<Sum>(args); }
Status cumprod(const KernelArgs& args) { return scan<Product>(args); }
Status logcumsumexp(const KernelArgs& args) { return scan<LogSumExp>(args); }

TS_KERNEL("cumsum", cumsum)
TS_KERNEL("cumprod", cumprod)
TS_KERNEL("logcumsumexp", logcumsumexp)

}  // namespace tessera::cpu
