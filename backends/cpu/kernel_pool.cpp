// Pooling: planes are independent, windows are read off the arguments. See ops/pool/geometry.h.
#include <algorithm>
#include <cmath>

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
  int64_t in_points() const { return in[0] * in[1] * in[2]; }
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

template <class T>
using Register = std::conditional_t<std::is_same_v<T, double>, double,
                                    std::conditional_t<std::is_integral_v<T>, int64_t, float>>;

// Outputs: values, indices in their plane. NaN wins; of equals the first.
template <class T>
void max_planes(const Pool& p, const T* in, T* values, int64_t* indices, int64_t first,
                int64_t last) {
  using C = Register<T>;
  for (int64_t n = first; n < last; ++n) {
    const T* plane = in + n * p.in_points();
    each_window(p, [&](int64_t at, Range z, Range y, Range x) {
      int64_t best = (z.first * p.in[1] + y.first) * p.in[2] + x.first;
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
      values[n * p.out_points() + at] = plane[best];
      indices[n * p.out_points() + at] = best;
    });
  }
}

Status pool_max(const KernelArgs& a) {
  Pool p(a.ints);
  const int64_t planes = a.inputs[0].sizes[0];
  return with_type(a.inputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    if constexpr (is_complex_v<T> || std::is_same_v<T, bool>) {
      return fail(Code::kUnsupported, "max_pool is not implemented for %s",
                  dtype_name(a.inputs[0].dtype));
    } else {
      parallel_for(0, planes, planes_at_once(p), [&](int64_t first, int64_t last) {
        max_planes(p, static_cast<const T*>(a.inputs[0].data), static_cast<T*>(a.outputs[0].data),
                   static_cast<int64_t*>(a.outputs[1].data), first, last);
      });
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

int64_t points_of(const KernelTensor& t) { return t.sizes[0] ? t.numel / t.sizes[0] : 0; }

enum class Move { kAdd, kAssign, kGather };

// Between the elements of a plane and the places that indices name. The plane side is `wide`.
template <Move move>
Status moved(const KernelArgs& a) {
  const KernelTensor& indices = a.inputs[1];
  const KernelTensor& wide = move == Move::kGather ? a.inputs[0] : a.outputs[0];
  const int64_t points = points_of(wide), count = points_of(indices), planes = indices.sizes[0];
  if (Status s = check_places(indices, points); !s.ok()) return s;
  return with_type(wide.dtype, [&]<class T>(std::type_identity<T>) {
    using C = std::conditional_t<is_complex_v<T>, T, Register<T>>;
    const T* from = static_cast<const T*>(a.inputs[0].data);
    T* to = static_cast<T*>(a.outputs[0].data);
    const int64_t* at = static_cast<const int64_t*>(indices.data);
    parallel_for(0, planes, std::max<int64_t>(1, 16384 / std::max<int64_t>(1, count)),
                 [&](int64_t first, int64_t last) {
                   for (int64_t n = first; n < last; ++n)
                     for (int64_t i = 0; i < count; ++i) {
                       int64_t place = n * points + at[n * count + i], own = n * count + i;
                       if constexpr (move == Move::kGather)
                         to[own] = from[place];
                       else if constexpr (move == Move::kAssign)
                         to[place] = from[own];
                       else
                         to[place] = cast<T>(cast<C>(to[place]) + cast<C>(from[own]));
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
    const T* in = static_cast<const T*>(a.inputs[0].data);
    T* out = static_cast<T*>(a.outputs[0].data);
    parallel_for(0, a.inputs[0].sizes[0], planes_at_once(p), [&](int64_t first, int64_t last) {
      for (int64_t n = first; n < last; ++n) {
        const T* plane = in + n * p.in_points();
        each_window(p, [&](int64_t at, Range z, Range y, Range x) {
          C sum = 0;
          for (int64_t i = z.first; i < z.last; ++i)
            for (int64_t j = y.first; j < y.last; ++j)
              for (int64_t k = x.first; k < x.last; ++k)
                sum += cast<C>(plane[(i * p.in[1] + j) * p.in[2] + k]);
          out[n * p.out_points() + at] = cast<T>(sum / static_cast<C>(divisor_of(p, z, y, x)));
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
    const T* grad = static_cast<const T*>(a.inputs[0].data);
    T* out = static_cast<T*>(a.outputs[0].data);
    parallel_for(0, a.inputs[0].sizes[0], planes_at_once(p), [&](int64_t first, int64_t last) {
      for (int64_t n = first; n < last; ++n) {
        T* plane = out + n * p.in_points();
        each_window(p, [&](int64_t at, Range z, Range y, Range x) {
          C g = cast<C>(grad[n * p.out_points() + at]) / static_cast<C>(divisor_of(p, z, y, x));
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
