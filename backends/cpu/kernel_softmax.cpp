// softmax and log_softmax over one dimension.
#include <algorithm>

#include "convert.h"
#include "convert_scalar.h"
#include "kernels.h"
#include "scratch.h"
#include "strided.h"
#include "tessera/ops/reduce_loops.h"
#include "thread_pool.h"

namespace tessera::cpu {

namespace {

constexpr int64_t kLanes = loops::kReduceLanes;

// One row, dense, from x to y; x and y may be the same.
template <class T, bool kLog>
TS_INLINE void softmax_row(const T* x, T* y, int64_t n) {
  alignas(64) T lanes[kLanes];
  for (int64_t j = 0; j < kLanes; ++j) lanes[j] = x[0];
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int64_t j = 0; j < kLanes; ++j) lanes[j] = math::max(x[i + j], lanes[j]);
  for (; i < n; ++i) lanes[0] = math::max(x[i], lanes[0]);
  T top = lanes[0];
  for (int64_t j = 1; j < kLanes; ++j) top = math::max(lanes[j], top);

  for (int64_t j = 0; j < kLanes; ++j) lanes[j] = T(0);
  i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int64_t j = 0; j < kLanes; ++j) {
      T e = math::exp(x[i + j] - top);
      lanes[j] += e;
      if constexpr (!kLog) y[i + j] = e;
    }
  }
  for (int64_t j = 0; i + j < n; ++j) {
    T e = math::exp(x[i + j] - top);
    lanes[j] += e;
    if constexpr (!kLog) y[i + j] = e;
  }
  for (int64_t half = kLanes / 2; half > 0; half /= 2)
    for (int64_t j = 0; j < half; ++j) lanes[j] += lanes[j + half];
  if constexpr (kLog) {
    T log_sum = math::log(lanes[0]);
    for (i = 0; i < n; ++i) y[i] = x[i] - top - log_sum;
  } else {
    T sum = lanes[0];
    for (i = 0; i < n; ++i) y[i] = y[i] / sum;
  }
}

// `cols` neighbouring columns of n elements each, in place: x[k * cols + j].
template <class T, bool kLog>
TS_INLINE void softmax_columns(T* x, int64_t n, int64_t cols, T* top, T* sum) {
  for (int64_t j = 0; j < cols; ++j) top[j] = x[j];
  for (int64_t k = 1; k < n; ++k)
    for (int64_t j = 0; j < cols; ++j) top[j] = math::max(x[k * cols + j], top[j]);
  for (int64_t j = 0; j < cols; ++j) sum[j] = T(0);
  for (int64_t k = 0; k < n; ++k) {
    for (int64_t j = 0; j < cols; ++j) {
      T v = x[k * cols + j] - top[j], e = math::exp(v);
      sum[j] += e;
      x[k * cols + j] = kLog ? v : e;
    }
  }
  if constexpr (kLog)
    for (int64_t j = 0; j < cols; ++j) sum[j] = math::log(sum[j]);
  for (int64_t k = 0; k < n; ++k)
    for (int64_t j = 0; j < cols; ++j)
      x[k * cols + j] = kLog ? x[k * cols + j] - sum[j] : x[k * cols + j] / sum[j];
}

#define TS_SOFTMAX_ISA(isa, target)                                      \
  template <class T, bool kLog>                                          \
  target void row_##isa(const T* x, T* y, int64_t n) {                   \
    softmax_row<T, kLog>(x, y, n);                                       \
  }                                                                      \
  template <class T, bool kLog>                                          \
  target void columns_##isa(T* x, int64_t n, int64_t cols, T* a, T* b) { \
    softmax_columns<T, kLog>(x, n, cols, a, b);                          \
  }
TS_SOFTMAX_ISA(baseline, )
TS_SOFTMAX_ISA(avx2, TS_TARGET_AVX2)
TS_SOFTMAX_ISA(avx512, TS_TARGET_AVX512)
#undef TS_SOFTMAX_ISA

constexpr int64_t kColumns = 64;

