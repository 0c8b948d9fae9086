// Operands as dense, aligned memory: where they lie, or copied there.
#pragma once
#include "../context.h"
#include "../group.h"
#include "tessera/driver/program.h"

namespace tessera::cuda {

inline bool is_dense(const KernelTensor& t) {
  int64_t expected = 1;
  for (int i = t.ndim - 1; i >= 0; --i) {
    if (t.sizes[i] == 1) continue;
    if (t.strides[i] != expected) return false;
    expected *= t.sizes[i];
  }
  return true;
}
// N x C x ..., with the channels innermost.
inline bool is_channels_last(const KernelTensor& t) {
  if (t.ndim < 3 || t.strides[1] != 1) return false;
  int64_t expected = t.sizes[1];
  for (int i = t.ndim - 1; i >= 0; --i) {
    if (i == 1 || t.sizes[i] == 1) continue;
    if (t.strides[i] != expected) return false;
    expected *= t.sizes[i];
  }
  return true;
}
inline bool is_aligned(const void* p, uintptr_t bytes = 16) {
  return reinterpret_cast<uintptr_t>(p) % bytes == 0;
}

// Copies t to dense memory; dimensions are merged first, so that transposes go by tiles.
inline Status copy_dense(Device& d, CUstream stream, void* dst, const KernelTensor& t) {
  int64_t sizes[kMaxDims], strides[kMaxDims];
  int nd = 0;
  for (int i = 0; i < t.ndim; ++i) {
    if (t.sizes[i] == 1) continue;
    if (nd > 0 && strides[nd - 1] == t.sizes[i] * t.strides[i]) {
      sizes[nd - 1] *= t.sizes[i];
      strides[nd - 1] = t.strides[i];
      continue;
    }
    sizes[nd] = t.sizes[i];
    strides[nd++] = t.strides[i];
  }
  return copy_strided(d, stream, dst, t.data, t.dtype, nd, sizes, strides);
}

class DenseOperand {
 public:
  DenseOperand(Device& d, CUstream stream) : device_(d), stream_(stream), memory_(d, stream) {}
  // `room`: memory that a copy may go to, which then needs none of its own.
  Status take(const KernelTensor& t, void* room = nullptr) {
    data_ = t.data;
    if (t.numel == 0 || (is_dense(t) && is_aligned(t.data))) return ok();
    if (!room) {
      TS_TRY(memory_.take(static_cast<size_t>(t.numel) * itemsize(t.dtype)));
      room = reinterpret_cast<void*>(memory_.address());
    }
    data_ = room;
    return copy_dense(device_, stream_, room, t);
  }
  const void* data() const { return data_; }

 private:
  Device& device_;
  CUstream stream_;
  Scratch memory_;
  const void* data_ = nullptr;
};

}  // namespace tessera::cuda
