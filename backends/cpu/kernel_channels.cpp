// Kernels over outer x channels x inner with numbers of each channel: what batch norm is made of.
//   "channel_affine"   y = (x - m) * a + b
//     outputs  y, dense        inputs  x, any layout; m, a, b of each channel
//   "channel_affine2"  y = g * a + ((x - m) * b + c)
//     outputs  y, dense        inputs  g, x, any layout; m, a, b, c of each channel
//   "channel_sums"     sums of g * (x - mean) and of g for each channel
//     outputs  two, float32 or float64        inputs  g, x, any layout; mean of each channel
// ints: outer, channels. The sums' order is that of Note [Sums over rows], a row being a channel's
// inner elements, or all channels where inner is one.
#include "kernels.h"
#include "moments.h"
#include "operand.h"
#include "thread_pool.h"

namespace tessera::cpu {

namespace {

constexpr int64_t kSerialElements = 16 * 1024;
constexpr int64_t kLeastBlock = 32;
constexpr int64_t kMostBlocks = 256;

template <class T>
TS_INLINE void affine_row(const T* x, T* y, int64_t n, T m, T a, T b) {
  for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - m) * a + b;
}
template <class T>
TS_INLINE void affine_channels(const T* x, T* y, int64_t n, const T* m, const T* a, const T* b) {
  for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - m[i]) * a[i] + b[i];
}
template <class T>
TS_INLINE void affine2_row(const T* g, const T* x, T* y, int64_t n, T m, T a, T b, T c) {
  for (int64_t i = 0; i < n; ++i) y[i] = g[i] * a + ((x[i] - m) * b + c);
}
template <class T>
TS_INLINE void affine2_channels(const T* g, const T* x, T* y, int64_t n, const T* m, const T* a,
                                const T* b, const T* c) {
  for (int64_t i = 0; i < n; ++i) y[i] = g[i] * a[i] + ((x[i] - m[i]) * b[i] + c[i]);
}
// Adds to the sums of each channel, one element of each.
template <class T>
TS_INLINE void add_channels(const T* g, const T* x, const T* mean, int64_t n, T* __restrict gx,
                            T* __restrict gs) {
  for (int64_t i = 0; i < n; ++i) {
    gx[i] += g[i] * (x[i] - mean[i]);
    gs[i] += g[i];
  }
}
// The sums over a dense row of one channel.
template <class T, int kBytes>
TS_INLINE void row_sums(const T* g, const T* x, T mean, int64_t n, T* gx, T* gs) {
  using L = typename detail::BlockLanes<T, kBytes>::L;
  constexpr int64_t kStep = loops::kReduceLanes;
  detail::BlockLanes<T, kBytes> first, second;
  first.clear();
  second.clear();
  alignas(64) T rest[2][kStep];
  for (int64_t i = 0; i < n; i += kStep) {
    const T *a = g + i, *b = x + i;
    if (i + kStep > n) {
      for (int64_t j = 0; j < kStep; ++j) {
        rest[0][j] = i + j < n ? a[j] : T(0);
        rest[1][j] = i + j < n ? b[j] : mean;
      }
      a = rest[0];
      b = rest[1];
    }
#pragma GCC unroll 64
    for (int v = 0; v < first.kVectors; ++v) {
      const typename L::Vector u = L::load(a + v * L::kCount);
      first.lanes[v] += u * (L::load(b + v * L::kCount) - mean);
      second.lanes[v] += u;
    }
  }
  *gx = first.fold();
  *gs = second.fold();
}

template <class T>
struct Loops {
  void (*row)(const T* x, T* y, int64_t n, T m, T a, T b);
  void (*channels)(const T* x, T* y, int64_t n, const T* m, const T* a, const T* b);
  void (*row2)(const T* g, const T* x, T* y, int64_t n, T m, T a, T b, T c);
  void (*channels2)(const T* g, const T* x, T* y, int64_t n, const T* m, const T* a, const T* b,
                    const T* c);
  void (*add)(const T* g, const T* x, const T* mean, int64_t n, T* gx, T* gs);
  void (*sums)(const T* g, const T* x, T mean, int64_t n, T* gx, T* gs);
};
#define TS_CHANNELS_ISA(isa, bytes, target)                                                     \
  template <class T>                                                                            \
  target void row_##isa(const T* x, T* y, int64_t n, T m, T a, T b) {                           \
    affine_row(x, y, n, m, a, b);                                                               \
  }                                                                                             \
  template <class T>                                                                            \
  target void channels_##isa(const T* x, T* y, int64_t n, const T* m, const T* a, const T* b) { \
    affine_channels(x, y, n, m, a, b);                                                          \
  }                                                                                             \
  template <class T>                                                                            \
  target void row2_##isa(const T* g, const T* x, T* y, int64_t n, T m, T a, T b, T c) {         \
    affine2_row(g, x, y, n, m, a, b, c);                                                        \
  }                                                                                             \
  template <class T>                                                                            \
  target void channels2_##isa(const T* g, const T* x, T* y, int64_t n, const T* m, const T* a,  \
                              const T* b, const T* c) {                                         \
    affine2_channels(g, x, y, n, m, a, b, c);                                                   \
  }                                                                                             \
  template <class T>                                                                            \
  target void add_##isa(const T* g, const T* x, const T* mean, int64_t n, T* gx, T* gs) {       \
    add_channels(g, x, mean, n, gx, gs);                                                        \
  }                                                                                             \
  template <class T>                                                                            \
  target void sums_##isa(const T* g, const T* x, T mean, int64_t n, T* gx, T* gs) {             \
    row_sums<T, bytes>(g, x, mean, n, gx, gs);                                                  \
  }                                                                                             \
  template <class T>                                                                            \
  constexpr Loops<T> kLoops_##isa = {row_##isa<T>,       channels_##isa<T>, row2_##isa<T>,      \
                                     channels2_##isa<T>, add_##isa<T>,      sums_##isa<T>};
