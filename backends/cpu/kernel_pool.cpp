// Pooling: planes are independent, windows are read off the arguments. See ops/pool/geometry.h.
// Outputs are written whole.
#include <algorithm>
#include <cmath>
#include <limits>

#include "convert_scalar.h"
#include "kernels.h"
#include "thread_pool.h"

namespace tessera::cpu {

namespace {

struct Pool {
  bool adaptive;
  const int64_t *in, *out, *kernel, *stride, *padding, *dilation, *more;

  explicit Pool(const int64_t* ints)
      : adaptive(ints[0] != 0),
        in(ints + 1),
        out(ints + 4),
        kernel(ints + 7),
        stride(ints + 10),
        padding(ints + 13),
        dilation(ints + 16),
        more(ints + 19) {}
  int64_t out_points() const { return out[0] * out[1] * out[2]; }
};

// One window along one dimension: places first, first + step, ... below last, all inside; `whole`
// is its length with padding.
struct Range {
  int64_t first, last, step, whole;
};
Range range_of(const Pool& p, int d, int64_t i) {
  if (p.adaptive) {
    int64_t first = i * p.in[d] / p.out[d];
    int64_t last = ((i + 1) * p.in[d] + p.out[d] - 1) / p.out[d];
    return {first, last, 1, last - first};
  }
  int64_t step = p.dilation[d];
  int64_t first = i * p.stride[d] - p.padding[d];
  int64_t last = first + (p.kernel[d] - 1) * step + 1;
  int64_t whole = std::min(last, p.in[d] + p.padding[d]) - first;
  if (first < 0) first += (-first + step - 1) / step * step;
  return {first, std::min(last, p.in[d]), step, whole};
}

template <class F>
void each_window(const Pool& p, F&& f) {
  int64_t at = 0;
  for (int64_t z = 0; z < p.out[0]; ++z) {
    Range rz = range_of(p, 0, z);
    for (int64_t y = 0; y < p.out[1]; ++y) {
      Range ry = range_of(p, 1, y);
      for (int64_t x = 0; x < p.out[2]; ++x) f(at++, rz, ry, range_of(p, 2, x));
    }
  }
}

int64_t planes_at_once(const Pool& p) {
  int64_t window = p.kernel[0] * p.kernel[1] * p.kernel[2];
  return std::max<int64_t>(1, 16384 / std::max<int64_t>(1, p.out_points() * window));
}

// Planes of [planes, d, h, w], or of [batch, d, h, w, channels], whose channels lie between.
struct Planes {
  int64_t count, between, points;

