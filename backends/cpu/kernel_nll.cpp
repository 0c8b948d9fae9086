// The negative log likelihood of target classes, and its gradient.
#include <algorithm>

#include "convert_scalar.h"
#include "kernels.h"
#include "thread_pool.h"

namespace tessera::cpu {

namespace {

// Input [n, classes, inner]; targets [n, inner]; all dense.
struct Shape {
  int64_t n, classes, inner;
};

// ints: ignore_index, reduction (0 none, 1 mean, 2 sum).
template <class T>
struct Targets {
  const int64_t* target;
  const T* weight;  // or null
  int64_t ignore;

  double weight_of(int64_t t) const { return weight ? cast<double>(weight[t]) : 1; }
};

template <class T>
Status forward(const KernelArgs& args, const Shape& s, const Targets<T>& t) {
  const T* x = static_cast<const T*>(args.inputs[0].data);
  T* loss = static_cast<T*>(args.outputs[0].data);
  const int64_t reduction = args.ints[1], count = s.n * s.inner;
  double total = 0, total_weight = 0;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t c = t.target[i];
    if (c == t.ignore) {
      if (reduction == 0) loss[i] = cast<T>(0.0);
      continue;
    }
    if (c < 0 || c >= s.classes)
      return fail(Code::kInvalid, "Target %ld is out of bounds.", static_cast<long>(c));
    const double w = t.weight_of(c);
    const double l = -cast<double>(x[(i / s.inner * s.classes + c) * s.inner + i % s.inner]) * w;
    total_weight += w;
    if (reduction == 0)
      loss[i] = cast<T>(l);
    else
      total += l;
  }
  if (reduction != 0) loss[0] = cast<T>(reduction == 1 ? total / total_weight : total);
  static_cast<T*>(args.outputs[1].data)[0] = cast<T>(total_weight);
  return {};
}

template <class T>
Status backward(const KernelArgs& args, const Shape& s, const Targets<T>& t) {
  const T* g = static_cast<const T*>(args.inputs[0].data);
  T* out = static_cast<T*>(args.outputs[0].data);
  const int64_t reduction = args.ints[1];
  const double divisor =
      reduction == 1 ? cast<double>(static_cast<const T*>(args.inputs[2].data)[0]) : 1;
  const int64_t row = s.classes * s.inner;
  for (int64_t i = 0; i < s.n * s.inner; ++i)
    if (const int64_t c = t.target[i]; c != t.ignore && (c < 0 || c >= s.classes))
      return fail(Code::kInvalid, "Target %ld is out of bounds.", static_cast<long>(c));
  parallel_for(0, s.n, std::max<int64_t>(1, 32 * 1024 / row), [&](int64_t b, int64_t e) {
    std::fill_n(out + b * row, (e - b) * row, cast<T>(0.0));
    for (int64_t i = b * s.inner; i < e * s.inner; ++i) {
      const int64_t c = t.target[i];
      if (c == t.ignore) continue;
      const double of = cast<double>(g[reduction == 0 ? i : 0]);
      out[(i / s.inner * s.classes + c) * s.inner + i % s.inner] =
          cast<T>(-of * t.weight_of(c) / divisor);
    }
  });
  return {};
}

template <class F>
Status with_floats(const KernelTensor& t, const F& f) {
  return with_type(t.dtype, [&](auto type) -> Status {
    using T = typename decltype(type)::type;
    if constexpr (std::is_floating_point_v<T> || std::is_same_v<T, Half> ||
                  std::is_same_v<T, BFloat>)
      return f(type);
    else
      return fail(Code::kUnsupported, "nll_loss(): not implemented for %s", dtype_name(t.dtype));
  });
}

}  // namespace

// Inputs: input, target, and weights of classes if there are some. Outputs: loss, total weight.
Status nll_loss(const KernelArgs& args) {
  const int64_t* sizes = args.inputs[0].sizes;
  return with_floats(args.inputs[0], [&](auto type) {
    using T = typename decltype(type)::type;
    const Targets<T> t{static_cast<const int64_t*>(args.inputs[1].data),
                       args.num_inputs > 2 ? static_cast<const T*>(args.inputs[2].data) : nullptr,
                       args.ints[0]};
    return forward<T>(args, {sizes[0], sizes[1], sizes[2]}, t);
  });
}

// Inputs: gradient, target, total weight, and weights of classes if there are some.
Status nll_loss_backward(const KernelArgs& args) {
  const int64_t* sizes = args.outputs[0].sizes;
  if (args.outputs[0].numel == 0) return {};
  return with_floats(args.outputs[0], [&](auto type) {
    using T = typename decltype(type)::type;
    const Targets<T> t{static_cast<const int64_t*>(args.inputs[1].data),
                       args.num_inputs > 3 ? static_cast<const T*>(args.inputs[3].data) : nullptr,
                       args.ints[0]};
    return backward<T>(args, {sizes[0], sizes[1], sizes[2]}, t);
  });
}

TS_KERNEL("nll_loss", nll_loss)
TS_KERNEL("nll_loss_backward", nll_loss_backward)

}  // namespace tessera::cpu