TS_CHANNELS_ISA(baseline, 16, )
TS_CHANNELS_ISA(avx2, 32, TS_TARGET_AVX2)
TS_CHANNELS_ISA(avx512, 64, TS_TARGET_AVX512)
#undef TS_CHANNELS_ISA

template <class T>
const Loops<T>& loops_of() {
  constexpr const Loops<T>* kTables[] = {&kLoops_baseline<T>, &kLoops_avx2<T>, &kLoops_avx512<T>};
  return *kTables[g_isa];
}

struct Shape {
  int64_t outer, channels, inner;
  explicit Shape(const KernelArgs& args)
      : outer(args.ints[0]),
        channels(args.ints[1]),
        inner(args.inputs[0].numel / std::max<int64_t>(1, outer * channels)) {}
  // Rows that share one number of each kind, or that have all numbers side by side.
  int64_t rows() const { return inner == 1 ? outer : outer * channels; }
  int64_t row() const { return inner == 1 ? channels : inner; }
};

// Calls f(row number, first element, count, buffer) for pieces of rows, on all threads.
template <class T, class F>
void for_rows(const Shape& s, int operands, OutOfScratch& failure, const Writer<T>& out, F f) {
  const int64_t n = s.row();
  parallel_for(0, s.rows(), std::max<int64_t>(1, kSerialElements / n), [&](int64_t b, int64_t e) {
    Scratch scratch(static_cast<size_t>(operands * n) * sizeof(T), failure);
    T* buffer = static_cast<T*>(scratch.get());
    if (operands > 0 && !buffer) return;
    for (int64_t r = b; r < e; ++r) f(r, buffer);
    out.done();
  });
}

template <class T>
Status affine(const KernelArgs& args) {
  const Loops<T>& loops = loops_of<T>();
  const KernelTensor& in = args.inputs[0];
  const Shape s(args);
  OutOfScratch failure;
  Dense data(in, failure);
  Vector<T> m(args.inputs[1], s.channels, T(0), failure);
  Vector<T> a(args.inputs[2], s.channels, T(1), failure);
  Vector<T> b(args.inputs[3], s.channels, T(0), failure);
  if (!data.data() || !m.data() || !a.data() || !b.data()) return failure.status("channel_affine");
  const Reader<T> x(data.data(), in.dtype);
  const Writer<T> y(args.outputs[0], 2 * in.numel * x.item > streaming_bytes());
  const int64_t n = s.row();
  for_rows(s, x.load ? 1 : 0, failure, y, [&](int64_t r, T* buffer) {
    const T* from = x.get(r * n, n, buffer);
    y.put(r * n, n, [&](int64_t i, T* to, int64_t k) {
      if (s.inner == 1)
        loops.channels(from + i, to, k, m.data() + i, a.data() + i, b.data() + i);
      else
        loops.row(from + i, to, k, m[r % s.channels], a[r % s.channels], b[r % s.channels]);
    });
  });
  return failure.status("channel_affine");
}

