// y[k] = g[k] + a[k] * y[k - 1] along a dimension, from either end, float in double: what the
// gradients of cumprod and logcumsumexp come to.
#include <algorithm>

#include "along.h"
#include "convert_scalar.h"
#include "kernels.h"
#include "thread_pool.h"

namespace tessera::cpu {

namespace {

constexpr int64_t kChunk = 256;
constexpr int64_t kGrain = 8 * 1024;

template <class R, class A>
void scan_line(const Along& a, const Along& g, const Along& out, int64_t line) {
  alignas(64) R read_a[kChunk], read_g[kChunk], written[kChunk], raw[kChunk];
  const char *from_a = a.line(line), *from_g = g.line(line);
  char* to = out.line(line);
  A y = A(0);
  for (int64_t first = 0; first < g.n; first += kChunk) {
    const int64_t n = std::min(kChunk, g.n - first);
    const R* x = static_cast<const R*>(a.load(from_a, first, n, read_a, raw));
    const R* h = static_cast<const R*>(g.load(from_g, first, n, read_g, raw));
    int64_t i = 0;
    // The first factor meets nothing: it may be infinite.
    if (first == 0) written[i++] = static_cast<R>(y = static_cast<A>(h[0]));
    for (; i < n; ++i) {
      y = static_cast<A>(h[i]) + static_cast<A>(x[i]) * y;
      written[i] = static_cast<R>(y);
    }
    out.store(to, first, n, written, raw);
  }
}

template <class R, class A>
Status scan_as(const KernelArgs& args) {
  const int64_t dim = args.ints[0];
  Along a(args.inputs[0], dim), g(args.inputs[1], dim), out(args.outputs[0], dim);
  if (args.ints[1]) {
    a.reverse();
    g.reverse();
    out.reverse();
  }
  parallel_for(0, g.lines(), std::max<int64_t>(1, kGrain / g.n), [&](int64_t b, int64_t e) {
    for (; b < e; ++b) scan_line<R, A>(a, g, out, b);
  });
  return {};
}

}  // namespace

// ints: dimension, from the end? Inputs a and g have one shape and dtype.
Status affine_scan(const KernelArgs& args) {
  if (args.inputs[0].numel == 0) return {};
  switch (reg_class(args.inputs[0].dtype)) {
    case RegClass::kF32:
      return scan_as<float, double>(args);
    case RegClass::kF64:
      return scan_as<double, double>(args);
    case RegClass::kC64:
      return scan_as<c64, c128>(args);
    case RegClass::kC128:
      return scan_as<c128, c128>(args);
    default:
      return fail(Code::kUnsupported, "affine_scan(): not implemented for %s",
                  dtype_name(args.inputs[0].dtype));
  }
}

TS_KERNEL("affine_scan", affine_scan)

}  // namespace tessera::cpu
