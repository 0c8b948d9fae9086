// "row_norm_backward": of row_norm. With xh the normalised row and gw the gradient times weight:
// dx = (gw - mean(gw) - xh * mean(gw * xh)) * factor, without the first mean where not centred.
//   outputs  dx, dense; then the sums of g * xh and of g, float32 or float64: where a channel is
//   one
//            element (inner 1) one of each channel, over all rows; else one of each channel of each
//            row
//   inputs   g, x, any layout; mean and factor of each row; weight, or empty
//   ints     rows, groups, channels, centred, as row_norm's
// Note [Sums over rows]
// Rows are taken in blocks, whose size follows from the number of rows alone; a block's sums are
// made row after row, and the blocks' are combined pairwise.
#include <bit>

#include "kernels.h"
#include "moments.h"
#include "operand.h"
#include "thread_pool.h"

namespace tessera::cpu {

namespace {

// Sums of a * b and of a, in lanes.
template <class T, int kBytes>
TS_INLINE void two_sums(const T* a, const T* b, int64_t n, T* product, T* plain) {
  using L = typename detail::BlockLanes<T, kBytes>::L;
  constexpr int64_t kStep = loops::kReduceLanes;
  detail::BlockLanes<T, kBytes> first, second;
  first.clear();
  second.clear();
  alignas(64) T rest[2][kStep];
  for (int64_t i = 0; i < n; i += kStep) {
    const T *x = a + i, *y = b + i;
    if (i + kStep > n) {
      for (int64_t j = 0; j < kStep; ++j) {
        rest[0][j] = i + j < n ? x[j] : T(0);
        rest[1][j] = i + j < n ? y[j] : T(0);
      }
      x = rest[0];
      y = rest[1];
    }
#pragma GCC unroll 64
    for (int v = 0; v < first.kVectors; ++v) {
      const typename L::Vector u = L::load(x + v * L::kCount);
      first.lanes[v] += u * L::load(y + v * L::kCount);
      second.lanes[v] += u;
    }
  }
  *product = first.fold();
  *plain = second.fold();
}

// xh = (x - mean) * factor and gw = g * weight; adds g * xh and g to the channels' sums.
template <class T>
TS_INLINE void prepare_channels(const T* g, const T* x, const T* weight, T mean, T factor,
                                int64_t n, T* __restrict xh, T* __restrict gw, T* __restrict sum_gx,
                                T* __restrict sum_g) {
  for (int64_t i = 0; i < n; ++i) {
    const T h = (x[i] - mean) * factor;
    xh[i] = h;
    gw[i] = g[i] * weight[i];
    sum_gx[i] += g[i] * h;
    sum_g[i] += g[i];
  }
}
template <class T>
TS_INLINE void normalise(const T* x, T mean, T factor, int64_t n, T* __restrict xh) {
  for (int64_t i = 0; i < n; ++i) xh[i] = (x[i] - mean) * factor;
}
// dx = (g * weight - plain - xh * product) * factor.
template <class T>
TS_INLINE void finish(const T* g, T weight, const T* xh, T plain, T product, T factor, int64_t n,
                      T* dx) {
  for (int64_t i = 0; i < n; ++i) dx[i] = (g[i] * weight - plain - xh[i] * product) * factor;
}
template <class T>
TS_INLINE void add_to(T* __restrict a, const T* b, int64_t n) {
  for (int64_t i = 0; i < n; ++i) a[i] += b[i];
}

template <class T>
struct Loops {
  void (*sums)(const T* a, const T* b, int64_t n, T* product, T* plain);
  void (*channels)(const T* g, const T* x, const T* weight, T mean, T factor, int64_t n, T* xh,
                   T* gw, T* sum_gx, T* sum_g);
  void (*normalise)(const T* x, T mean, T factor, int64_t n, T* xh);
  void (*finish)(const T* g, T weight, const T* xh, T plain, T product, T factor, int64_t n, T* dx);
  void (*add)(T* a, const T* b, int64_t n);
};
#define TS_NORM_BACKWARD_ISA(isa, bytes, target)                                             \
  template <class T>                                                                         \
  target void sums_##isa(const T* a, const T* b, int64_t n, T* product, T* plain) {          \
    two_sums<T, bytes>(a, b, n, product, plain);                                             \
  }                                                                                          \
  template <class T>                                                                         \
  target void channels_##isa(const T* g, const T* x, const T* w, T m, T f, int64_t n, T* xh, \
                             T* gw, T* a, T* b) {                                            \
    prepare_channels(g, x, w, m, f, n, xh, gw, a, b);                                        \
  }                                                                                          \
  template <class T>                                                                         \
  target void normalise_##isa(const T* x, T m, T f, int64_t n, T* xh) {                      \
    normalise(x, m, f, n, xh);                                                               \
  }                                                                                          \
  template <class T>                                                                         \
  target void finish_##isa(const T* g, T w, const T* xh, T a, T b, T f, int64_t n, T* dx) {  \
    finish(g, w, xh, a, b, f, n, dx);                                                        \
  }                                                                                          \
  template <class T>                                                                         \
  target void add_##isa(T* a, const T* b, int64_t n) {                                       \
    add_to(a, b, n);                                                                         \
  }                                                                                          \
  template <class T>                                                                         \
  constexpr Loops<T> kLoops_##isa = {sums_##isa<T>, channels_##isa<T>, normalise_##isa<T>,   \
                                     finish_##isa<T>, add_##isa<T>};