template <class T>
Status affine2(const KernelArgs& args) {
  const Loops<T>& loops = loops_of<T>();
  const Shape s(args);
  OutOfScratch failure;
  Dense grads(args.inputs[0], failure), values(args.inputs[1], failure);
  Vector<T> m(args.inputs[2], s.channels, T(0), failure);
  Vector<T> a(args.inputs[3], s.channels, T(1), failure);
  Vector<T> b(args.inputs[4], s.channels, T(0), failure);
  Vector<T> c(args.inputs[5], s.channels, T(0), failure);
  if (!grads.data() || !values.data() || !m.data() || !a.data() || !b.data() || !c.data())
    return failure.status("channel_affine2");
  const Reader<T> g(grads.data(), args.inputs[0].dtype), x(values.data(), args.inputs[1].dtype);
  const Writer<T> y(args.outputs[0], 3 * args.inputs[0].numel * g.item > streaming_bytes());
  const int64_t n = s.row();
  for_rows(s, g.load || x.load ? 2 : 0, failure, y, [&](int64_t r, T* buffer) {
    const T* grad = g.get(r * n, n, buffer);
    const T* value = x.get(r * n, n, buffer + n);
    const int64_t ch = r % s.channels;
    y.put(r * n, n, [&](int64_t i, T* to, int64_t k) {
      if (s.inner == 1)
        loops.channels2(grad + i, value + i, to, k, m.data() + i, a.data() + i, b.data() + i,
                        c.data() + i);
      else
        loops.row2(grad + i, value + i, to, k, m[ch], a[ch], b[ch], c[ch]);
    });
  });
  return failure.status("channel_affine2");
}

// Blocks of outer, whose partial sums are combined pairwise.
template <class T>
Status sums(const KernelArgs& args) {
  const Loops<T>& loops = loops_of<T>();
  const Shape s(args);
  OutOfScratch failure;
  Dense grads(args.inputs[0], failure), values(args.inputs[1], failure);
  Vector<T> mean(args.inputs[2], s.channels, T(0), failure);
  // A channel's many elements are blocks enough.
  const int64_t least = s.inner == 1 ? kLeastBlock : 1;
  const int64_t block = std::max(least, (s.outer + kMostBlocks - 1) / kMostBlocks);
  const int64_t blocks = (s.outer + block - 1) / block, width = 2 * s.channels;
  Scratch scratch(static_cast<size_t>(blocks * width) * sizeof(T), failure);
  T* partials = static_cast<T*>(scratch.get());
  if (!grads.data() || !values.data() || !mean.data() || !partials)
    return failure.status("channel_sums");
  const Reader<T> g(grads.data(), args.inputs[0].dtype), x(values.data(), args.inputs[1].dtype);
  const int64_t n = s.inner == 1 ? s.channels : std::min(s.inner, loops::kReduceBlock);
  auto add_outer = [&](int64_t o, T* gx, T* gs, T* buffer) {
    if (s.inner == 1)
      return loops.add(g.get(o * n, n, buffer), x.get(o * n, n, buffer + n), mean.data(), n, gx,
                       gs);
    for (int64_t c = 0; c < s.channels; ++c)
      for (int64_t i = 0; i < s.inner; i += n) {
        const int64_t at = (o * s.channels + c) * s.inner + i, k = std::min(n, s.inner - i);
        T one, two;
        loops.sums(g.get(at, k, buffer), x.get(at, k, buffer + n), mean[c], k, &one, &two);
        gx[c] += one;
        gs[c] += two;
      }
  };
  const int64_t work = std::max<int64_t>(1, block * s.channels * s.inner);
  parallel_for(0, blocks, std::max<int64_t>(1, kSerialElements / work), [&](int64_t f, int64_t l) {
    Scratch memory(static_cast<size_t>(2 * n) * sizeof(T), failure);
    T* buffer = static_cast<T*>(memory.get());
    if (!buffer) return;
    for (int64_t k = f; k < l; ++k) {
      T* gx = partials + k * width;
      std::fill_n(gx, width, T(0));
      for (int64_t o = k * block; o < std::min(s.outer, (k + 1) * block); ++o)
        add_outer(o, gx, gx + s.channels, buffer);
    }
  });
  for (int64_t step = 1; step < blocks; step *= 2)
    for (int64_t k = 0; k + step < blocks; k += 2 * step)
      for (int64_t i = 0; i < width; ++i)
        partials[k * width + i] += partials[(k + step) * width + i];
  std::copy_n(partials, s.channels, static_cast<T*>(args.outputs[0].data));
  std::copy_n(partials + s.channels, s.channels, static_cast<T*>(args.outputs[1].data));
  return failure.status("channel_sums");
}

template <Status (*kFloat)(const KernelArgs&), Status (*kDouble)(const KernelArgs&)>
Status by_dtype(const KernelArgs& args) {
  if (args.inputs[0].numel == 0) return {};
  return args.inputs[0].dtype == DType::kFloat64 ? kDouble(args) : kFloat(args);
}

}  // namespace

TS_KERNEL("channel_affine", (by_dtype<affine<float>, affine<double>>))
TS_KERNEL("channel_affine2", (by_dtype<affine2<float>, affine2<double>>))
TS_KERNEL("channel_sums", (by_dtype<sums<float>, sums<double>>))

}  // namespace tessera::cpu
