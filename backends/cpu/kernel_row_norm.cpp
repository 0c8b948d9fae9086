// "row_norm": rows brought to mean zero and variance one, or to mean square one, then scaled and
// shifted; what layer, group, instance and RMS norm are made of.
//   outputs  y, dense like x; mean and 1 / deviation of each row, float32 or float64
//   inputs   x, any layout; weight and bias, of one element a channel of all groups, or empty
//   ints     rows, groups, channels, centred: x is rows x channels x inner in row-major order, row
//   r
//            has the channels of group r % groups; centred 0: the mean is taken to be zero
//   doubles  eps, added to the variance
#include <cmath>

#include "kernels.h"
#include "moments.h"
#include "operand.h"
#include "thread_pool.h"

namespace tessera::cpu {

namespace {

template <class T, int kBytes>
TS_INLINE double block_squares(const T* in, int64_t n) {
  constexpr int64_t kStep = loops::kReduceLanes;
  detail::BlockLanes<T, kBytes> sum, unused;
  sum.clear();
  unused.clear();
  int64_t i = 0;
  for (; i + kStep <= n; i += kStep) detail::add_deviations(unused, sum, in + i, T(0));
  if (i < n) {
    alignas(64) T rest[kStep];
    for (int64_t j = 0; j < kStep; ++j) rest[j] = i + j < n ? in[i + j] : T(0);
    detail::add_deviations(unused, sum, rest, T(0));
  }
  const double squares = static_cast<double>(sum.fold());
  if (math::isfinite(squares)) return squares;
  double wide = 0;
  for (i = 0; i < n; ++i) wide += static_cast<double>(in[i]) * static_cast<double>(in[i]);
  return wide;
}

// Of a row of any length; the blocks are combined pairwise, as reductions do.
template <class T, int kBytes>
TS_INLINE Moments row_moments(const T* x, int64_t n, bool centred) {
  Moments stack[64];
  double seen[64];
  int depth = 0;
  int64_t number = 0;
  for (int64_t i = 0; i < n; i += loops::kReduceBlock) {
    const int64_t k = std::min(loops::kReduceBlock, n - i);
    stack[depth] = centred ? block_moments<T, kBytes>(x + i, k)
                           : Moments{0, block_squares<T, kBytes>(x + i, k)};
    seen[depth++] = static_cast<double>(k);
    const bool last = i + k == n;
    for (uint64_t done = static_cast<uint64_t>(++number); depth > 1 && (last || (done & 1) == 0);
         done >>= 1) {
      stack[depth - 2] =
          merge_moments(stack[depth - 2], seen[depth - 2], stack[depth - 1], seen[depth - 1]);
      seen[depth - 2] += seen[depth - 1];
      --depth;
    }
  }
  return stack[0];
}

template <class T>
TS_INLINE void scale_channels(const T* x, T* y, int64_t n, T mean, T factor, const T* weight,
                              const T* bias) {
  for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - mean) * factor * weight[i] + bias[i];
}
template <class T>
TS_INLINE void scale_inner(const T* x, T* y, int64_t n, T mean, T factor, T weight, T bias) {
  for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - mean) * factor * weight + bias;
}

template <class T>
struct Loops {
  Moments (*moments)(const T* x, int64_t n, bool centred);
  void (*channels)(const T* x, T* y, int64_t n, T mean, T factor, const T* weight, const T* bias);
  void (*inner)(const T* x, T* y, int64_t n, T mean, T factor, T weight, T bias);
};
#define TS_ROW_NORM_ISA(isa, bytes, target)                                                   \
  template <class T>                                                                          \
  target Moments moments_##isa(const T* x, int64_t n, bool centred) {                         \
    return row_moments<T, bytes>(x, n, centred);                                              \
  }                                                                                           \
  template <class T>                                                                          \
  target void channels_##isa(const T* x, T* y, int64_t n, T m, T f, const T* w, const T* b) { \
    scale_channels(x, y, n, m, f, w, b);                                                      \
  }                                                                                           \
  template <class T>                                                                          \
  target void inner_##isa(const T* x, T* y, int64_t n, T m, T f, T w, T b) {                  \
    scale_inner(x, y, n, m, f, w, b);                                                         \
  }                                                                                           \
  template <class T>                                                                          \
  constexpr Loops<T> kLoops_##isa = {moments_##isa<T>, channels_##isa<T>, inner_##isa<T>};
