// Sampling at the places of a grid, in two or three dimensions.
#include <algorithm>
#include <cmath>

#include "kernels.h"
#include "thread_pool.h"

namespace tessera::cpu {

namespace {

enum Mode { kLinear, kNearest, kCubic };
enum Padding { kZeros, kBorder, kReflection };

struct Sampling {
  Mode mode;
  Padding padding;
  bool align;
  int dims;         // 2 or 3
  int64_t size[3];  // of the input, the last dimension first: x, y, z
  int64_t step[3];  // elements from one place to the next
  int64_t channels, in_points, out_points;

  Sampling(const KernelTensor& input, const KernelTensor& grid, const int64_t* ints)
      : mode(static_cast<Mode>(ints[0])),
        padding(static_cast<Padding>(ints[1])),
        align(ints[2] != 0),
        dims(input.ndim - 2),
        channels(input.sizes[1]) {
    int64_t s = 1;
    for (int d = 0; d < dims; ++d) {
      size[d] = input.sizes[input.ndim - 1 - d];
      step[d] = s;
      s *= size[d];
    }
    in_points = s;
    out_points = grid.sizes[0] ? grid.numel / grid.sizes[0] / dims : 0;
  }
};

// A place along one dimension, and how it moves with the grid's number.
template <class T>
struct Place {
  T at, slope;
};

template <class T>
Place<T> clipped(Place<T> p, int64_t size) {
  const T last = static_cast<T>(size - 1);
  if (p.at <= 0) return {0, 0};
  if (p.at >= last) return {last, 0};
  return p;
}

// Folded back at both ends as often as it takes; twice `low` and `high` are whole numbers.
template <class T>
Place<T> reflected(Place<T> p, int64_t twice_low, int64_t twice_high) {
  if (twice_low == twice_high) return {0, 0};
  const T low = static_cast<T>(twice_low) / 2, span = static_cast<T>(twice_high - twice_low) / 2;
  T x = p.at - low, slope = p.slope;
  if (x < 0) {
    x = -x;
    slope = -slope;
  }
  const T extra = std::fmod(x, span);
  const int64_t flips = static_cast<int64_t>(std::floor(x / span));
  if (flips % 2 == 0) return {extra + low, slope};
  return {span - extra + low, -slope};
}

template <class T>
Place<T> unnormalised(T x, const Sampling& s, int d) {
  const T n = static_cast<T>(s.size[d]);
  if (s.align) return {(x + 1) / 2 * (n - 1), (n - 1) / 2};
  return {((x + 1) * n - 1) / 2, n / 2};
}

template <class T>
Place<T> padded(Place<T> p, const Sampling& s, int d) {
  if (s.padding == kBorder) {
    p = clipped(p, s.size[d]);
  } else if (s.padding == kReflection) {
    p = s.align ? reflected(p, 0, 2 * (s.size[d] - 1)) : reflected(p, -1, 2 * s.size[d] - 1);
    p = clipped(p, s.size[d]);
  }
  // Places that no number holds read nothing.
  if (!std::isfinite(p.at)) p = {T(-100), 0};
  return p;
}

template <class T>
void cubic_weights(T t, T* w, T* slope) {
  constexpr T a = T(-0.75);
  const T x[4] = {t + 1, t, 1 - t, 2 - t};
  for (int i = 0; i < 4; ++i) {
    const T v = x[i];
    const bool inner = i == 1 || i == 2;
    w[i] = inner ? ((a + 2) * v - (a + 3)) * v * v + 1 : ((v - 5) * v + 8) * v * a - 4 * a;
    const T d = inner ? (3 * (a + 2) * v - 2 * (a + 3)) * v : ((3 * v - 10) * v + 8) * a;
    slope[i] = i < 2 ? d : -d;
  }
}

// The elements one place is made of: along each dimension a few with weights, and the slopes of
// those by the grid's number.
template <class T>
struct Taps {
  int count[3] = {1, 1, 1};
  int64_t index[3][4] = {};  // -1: outside
  T weight[3][4] = {{1}, {1}, {1}};
  T slope[3][4] = {};
};

template <class T>
Taps<T> taps_of(const Sampling& s, const T* grid) {
  Taps<T> t;
  for (int d = 0; d < s.dims; ++d) {
    Place<T> p = unnormalised(grid[d], s, d);
    auto inside = [&](T v) {
      return v >= 0 && v <= static_cast<T>(s.size[d] - 1) ? static_cast<int64_t>(v) : -1;
    };
    if (s.mode == kCubic) {
      const T whole = std::floor(p.at);
      t.count[d] = 4;
      cubic_weights(p.at - whole, t.weight[d], t.slope[d]);
      for (int k = 0; k < 4; ++k) {
        t.index[d][k] = inside(padded(Place<T>{whole - 1 + static_cast<T>(k), 0}, s, d).at);
        t.slope[d][k] *= p.slope;
      }
      continue;
    }
    p = padded(p, s, d);
    if (s.mode == kNearest) {
      t.index[d][0] = inside(std::nearbyint(p.at));
      t.weight[d][0] = 1;
      continue;
    }
    const T whole = std::floor(p.at), part = p.at - whole;
    t.count[d] = 2;
    t.index[d][0] = inside(whole);
    t.index[d][1] = inside(whole + 1);
    t.weight[d][0] = 1 - part;
    t.weight[d][1] = part;
    t.slope[d][0] = -p.slope;
    t.slope[d][1] = p.slope;
  }
  return t;
}

// f(place in the plane, indices of the taps) for every element inside.
template <class T, class F>
void each_tap(const Sampling& s, const Taps<T>& t, F&& f) {
  int k[3];
  for (k[2] = 0; k[2] < t.count[2]; ++k[2])
    for (k[1] = 0; k[1] < t.count[1]; ++k[1])
      for (k[0] = 0; k[0] < t.count[0]; ++k[0]) {
        int64_t at = 0;
        bool inside = true;
        for (int d = 0; d < s.dims; ++d) {
          inside &= t.index[d][k[d]] >= 0;
          at += t.index[d][k[d]] * s.step[d];
        }
        if (inside) f(at, k);
      }
}

template <class T>
void forward(const KernelArgs& a) {
  const Sampling s(a.inputs[0], a.inputs[1], a.ints);
  const T* input = static_cast<const T*>(a.inputs[0].data);
  const T* grid = static_cast<const T*>(a.inputs[1].data);
  T* out = static_cast<T*>(a.outputs[0].data);
  const int64_t samples = a.inputs[0].sizes[0];
  parallel_for(0, samples * s.out_points, std::max<int64_t>(1, 4096 / s.channels),
               [&](int64_t first, int64_t last) {
                 for (int64_t r = first; r < last; ++r) {
                   const int64_t n = r / s.out_points, p = r % s.out_points;
                   const Taps<T> t = taps_of(s, grid + r * s.dims);
                   for (int64_t c = 0; c < s.channels; ++c) {
                     const T* plane = input + (n * s.channels + c) * s.in_points;
                     T sum = 0;
                     each_tap(s, t, [&](int64_t at, const int* k) {
                       T w = 1;
                       for (int d = 0; d < s.dims; ++d) w *= t.weight[d][k[d]];
                       sum += w * plane[at];
                     });
                     out[(n * s.channels + c) * s.out_points + p] = sum;
                   }
                 }
               });
}

template <class T>
void backward(const KernelArgs& a) {
  const Sampling s(a.inputs[1], a.inputs[2], a.ints);
  const T* grad = static_cast<const T*>(a.inputs[0].data);
  const T* input = static_cast<const T*>(a.inputs[1].data);
  const T* grid = static_cast<const T*>(a.inputs[2].data);
  T* to_input = static_cast<T*>(a.outputs[0].data);
  T* to_grid = static_cast<T*>(a.outputs[1].data);
  // Samples are independent; within one, sums go in order.
  parallel_for(0, a.inputs[1].sizes[0], 1, [&](int64_t first, int64_t last) {
    for (int64_t n = first; n < last; ++n)
      for (int64_t p = 0; p < s.out_points; ++p) {
        const int64_t r = n * s.out_points + p;
        const Taps<T> t = taps_of(s, grid + r * s.dims);
        T slopes[3] = {0, 0, 0};
        for (int64_t c = 0; c < s.channels; ++c) {
          const int64_t plane = (n * s.channels + c) * s.in_points;
          const T g = grad[(n * s.channels + c) * s.out_points + p];
          each_tap(s, t, [&](int64_t at, const int* k) {
            T w = 1;
            for (int d = 0; d < s.dims; ++d) w *= t.weight[d][k[d]];
            to_input[plane + at] += w * g;
            for (int d = 0; d < s.dims; ++d) {
              T slope = t.slope[d][k[d]];
              for (int e = 0; e < s.dims; ++e)
                if (e != d) slope *= t.weight[e][k[e]];
              slopes[d] += slope * g * input[plane + at];
            }
          });
        }
        for (int d = 0; d < s.dims; ++d) to_grid[r * s.dims + d] = slopes[d];
      }
  });
}

// Inputs: input, grid. ints: mode, padding, align_corners.
Status grid_sample(const KernelArgs& a) {
  if (a.outputs[0].dtype == DType::kFloat64)
    forward<double>(a);
  else
    forward<float>(a);
  return {};
}
// Inputs: gradient, input, grid. Outputs, zero at first: gradients of input and grid.
Status grid_sample_backward(const KernelArgs& a) {
  if (a.outputs[0].dtype == DType::kFloat64)
    backward<double>(a);
  else
    backward<float>(a);
  return {};
}

}  // namespace

TS_KERNEL("grid_sample", grid_sample)
TS_KERNEL("grid_sample_backward", grid_sample_backward)

}  // namespace tessera::cpu
