// "softmax_backward", "log_softmax_backward": from the gradient g and the result y along a
// dimension to y * (g - sum(g * y)), and to g - exp(y) * sum(g).
//   outputs  dense        inputs  g and y, of the same dtype, any layout        ints  the dimension
#include "along_dim.h"
#include "convert.h"
#include "kernels.h"
#include "softmax_loops.h"
#include "thread_pool.h"

namespace tessera::cpu {

namespace {

template <class T, bool kLog>
TS_INLINE T term(T g, T y) {
  return kLog ? g : g * y;
}
template <class T, bool kLog>
TS_INLINE T result(T g, T y, T sum) {
  return kLog ? g - math::exp(y) * sum : y * (g - sum);
}

template <class T, bool kLog, int kBytes>
TS_INLINE void backward_row(const T* g, const T* y, T* out, int64_t n) {
  constexpr int64_t kStep = loops::kReduceLanes;
  detail::BlockLanes<T, kBytes> lanes;
  lanes.clear();
  alignas(64) T terms[kStep];
  int64_t i = 0;
  for (; i + kStep <= n; i += kStep) {
    for (int64_t j = 0; j < kStep; ++j) terms[j] = term<T, kLog>(g[i + j], y[i + j]);
    detail::add_elements(lanes, terms);
  }
  if (i < n) {
    for (int64_t j = 0; j < kStep; ++j)
      terms[j] = i + j < n ? term<T, kLog>(g[i + j], y[i + j]) : T(0);
    detail::add_elements(lanes, terms);
  }
  const T sum = lanes.fold();
  for (i = 0; i < n; ++i) out[i] = result<T, kLog>(g[i], y[i], sum);
}
template <class T, bool kLog>
TS_INLINE void add_column_terms(const T* g, const T* y, int64_t n, T* __restrict part) {
  for (int64_t j = 0; j < n; ++j) part[j] += term<T, kLog>(g[j], y[j]);
}
template <class T, bool kLog>
TS_INLINE void column_results(const T* g, const T* y, T* __restrict out, int64_t n,
                              const T* __restrict sum) {
  for (int64_t j = 0; j < n; ++j) out[j] = result<T, kLog>(g[j], y[j], sum[j]);
}

template <class T>
struct Loops {
  void (*row)(const T* g, const T* y, T* out, int64_t n);
  void (*add_terms)(const T* g, const T* y, int64_t n, T* part);
  void (*results)(const T* g, const T* y, T* out, int64_t n, const T* sum);
};
#define TS_BACKWARD_ISA(isa, bytes, target)                                            \
  template <class T, bool kLog>                                                        \
  target void row_##isa(const T* g, const T* y, T* out, int64_t n) {                   \
    backward_row<T, kLog, bytes>(g, y, out, n);                                        \
  }                                                                                    \
  template <class T, bool kLog>                                                        \
  target void add_##isa(const T* g, const T* y, int64_t n, T* part) {                  \
    add_column_terms<T, kLog>(g, y, n, part);                                          \
  }                                                                                    \
  template <class T, bool kLog>                                                        \
  target void results_##isa(const T* g, const T* y, T* out, int64_t n, const T* sum) { \
    column_results<T, kLog>(g, y, out, n, sum);                                        \
  }                                                                                    \
  template <class T, bool kLog>                                                        \
  constexpr Loops<T> kLoops_##isa = {row_##isa<T, kLog>, add_##isa<T, kLog>,           \
                                     results_##isa<T, kLog>};
TS_BACKWARD_ISA(baseline, 16, )
TS_BACKWARD_ISA(avx2, 32, TS_TARGET_AVX2)
TS_BACKWARD_ISA(avx512, 64, TS_TARGET_AVX512)
#undef TS_BACKWARD_ISA

constexpr int64_t kSerialElements = 16 * 1024;
constexpr int64_t kColumns = 512;

