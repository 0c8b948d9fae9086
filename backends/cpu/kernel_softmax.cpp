// "softmax", "log_softmax": over one dimension.
//   outputs  dense        inputs  of the same dtype, any layout        ints  the dimension
#include <cmath>

#include "along_dim.h"
#include "convert.h"
#include "kernels.h"
#include "softmax_loops.h"
#include "stream_store.h"
#include "thread_pool.h"
#include "transpose.h"

namespace tessera::cpu {

namespace {

// The loops of one instruction set.
template <class T>
struct Loops {
  void (*exponentials)(const T* x, T* e, int64_t n, const char* next, int64_t item, T* top, T* sum);
  void (*scale)(const T* e, T* y, int64_t n, T factor);
  void (*shift)(const T* x, T* y, int64_t n, T top, T log_sum);
  void (*column_max)(const T* x, int64_t step, int64_t rows, int64_t n, T* top);
  void (*column_exponentials)(const T* x, int64_t n, const T* top, T* part, T* e);
  void (*column_scale)(const T* e, T* y, int64_t n, const T* factor);
  void (*column_shift)(const T* x, T* y, int64_t n, const T* top, const T* log_sum);
  void (*column_exp_scale)(const T* x, T* y, int64_t n, const T* top, const T* factor);
};

#define TS_SOFTMAX_ISA(isa, bytes, target)                                                         \
  template <class T>                                                                               \
  target void exponentials_##isa(const T* x, T* e, int64_t n, const char* next, int64_t item,      \
                                 T* top, T* sum) {                                                 \
    row_exponentials<T, bytes>(x, e, n, next, item, top, sum);                                     \
  }                                                                                                \
  template <class T>                                                                               \
  target void scale_##isa(const T* e, T* y, int64_t n, T factor) {                                 \
    scale_row(e, y, n, factor);                                                                    \
  }                                                                                                \
  template <class T>                                                                               \
  target void shift_##isa(const T* x, T* y, int64_t n, T top, T log_sum) {                         \
    shift_row(x, y, n, top, log_sum);                                                              \
  }                                                                                                \
  template <class T>                                                                               \
  target void column_max_##isa(const T* x, int64_t step, int64_t rows, int64_t n, T* top) {        \
    column_max(x, step, rows, n, top);                                                             \
  }                                                                                                \
  template <class T>                                                                               \
  target void column_exponentials_##isa(const T* x, int64_t n, const T* top, T* p, T* e) {         \
    column_exponentials(x, n, top, p, e);                                                          \
  }                                                                                                \
  template <class T>                                                                               \
  target void column_scale_##isa(const T* e, T* y, int64_t n, const T* factor) {                   \
    for (int64_t j = 0; j < n; ++j) y[j] = e[j] * factor[j];                                       \
  }                                                                                                \
  template <class T>                                                                               \
  target void column_shift_##isa(const T* x, T* y, int64_t n, const T* top, const T* log) {        \
    for (int64_t j = 0; j < n; ++j) y[j] = x[j] - top[j] - log[j];                                 \
  }                                                                                                \
  template <class T>                                                                               \
  target void column_exp_scale_##isa(const T* x, T* y, int64_t n, const T* top, const T* factor) { \
    for (int64_t j = 0; j < n; ++j) y[j] = exp_down(x[j] - top[j]) * factor[j];                    \
  }                                                                                                \
  template <class T>                                                                               \
  constexpr Loops<T> kLoops_##isa = {                                                              \
      exponentials_##isa<T>,                                                                       \
      scale_##isa<T>,                                                                              \
      shift_##isa<T>,                                                                              \
      column_max_##isa<T>,                                                                         \
      column_exponentials_##isa<T>,                                                                \
      column_scale_##isa<T>,                                                                       \
      column_shift_##isa<T>,                                                                       \
      column_exp_scale_##isa<T>,                                                                   \
  };
TS_SOFTMAX_ISA(baseline, 16, )
TS_SOFTMAX_ISA(avx2, 32, TS_TARGET_AVX2)
TS_SOFTMAX_ISA(avx512, 64, TS_TARGET_AVX512)
#undef TS_SOFTMAX_ISA

template <class T>
const Loops<T>& loops_of() {
  constexpr const Loops<T>* kTables[] = {&kLoops_baseline<T>, &kLoops_avx2<T>, &kLoops_avx512<T>};
  return *kTables[g_isa];
}

