// What the kernels over LAPACK have in common. Tensors have three dimensions: batch, rows, columns;
// outputs are fresh, with each matrix by columns.
#pragma once
#include <algorithm>
#include <climits>
#include <cmath>

#include "lapack.h"
#include "library_call.h"
#include "scratch.h"
#include "strided.h"
#include "thread_pool.h"

namespace tessera::cpu {

template <class T>
T* matrix_of(const KernelTensor& t, int64_t i) {
  return static_cast<T*>(t.data) + i * t.strides[0];
}

// Matrix i, by columns, into dense memory; the columns are `ld` apart.
template <class T>
void copy_columns(T* dst, const KernelTensor& t, int64_t i, int64_t ld) {
  const T* src = matrix_of<const T>(t, i);
  const int64_t rows = t.sizes[1], cols = t.sizes[2];
  if (ld == rows || cols == 1) {
    gather_block(dst, src, cols, rows, t.strides[2], t.strides[1], sizeof(T));
    return;
  }
  for (int64_t c = 0; c < cols; ++c)
    gather_block(dst + c * ld, src + c * t.strides[2], 1, rows, 0, t.strides[1], sizeof(T));
}

// A matrix that a routine only reads: where it lies if its columns are dense, else copied.
template <class T>
struct Columns {
  const T* data;
  int ld;
};
inline int ld_of(int64_t rows) { return static_cast<int>(std::max<int64_t>(1, rows)); }
inline bool has_columns(const KernelTensor& t) {
  return (t.strides[1] == 1 || t.sizes[1] == 1) &&
         (t.strides[2] >= std::max<int64_t>(1, t.sizes[1]) || t.sizes[2] == 1) &&
         t.strides[2] <= INT_MAX;
}
template <class T>
Columns<T> as_columns(const KernelTensor& t, int64_t i, T* room) {
  if (has_columns(t))
    return {matrix_of<const T>(t, i),
            t.sizes[2] == 1 ? ld_of(t.sizes[1]) : static_cast<int>(t.strides[2])};
  copy_columns(room, t, i, t.sizes[1]);
  return {room, ld_of(t.sizes[1])};
}
// Elements of the room as_columns needs.
inline int64_t room_for(const KernelTensor& t) {
  return has_columns(t) ? 0 : t.sizes[1] * t.sizes[2];
}

// Calls f(i, scratch) for each matrix of a batch. A batch large enough is shared among our threads,
// each with LAPACK to itself; else LAPACK's own threads share each matrix.
template <class F>
Status each_matrix(const char* name, int64_t batch, double operations, size_t scratch_bytes,
                   const F& f) {
  OutOfScratch failure;
  auto range = [&](int64_t b, int64_t e) {
    Scratch scratch(scratch_bytes, failure);
    if (scratch_bytes && !scratch.get()) return;
    for (int64_t i = b; i < e; ++i) f(i, static_cast<char*>(scratch.get()));
  };
  if (batch > 1 && batch >= num_threads()) {
    OneBlasThread alone;
    const double grain = 64.0 * 1024 / std::max(1.0, operations);
    parallel_for(0, batch, std::max<int64_t>(1, static_cast<int64_t>(grain)), range);
  } else {
    range(0, batch);
  }
  return failure.status(name);
}

// A part of a scratch buffer of `count` elements, each part aligned.
template <class T>
T* take(char*& from, int64_t count) {
  T* p = reinterpret_cast<T*>(from);
  from += (static_cast<size_t>(count) * sizeof(T) + 63) / 64 * 64;
  return p;
}
template <class T>
size_t room(int64_t count) {
  return (static_cast<size_t>(count) * sizeof(T) + 63) / 64 * 64;
}

// What a query of a workspace's size answered; floats round it, perhaps down.
template <class T>
int asked_size(T answer) {
  double v = 0;
  if constexpr (is_complex_v<T>)
    v = static_cast<double>(std::nextafter(answer.re, INFINITY));
  else
    v = static_cast<double>(std::nextafter(answer, static_cast<T>(INFINITY)));
  return static_cast<int>(std::min(std::max(1.0, std::ceil(v)), static_cast<double>(INT_MAX)));
}

inline int to_int(int64_t v) { return static_cast<int>(v); }

// Calls `f.template operator()<T>(const Lapack<T>&)` for the dtype of a kernel's first input.
template <class F>
Status with_lapack(const KernelArgs& args, const F& f) {
  LibraryCall call;
  for (int i = 0; i < args.num_inputs; ++i)
    for (int d = 0; d < args.inputs[i].ndim; ++d)
      if (args.inputs[i].sizes[d] > INT_MAX)
        return fail(Code::kUnsupported, "a matrix of more than 2^31 rows or columns");
  auto run = [&](auto* table) { return table ? f(*table) : no_lapack(); };
  switch (args.inputs[0].dtype) {
    case DType::kFloat32:
      return run(lapack<float>());
    case DType::kFloat64:
      return run(lapack<double>());
    case DType::kComplex64:
      return run(lapack<c64>());
    case DType::kComplex128:
      return run(lapack<c128>());
    default:
      return fail(Code::kUnsupported, "not implemented for %s", dtype_name(args.inputs[0].dtype));
  }
}

// Defines kernel `fn` and registers it; fn_as<T>(args, table) does the work.
#define TS_LAPACK_KERNEL(name, fn)                                                     \
  Status fn(const KernelArgs& args) {                                                  \
    return with_lapack(args, [&](const auto& table) { return fn##_as(args, table); }); \
  }                                                                                    \
  TS_KERNEL(name, fn)

template <class T>
T conjugate(T v) {
  if constexpr (is_complex_v<T>)
    return {v.re, -v.im};
  else
    return v;
}

}  // namespace tessera::cpu
