// Resampling along one dimension. Inputs: [outer, length, inner] dense, starts, weights [out,
// taps].
#include <algorithm>

#include "kernels.h"
#include "thread_pool.h"

namespace tessera::cpu {

namespace {

struct Lines {
  int64_t outer, length, inner;
  explicit Lines(const KernelTensor& t)
      : outer(t.sizes[0]), length(t.sizes[1]), inner(t.sizes[2]) {}
};

// One row of the output: inner elements, sums over the taps.
template <class T>
void gather(const KernelArgs& a) {
  Lines in(a.inputs[0]), out(a.outputs[0]);
  const T* from = static_cast<const T*>(a.inputs[0].data);
  T* to = static_cast<T*>(a.outputs[0].data);
  const int64_t* starts = static_cast<const int64_t*>(a.inputs[1].data);
  const T* weights = static_cast<const T*>(a.inputs[2].data);
  const int64_t taps = a.inputs[2].sizes[1];
  const int64_t grain = std::max<int64_t>(1, 16384 / std::max<int64_t>(1, taps * out.inner));
  parallel_for(0, out.outer * out.length, grain, [&](int64_t first, int64_t last) {
    for (int64_t r = first; r < last; ++r) {
      const int64_t o = r / out.length, i = r % out.length;
      T* row = to + r * out.inner;
      for (int64_t k = 0; k < taps; ++k) {
        const int64_t at = std::clamp<int64_t>(starts[i] + k, 0, in.length - 1);
        const T* source = from + (o * in.length + at) * in.inner;
        const T w = weights[i * taps + k];
        if (k == 0)
          for (int64_t j = 0; j < out.inner; ++j) row[j] = w * source[j];
        else if (w != T(0))
          for (int64_t j = 0; j < out.inner; ++j) row[j] += w * source[j];
      }
    }
  });
}

// The same along the innermost dimension: lines of single elements, sums in the same order.
template <class T>
void gather_innermost(const KernelArgs& a) {
  const int64_t lines = a.inputs[0].sizes[0], in = a.inputs[0].sizes[1],
                out = a.outputs[0].sizes[1];
  const T* from = static_cast<const T*>(a.inputs[0].data);
  T* to = static_cast<T*>(a.outputs[0].data);
  const int64_t* starts = static_cast<const int64_t*>(a.inputs[1].data);
  const T* weights = static_cast<const T*>(a.inputs[2].data);
  const int64_t taps = a.inputs[2].sizes[1];
  const int64_t grain = std::max<int64_t>(1, 16384 / std::max<int64_t>(1, taps * out));
  parallel_for(0, lines, grain, [&](int64_t first, int64_t last) {
    for (int64_t r = first; r < last; ++r) {
      const T* line = from + r * in;
      T* __restrict row = to + r * out;
      for (int64_t i = 0; i < out; ++i)
        row[i] = weights[i * taps] * line[std::clamp<int64_t>(starts[i], 0, in - 1)];
      for (int64_t k = 1; k < taps; ++k)
        for (int64_t i = 0; i < out; ++i) {
          const T w = weights[i * taps + k];
          const T more = row[i] + w * line[std::clamp<int64_t>(starts[i] + k, 0, in - 1)];
          row[i] = w != T(0) ? more : row[i];
        }
    }
  });
}

// The other way: each output row belongs to one outer index, whose rows are added in order.
template <class T>
void scatter(const KernelArgs& a) {
  Lines grad(a.inputs[0]), out(a.outputs[0]);
  const T* from = static_cast<const T*>(a.inputs[0].data);
  T* to = static_cast<T*>(a.outputs[0].data);
  const int64_t* starts = static_cast<const int64_t*>(a.inputs[1].data);
  const T* weights = static_cast<const T*>(a.inputs[2].data);
  const int64_t taps = a.inputs[2].sizes[1];
  const int64_t work = taps * grad.length * grad.inner;
  parallel_for(0, out.outer, std::max<int64_t>(1, 16384 / std::max<int64_t>(1, work)),
               [&](int64_t first, int64_t last) {
                 for (int64_t o = first; o < last; ++o) {
                   T* block = to + o * out.length * out.inner;
                   std::fill_n(block, out.length * out.inner, T(0));
                   for (int64_t i = 0; i < grad.length; ++i) {
                     const T* row = from + (o * grad.length + i) * grad.inner;
                     for (int64_t k = 0; k < taps; ++k) {
                       const T w = weights[i * taps + k];
                       if (w == T(0)) continue;
                       const int64_t at = std::clamp<int64_t>(starts[i] + k, 0, out.length - 1);
                       T* target = block + at * out.inner;
                       for (int64_t j = 0; j < out.inner; ++j) target[j] += w * row[j];
                     }
                   }
                 }
               });
}

Status resample(const KernelArgs& a) {
  const bool innermost = a.outputs[0].sizes[2] == 1;
  if (a.outputs[0].dtype == DType::kFloat64)
    innermost ? gather_innermost<double>(a) : gather<double>(a);
  else
    innermost ? gather_innermost<float>(a) : gather<float>(a);
  return {};
}
Status resample_backward(const KernelArgs& a) {
  if (a.outputs[0].dtype == DType::kFloat64)
    scatter<double>(a);
  else
    scatter<float>(a);
  return {};
}

}  // namespace

TS_KERNEL("resample", resample)
TS_KERNEL("resample_backward", resample_backward)

}  // namespace tessera::cpu
