// What the pools' kernels share: windows read off the arguments, and where a thread's element lies.
// Memory is [outer, points, inner]: planes one after another (inner 1), or channels side by side.
// Neighbouring threads take neighbours in memory, `V` of them at once where channels allow it.
#pragma once
#include <algorithm>
#include <initializer_list>

#include "../kernels.h"
#include "../text.h"
#include "join.h"

namespace tessera::cuda {

// As tessera/ops/pool/geometry.h lays them out.
struct PoolWindows {
  int64_t adaptive, in[3], out[3], kernel[3], stride[3], padding[3], dilation[3];
  int64_t include_pad, divisor;
};

inline PoolWindows pool_windows(const KernelArgs& a) {
  PoolWindows w{};
  std::copy_n(a.ints, std::min(a.num_ints, 21), &w.adaptive);
  return w;
}
static_assert(sizeof(PoolWindows) == 21 * sizeof(int64_t));

inline int64_t pool_inner(const KernelTensor& t) { return t.ndim == 5 ? t.sizes[4] : 1; }
inline int64_t pool_points(const KernelTensor& t) { return t.sizes[1] * t.sizes[2] * t.sizes[3]; }

// The most elements a window has.
inline int64_t pool_volume(const PoolWindows& w) {
  int64_t volume = 1;
  for (int d = 0; d < 3; ++d)
    volume *=
        w.adaptive ? std::min(w.in[d], w.in[d] / std::max<int64_t>(w.out[d], 1) + 2) : w.kernel[d];
  return volume;
}

// Channels one thread takes: as many as 16 bytes hold, where all operands lie so.
inline int pool_vector(int64_t inner, DType t, std::initializer_list<const void*> data) {
  const int v = static_cast<int>(16 / itemsize(t));
  bool fits = inner % v == 0;
  for (const void* p : data) fits &= reinterpret_cast<uintptr_t>(p) % 16 == 0;
  return fits ? v : 1;
}

// 32-bit arithmetic on places, where a grid's stride beyond the end still fits.
inline bool pool_wide(std::initializer_list<int64_t> numels) {
  return std::max(numels) >= int64_t{1} << 30;
}

// Needs WIDE.
inline constexpr char kPoolText[] = R"(
typedef std::conditional_t<WIDE != 0, int64_t, int> I;
struct Windows {
  int64_t adaptive, in[3], out[3], kernel[3], stride[3], padding[3], dilation[3];
  int64_t include_pad, divisor;
};
// One window along one dimension: places first, first + step, ... below last, all inside; `whole`
// is its length with padding.
struct Range { I first, last, step, whole; };
TS_FN Range range_of(const Windows& w, int d, I i) {
  Range r;
  if (w.adaptive) {
    r.first = (I)((int64_t)i * w.in[d] / w.out[d]);
    r.last = (I)((((int64_t)i + 1) * w.in[d] + w.out[d] - 1) / w.out[d]);
    r.step = 1;
    r.whole = r.last - r.first;
    return r;
  }
  r.step = (I)w.dilation[d];
  r.first = i * (I)w.stride[d] - (I)w.padding[d];
  r.last = r.first + ((I)w.kernel[d] - 1) * r.step + 1;
  r.whole = tm::min(r.last, (I)(w.in[d] + w.padding[d])) - r.first;
  if (r.first < 0) r.first += (-r.first + r.step - 1) / r.step * r.step;
  r.last = tm::min(r.last, (I)w.in[d]);
  return r;
}
// The windows [first, last) among which all are that hold place x.
struct Holders { I first, last; };
TS_FN Holders holders_of(const Windows& w, int d, I x) {
  Holders h;
  if (w.adaptive) {
    h.first = (I)((int64_t)x * w.out[d] / w.in[d]);
    h.last = (I)((((int64_t)x + 1) * w.out[d] + w.in[d] - 1) / w.in[d]);
    return h;
  }
  const I stride = (I)w.stride[d], end = x + (I)w.padding[d];
  const I begin = end - ((I)w.kernel[d] - 1) * (I)w.dilation[d];
  h.first = begin <= 0 ? 0 : (begin + stride - 1) / stride;
  h.last = tm::min(end / stride + 1, (I)w.out[d]);
  return h;
}
// Element i of [outer, size, inner].
struct Place { I outer, at[3], c; };
TS_FN Place place_of(I i, const int64_t (&size)[3], I inner) {
  Place p;
  I q = inner == 1 ? i : i / inner;
  p.c = i - q * inner;
  I r = q / (I)size[2];
  p.at[2] = q - r * (I)size[2];
  q = r / (I)size[1];
  p.at[1] = r - q * (I)size[1];
  p.outer = q / (I)size[0];
  p.at[0] = q - p.outer * (I)size[0];
  return p;
}
)";

}  // namespace tessera::cuda
