// Convolutions: the input unfolded into columns, and products of matrices.
#include <algorithm>
#include <cstring>
#include <memory>

#include "blas.h"
#include "conv.h"
#include "convert_scalar.h"
#include "gemm_blocked.h"
#include "library_call.h"
#include "scratch.h"
#include "thread_pool.h"

namespace tessera::cpu {

bool ConvShape::is_pointwise() const {
  for (int d = 0; d < 3; ++d)
    if (kernel[d] != 1 || stride[d] != 1 || padding[d] != 0) return false;
  return true;
}

ConvShape conv_shape(const KernelTensor& input, const KernelTensor& output,
                     const KernelTensor& weight, const int64_t* ints) {
  ConvShape s{};
  s.n = input.sizes[0];
  s.c = input.sizes[1];
  s.o = output.sizes[1];
  for (int d = 0; d < 3; ++d) {
    s.in[d] = input.sizes[d + 2];
    s.out[d] = output.sizes[d + 2];
    s.kernel[d] = weight.sizes[d + 2];
    s.stride[d] = ints[d];
    s.padding[d] = ints[3 + d];
    s.dilation[d] = ints[6 + d];
  }
  s.groups = ints[9];
  return s;
}

namespace {

// c (m x n, dense) = [c +] a * b, each of a and b as stored or transposed.
template <class T>
void product(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const T* a, int64_t lda, const T* b,
             int64_t ldb, bool add, T* c) {
  if constexpr (std::is_floating_point_v<T>) {
    constexpr DType kOwn = sizeof(T) == 4 ? DType::kFloat32 : DType::kFloat64;
    const GemmOperand x{a, kOwn, ta ? 1 : lda, ta ? lda : 1};
    const GemmOperand y{b, kOwn, tb ? 1 : ldb, tb ? ldb : 1};
    if (k > 0 && gemm_blocked<T>(m, n, k, x, y, c, nullptr, add)) return;
    if (const Blas* lib = blas(); lib && std::max({m, n, k, lda, ldb}) <= INT32_MAX) {
      auto call = [&](auto f) {
        f(kBlasRowMajor, ta ? kBlasTrans : kBlasNoTrans, tb ? kBlasTrans : kBlasNoTrans,
          static_cast<int>(m), static_cast<int>(n), static_cast<int>(k), T(1), a,
          static_cast<int>(lda), b, static_cast<int>(ldb), add ? T(1) : T(0), c,
          static_cast<int>(n));
      };
      if constexpr (std::is_same_v<T, float>)
        call(lib->sgemm);
      else
        call(lib->dgemm);
      return;
    }
  }
  parallel_for(0, m, std::max<int64_t>(1, 32768 / std::max<int64_t>(n * k, 1)),
               [&](int64_t first, int64_t last) {
                 for (int64_t i = first; i < last; ++i) {
                   T* row = c + i * n;
                   if (!add) std::fill_n(row, n, T(0));
                   for (int64_t p = 0; p < k; ++p) {
                     const T x = ta ? a[p * lda + i] : a[i * lda + p];
                     const T* y = tb ? b + p : b + p * ldb;
                     const int64_t step = tb ? ldb : 1;
                     for (int64_t j = 0; j < n; ++j)
                       row[j] = static_cast<T>(row[j] + static_cast<T>(x * y[j * step]));
                   }
                 }
               });
}

// Where a tap of the kernel reads along one dimension: output places [first, last) are inside.
struct Span {
  int64_t first, last, start;  // start: input place of output `first`
};
Span span_of(int64_t tap, int64_t in, int64_t out, int64_t stride, int64_t padding,
             int64_t dilation) {
  int64_t offset = tap * dilation - padding;
  int64_t first = offset >= 0 ? 0 : (-offset + stride - 1) / stride;
  int64_t last = in - 1 - offset < 0 ? 0 : std::min(out, (in - 1 - offset) / stride + 1);
  first = std::min(first, out);
  return {first, std::max(first, last), first * stride + offset};
}

// One row of the columns: channel and tap fixed, all output points.
template <class T>
void unfold_row(const ConvShape& s, const T* channel, const int64_t tap[3], T* row) {
  Span z = span_of(tap[0], s.in[0], s.out[0], s.stride[0], s.padding[0], s.dilation[0]);
  Span y = span_of(tap[1], s.in[1], s.out[1], s.stride[1], s.padding[1], s.dilation[1]);
  Span x = span_of(tap[2], s.in[2], s.out[2], s.stride[2], s.padding[2], s.dilation[2]);
  const int64_t plane = s.out[1] * s.out[2];
  for (int64_t d = 0; d < s.out[0]; ++d, row += plane) {
    if (d < z.first || d >= z.last) {
      std::fill_n(row, plane, T(0));
      continue;
    }
    const T* slab = channel + (z.start + (d - z.first) * s.stride[0]) * s.in[1] * s.in[2];
    for (int64_t h = 0; h < s.out[1]; ++h) {
      T* line = row + h * s.out[2];
      if (h < y.first || h >= y.last) {
        std::fill_n(line, s.out[2], T(0));
        continue;
      }
      const T* from = slab + (y.start + (h - y.first) * s.stride[1]) * s.in[2] + x.start;
      std::fill_n(line, x.first, T(0));
      const int64_t count = x.last - x.first, step = s.stride[2];
      if (step == 1)
        std::memcpy(line + x.first, from, static_cast<size_t>(count) * sizeof(T));
      else
        for (int64_t i = 0; i < count; ++i) line[x.first + i] = from[i * step];
      std::fill_n(line + x.last, s.out[2] - x.last, T(0));
    }
  }
}

template <class T>
void fold_row(const ConvShape& s, const T* row, const int64_t tap[3], T* channel) {
  Span z = span_of(tap[0], s.in[0], s.out[0], s.stride[0], s.padding[0], s.dilation[0]);
  Span y = span_of(tap[1], s.in[1], s.out[1], s.stride[1], s.padding[1], s.dilation[1]);
  Span x = span_of(tap[2], s.in[2], s.out[2], s.stride[2], s.padding[2], s.dilation[2]);
  for (int64_t d = z.first; d < z.last; ++d) {
    T* slab = channel + (z.start + (d - z.first) * s.stride[0]) * s.in[1] * s.in[2];
    for (int64_t h = y.first; h < y.last; ++h) {
      const T* line = row + (d * s.out[1] + h) * s.out[2];
      T* to = slab + (y.start + (h - y.first) * s.stride[1]) * s.in[2] + x.start;
      for (int64_t i = x.first; i < x.last; ++i, to += s.stride[2])
        *to = static_cast<T>(*to + line[i]);
    }
  }
}

template <class F>
void each_tap(const ConvShape& s, F&& f) {
  int64_t tap[3], number = 0;
  for (tap[0] = 0; tap[0] < s.kernel[0]; ++tap[0])
    for (tap[1] = 0; tap[1] < s.kernel[1]; ++tap[1])
      for (tap[2] = 0; tap[2] < s.kernel[2]; ++tap[2]) f(tap, number++);
}

int64_t channels_at_once(const ConvShape& s) {
  return std::max<int64_t>(1, 16384 / std::max<int64_t>(1, s.taps() * s.out_points()));
}

// The channels of one group of one sample into columns: rows() x out_points().
template <class T>
void unfold(const ConvShape& s, const T* input, T* columns) {
  const int64_t points = s.out_points();
  parallel_for(0, s.c / s.groups, channels_at_once(s), [&](int64_t first, int64_t last) {
    for (int64_t c = first; c < last; ++c)
      each_tap(s, [&](const int64_t tap[3], int64_t k) {
        unfold_row(s, input + c * s.in_points(), tap, columns + (c * s.taps() + k) * points);
      });
  });
}
template <class T>
void fold(const ConvShape& s, const T* columns, T* input) {
  const int64_t points = s.out_points();
  parallel_for(0, s.c / s.groups, channels_at_once(s), [&](int64_t first, int64_t last) {
    for (int64_t c = first; c < last; ++c) {
      std::fill_n(input + c * s.in_points(), s.in_points(), T(0));
      each_tap(s, [&](const int64_t tap[3], int64_t k) {
        fold_row(s, columns + (c * s.taps() + k) * points, tap, input + c * s.in_points());
      });
    }
  });
}

// Calls f(sample, group) with the pointers of each, one after another: the products are parallel.
template <class F>
void each_group(const ConvShape& s, F&& f) {
  for (int64_t n = 0; n < s.n; ++n)
    for (int64_t g = 0; g < s.groups; ++g) f(n, g);
}

template <class T>
Status forward(const ConvShape& s, const T* input, const T* weight, const T* bias, T* out) {
  const int64_t points = s.out_points(), rows = s.rows(), o = s.o / s.groups, c = s.c / s.groups;
  OutOfScratch failure;
  const size_t bytes = s.is_pointwise() ? 0 : static_cast<size_t>(rows * points) * sizeof(T);
  Scratch columns(bytes, failure);
  if (bytes && !columns.get()) return failure.status("convolution");
  each_group(s, [&](int64_t n, int64_t g) {
    const T* in = input + (n * s.c + g * c) * s.in_points();
    T* to = out + (n * s.o + g * o) * points;
    const T* unfolded = in;
    if (bytes) {
      unfold(s, in, static_cast<T*>(columns.get()));
      unfolded = static_cast<const T*>(columns.get());
    }
    if (bias)
      for (int64_t i = 0; i < o; ++i) std::fill_n(to + i * points, points, bias[g * o + i]);
    product<T>(false, false, o, points, rows, weight + g * o * rows, rows, unfolded, points,
               bias != nullptr, to);
  });
  return {};
}

template <class T>
Status backward_input(const ConvShape& s, const T* grad, const T* weight, T* result) {
  const int64_t points = s.out_points(), rows = s.rows(), o = s.o / s.groups, c = s.c / s.groups;
  OutOfScratch failure;
  const size_t bytes = s.is_pointwise() ? 0 : static_cast<size_t>(rows * points) * sizeof(T);
  Scratch columns(bytes, failure);
  if (bytes && !columns.get()) return failure.status("convolution");
  each_group(s, [&](int64_t n, int64_t g) {
    const T* from = grad + (n * s.o + g * o) * points;
    T* to = result + (n * s.c + g * c) * s.in_points();
    T* unfolded = bytes ? static_cast<T*>(columns.get()) : to;
    product<T>(true, false, rows, points, o, weight + g * o * rows, rows, from, points, false,
               unfolded);
    if (bytes) fold(s, unfolded, to);
  });
  return {};
}

template <class T>
Status backward_weight(const ConvShape& s, const T* grad, const T* input, T* result) {
  const int64_t points = s.out_points(), rows = s.rows(), o = s.o / s.groups, c = s.c / s.groups;
  OutOfScratch failure;
  const size_t bytes = s.is_pointwise() ? 0 : static_cast<size_t>(rows * points) * sizeof(T);
  Scratch columns(bytes, failure);
  if (bytes && !columns.get()) return failure.status("convolution");
  if (s.n == 0 || points == 0) std::fill_n(result, s.o * rows, T(0));
  each_group(s, [&](int64_t n, int64_t g) {
    const T* in = input + (n * s.c + g * c) * s.in_points();
    const T* unfolded = in;
    if (bytes) {
      unfold(s, in, static_cast<T*>(columns.get()));
      unfolded = static_cast<const T*>(columns.get());
    }
    product<T>(false, true, o, rows, points, grad + (n * s.o + g * o) * points, points, unfolded,
               points, n > 0, result + g * o * rows);
  });
  return {};
}

// Integers wrap, so unsigned ones serve for both kinds.
template <class F>
Status with_conv_type(DType t, F&& f) {
  switch (t) {
    case DType::kFloat32:
      return f(std::type_identity<float>());
    case DType::kFloat64:
      return f(std::type_identity<double>());
    case DType::kUInt8:
    case DType::kInt8:
      return f(std::type_identity<uint8_t>());
    case DType::kInt16:
      return f(std::type_identity<uint16_t>());
    case DType::kInt32:
      return f(std::type_identity<uint32_t>());
    case DType::kInt64:
      return f(std::type_identity<uint64_t>());
    case DType::kComplex64:
      return f(std::type_identity<c64>());
    case DType::kComplex128:
      return f(std::type_identity<c128>());
    default:
      return fail(Code::kUnsupported, "convolution is not implemented for %s", dtype_name(t));
  }
}

template <class T>
const T* data_of(const KernelTensor& t) {
  return static_cast<const T*>(t.data);
}

// Inputs: input, weight, perhaps bias.
Status conv_forward(const KernelArgs& a) {
  LibraryCall call;
  const ConvShape s = conv_shape(a.inputs[0], a.outputs[0], a.inputs[1], a.ints);
  return with_conv_type(a.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    const T* bias = a.num_inputs > 2 ? data_of<T>(a.inputs[2]) : nullptr;
    T* out = static_cast<T*>(a.outputs[0].data);
    if constexpr (std::is_floating_point_v<T>)
      if (is_depthwise(s))
        return depthwise_forward<T>(s, data_of<T>(a.inputs[0]), data_of<T>(a.inputs[1]), bias, out);
    if constexpr (std::is_same_v<T, float>)
      if (conv_by_onednn(ConvKind::kForward, s, data_of<T>(a.inputs[0]), data_of<T>(a.inputs[1]),
                         bias, nullptr, out))
        return Status{};
    return forward<T>(s, data_of<T>(a.inputs[0]), data_of<T>(a.inputs[1]), bias, out);
  });
}

// Inputs: output's gradient, weight.
Status conv_backward_input(const KernelArgs& a) {
  LibraryCall call;
  const ConvShape s = conv_shape(a.outputs[0], a.inputs[0], a.inputs[1], a.ints);
  return with_conv_type(a.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    T* out = static_cast<T*>(a.outputs[0].data);
    if constexpr (std::is_floating_point_v<T>)
      if (is_depthwise(s))
        return depthwise_backward_input<T>(s, data_of<T>(a.inputs[0]), data_of<T>(a.inputs[1]),
                                           out);
    if constexpr (std::is_same_v<T, float>)
      if (conv_by_onednn(ConvKind::kBackwardInput, s, nullptr, data_of<T>(a.inputs[1]), nullptr,
                         data_of<T>(a.inputs[0]), out))
        return Status{};
    return backward_input<T>(s, data_of<T>(a.inputs[0]), data_of<T>(a.inputs[1]), out);
  });
}

// Inputs: output's gradient, input.
Status conv_backward_weight(const KernelArgs& a) {
  LibraryCall call;
  const ConvShape s = conv_shape(a.inputs[1], a.inputs[0], a.outputs[0], a.ints);
  return with_conv_type(a.outputs[0].dtype, [&]<class T>(std::type_identity<T>) {
    T* out = static_cast<T*>(a.outputs[0].data);
    if constexpr (std::is_floating_point_v<T>)
      if (is_depthwise(s))
        return depthwise_backward_weight<T>(s, data_of<T>(a.inputs[0]), data_of<T>(a.inputs[1]),
                                            out);
    if constexpr (std::is_same_v<T, float>)
      if (conv_by_onednn(ConvKind::kBackwardWeight, s, data_of<T>(a.inputs[1]), nullptr, nullptr,
                         data_of<T>(a.inputs[0]), out))
        return Status{};
    return backward_weight<T>(s, data_of<T>(a.inputs[0]), data_of<T>(a.inputs[1]), out);
  });
}

}  // namespace

TS_KERNEL("conv_forward", conv_forward)
TS_KERNEL("conv_backward_input", conv_backward_input)
TS_KERNEL("conv_backward_weight", conv_backward_weight)

}  // namespace tessera::cpu
