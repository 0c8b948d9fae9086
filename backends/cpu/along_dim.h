// Kernels that work along one dimension of dense operands.
#pragma once
#include "copy.h"
#include "scratch.h"
#include "tessera/driver/program.h"

namespace tessera::cpu {

// A dense tensor as outer x n x inner, n along the dimension.
struct AlongDim {
  int64_t outer = 1, n = 1, inner = 1;

  AlongDim(const KernelTensor& t, int64_t dim) {
    for (int d = 0; d < t.ndim; ++d) (d < dim ? outer : d == dim ? n : inner) *= t.sizes[d];
  }
};

inline bool is_dense(const KernelTensor& t) {
  int64_t expect = 1;
  for (int d = t.ndim - 1; d >= 0; --d) {
    if (t.sizes[d] != 1 && t.strides[d] != expect) return false;
    expect *= t.sizes[d];
  }
  return true;
}

// The operand's memory if it is dense, else a dense copy.
class Dense {
 public:
  Dense(const KernelTensor& t, OutOfScratch& failure)
      : copy_(is_dense(t) ? 0 : static_cast<size_t>(t.numel) * itemsize(t.dtype), failure),
        data_(static_cast<const char*>(t.data)) {
    if (is_dense(t)) return;
    data_ = static_cast<const char*>(copy_.get());
    if (data_) copy_dense(copy_.get(), t);
  }
  // Null when there was no memory for the copy.
  const char* data() const { return data_; }

 private:
  Scratch copy_;
  const char* data_;
};

}  // namespace tessera::cpu
