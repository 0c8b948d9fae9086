// cummax and cummin along a dimension: the values, and where each was found last.
#include <algorithm>

#include "along.h"
#include "convert_scalar.h"
#include "kernels.h"
#include "thread_pool.h"

namespace tessera::cpu {

namespace {

constexpr int64_t kChunk = 256;
constexpr int64_t kColumns = 128;
constexpr int64_t kGrain = 8 * 1024;

// Does x take the place of the value so far? A NaN does, and stays; of equals the later one.
template <bool kMax, class T>
TS_INLINE bool takes(T x, T best) {
  const bool beats = kMax ? x >= best : x <= best;
  return (x != x) | ((best == best) & beats);
}

template <bool kMax, class T>
void scan_line(const Along& in, const Along& values, const Along& indices, int64_t line) {
  alignas(64) T read[kChunk], best_of[kChunk], raw[kChunk];
  alignas(64) int64_t at_of[kChunk], raw_at[kChunk];
  const char* from = in.line(line);
  char* to = values.line(line);
  char* to_at = indices.line(line);
  T best{};
  int64_t best_at = 0;
  for (int64_t first = 0; first < in.n; first += kChunk) {
    const int64_t n = std::min(kChunk, in.n - first);
    const T* x = static_cast<const T*>(in.load(from, first, n, read, raw));
    if (first == 0) best = x[0];
    for (int64_t i = 0; i < n; ++i) {
      const bool take = takes<kMax>(x[i], best);
      best = take ? x[i] : best;
      best_at = take ? first + i : best_at;
      best_of[i] = best;
      at_of[i] = best_at;
    }
    values.store(to, first, n, best_of, raw);
    indices.store(to_at, first, n, at_of, raw_at);
  }
}

template <bool kMax, class T>
void scan_columns(const Along& in, const Along& values, const Along& indices, int64_t o,
                  int64_t first, int64_t cols) {
  alignas(64) T read[kColumns], raw[kColumns], best[kColumns];
  alignas(64) int64_t at[kColumns];
  const char* from = in.block(o);
  std::fill_n(at, cols, 0);
  for (int64_t k = 0; k < in.n; ++k) {
    const T* x = static_cast<const T*>(in.load_across(from, k, first, cols, read, raw));
    if (k == 0) std::copy_n(x, cols, best);
    for (int64_t j = 0; j < cols; ++j) {
      const bool take = takes<kMax>(x[j], best[j]);
      best[j] = take ? x[j] : best[j];
      at[j] = take ? k : at[j];
    }
    values.store_across(values.block(o), k, first, cols, best);
    indices.store_across(indices.block(o), k, first, cols, at);
  }
}

template <bool kMax, class T>
Status scan_as(const KernelArgs& args) {
  Along in(args.inputs[0], args.ints[0]);
  Along values(args.outputs[0], args.ints[0]), indices(args.outputs[1], args.ints[0]);
  if (in.t.numel == 0) return {};
  if (in.inner > 1 && (in.inner_dense || in.stride != 1)) {
    const int64_t tiles = (in.inner + kColumns - 1) / kColumns;
    const int64_t grain = std::max<int64_t>(1, kGrain / (in.n * std::min(kColumns, in.inner)));
    parallel_for(0, in.outer * tiles, grain, [&](int64_t b, int64_t e) {
      for (int64_t t = b; t < e; ++t) {
        const int64_t first = t % tiles * kColumns;
        scan_columns<kMax, T>(in, values, indices, t / tiles, first,
                              std::min(kColumns, in.inner - first));
      }
    });
    return {};
  }
  parallel_for(0, in.lines(), std::max<int64_t>(1, kGrain / in.n), [&](int64_t b, int64_t e) {
    for (; b < e; ++b) scan_line<kMax, T>(in, values, indices, b);
  });
  return {};
}

template <bool kMax>
Status scan(const KernelArgs& args) {
  switch (reg_class(args.inputs[0].dtype)) {
    case RegClass::kF32:
      return scan_as<kMax, float>(args);
    case RegClass::kF64:
      return scan_as<kMax, double>(args);
    case RegClass::kI64:
      return scan_as<kMax, int64_t>(args);
    case RegClass::kB8:
      return scan_as<kMax, uint8_t>(args);
    default:
      return fail(Code::kUnsupported, "%s(): not implemented for %s", kMax ? "cummax" : "cummin",
                  dtype_name(args.inputs[0].dtype));
  }
}

}  // namespace

Status cummax(const KernelArgs& args) { return scan<true>(args); }
Status cummin(const KernelArgs& args) { return scan<false>(args); }

TS_KERNEL("cummax", cummax)
TS_KERNEL("cummin", cummin)

}  // namespace tessera::cpu
