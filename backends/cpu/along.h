// A tensor cut along one dimension: lines of n elements, in row-major order of the others. What
// scans, sorts, selections and arg-reductions walk.
#pragma once
#include <cstring>

#include "convert.h"
#include "strided.h"
#include "tessera/driver/program.h"

namespace tessera::cpu {

struct Along {
  const KernelTensor& t;
  int dim;
  int64_t n = 1, stride = 1;  // of the dimension; a 0-d tensor has one element along its only one
  int64_t outer = 1, inner = 1;  // how many lines before and behind it
  int inner_ndim = 0;
  const int64_t *inner_sizes = nullptr, *inner_strides = nullptr;
  bool inner_dense = true;  // neighbouring lines begin at neighbouring elements
  int64_t item;
  int64_t shift = 0;  // in bytes

  Along(const KernelTensor& tensor, int64_t d) : t(tensor), dim(static_cast<int>(d)) {
    item = static_cast<int64_t>(itemsize(t.dtype));
    if (t.ndim == 0) return;
    n = t.sizes[dim];
    stride = t.strides[dim];
    inner_ndim = t.ndim - dim - 1;
    inner_sizes = t.sizes + dim + 1;
    inner_strides = t.strides + dim + 1;
    for (int i = inner_ndim - 1; i >= 0; --i) {
      inner_dense &= inner_sizes[i] == 1 || inner_strides[i] == inner;
      inner *= inner_sizes[i];
    }
    for (int i = 0; i < dim; ++i) outer *= t.sizes[i];
  }

  int64_t lines() const { return outer * inner; }
  // Lines are walked from their last element to the first.
  void reverse() {
    shift = (n - 1) * stride * item;
    stride = -stride;
  }

  // The first element of the lines at outer position o.
  char* block(int64_t o) const {
    int64_t coords[kMaxDims], at = 0;
    const int before = t.ndim > 0 ? dim : 0;
    unravel(o, before, t.sizes, coords);
    for (int i = 0; i < before; ++i) at += coords[i] * t.strides[i];
    return static_cast<char*>(t.data) + at * item + shift;
  }
  // The first element of line number `line`.
  char* line(int64_t line) const {
    if (inner == 1) return block(line);
    int64_t coords[kMaxDims], at = 0;
    unravel(line % inner, inner_ndim, inner_sizes, coords);
    for (int i = 0; i < inner_ndim; ++i) at += coords[i] * inner_strides[i];
    return block(line / inner) + at * item;
  }

  // Elements [first, first + count) of a line in register form: where they lie if that is it, else
  // in `buffer` by way of `raw`.
  const void* load(const char* line, int64_t first, int64_t count, void* buffer, void* raw) const {
    const char* src = line + first * stride * item;
    const bool ready = is_register_form(t.dtype);
    if (stride != 1 && count > 1) {
      void* dense = ready ? buffer : raw;
      gather_block(dense, src, 1, count, 0, stride, static_cast<size_t>(item));
      src = static_cast<const char*>(dense);
    }
    if (ready) return src;
    converts().load[static_cast<int>(t.dtype)](buffer, src, count);
    return buffer;
  }
  // Writes `count` registers to the line from element `first` on.
  void store(char* line, int64_t first, int64_t count, const void* registers, void* raw) const {
    char* dst = line + first * stride * item;
    const ConvertFn to_memory = converts().store[static_cast<int>(t.dtype)];
    if (stride == 1 || count == 1) return to_memory(dst, registers, count);
    to_memory(raw, registers, count);
    scatter_block(dst, raw, 1, count, 0, stride, static_cast<size_t>(item));
  }

  // Position k of `cols` neighbouring lines, from inner position `first` of the block on, in
  // register form.
  const void* load_across(const char* block, int64_t k, int64_t first, int64_t cols, void* buffer,
                          void* raw) const {
    const char* src = block + k * stride * item;
    const bool ready = is_register_form(t.dtype);
    if (inner_dense) {
      src += first * item;
    } else {
      int64_t coords[kMaxDims];
      unravel(first, inner_ndim, inner_sizes, coords);
      void* dense = ready ? buffer : raw;
      gather_run(dense, src, inner_ndim, inner_sizes, inner_strides, coords, cols,
                 static_cast<size_t>(item));
      src = static_cast<const char*>(dense);
    }
    if (ready) return src;
    converts().load[static_cast<int>(t.dtype)](buffer, src, cols);
    return buffer;
  }
  // Writes position k of them; `out` is row-major, so they lie side by side.
  void store_across(char* block, int64_t k, int64_t first, int64_t cols,
                    const void* registers) const {
    converts().store[static_cast<int>(t.dtype)](block + (k * stride + first) * item, registers,
                                                cols);
  }
};

}  // namespace tessera::cpu