template <class T, bool kLog>
Status backward_as(const KernelArgs& args) {
  constexpr const Loops<T>* kTables[] = {&kLoops_baseline<T, kLog>, &kLoops_avx2<T, kLog>,
                                         &kLoops_avx512<T, kLog>};
  const Loops<T>& loops = *kTables[g_isa];
  OutOfScratch failure;
  const KernelTensor& out = args.outputs[0];
  Dense g(args.inputs[0], failure), y(args.inputs[1], failure);
  if (!g.data() || !y.data() || out.numel == 0) return failure.status("softmax_backward");
  const AlongDim along(out, args.ints[0]);
  const int64_t n = along.n, inner = along.inner, item = static_cast<int64_t>(itemsize(out.dtype));
  const ConvertFn load = converts().load[static_cast<int>(out.dtype)];
  const ConvertFn store = converts().store[static_cast<int>(out.dtype)];
  const bool ready = is_register_form(out.dtype);
  char* to = static_cast<char*>(out.data);
  // Elements [at, at + k) of an operand in registers' form.
  auto fetch = [&](const char* from, int64_t at, int64_t k, T* buffer) {
    if (ready) return reinterpret_cast<const T*>(from + at * item);
    load(buffer, from + at * item, k);
    return static_cast<const T*>(buffer);
  };

  if (inner == 1) {
    parallel_for(0, along.outer, std::max<int64_t>(1, kSerialElements / n),
                 [&](int64_t begin, int64_t end) {
                   Scratch scratch(ready ? 0 : static_cast<size_t>(3 * n) * sizeof(T), failure);
                   T* buffer = static_cast<T*>(scratch.get());
                   if (!ready && !buffer) return;
                   for (int64_t r = begin; r < end; ++r) {
                     const T* grad = fetch(g.data(), r * n, n, buffer);
                     const T* value = fetch(y.data(), r * n, n, buffer + n);
                     if (ready) {
                       loops.row(grad, value, reinterpret_cast<T*>(to) + r * n, n);
                     } else {
                       loops.row(grad, value, buffer + 2 * n, n);
                       store(to + r * n * item, buffer + 2 * n, n);
                     }
                   }
                 });
    return failure.status("softmax_backward");
  }

  const int64_t per_row = (inner + kColumns - 1) / kColumns;
  const int64_t grain = std::max<int64_t>(1, kSerialElements / (n * std::min(kColumns, inner)));
  parallel_for(0, along.outer * per_row, grain, [&](int64_t begin, int64_t end) {
    alignas(64) T sum[kColumns], part[kColumns], grads[kColumns], values[kColumns];
    for (int64_t u = begin; u < end; ++u) {
      const int64_t first = u % per_row * kColumns, cols = std::min(kColumns, inner - first);
      const int64_t base = u / per_row * n * inner + first;
      std::fill_n(sum, cols, T(0));
      for (int64_t k = 0; k < n; k += kColumnBlock) {
        std::fill_n(part, cols, T(0));
        for (int64_t r = k; r < std::min(n, k + kColumnBlock); ++r)
          loops.add_terms(fetch(g.data(), base + r * inner, cols, grads),
                          fetch(y.data(), base + r * inner, cols, values), cols, part);
        for (int64_t j = 0; j < cols; ++j) sum[j] += part[j];
      }
      for (int64_t k = 0; k < n; ++k) {
        const int64_t at = base + k * inner;
        const T* grad = fetch(g.data(), at, cols, grads);
        const T* value = fetch(y.data(), at, cols, values);
        if (ready) {
          loops.results(grad, value, reinterpret_cast<T*>(to) + at, cols, sum);
        } else {
          loops.results(grad, value, part, cols, sum);
          store(to + at * item, part, cols);
        }
      }
    }
  });
  return failure.status("softmax_backward");
}

template <bool kLog>
Status backward(const KernelArgs& args) {
  switch (args.outputs[0].dtype) {
    case DType::kFloat64:
      return backward_as<double, kLog>(args);
    case DType::kFloat32:
    case DType::kFloat16:
    case DType::kBFloat16:
      return backward_as<float, kLog>(args);
    default:
      return fail(Code::kUnsupported, "softmax_backward(): not implemented for %s",
                  dtype_name(args.outputs[0].dtype));
  }
}

}  // namespace

TS_KERNEL("softmax_backward", backward<false>)
TS_KERNEL("log_softmax_backward", backward<true>)

}  // namespace tessera::cpu
