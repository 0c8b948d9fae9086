// Convolutions whose every group has one input channel, directly: a channel's plane with its
// padding is small, and a row of the output is a sum of shifted rows of it. Nothing to gain from
// products of matrices here: each number is used taps times, not taps times channels.
#include <algorithm>
#include <cstring>

#include "conv.h"
#include "isa.h"
#include "scratch.h"
#include "tessera/ops/loops.h"
#include "thread_pool.h"

namespace tessera::cpu {

namespace {

constexpr int64_t kLanes = 16;  // of a dot product: the same sums on every instruction set

// out[i] = (first, or what is there) + the sum of w[t] * x[offsets[t] + i * stride], in the order
// of the taps.
template <class T, int kTaps, int kStride, bool kFirst>
TS_INLINE void sum_taps(const T* x, const int64_t* offsets, const T* w, int64_t stride_, T first,
                        T* __restrict out, int64_t n) {
  const int64_t stride = kStride ? kStride : stride_;
  const T* at[kTaps];
  T by[kTaps];
  for (int t = 0; t < kTaps; ++t) {
    at[t] = x + offsets[t];
    by[t] = w[t];
  }
  for (int64_t i = 0; i < n; ++i) {
    T sum = kFirst ? first : out[i];
#pragma GCC unroll 16
    for (int t = 0; t < kTaps; ++t) sum += by[t] * at[t][i * stride];
    out[i] = sum;
  }
}
template <class T, int kStride>
TS_INLINE void sum_row(const T* x, const int64_t* offsets, const T* w, int64_t taps, int64_t stride,
                       T first, T* __restrict out, int64_t n) {
  if (taps == 9) return sum_taps<T, 9, kStride, true>(x, offsets, w, stride, first, out, n);
  int64_t t = 0;
  if (taps >= 5) {
    sum_taps<T, 5, kStride, true>(x, offsets, w, stride, first, out, n);
    t = 5;
  } else {
    std::fill_n(out, n, first);
  }
  for (; t + 8 <= taps; t += 8)
    sum_taps<T, 8, kStride, false>(x, offsets + t, w + t, stride, first, out, n);
  for (; t + 3 <= taps; t += 3)
    sum_taps<T, 3, kStride, false>(x, offsets + t, w + t, stride, first, out, n);
  for (; t < taps; ++t)
    sum_taps<T, 1, kStride, false>(x, offsets + t, w + t, stride, first, out, n);
}
// x[offsets[t] + i * stride] += w[t] * y[i]
template <class T, int kStride>
TS_INLINE void spread_row(T* x, const int64_t* offsets, const T* w, int64_t taps, int64_t stride_,
                          const T* __restrict y, int64_t n) {
  const int64_t stride = kStride ? kStride : stride_;
  for (int64_t t = 0; t < taps; ++t) {
    T* to = x + offsets[t];
    for (int64_t i = 0; i < n; ++i) to[i * stride] += w[t] * y[i];
  }
}
// lanes[t][i % kLanes] += x[offsets[t] + i * stride] * y[i]
template <class T, int kStride>
TS_INLINE void dot_row(const T* x, const int64_t* offsets, T* __restrict lanes, int64_t taps,
                       int64_t stride_, const T* __restrict y, int64_t n) {
  const int64_t stride = kStride ? kStride : stride_;
  for (int64_t t = 0; t < taps; ++t, lanes += kLanes) {
    const T* from = x + offsets[t];
    int64_t i = 0;
    for (; i + kLanes <= n; i += kLanes)
      for (int64_t j = 0; j < kLanes; ++j) lanes[j] += y[i + j] * from[(i + j) * stride];
    for (int64_t j = 0; i + j < n; ++j) lanes[j] += y[i + j] * from[(i + j) * stride];
  }
}

template <class T>
struct Loops {
  void (*sum)(const T*, const int64_t*, const T*, int64_t, int64_t, T, T*, int64_t);
  void (*spread)(T*, const int64_t*, const T*, int64_t, int64_t, const T*, int64_t);
  void (*dot)(const T*, const int64_t*, T*, int64_t, int64_t, const T*, int64_t);
};
#define TS_DEPTHWISE_ISA(isa, target)                                                              \
  template <class T>                                                                               \
  target void sum_##isa(const T* x, const int64_t* offsets, const T* w, int64_t taps,              \
                        int64_t stride, T first, T* out, int64_t n) {                              \
    if (stride == 1) return sum_row<T, 1>(x, offsets, w, taps, stride, first, out, n);             \
    if (stride == 2) return sum_row<T, 2>(x, offsets, w, taps, stride, first, out, n);             \
    sum_row<T, 0>(x, offsets, w, taps, stride, first, out, n);                                     \
  }                                                                                                \
  template <class T>                                                                               \
  target void spread_##isa(T* x, const int64_t* offsets, const T* w, int64_t taps, int64_t stride, \
                           const T* y, int64_t n) {                                                \
    if (stride == 1) return spread_row<T, 1>(x, offsets, w, taps, stride, y, n);                   \
    spread_row<T, 0>(x, offsets, w, taps, stride, y, n);                                           \
  }                                                                                                \
  template <class T>                                                                               \
  target void dot_##isa(const T* x, const int64_t* offsets, T* lanes, int64_t taps,                \
                        int64_t stride, const T* y, int64_t n) {                                   \
    if (stride == 1) return dot_row<T, 1>(x, offsets, lanes, taps, stride, y, n);                  \
    if (stride == 2) return dot_row<T, 2>(x, offsets, lanes, taps, stride, y, n);                  \
    dot_row<T, 0>(x, offsets, lanes, taps, stride, y, n);                                          \
  }                                                                                                \
  template <class T>                                                                               \
  constexpr Loops<T> kLoops_##isa{&sum_##isa<T>, &spread_##isa<T>, &dot_##isa<T>};