template <class T, bool kLog>
Status softmax_as(const KernelArgs& args) {
  static constexpr void (*kRows[])(const T*, T*, int64_t) = {
      row_baseline<T, kLog>, row_avx2<T, kLog>, row_avx512<T, kLog>};
  static constexpr void (*kCols[])(T*, int64_t, int64_t, T*, T*) = {
      columns_baseline<T, kLog>, columns_avx2<T, kLog>, columns_avx512<T, kLog>};
  const KernelTensor& x = args.inputs[0];
  const KernelTensor& y = args.outputs[0];
  const int dim = static_cast<int>(args.ints[0]);
  const int64_t n = x.ndim > 0 ? x.sizes[dim] : 1, stride = x.ndim > 0 ? x.strides[dim] : 1;
  if (x.numel == 0) return {};
  const size_t item = itemsize(x.dtype);
  const ConvertFn load = converts().load[static_cast<int>(x.dtype)];
  const ConvertFn store = converts().store[static_cast<int>(x.dtype)];
  const bool ready = is_register_form(x.dtype);
  char* out = static_cast<char*>(y.data);
  const char* in = static_cast<const char*>(x.data);
  int64_t inner = 1;
  for (int d = dim + 1; d < x.ndim; ++d) inner *= x.sizes[d];
  const int64_t outer = x.numel / (n * inner);
  auto base_of = [&](int64_t o) {
    int64_t coords[kMaxDims], at = 0;
    unravel(o, dim, x.sizes, coords);
    for (int d = 0; d < dim; ++d) at += coords[d] * x.strides[d];
    return in + at * static_cast<int64_t>(item);
  };
  const int64_t grain = std::max<int64_t>(1, 16 * 1024 / n);
  const char* name = kLog ? "log_softmax()" : "softmax()";
  OutOfScratch failure;

  if (inner == 1) {
    parallel_for(0, outer, grain, [&](int64_t b, int64_t e) {
      // Rows used where they lie need no buffers.
      const size_t bytes = ready && stride == 1 ? 0 : static_cast<size_t>(2 * n) * sizeof(T);
      Scratch scratch(bytes, failure);
      if (bytes && !scratch.get()) return;
      T* buffer = static_cast<T*>(scratch.get());
      for (int64_t o = b; o < e; ++o) {
        const char* src = base_of(o);
        char* dst = out + o * n * static_cast<int64_t>(item);
        if (stride != 1) {
          gather_block(buffer + n, src, 1, n, 0, stride, item);
          src = reinterpret_cast<char*>(buffer + n);
        }
        if (ready) {
          kRows[g_isa](reinterpret_cast<const T*>(src), reinterpret_cast<T*>(dst), n);
        } else {
          load(buffer, src, n);
          kRows[g_isa](buffer, buffer, n);
          store(dst, buffer, n);
        }
      }
    });
    return failure.status(name);
  }

  const int64_t tiles = (inner + kColumns - 1) / kColumns;
  parallel_for(0, outer * tiles, std::max<int64_t>(1, grain / kColumns), [&](int64_t b, int64_t e) {
    Scratch scratch(static_cast<size_t>((2 * n + 2) * kColumns) * sizeof(T), failure);
    if (!scratch.get()) return;
    T* values = static_cast<T*>(scratch.get());
    char* raw = reinterpret_cast<char*>(values + n * kColumns);
    T* stats = values + 2 * n * kColumns;
    for (int64_t t = b; t < e; ++t) {
      const int64_t o = t / tiles, first = t % tiles * kColumns;
      const int64_t cols = std::min(kColumns, inner - first);
      const char* src = base_of(o);
      int64_t coords[kMaxDims];
      unravel(first, x.ndim - dim - 1, x.sizes + dim + 1, coords);
      for (int64_t k = 0; k < n; ++k)
        gather_run(raw + k * cols * static_cast<int64_t>(item),
                   src + k * stride * static_cast<int64_t>(item), x.ndim - dim - 1,
                   x.sizes + dim + 1, x.strides + dim + 1, coords, cols, item);
      load(values, raw, n * cols);
      kCols[g_isa](values, n, cols, stats, stats + kColumns);
      char* dst = out + (o * n * inner + first) * static_cast<int64_t>(item);
      for (int64_t k = 0; k < n; ++k)
        store(dst + k * inner * static_cast<int64_t>(item), values + k * cols, cols);
    }
  });
  return failure.status(name);
}

template <bool kLog>
Status dispatch(const KernelArgs& args) {
  switch (args.inputs[0].dtype) {
    case DType::kFloat64:
      return softmax_as<double, kLog>(args);
    case DType::kFloat32:
    case DType::kFloat16:
    case DType::kBFloat16:
      return softmax_as<float, kLog>(args);
    default:
      return fail(Code::kUnsupported, "%s(): not implemented for %s",
                  kLog ? "log_softmax" : "softmax", dtype_name(args.inputs[0].dtype));
  }
}

}  // namespace

Status softmax(const KernelArgs& args) { return dispatch<false>(args); }
Status log_softmax(const KernelArgs& args) { return dispatch<true>(args); }

TS_KERNEL("softmax", softmax)
TS_KERNEL("log_softmax", log_softmax)

}  // namespace tessera::cpu
