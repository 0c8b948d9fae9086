// Where the points of a shape lie in several operands, on the host and in kernels. Dimensions are
// merged where all operands allow it.
#pragma once
#include <algorithm>
#include <initializer_list>

#include "kernel_texts.h"
#include "status.h"

namespace tessera::cuda {

// The same struct stands in kWalkText: it can be a member of a kernel's Params.
template <int K>
struct Walk {
  int64_t nd = 0;
  int64_t sizes[kKernelDims] = {};
  int64_t strides[K][kKernelDims] = {};

  // Appends a dimension (the fastest so far). `apart`: not to be merged with the one before.
  Status add(int64_t size, const int64_t (&s)[K], bool apart = false) {
    if (size == 1 && !apart) return ok();
    bool joins = nd > 0 && !apart && !apart_;
    for (int k = 0; joins && k < K; ++k) joins = strides[k][nd - 1] == s[k] * size;
    if (!joins) {
      if (nd == kKernelDims)
        return fail(Code::kUnsupported, "more than %d dimensions are not implemented for CUDA",
                    kKernelDims);
      sizes[nd++] = size;
    } else {
      sizes[nd - 1] *= size;
    }
    for (int k = 0; k < K; ++k) strides[k][nd - 1] = s[k];
    apart_ = apart;
    return ok();
  }
  int64_t numel() const {
    int64_t n = 1;
    for (int i = 0; i < nd; ++i) n *= sizes[i];
    return n;
  }

  bool apart_ = false;
};

// All dimensions but `skip` (-1: all) of operands that have `sizes` in common.
template <int K>
Status make_walk(Walk<K>* w, int ndim, const int64_t* sizes,
                 std::initializer_list<const int64_t*> strides, int skip = -1) {
  for (int i = 0; i < ndim; ++i) {
    if (i == skip) continue;
    int64_t s[K] = {};
    int k = 0;
    for (const int64_t* of : strides) s[k++] = of[i];
    TS_TRY(w->add(sizes[i], s));
  }
  return ok();
}

inline constexpr const char* kWalkText = R"(
template <int K> struct Walk { int64_t nd, sizes[16], strides[K][16]; bool apart; };
// The offsets of point i, counted in row-major order.
template <int K> TS_FN void offsets(const Walk<K>& w, int64_t i, int64_t (&o)[K]) {
  #pragma unroll
  for (int k = 0; k < K; ++k) o[k] = 0;
  #pragma unroll 1
  for (int d = (int)w.nd - 1; d >= 0; --d) {  // unrolled, the divisions would cost a second to compile
    int64_t c = i;
    if (d > 0) {
      const int64_t size = w.sizes[d];
      const int64_t q = (i | size) >> 31 == 0 ? (int64_t)((unsigned)i / (unsigned)size) : i / size;
      c = i - q * size;
      i = q;
    }
    #pragma unroll
    for (int k = 0; k < K; ++k) o[k] += c * w.strides[k][d];
  }
}
template <int K> TS_FN int64_t offset(const Walk<K>& w, int64_t i) {
  int64_t o[K];
  offsets(w, i, o);
  return o[0];
}
)";
static_assert(kKernelDims == 16, "kWalkText says 16");

}  // namespace tessera::cuda