TS_DEPTHWISE_ISA(baseline, )
TS_DEPTHWISE_ISA(avx2, TS_TARGET_AVX2)
TS_DEPTHWISE_ISA(avx512, TS_TARGET_AVX512)

template <class T>
const Loops<T>& loops_here() {
  static constexpr const Loops<T>* kTables[] = {&kLoops_baseline<T>, &kLoops_avx2<T>,
                                                &kLoops_avx512<T>};
  return *kTables[g_isa];
}

// One channel's plane with zeros around it.
struct Padded {
  const ConvShape& s;
  int64_t sizes[3], points;
  explicit Padded(const ConvShape& shape) : s(shape) {
    for (int d = 0; d < 3; ++d) sizes[d] = s.in[d] + 2 * s.padding[d];
    points = sizes[0] * sizes[1] * sizes[2];
  }
  bool is_input() const { return points == s.in_points(); }
  // Where a tap of the kernel reads, from where the first one does.
  void offsets(int64_t* to) const {
    for (int64_t z = 0; z < s.kernel[0]; ++z)
      for (int64_t y = 0; y < s.kernel[1]; ++y)
        for (int64_t x = 0; x < s.kernel[2]; ++x)
          *to++ = (z * s.dilation[0] * sizes[1] + y * s.dilation[1]) * sizes[2] + x * s.dilation[2];
  }
  // f(row of the output, where its first tap reads)
  template <class F>
  void each_row(F&& f) const {
    for (int64_t z = 0; z < s.out[0]; ++z)
      for (int64_t y = 0; y < s.out[1]; ++y)
        f(z * s.out[1] + y, (z * s.stride[0] * sizes[1] + y * s.stride[1]) * sizes[2]);
  }
  // f(row of the input, where it lies)
  template <class F>
  void each_line(F&& f) const {
    for (int64_t z = 0; z < s.in[0]; ++z)
      for (int64_t y = 0; y < s.in[1]; ++y)
        f(z * s.in[1] + y,
          ((z + s.padding[0]) * sizes[1] + y + s.padding[1]) * sizes[2] + s.padding[2]);
  }
  // The plane itself if it has no padding, or its copy in a room of zeros.
  template <class T>
  const T* fill(const T* channel, T* room) const {
    if (is_input()) return channel;
    each_line([&](int64_t line, int64_t at) {
      std::memcpy(room + at, channel + line * s.in[2], static_cast<size_t>(s.in[2]) * sizeof(T));
    });
    return room;
  }
};

// A thread's: the padded plane, and for each tap its offset and its lanes.
template <class T>
struct Room {
  Scratch memory;
  T* plane;
  T* lanes;
  int64_t* offsets;
  Room(const Padded& p, int64_t taps, OutOfScratch& failure)
      : memory(static_cast<size_t>(taps) * sizeof(int64_t) +
                   static_cast<size_t>(p.points + taps * kLanes) * sizeof(T),
               failure),
        offsets(static_cast<int64_t*>(memory.get())) {
    if (!offsets) return;
    plane = reinterpret_cast<T*>(offsets + taps);
    lanes = plane + p.points;
    std::fill_n(plane, p.points, T(0));
    p.offsets(offsets);
  }
};

