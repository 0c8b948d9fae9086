// The largest or smallest element along a dimension and where it is, in one pass. A NaN wins over
// every number, the first of equals over the others: so the result does not depend on how lines are
// cut among threads.
#include <algorithm>

#include "along.h"
#include "convert_scalar.h"
#include "kernels.h"
#include "scratch.h"
#include "thread_pool.h"

namespace tessera::cpu {

namespace {

constexpr int64_t kChunk = 2048;         // elements of a line in registers at a time
constexpr int64_t kSegment = 64 * 1024;  // of a long line, the part one thread takes
constexpr int64_t kColumns = 128;
constexpr int64_t kGrain = 16 * 1024;

template <bool kMax, class T>
TS_INLINE bool beats(T x, T best) {
  const bool more = kMax ? x > best : x < best;
  return ((x != x) & (best == best)) | more;
}

// The extreme of n elements where none is NaN; *has_nan says if one is. Lanes are arrays and not
// vector types: GCC compares whole vectors of floats element by element.
template <class T, bool kMax>
TS_INLINE T extreme(const T* x, int64_t n, bool* has_nan) {
  using Flag = std::conditional_t<sizeof(T) == 8, int64_t,
                                  std::conditional_t<sizeof(T) == 4, int32_t, int8_t>>;
  constexpr int64_t kLanes = 256 / sizeof(T);
  T best = x[0];
  bool nan = false;
  int64_t i = 0;
  if (n >= kLanes) {
    alignas(64) T top[kLanes];
    alignas(64) Flag odd[kLanes];
    for (int64_t j = 0; j < kLanes; ++j) {
      top[j] = x[j];
      odd[j] = 0;
    }
    for (; i + kLanes <= n; i += kLanes)
      for (int64_t j = 0; j < kLanes; ++j) {
        const T here = x[i + j];
        if constexpr (std::is_floating_point_v<T>) odd[j] |= here != here ? Flag(1) : Flag(0);
        top[j] = kMax ? math::max(here, top[j]) : math::min(here, top[j]);
      }
    for (int64_t j = 0; j < kLanes; ++j) {
      best = kMax ? math::max(top[j], best) : math::min(top[j], best);
      nan |= odd[j] != 0;
    }
  }
  for (; i < n; ++i) {
    nan |= x[i] != x[i];
    best = kMax ? math::max(x[i], best) : math::min(x[i], best);
  }
  *has_nan = nan;
  return best;
}

// Best of `cols` neighbouring lines so far, and position k of each. Indices are as wide as values.
template <class T, class I, bool kMax>
TS_INLINE void across(const T* __restrict x, T* __restrict best, I* __restrict at, I k,
                      int64_t cols) {
  for (int64_t j = 0; j < cols; ++j) {
    const bool take = beats<kMax>(x[j], best[j]);
    best[j] = take ? x[j] : best[j];
    at[j] = take ? k : at[j];
  }
}

#define TS_ARG_ISA(isa, target)                                             \
  template <class T, bool kMax>                                             \
  target T extreme_##isa(const T* x, int64_t n, bool* has_nan) {            \
    return extreme<T, kMax>(x, n, has_nan);                                 \
  }                                                                         \
  template <class T, class I, bool kMax>                                    \
  target void across_##isa(const T* x, T* best, I* at, I k, int64_t cols) { \
    across<T, I, kMax>(x, best, at, k, cols);                               \
  }
TS_ARG_ISA(baseline, )
TS_ARG_ISA(avx2, TS_TARGET_AVX2)
TS_ARG_ISA(avx512, TS_TARGET_AVX512)
#undef TS_ARG_ISA

template <class T>
struct Found {
  T value;
  int64_t at;
};

template <class T, bool kMax>
struct Arg {
  using I = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;
  static constexpr T (*kExtreme[])(const T*, int64_t, bool*) = {
      extreme_baseline<T, kMax>, extreme_avx2<T, kMax>, extreme_avx512<T, kMax>};
  static constexpr void (*kAcross[])(const T*, T*, I*, I, int64_t) = {
      across_baseline<T, I, kMax>, across_avx2<T, I, kMax>, across_avx512<T, I, kMax>};

  const Along in;
  const KernelTensor *values, *indices;  // row-major; values may be missing

  // Of elements [first, last) of a line.
  Found<T> find(const char* line, int64_t first, int64_t last) const {
    alignas(64) T read[kChunk], raw[kChunk];
    Found<T> best{};
    for (int64_t b = first; b < last; b += kChunk) {
      const int64_t n = std::min(kChunk, last - b);
      const T* x = static_cast<const T*>(in.load(line, b, n, read, raw));
      bool has_nan = false;
      T top = kExtreme[g_isa](x, n, &has_nan);
      int64_t i = 0;
      if (has_nan) {
        while (x[i] == x[i]) ++i;
        return {x[i], b + i};
      }
      if (b > first && !beats<kMax>(top, best.value)) continue;
      while (x[i] != top) ++i;
      best = {x[i], b + i};
    }
    return best;
  }