TS_NORM_BACKWARD_ISA(baseline, 16, )
TS_NORM_BACKWARD_ISA(avx2, 32, TS_TARGET_AVX2)
TS_NORM_BACKWARD_ISA(avx512, 64, TS_TARGET_AVX512)
#undef TS_NORM_BACKWARD_ISA

constexpr int64_t kSerialElements = 16 * 1024;
constexpr int64_t kLeastBlock = 32;
constexpr int64_t kMostBlocks = 256;

template <class T>
struct RowNormBackward {
  const Loops<T>& loops;
  const KernelArgs& args;
  int64_t rows, groups, channels, n, inner;
  bool centred;
  const Reader<T>&g, &x;
  const Writer<T>& dx;
  const T *means, *factors, *weight;
  T *sum_gx, *sum_g;
  OutOfScratch& failure;

  // Channels of one element; their sums are added to those given.
  void wide_row(int64_t r, T* buffer, T* gx, T* gs) const {
    const T* grad = g.get(r * n, n, buffer);
    const T* value = x.get(r * n, n, buffer + n);
    T *xh = buffer + 2 * n, *gw = buffer + 3 * n, product, plain;
    loops.channels(grad, value, weight + r % groups * channels, means[r], factors[r], n, xh, gw,
                   gx + r % groups * channels, gs + r % groups * channels);
    loops.sums(gw, xh, n, &product, &plain);
    write(r * n, gw, T(1), xh, n, product, plain, factors[r]);
  }
  void write(int64_t at, const T* grad, T w, const T* xh, int64_t k, T product, T plain,
             T factor) const {
    const T count = static_cast<T>(n);
    const T a = centred ? plain / count : T(0), b = product / count;
    dx.put(at, k, [&](int64_t i, T* to, int64_t m) {
      loops.finish(grad + i, w, xh + i, a, b, factor, m, to);
    });
  }
  // Channels of several elements, each with sums of its own.
  void narrow_row(int64_t r, T* buffer) const {
    const T* grad = g.get(r * n, n, buffer);
    const T* value = x.get(r * n, n, buffer + n);
    T *xh = buffer + 2 * n, product = 0, plain = 0;
    loops.normalise(value, means[r], factors[r], n, xh);
    const T* w = weight + r % groups * channels;
    for (int64_t c = 0; c < channels; ++c) {
      T gx = 0, gs = 0;
      for (int64_t i = 0; i < inner; i += loops::kReduceBlock) {
        T one, two;
        loops.sums(grad + c * inner + i, xh + c * inner + i,
                   std::min(loops::kReduceBlock, inner - i), &one, &two);
        gx += one;
        gs += two;
      }
      sum_gx[r * channels + c] = gx;
      sum_g[r * channels + c] = gs;
      product += w[c] * gx;
      plain += w[c] * gs;
    }
    for (int64_t c = 0; c < channels; ++c)
      write(r * n + c * inner, grad + c * inner, w[c], xh + c * inner, inner, product, plain,
            factors[r]);
  }

