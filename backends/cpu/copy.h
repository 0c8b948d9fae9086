// Copies from any layout to any other, without a change of dtype, on all threads.
#pragma once
#include <cstddef>
#include <cstdint>

#include "tessera/driver/program.h"

namespace tessera::cpu {

// Strides in elements. The two do not overlap.
void copy_strided(void* dst, const int64_t* dst_strides, const void* src,
                  const int64_t* src_strides, int ndim, const int64_t* sizes,
                  size_t itemsize) noexcept;

// Into row-major memory.
void copy_dense(void* dst, const KernelTensor& src) noexcept;

}  // namespace tessera::cpu