  void put(int64_t line, const Found<T>& f) const {
    if (values) {
      char* to = static_cast<char*>(values->data) + line * in.item;
      converts().store[static_cast<int>(values->dtype)](to, &f.value, 1);
    }
    static_cast<int64_t*>(indices->data)[line] = f.at;
  }

  void columns(int64_t o, int64_t first, int64_t cols) const {
    alignas(64) T read[kColumns], raw[kColumns], best[kColumns];
    alignas(64) I at[kColumns];
    const char* block = in.block(o);
    std::copy_n(static_cast<const T*>(in.load_across(block, 0, first, cols, read, raw)), cols,
                best);
    std::fill_n(at, cols, I(0));
    for (int64_t k = 1; k < in.n; ++k)
      kAcross[g_isa](static_cast<const T*>(in.load_across(block, k, first, cols, read, raw)), best,
                     at, static_cast<I>(k), cols);
    const int64_t to = o * in.inner + first;
    if (values)
      converts().store[static_cast<int>(values->dtype)](
          static_cast<char*>(values->data) + to * in.item, best, cols);
    std::copy_n(at, cols, static_cast<int64_t*>(indices->data) + to);
  }

  Status segments() const {
    const int64_t per_line = (in.n + kSegment - 1) / kSegment;
    OutOfScratch failure;
    Scratch scratch(static_cast<size_t>(per_line * in.lines()) * sizeof(Found<T>), failure);
    if (!scratch.get()) return failure.status(kMax ? "max()" : "min()");
    Found<T>* found = static_cast<Found<T>*>(scratch.get());
    parallel_for(0, per_line * in.lines(), 1, [&](int64_t b, int64_t e) {
      for (; b < e; ++b) {
        const int64_t first = b % per_line * kSegment;
        found[b] = find(in.line(b / per_line), first, std::min(in.n, first + kSegment));
      }
    });
    for (int64_t line = 0; line < in.lines(); ++line, found += per_line) {
      Found<T> best = found[0];
      for (int64_t s = 1; s < per_line; ++s)
        if (beats<kMax>(found[s].value, best.value)) best = found[s];
      put(line, best);
    }
    return {};
  }

  Status run() const {
    const bool sides = in.inner > 1 && (in.inner_dense || in.stride != 1);
    if (sides && in.n < (int64_t{1} << 31)) {
      const int64_t tiles = (in.inner + kColumns - 1) / kColumns;
      const int64_t grain = std::max<int64_t>(1, kGrain / (in.n * std::min(kColumns, in.inner)));
      parallel_for(0, in.outer * tiles, grain, [&](int64_t b, int64_t e) {
        for (; b < e; ++b) {
          const int64_t first = b % tiles * kColumns;
          columns(b / tiles, first, std::min(kColumns, in.inner - first));
        }
      });
      return {};
    }
    if (in.n >= 2 * kSegment) return segments();
    parallel_for(0, in.lines(), std::max<int64_t>(1, kGrain / in.n), [&](int64_t b, int64_t e) {
      for (; b < e; ++b) put(b, find(in.line(b), 0, in.n));
    });
    return {};
  }
};

template <bool kMax>
Status arg_of(const KernelArgs& args) {
  const KernelTensor* values = args.num_outputs > 1 ? &args.outputs[0] : nullptr;
  const KernelTensor* indices = &args.outputs[args.num_outputs - 1];
  if (indices->numel == 0) return {};
  auto run = [&](auto type) {
    using T = typename decltype(type)::type;
    return Arg<T, kMax>{Along(args.inputs[0], args.ints[0]), values, indices}.run();
  };
  switch (reg_class(args.inputs[0].dtype)) {
    case RegClass::kF32:
      return run(std::type_identity<float>());
    case RegClass::kF64:
      return run(std::type_identity<double>());
    case RegClass::kI64:
      return run(std::type_identity<int64_t>());
    case RegClass::kB8:
      return run(std::type_identity<uint8_t>());
    default:
      return fail(Code::kUnsupported, "%s(): not implemented for %s", kMax ? "max" : "min",
                  dtype_name(args.inputs[0].dtype));
  }
}

}  // namespace

Status arg_max(const KernelArgs& args) { return arg_of<true>(args); }
Status arg_min(const KernelArgs& args) { return arg_of<false>(args); }

TS_KERNEL("arg_max", arg_max)
TS_KERNEL("arg_min", arg_min)

}  // namespace tessera::cpu