  // Work on rows [begin, end) with a buffer for each call.
  template <class F>
  void with_buffer(F f) const {
    Scratch scratch(static_cast<size_t>(4 * n) * sizeof(T), failure);
    T* buffer = static_cast<T*>(scratch.get());
    if (buffer) f(buffer);
  }

  void narrow() const {
    parallel_for(0, rows, std::max<int64_t>(1, kSerialElements / n), [&](int64_t b, int64_t e) {
      with_buffer([&](T* buffer) {
        for (int64_t r = b; r < e; ++r) narrow_row(r, buffer);
      });
      dx.done();
    });
  }
  void wide() const {
    const int64_t block = std::max(kLeastBlock, (rows + kMostBlocks - 1) / kMostBlocks);
    const int64_t blocks = (rows + block - 1) / block, width = groups * channels;
    Scratch scratch(static_cast<size_t>(2 * blocks * width) * sizeof(T), failure);
    T* partials = static_cast<T*>(scratch.get());
    if (!partials) return;
    parallel_for(0, blocks, std::max<int64_t>(1, kSerialElements / (n * block)),
                 [&](int64_t first, int64_t last) {
                   with_buffer([&](T* buffer) {
                     for (int64_t k = first; k < last; ++k) {
                       T* sums = partials + 2 * k * width;
                       std::fill_n(sums, 2 * width, T(0));
                       for (int64_t r = k * block; r < std::min(rows, (k + 1) * block); ++r)
                         wide_row(r, buffer, sums, sums + width);
                     }
                   });
                   dx.done();
                 });
    // Pairwise: with those 1, 2, 4... blocks further.
    for (int64_t step = 1; step < blocks; step *= 2)
      parallel_for(0, (blocks + 2 * step - 1) / (2 * step), kSerialElements / width + 1,
                   [&](int64_t f, int64_t l) {
                     for (int64_t k = f; k < l; ++k)
                       if ((2 * k + 1) * step < blocks)
                         loops.add(partials + 4 * k * step * width,
                                   partials + 2 * (2 * k + 1) * step * width, 2 * width);
                   });
    std::copy_n(partials, width, sum_gx);
    std::copy_n(partials + width, width, sum_g);
  }
};

template <class T>
Status row_norm_backward_as(const KernelArgs& args) {
  constexpr const Loops<T>* kTables[] = {&kLoops_baseline<T>, &kLoops_avx2<T>, &kLoops_avx512<T>};
  const KernelTensor &grad = args.inputs[0], &in = args.inputs[1];
  if (in.numel == 0) return {};
  const int64_t rows = args.ints[0], groups = args.ints[1], channels = args.ints[2];
  const int64_t n = in.numel / rows;
  OutOfScratch failure;
  Dense g(grad, failure), x(in, failure);
  Vector<T> means(args.inputs[2], rows, T(0), failure),
      factors(args.inputs[3], rows, T(0), failure);
  Vector<T> weight(args.inputs[4], groups * channels, T(1), failure);
  if (!g.data() || !x.data() || !means.data() || !factors.data() || !weight.data())
    return failure.status("row_norm_backward");
  const Reader<T> read_g(g.data(), grad.dtype), read_x(x.data(), in.dtype);
  const Writer<T> dx(args.outputs[0], 3 * in.numel * read_x.item > streaming_bytes());
  const RowNormBackward<T> work{*kTables[g_isa],
                                args,
                                rows,
                                groups,
                                channels,
                                n,
                                n / channels,
                                args.ints[3] != 0,
                                read_g,
                                read_x,
                                dx,
                                means.data(),
                                factors.data(),
                                weight.data(),
                                static_cast<T*>(args.outputs[1].data),
                                static_cast<T*>(args.outputs[2].data),
                                failure};
  n == channels ? work.wide() : work.narrow();
  return failure.status("row_norm_backward");
}

Status row_norm_backward(const KernelArgs& args) {
  return args.inputs[1].dtype == DType::kFloat64 ? row_norm_backward_as<double>(args)
                                                 : row_norm_backward_as<float>(args);
}

}  // namespace

TS_KERNEL("row_norm_backward", row_norm_backward)

}  // namespace tessera::cpu
