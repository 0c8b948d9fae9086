// Transposes blocks of elements in registers, by element size alone.
#pragma once
#include <cstddef>
#include <cstdint>

namespace tessera::cpu {

// dst[i * dst_step + j] = src[j * src_step + i] for i < rows, j < cols; steps in elements of 1, 2,
// 4, 8 or 16 bytes. With `stream` past the caches, where whole lines can be written so: then dst
// and its rows begin at multiples of 64 bytes.
void transpose(void* dst, int64_t dst_step, const void* src, int64_t src_step, int64_t rows,
               int64_t cols, size_t itemsize, bool stream = false) noexcept;

}  // namespace tessera::cpu