int64_t planes_at_once(const ConvShape& s) {
  return std::max<int64_t>(1, 32768 / std::max<int64_t>(1, s.taps() * s.out_points()));
}

}  // namespace

bool is_depthwise(const ConvShape& s) { return s.groups > 1 && s.c == s.groups; }

template <class T>
Status depthwise_forward(const ConvShape& s, const T* input, const T* weight, const T* bias,
                         T* out) {
  const Padded p(s);
  const int64_t taps = s.taps(), each = s.o / s.c, points = s.out_points();
  const Loops<T>& loops = loops_here<T>();
  OutOfScratch failure;
  parallel_for(0, s.n * s.c, planes_at_once(s), [&](int64_t first, int64_t last) {
    Room<T> room(p, taps, failure);
    if (!room.offsets) return;
    for (int64_t k = first; k < last; ++k) {
      const T* plane = p.fill(input + k * s.in_points(), room.plane);
      for (int64_t o = k % s.c * each; o < (k % s.c + 1) * each; ++o) {
        T* to = out + (k / s.c * s.o + o) * points;
        p.each_row([&](int64_t row, int64_t at) {
          loops.sum(plane + at, room.offsets, weight + o * taps, taps, s.stride[2],
                    bias ? bias[o] : T(0), to + row * s.out[2], s.out[2]);
        });
      }
    }
  });
  return failure.status("convolution");
}

template <class T>
Status depthwise_backward_input(const ConvShape& s, const T* grad, const T* weight, T* result) {
  const Padded p(s);
  const int64_t taps = s.taps(), each = s.o / s.c, points = s.out_points();
  const Loops<T>& loops = loops_here<T>();
  OutOfScratch failure;
  parallel_for(0, s.n * s.c, planes_at_once(s), [&](int64_t first, int64_t last) {
    Room<T> room(p, taps, failure);
    if (!room.offsets) return;
    for (int64_t k = first; k < last; ++k) {
      T* channel = result + k * s.in_points();
      T* plane = p.is_input() ? channel : room.plane;
      std::fill_n(plane, p.points, T(0));
      for (int64_t o = k % s.c * each; o < (k % s.c + 1) * each; ++o) {
        const T* from = grad + (k / s.c * s.o + o) * points;
        p.each_row([&](int64_t row, int64_t at) {
          loops.spread(plane + at, room.offsets, weight + o * taps, taps, s.stride[2],
                       from + row * s.out[2], s.out[2]);
        });
      }
      if (!p.is_input())
        p.each_line([&](int64_t line, int64_t at) {
          std::memcpy(channel + line * s.in[2], plane + at,
                      static_cast<size_t>(s.in[2]) * sizeof(T));
        });
    }
  });
  return failure.status("convolution");
}

template <class T>
Status depthwise_backward_weight(const ConvShape& s, const T* grad, const T* input, T* result) {
  const Padded p(s);
  const int64_t taps = s.taps(), each = s.o / s.c, points = s.out_points();
  const Loops<T>& loops = loops_here<T>();
  OutOfScratch failure;
  parallel_for(0, s.o, 1, [&](int64_t first, int64_t last) {
    Room<T> room(p, taps, failure);
    if (!room.offsets) return;
    for (int64_t o = first; o < last; ++o) {
      std::fill_n(room.lanes, taps * kLanes, T(0));
      for (int64_t n = 0; n < s.n; ++n) {
        const T* plane = p.fill(input + (n * s.c + o / each) * s.in_points(), room.plane);
        const T* from = grad + (n * s.o + o) * points;
        p.each_row([&](int64_t row, int64_t at) {
          loops.dot(plane + at, room.offsets, room.lanes, taps, s.stride[2], from + row * s.out[2],
                    s.out[2]);
        });
      }
      for (int64_t t = 0; t < taps; ++t) {
        T* lanes = room.lanes + t * kLanes;
        for (int64_t half = kLanes / 2; half > 0; half /= 2)
          for (int64_t j = 0; j < half; ++j) lanes[j] += lanes[j + half];
        result[o * taps + t] = lanes[0];
      }
    }
  });
  return failure.status("convolution");
}

#define TS_DEPTHWISE(T)                                                                     \
  template Status depthwise_forward<T>(const ConvShape&, const T*, const T*, const T*, T*); \
  template Status depthwise_backward_input<T>(const ConvShape&, const T*, const T*, T*);    \
  template Status depthwise_backward_weight<T>(const ConvShape&, const T*, const T*, T*);
TS_DEPTHWISE(float)
TS_DEPTHWISE(double)

}  // namespace tessera::cpu
