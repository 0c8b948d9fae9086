// A tensor whose elements are named by index tensors, and values that are read from it or written
// into it, as one walk: x[a, b], index_select, gather, and what writes.
#pragma once
#include "../kernels.h"
#include "../text.h"
#include "../walk.h"
#include "join.h"

namespace tessera::cuda {

inline constexpr int kMaxIndices = 8;

// What becomes of an element that is written; the order is that of ops/index/layout.h.
enum class Combine : int64_t { kAssign, kAdd, kMul, kMin, kMax };

// One index tensor: it counts along a dimension of the tensor. Stands in kernels' texts too.
struct IndexOf {
  const void* data;
  int64_t size, stride;  // of the dimension that it names
  int64_t dim;           // for the user
};

class Indexed {
 public:
  // Neighbouring dimensions, `before` others in front of them, are named by indices of one shape.
  // values: [dimensions before, shape of the indices, dimensions behind].
  static Status make(Indexed* to, const KernelTensor& tensor, int before, int count,
                     const KernelTensor* indices, const KernelTensor& values, DataError error,
                     const int64_t* dims);
  // An index for each element of values, along one dimension.
  static Status make_each(Indexed* to, const KernelTensor& tensor, const KernelTensor& index,
                          const KernelTensor& values, int dim);

  // values = tensor[indices], or tensor[indices] = values: where indices name an element twice, any
  // of its values stays.
  Status read(Device& d, CUstream stream) const { return move(d, stream, false); }
  Status write(Device& d, CUstream stream) const { return move(d, stream, true); }
  // Combines by atomic operations: floats in any order.
  Status combine_atomically(Device& d, CUstream stream, Combine how) const;
  // The same, or an assignment of the last value, with values of one element in the order of the
  // indices: the same bits each time.
  Status combine_in_order(Device& d, CUstream stream, Combine how) const;
  // One of the two above.
  Status combine(Device& d, CUstream stream, Combine how, bool in_order) const;

 private:
  struct Dim {
    int64_t size, values, tensor, index[kMaxIndices];
    bool free(int count) const {  // it has no part in the choice of elements
      for (int k = 0; k < count; ++k)
        if (index[k] != 0) return false;
      return true;
    }
  };
  Status add_index(const KernelTensor& index, int64_t size, int64_t stride, int64_t dim);
  Status move(Device& d, CUstream stream, bool write) const;
  template <int W>
  Status move_walk(Device& d, CUstream stream, bool write) const;
  template <int W>
  Status combine_walk(Device& d, CUstream stream, Combine how) const;
  template <int W>
  Status make_keys(Device& d, CUstream stream, int64_t divisor, int64_t none, DType key,
                   CUdeviceptr keys) const;
  int64_t points() const;  // of the indices
  int64_t divisor() const;
  int64_t span(int64_t divisor) const;

  void *tensor_ = nullptr, *values_ = nullptr;
  DType dtype_{}, index_dtype_ = DType::kInt64;
  int count_ = 0, nd_ = 0;
  IndexOf of_[kMaxIndices];
  Dim dims_[kMaxDims];
  int64_t numel_ = 0, error_ = 0;
  bool negative_ = false;  // negative indices count from the end
};

// Definitions INDEX, INDICES, W (operands of the walk), ND (its dimensions, 0: many), NARROW (all
// offsets fit in 31 bits: a third of the instructions), NEGATIVE: where point i of the walk lies.
inline constexpr char kIndexedText[] = R"(
typedef std::conditional_t<NARROW, int, int64_t> I;
struct IndexOf { const INDEX::S* data; int64_t size, stride, dim; };
struct Space { ErrorSlot* slot; int64_t n, error; Walk<W> walk; IndexOf of[W - 2]; };
struct Place { I values, tensor; int64_t index[INDICES]; };
TS_FN Place locate(const Space& p, I i) {
  Place x;
  x.values = x.tensor = 0;
  I at[INDICES];
  #pragma unroll
  for (int k = 0; k < INDICES; ++k) at[k] = 0;
  const int nd = ND > 0 ? (int)ND : (int)p.walk.nd;
  #pragma unroll (ND > 0 ? ND : 1)
  for (int d = nd - 1; d >= 0; --d) {
    I c = i;
    if (d > 0) {
      const I size = (I)p.walk.sizes[d];
      const I q = NARROW || (i | size) >> 31 == 0 ? (I)((unsigned)i / (unsigned)size) : i / size;
      c = i - q * size;
      i = q;
    }
    x.values += c * (I)p.walk.strides[0][d];
    x.tensor += c * (I)p.walk.strides[1][d];
    #pragma unroll
    for (int k = 0; k < INDICES; ++k) at[k] += c * (I)p.walk.strides[2 + k][d];
  }
  #pragma unroll
  for (int k = 0; k < INDICES; ++k) x.index[k] = INDEX::ld(p.of[k].data[at[k]]);
  return x;
}
// Moves to the element that the indices name; false where one is out of its range.
TS_FN bool follow(const Space& p, Place& x) {
  bool right = true;
  #pragma unroll
  for (int k = 0; k < INDICES; ++k) {
    const int64_t size = p.of[k].size;
    int64_t v = x.index[k];
    if (NEGATIVE && v < 0) v += size;
    if ((uint64_t)v >= (uint64_t)size) {
      if (right) report(p.slot, (int)p.error, x.index[k], size, p.of[k].dim);
      right = false;
    } else {
      x.tensor += (I)v * (I)p.of[k].stride;
    }
  }
  return right;
}
)";
// Definitions S, A, COMBINE: two values become one.
inline constexpr char kCombineText[] = R"(
template <class X> TS_FN X combined(X a, X b) {
  if constexpr (COMBINE == 0) {
    return b;
  } else if constexpr (std::is_same_v<X, bool>) {
    return COMBINE == 1 || COMBINE == 4 ? a || b : a && b;
  } else if constexpr (COMBINE == 1) {
    return (X)(a + b);
  } else if constexpr (COMBINE == 2) {
    return (X)(a * b);
  } else {
    if (a != a) return a;  // a NaN stays
    if (b != b) return b;
    return (COMBINE == 3 ? b < a : a < b) ? b : a;
  }
}
)";
// The host's form of Space.
template <int W>
struct IndexedSpace {
  CUdeviceptr slot;
  int64_t n, error;
  Walk<W> walk;
  IndexOf of[W - 2];

  // Do all offsets fit in 31 bits?
  bool narrow(int indices) const {
    int64_t far = n;
    for (int k = 0; k < 2 + indices; ++k) {
      int64_t last = 0;
      for (int i = 0; i < walk.nd; ++i) last += (walk.sizes[i] - 1) * walk.strides[k][i];
      for (int j = 0; k == 1 && j < indices; ++j) last += (of[j].size - 1) * of[j].stride;
      far = std::max(far, last);
    }
    return far <= INT32_MAX;
  }
};

}  // namespace tessera::cuda