constexpr int64_t kSerialElements = 16 * 1024;
// Rows up to this length are taken side by side.
constexpr int64_t kShortRow = 32;
constexpr int64_t kRowsTogether = 64;
// A unit of columns: results of a few kilobytes side by side, so that memory is read in runs; all
// of it in the second-level cache where the columns are short.
constexpr int64_t kLeastColumns = 512;
constexpr int64_t kUnitElements = 64 * 1024;
// Elements that are converted or streamed at a time.
constexpr int64_t kPiece = 512;
// Bytes of a row up to which the next one is fetched while it is worked on: both, and the
// exponentials, stay in the second-level cache.
constexpr int64_t kLongestFetched = 128 * 1024;

template <class T, bool kLog>
struct Softmax {
  const Loops<T>& loops = loops_of<T>();
  const char* x;
  char* y;
  DType dtype;
  int64_t outer, n, inner;
  OutOfScratch& failure;
  ConvertFn load, store;
  bool ready;
  bool stream;
  int64_t item;

  Softmax(const KernelArgs& args, const char* data, OutOfScratch& f)
      : x(data),
        y(static_cast<char*>(args.outputs[0].data)),
        dtype(args.outputs[0].dtype),
        failure(f) {
    AlongDim along(args.inputs[0], args.ints[0]);
    outer = along.outer;
    n = along.n;
    inner = along.inner;
    load = converts().load[static_cast<int>(dtype)];
    store = converts().store[static_cast<int>(dtype)];
    ready = is_register_form(dtype);
    item = static_cast<int64_t>(itemsize(dtype));
    stream = 2 * args.inputs[0].numel * item > streaming_bytes();
  }

  const T* values(int64_t at) const { return reinterpret_cast<const T*>(x + at * item); }
  T* results(int64_t at) const { return reinterpret_cast<T*>(y + at * item); }

  // Makes results [at, at + count) by make(i, out, k), a piece at a time where they cannot be
  // written in place.
  template <class Make>
  void write(int64_t at, int64_t count, Make make) const {
    if (ready && !stream) return make(0, results(at), count);
    alignas(64) T piece[kPiece];
    alignas(64) char raw[kPiece * sizeof(T)];
    for (int64_t i = 0; i < count; i += kPiece) {
      const int64_t k = std::min(kPiece, count - i);
      make(i, piece, k);
      char* to = y + (at + i) * item;
      const char* from = reinterpret_cast<char*>(piece);
      if (!ready) {
        store(stream ? raw : to, piece, k);
        from = raw;
      }
      if (stream) stream_copy(to, from, static_cast<size_t>(k * item));
    }
  }

  // The row's values in registers' form: where they lie, or in buffer.
  const T* row_values(int64_t at, T* buffer) const {
    if (ready) return values(at);
    load(buffer, x + at * item, n);
    return buffer;
  }

  void row(int64_t r, T* buffer) const {
    const int64_t at = r * n;
    const T* from = row_values(at, buffer);
    const bool fetch = stream && r + 1 < outer && n * item <= kLongestFetched;
    T top, sum;
    loops.exponentials(from, kLog ? nullptr : buffer, n, fetch ? x + (at + n) * item : nullptr,
                       item, &top, &sum);
    if constexpr (kLog) {
      const T log_sum = math::log(sum);
      write(at, n,
            [&](int64_t i, T* out, int64_t k) { loops.shift(from + i, out, k, top, log_sum); });
    } else {
      const T factor = T(1) / sum;
      write(at, n, [&](int64_t i, T* out, int64_t k) { loops.scale(buffer + i, out, k, factor); });
    }
  }

  void rows() const {
    const int64_t grain = std::max<int64_t>(1, kSerialElements / n);
    parallel_for(0, outer, grain, [&](int64_t begin, int64_t end) {
      Scratch scratch(static_cast<size_t>(n) * sizeof(T), failure);
      T* buffer = static_cast<T*>(scratch.get());
      if (!buffer) return;
      for (int64_t r = begin; r < end; ++r) row(r, buffer);
      if (stream) stream_fence();
    });
  }