  explicit Planes(const KernelTensor& t)
      : count(t.sizes[0] * (t.ndim == 5 ? t.sizes[4] : 1)),
        between(t.ndim == 5 ? t.sizes[4] : 1),
        points(t.sizes[1] * t.sizes[2] * t.sizes[3]) {}
  int64_t first(int64_t plane) const {
    return plane / between * between * points + plane % between;
  }
};
template <class T>
struct Plane {
  T* data;
  int64_t between;
  T& operator[](int64_t i) const { return data[i * between]; }
};
template <class T>
Plane<T> plane_of(const Planes& p, T* data, int64_t plane) {
  return {data + p.first(plane), p.between};
}

template <class T>
using Register = std::conditional_t<std::is_same_v<T, double>, double,
                                    std::conditional_t<std::is_integral_v<T>, int64_t, float>>;

// Outputs: values, indices in their plane. NaN wins; of equals the first.
template <class T>
void max_planes(const Pool& p, const KernelArgs& a, int64_t first, int64_t last) {
  using C = Register<T>;
  const Planes wide(a.inputs[0]), narrow(a.outputs[0]);
  for (int64_t n = first; n < last; ++n) {
    const auto plane = plane_of(wide, static_cast<const T*>(a.inputs[0].data), n);
    const auto values = plane_of(narrow, static_cast<T*>(a.outputs[0].data), n);
    const auto indices = plane_of(narrow, static_cast<int64_t*>(a.outputs[1].data), n);
    each_window(p, [&](int64_t at, Range z, Range y, Range x) {
      int64_t best = (z.first * p.in[1] + y.first) * p.in[2] + x.first;
      // Steps may jump over an input that is shorter than they are.
      const bool empty = z.first >= z.last || y.first >= y.last || x.first >= x.last;
      if (empty) {
        values[at] = std::numeric_limits<C>::has_infinity
                         ? cast<T>(-std::numeric_limits<C>::infinity())
                         : std::numeric_limits<T>::lowest();
        indices[at] = best;
        return;
      }
      C largest = cast<C>(plane[best]);
      for (int64_t i = z.first; i < z.last; i += z.step)
        for (int64_t j = y.first; j < y.last; j += y.step) {
          const int64_t row = (i * p.in[1] + j) * p.in[2];
          for (int64_t k = x.first; k < x.last; k += x.step) {
            C v = cast<C>(plane[row + k]);
            bool wins = v > largest;
            if constexpr (std::is_floating_point_v<C>) wins |= v != v && largest == largest;
            if (wins) {
              largest = v;
              best = row + k;
            }
          }
        }
      values[at] = plane[best];
      indices[at] = best;
    });
  }
}

Status pool_max(const KernelArgs& a) {
  Pool p(a.ints);
  const int64_t planes = Planes(a.inputs[0]).count;
  return with_type(a.inputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    if constexpr (is_complex_v<T> || std::is_same_v<T, bool>) {
      return fail(Code::kUnsupported, "max_pool is not implemented for %s",
                  dtype_name(a.inputs[0].dtype));
    } else {
      parallel_for(0, planes, planes_at_once(p),
                   [&](int64_t first, int64_t last) { max_planes<T>(p, a, first, last); });
      return Status{};
    }
  });
}

Status check_places(const KernelTensor& indices, int64_t points) {
  const int64_t* at = static_cast<const int64_t*>(indices.data);
  for (int64_t i = 0; i < indices.numel; ++i)
    if (at[i] < 0 || at[i] >= points)
      return fail(Code::kRefused,
                  "found an invalid max index: %lld (output volume of a plane is %lld)",
                  static_cast<long long>(at[i]), static_cast<long long>(points));
  return {};
}

enum class Move { kAdd, kAssign, kGather };

// Between the elements of a plane and the places that indices name. The plane side is `wide`.
template <Move move>
Status moved(const KernelArgs& a) {
  const KernelTensor& indices = a.inputs[1];
  const KernelTensor& wide = move == Move::kGather ? a.inputs[0] : a.outputs[0];
  const Planes places(wide), own(indices);
  if (Status s = check_places(indices, places.points); !s.ok()) return s;
  return with_type(wide.dtype, [&]<class T>(std::type_identity<T>) {
    using C = std::conditional_t<is_complex_v<T>, T, Register<T>>;
    parallel_for(0, own.count, std::max<int64_t>(1, 16384 / std::max<int64_t>(1, own.points)),
                 [&](int64_t first, int64_t last) {
                   for (int64_t n = first; n < last; ++n) {
                     const auto at = plane_of(own, static_cast<const int64_t*>(indices.data), n);
                     const auto from = plane_of(move == Move::kGather ? places : own,
                                                static_cast<const T*>(a.inputs[0].data), n);
                     const auto to = plane_of(move == Move::kGather ? own : places,
                                              static_cast<T*>(a.outputs[0].data), n);
                     if constexpr (move != Move::kGather)
                       for (int64_t i = 0; i < places.points; ++i) to[i] = T{};
                     for (int64_t i = 0; i < own.points; ++i) {
                       if constexpr (move == Move::kGather)
                         to[i] = from[at[i]];
                       else if constexpr (move == Move::kAssign)
                         to[at[i]] = from[i];
                       else
                         to[at[i]] = cast<T>(cast<C>(to[at[i]]) + cast<C>(from[i]));
                     }
                   }
                 });
    return Status{};
  });
}

// What the sum of a window is divided by.
int64_t divisor_of(const Pool& p, const Range& z, const Range& y, const Range& x) {
  if (p.more[1]) return p.more[1];
  if (p.adaptive || p.more[0]) return z.whole * y.whole * x.whole;
  return (z.last - z.first) * (y.last - y.first) * (x.last - x.first);
}

template <class F>
Status with_average_type(DType t, F&& f) {
  switch (t) {
    case DType::kFloat32:
      return f(std::type_identity<float>());
    case DType::kFloat64:
      return f(std::type_identity<double>());
    case DType::kFloat16:
      return f(std::type_identity<Half>());
    case DType::kBFloat16:
      return f(std::type_identity<BFloat>());
    case DType::kInt64:
      return f(std::type_identity<int64_t>());
    default:
      return fail(Code::kUnsupported, "avg_pool is not implemented for %s", dtype_name(t));
  }
}

Status pool_avg(const KernelArgs& a) {
  Pool p(a.ints);
  return with_average_type(a.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    using C = Register<T>;
    const Planes wide(a.inputs[0]), narrow(a.outputs[0]);
    parallel_for(0, wide.count, planes_at_once(p), [&](int64_t first, int64_t last) {
      for (int64_t n = first; n < last; ++n) {
        const auto plane = plane_of(wide, static_cast<const T*>(a.inputs[0].data), n);
        const auto out = plane_of(narrow, static_cast<T*>(a.outputs[0].data), n);
        each_window(p, [&](int64_t at, Range z, Range y, Range x) {
          C sum = 0;
          for (int64_t i = z.first; i < z.last; ++i)
            for (int64_t j = y.first; j < y.last; ++j)
              for (int64_t k = x.first; k < x.last; ++k)
                sum += cast<C>(plane[(i * p.in[1] + j) * p.in[2] + k]);
          out[at] = cast<T>(sum / static_cast<C>(divisor_of(p, z, y, x)));
        });
      }
    });
    return Status{};
  });
}

Status pool_avg_backward(const KernelArgs& a) {
  Pool p(a.ints);
  return with_average_type(a.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    using C = Register<T>;
    const Planes wide(a.outputs[0]), narrow(a.inputs[0]);
    parallel_for(0, wide.count, planes_at_once(p), [&](int64_t first, int64_t last) {
      for (int64_t n = first; n < last; ++n) {
        const auto plane = plane_of(wide, static_cast<T*>(a.outputs[0].data), n);
        const auto grad = plane_of(narrow, static_cast<const T*>(a.inputs[0].data), n);
        for (int64_t i = 0; i < wide.points; ++i) plane[i] = T{};
        each_window(p, [&](int64_t at, Range z, Range y, Range x) {
          C g = cast<C>(grad[at]) / static_cast<C>(divisor_of(p, z, y, x));
          for (int64_t i = z.first; i < z.last; ++i)
            for (int64_t j = y.first; j < y.last; ++j)
              for (int64_t k = x.first; k < x.last; ++k) {
                T& to = plane[(i * p.in[1] + j) * p.in[2] + k];
                to = cast<T>(cast<C>(to) + g);
              }
        });
      }
    });
    return Status{};
  });
}

}  // namespace

TS_KERNEL("pool_max", pool_max)
TS_KERNEL("pool_scatter", moved<Move::kAdd>)
TS_KERNEL("pool_assign", moved<Move::kAssign>)
TS_KERNEL("pool_gather", moved<Move::kGather>)
TS_KERNEL("pool_avg", pool_avg)
TS_KERNEL("pool_avg_backward", pool_avg_backward)

}  // namespace tessera::cpu