TS_ROW_NORM_ISA(baseline, 16, )
TS_ROW_NORM_ISA(avx2, 32, TS_TARGET_AVX2)
TS_ROW_NORM_ISA(avx512, 64, TS_TARGET_AVX512)
#undef TS_ROW_NORM_ISA

constexpr int64_t kSerialElements = 16 * 1024;

template <class T>
Status row_norm_as(const KernelArgs& args) {
  constexpr const Loops<T>* kTables[] = {&kLoops_baseline<T>, &kLoops_avx2<T>, &kLoops_avx512<T>};
  const Loops<T>& loops = *kTables[g_isa];
  const KernelTensor &in = args.inputs[0], &out = args.outputs[0];
  const int64_t rows = args.ints[0], groups = args.ints[1], channels = args.ints[2];
  const bool centred = args.ints[3] != 0;
  if (in.numel == 0) return {};
  const int64_t n = in.numel / rows, inner = n / channels;
  OutOfScratch failure;
  Dense x(in, failure);
  Vector<T> weight(args.inputs[1], groups * channels, T(1), failure);
  Vector<T> bias(args.inputs[2], groups * channels, T(0), failure);
  if (!x.data() || !weight.data() || !bias.data()) return failure.status("row_norm");
  const Reader<T> reader(x.data(), in.dtype);
  const Writer<T> writer(out, 2 * in.numel * reader.item > streaming_bytes());
  T* means = static_cast<T*>(args.outputs[1].data);
  T* factors = static_cast<T*>(args.outputs[2].data);
  const double eps = args.doubles[0];

  parallel_for(0, rows, std::max<int64_t>(1, kSerialElements / n), [&](int64_t begin, int64_t end) {
    Scratch scratch(reader.load ? static_cast<size_t>(n) * sizeof(T) : 0, failure);
    T* buffer = static_cast<T*>(scratch.get());
    if (reader.load && !buffer) return;
    for (int64_t r = begin; r < end; ++r) {
      const T* row = reader.get(r * n, n, buffer);
      const Moments m = loops.moments(row, n, centred);
      const T mean = static_cast<T>(m.mean);
      const T factor = static_cast<T>(1 / std::sqrt(m.m2 / static_cast<double>(n) + eps));
      means[r] = mean;
      factors[r] = factor;
      const T* w = weight.data() + r % groups * channels;
      const T* b = bias.data() + r % groups * channels;
      if (inner == 1) {
        writer.put(r * n, n, [&](int64_t i, T* to, int64_t k) {
          loops.channels(row + i, to, k, mean, factor, w + i, b + i);
        });
        continue;
      }
      for (int64_t c = 0; c < channels; ++c)
        writer.put(r * n + c * inner, inner, [&](int64_t i, T* to, int64_t k) {
          loops.inner(row + c * inner + i, to, k, mean, factor, w[c], b[c]);
        });
    }
    writer.done();
  });
  return failure.status("row_norm");
}

Status row_norm(const KernelArgs& args) {
  if (!is_floating(args.inputs[0].dtype))
    return fail(Code::kUnsupported, "row_norm: not implemented for %s",
                dtype_name(args.inputs[0].dtype));
  return args.inputs[0].dtype == DType::kFloat64 ? row_norm_as<double>(args)
                                                 : row_norm_as<float>(args);
}

}  // namespace

TS_KERNEL("row_norm", row_norm)

}  // namespace tessera::cpu