  // Columns of n rows of `cols`, `step` apart, in registers' form and in place.
  void small_columns(T* at, int64_t step, int64_t cols) const {
    T top[kRowsTogether], sum[kRowsTogether] = {};
    std::copy_n(at, cols, top);
    loops.column_max(at + step, step, n - 1, cols, top);
    for (int64_t k = 0; k < n; ++k)
      loops.column_exponentials(at + k * step, cols, top, sum, kLog ? nullptr : at + k * step);
    for (int64_t j = 0; j < cols; ++j) sum[j] = kLog ? math::log(sum[j]) : T(1) / sum[j];
    for (int64_t k = 0; k < n; ++k) {
      T* row = at + k * step;
      kLog ? loops.column_shift(row, row, cols, top, sum) : loops.column_scale(row, row, cols, sum);
    }
  }
  void short_rows() const {
    const int64_t groups = (outer + kRowsTogether - 1) / kRowsTogether;
    const int64_t grain = std::max<int64_t>(1, kSerialElements / (n * kRowsTogether));
    parallel_for(0, groups, grain, [&](int64_t begin, int64_t end) {
      alignas(64) T rows[kShortRow * kRowsTogether], columns[kShortRow * kRowsTogether];
      for (int64_t g = begin; g < end; ++g) {
        const int64_t first = g * kRowsTogether, count = std::min(kRowsTogether, outer - first);
        const T* from = rows;
        if (ready)
          from = values(first * n);
        else
          load(rows, x + first * n * item, count * n);
        transpose(columns, kRowsTogether, from, n, n, count, sizeof(T));
        small_columns(columns, kRowsTogether, count);
        T* to = ready ? results(first * n) : rows;
        transpose(to, n, columns, kRowsTogether, count, n, sizeof(T));
        if (!ready) store(y + first * n * item, rows, count * n);
      }
    });
  }

  // Columns [first, first + cols) of matrix number o.
  void unit(int64_t o, int64_t first, int64_t cols, T* stats) const {
    T *top = stats, *sum = stats + cols, *part = stats + 2 * cols, *piece = stats + 3 * cols;
    const int64_t base = o * n * inner + first;
    auto row_at = [&](int64_t k) -> const T* {
      if (ready) return values(base + k * inner);
      load(piece, x + (base + k * inner) * item, cols);
      return piece;
    };
    std::copy_n(row_at(0), cols, top);
    if (ready)
      loops.column_max(values(base), inner, n, cols, top);
    else
      for (int64_t k = 1; k < n; ++k) loops.column_max(row_at(k), 0, 1, cols, top);
    std::fill_n(sum, cols, T(0));
    for (int64_t k = 0; k < n; k += kColumnBlock) {
      std::fill_n(part, cols, T(0));
      for (int64_t r = k; r < std::min(n, k + kColumnBlock); ++r)
        loops.column_exponentials(row_at(r), cols, top, part,
                                  ready && !kLog ? results(base + r * inner) : nullptr);
      for (int64_t j = 0; j < cols; ++j) sum[j] += part[j];
    }
    for (int64_t j = 0; j < cols; ++j) sum[j] = kLog ? math::log(sum[j]) : T(1) / sum[j];
    for (int64_t k = 0; k < n; ++k) {
      const int64_t at = base + k * inner;
      T* to = ready ? results(at) : piece;
      if constexpr (kLog)
        loops.column_shift(row_at(k), to, cols, top, sum);
      else if (ready)
        loops.column_scale(to, to, cols, sum);
      else
        loops.column_exp_scale(row_at(k), to, cols, top, sum);
      if (!ready) store(y + at * item, piece, cols);
    }
  }

  void columns() const {
    // Enough units for all threads, as long as a unit's rows are whole lines.
    int64_t width = std::max(kLeastColumns, kUnitElements / n / 64 * 64);
    while (width > 64 && outer * (inner / width) < 2 * num_threads()) width /= 2;
    width = std::min(width, inner);
    const int64_t per_row = (inner + width - 1) / width;
    const int64_t grain = std::max<int64_t>(1, kSerialElements / (width * n));
    parallel_for(0, outer * per_row, grain, [&](int64_t begin, int64_t end) {
      Scratch scratch(static_cast<size_t>(4 * width) * sizeof(T), failure);
      T* stats = static_cast<T*>(scratch.get());
      if (!stats) return;
      for (int64_t u = begin; u < end; ++u) {
        const int64_t first = u % per_row * width;
        unit(u / per_row, first, std::min(width, inner - first), stats);
      }
    });
  }

  void run() const {
    if (inner > 1)
      columns();
    else if (n <= kShortRow && outer > 4)
      short_rows();
    else
      rows();
  }
};

template <class T, bool kLog>
Status softmax_as(const KernelArgs& args) {
  OutOfScratch failure;
  const KernelTensor &in = args.inputs[0], &out = args.outputs[0];
  if (in.numel == 0) return {};
  const char* data = static_cast<const char*>(in.data);
  if (!is_dense(in)) {  // in place then
    copy_dense(out.data, in);
    data = static_cast<const char*>(out.data);
  }
  Softmax<T, kLog>(args, data, failure).run();
  return failure.status(kLog ? "log_softmax" : "softmax");
}

template <bool kLog>
Status softmax(const KernelArgs& args) {
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

TS_KERNEL("softmax", softmax<false>)
TS_KERNEL("log_softmax", softmax<true>)

}  // namespace tessera::cpu
