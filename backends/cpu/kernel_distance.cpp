// p-norms of the differences of all pairs of rows, and their gradient.
#include <algorithm>
#include <cmath>

#include "convert_scalar.h"
#include "kernels.h"
#include "thread_pool.h"

namespace tessera::cpu {

namespace {

constexpr int64_t kGrain = 16 * 1024;
constexpr int64_t kLanes = 16;

// One norm: what a difference adds, and what becomes of the sum. `slope` is what a difference adds
// to the gradient of its element, where the distance is not zero.
template <class T>
struct Zero {
  T map(T d) const { return d != d ? d : d != T(0) ? T(1) : T(0); }
  T join(T x, T y) const { return x + y; }
  T finish(T sum) const { return sum; }
  T slope(T, T, T) const { return T(0); }
};
template <class T>
TS_INLINE T sign(T d) {
  return static_cast<T>((d > T(0)) - (d < T(0)));
}
template <class T>
struct One : Zero<T> {
  T map(T d) const { return math::abs(d); }
  T slope(T g, T d, T) const { return g * sign(d); }
};
template <class T>
struct Two : Zero<T> {
  T map(T d) const { return d * d; }
  T finish(T sum) const { return math::sqrt(sum); }
  T slope(T g, T d, T dist) const { return dist == T(0) ? T(0) : g * d / dist; }
};
template <class T>
struct Infinite : Zero<T> {
  T map(T d) const { return math::abs(d); }
  T join(T x, T y) const { return math::max_nan(x, y); }
  T slope(T g, T d, T dist) const { return math::abs(d) == dist ? g * sign(d) : T(0); }
};
template <class T>
struct General : Zero<T> {
  T p;
  T map(T d) const { return std::pow(math::abs(d), p); }
  T finish(T sum) const { return std::pow(sum, T(1) / p); }
  T slope(T g, T d, T dist) const {
    if (dist == T(0) || d == T(0)) return T(0);
    return sign(d) * std::pow(math::abs(d), p - T(1)) * g / std::pow(dist, p - T(1));
  }
};

template <class T, class N>
T distance(const N& norm, const T* a, const T* b, int64_t m) {
  T lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= m; i += kLanes)
    for (int64_t j = 0; j < kLanes; ++j)
      lanes[j] = norm.join(lanes[j], norm.map(a[i + j] - b[i + j]));
  for (int64_t j = 0; i + j < m; ++j) lanes[j] = norm.join(lanes[j], norm.map(a[i + j] - b[i + j]));
  for (int64_t half = kLanes / 2; half > 0; half /= 2)
    for (int64_t j = 0; j < half; ++j) lanes[j] = norm.join(lanes[j], lanes[j + half]);
  return norm.finish(lanes[0]);
}

// Everything is dense: a [batch, p, m], b [batch, r, m], distances [batch, p, r].
template <class T, class N>
void forward(const KernelArgs& args, const N& norm) {
  const T* a = static_cast<const T*>(args.inputs[0].data);
  const T* b = static_cast<const T*>(args.inputs[1].data);
  T* out = static_cast<T*>(args.outputs[0].data);
  const int64_t m = args.inputs[0].sizes[2], rows = args.inputs[0].sizes[1];
  const int64_t others = args.inputs[1].sizes[1];
  parallel_for(0, args.outputs[0].numel, std::max<int64_t>(1, kGrain / std::max<int64_t>(1, m)),
               [&](int64_t first, int64_t last) {
                 for (int64_t i = first; i < last; ++i) {
                   const int64_t row = i / others, batch = row / rows;
                   out[i] = distance(norm, a + row * m, b + (batch * others + i % others) * m, m);
                 }
               });
}

// Gradient of a: of each of its rows the sum over the rows of b, in their order.
template <class T, class N>
void backward(const KernelArgs& args, const N& norm) {
  const T* grad = static_cast<const T*>(args.inputs[0].data);
  const T* a = static_cast<const T*>(args.inputs[1].data);
  const T* b = static_cast<const T*>(args.inputs[2].data);
  const T* dist = static_cast<const T*>(args.inputs[3].data);
  T* out = static_cast<T*>(args.outputs[0].data);
  const int64_t m = args.inputs[1].sizes[2], rows = args.inputs[1].sizes[1];
  const int64_t others = args.inputs[2].sizes[1];
  const int64_t work = std::max<int64_t>(1, m * others);
  parallel_for(0, args.inputs[1].sizes[0] * rows, std::max<int64_t>(1, kGrain / work),
               [&](int64_t first, int64_t last) {
                 for (int64_t row = first; row < last; ++row) {
                   T* to = out + row * m;
                   std::fill_n(to, m, T(0));
                   for (int64_t r = 0; r < others; ++r) {
                     const T* other = b + (row / rows * others + r) * m;
                     const T g = grad[row * others + r], d = dist[row * others + r];
                     for (int64_t i = 0; i < m; ++i)
                       to[i] += norm.slope(g, a[row * m + i] - other[i], d);
                   }
                 }
               });
}

template <class T, class F>
void with_norm(double p, const F& f) {
  if (p == 0)
    f(Zero<T>{});
  else if (p == 1)
    f(One<T>{});
  else if (p == 2)
    f(Two<T>{});
  else if (std::isinf(p))
    f(Infinite<T>{});
  else
    f(General<T>{{}, static_cast<T>(p)});
}

}  // namespace

Status cdist(const KernelArgs& args) {
  if (args.outputs[0].numel == 0) return {};
  if (args.inputs[0].dtype == DType::kFloat32)
    with_norm<float>(args.doubles[0], [&](const auto& n) { forward<float>(args, n); });
  else if (args.inputs[0].dtype == DType::kFloat64)
    with_norm<double>(args.doubles[0], [&](const auto& n) { forward<double>(args, n); });
  else
    return fail(Code::kUnsupported, "cdist(): not implemented for %s",
                dtype_name(args.inputs[0].dtype));
  return {};
}

Status cdist_backward(const KernelArgs& args) {
  if (args.outputs[0].numel == 0) return {};
  if (args.inputs[0].dtype == DType::kFloat32)
    with_norm<float>(args.doubles[0], [&](const auto& n) { backward<float>(args, n); });
  else if (args.inputs[0].dtype == DType::kFloat64)
    with_norm<double>(args.doubles[0], [&](const auto& n) { backward<double>(args, n); });
  else
    return fail(Code::kUnsupported, "cdist(): not implemented for %s",
                dtype_name(args.inputs[0].dtype));
  return {};
}

TS_KERNEL("cdist", cdist)
TS_KERNEL("cdist_backward", cdist_backward)

}  // namespace tessera::cpu
