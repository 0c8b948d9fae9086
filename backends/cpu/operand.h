// Operands of row kernels in register form: where they lie, or converted piece by piece.
#pragma once
#include <algorithm>

#include "along_dim.h"
#include "convert.h"
#include "stream_store.h"
#include "strided.h"

namespace tessera::cpu {

// Elements of a dense operand as T.
template <class T>
struct Reader {
  const char* data;
  ConvertFn load;  // null where elements are T
  int64_t item;

  Reader(const char* from, DType dtype)
      : data(from),
        load(itemsize(dtype) == sizeof(T) ? nullptr : converts().load[static_cast<int>(dtype)]),
        item(static_cast<int64_t>(itemsize(dtype))) {}

  // Elements [at, at + n); buffer has room for them.
  const T* get(int64_t at, int64_t n, T* buffer) const {
    if (!load) return reinterpret_cast<const T*>(data + at * item);
    load(buffer, data + at * item, n);
    return buffer;
  }
};

// Results of T into a dense output, past the caches if it is large.
template <class T>
struct Writer {
  static constexpr int64_t kPiece = 512;
  char* data;
  ConvertFn store;  // null where elements are T
  int64_t item;
  bool stream;

  Writer(const KernelTensor& out, bool past_caches)
      : data(static_cast<char*>(out.data)),
        store(itemsize(out.dtype) == sizeof(T) ? nullptr
                                               : converts().store[static_cast<int>(out.dtype)]),
        item(static_cast<int64_t>(itemsize(out.dtype))),
        stream(past_caches) {}

  // Results [at, at + n), made by make(i, to, k) from the i-th on, k at a time.
  template <class Make>
  void put(int64_t at, int64_t n, Make make) const {
    if (!store && !stream) return make(0, reinterpret_cast<T*>(data + at * item), n);
    alignas(64) T piece[kPiece];
    alignas(64) char raw[kPiece * sizeof(T)];
    for (int64_t i = 0; i < n; i += kPiece) {
      const int64_t k = std::min(kPiece, n - i);
      make(i, piece, k);
      char* to = data + (at + i) * item;
      const char* from = reinterpret_cast<const char*>(piece);
      if (store) {
        store(stream ? raw : to, piece, k);
        from = raw;
      }
      if (stream) stream_copy(to, from, static_cast<size_t>(k * item));
    }
  }
  void done() const {
    if (stream) stream_fence();
  }
};

// A vector of n elements as dense T; `otherwise` where the operand is not there (has no elements).
template <class T>
class Vector {
 public:
  Vector(const KernelTensor& t, int64_t n, T otherwise, OutOfScratch& failure)
      : memory_(static_cast<size_t>(std::max<int64_t>(n, 1)) * (sizeof(T) + 8), failure) {
    T* to = static_cast<T*>(memory_.get());
    if (!to) return;
    if (t.numel == 0) {
      std::fill_n(to, n, otherwise);
      return;
    }
    const ConvertTable& c = converts();
    const RegClass cls = reg_class(t.dtype);
    const RegClass own = sizeof(T) == 4 ? RegClass::kF32 : RegClass::kF64;
    // In memory's form after the result, then in register form, then as T.
    char* raw = reinterpret_cast<char*>(to + n);
    copy_dense(raw, t);
    char wide[8];
    for (int64_t i = 0; i < n; ++i) {
      c.load[static_cast<int>(t.dtype)](wide, raw + i * static_cast<int64_t>(itemsize(t.dtype)), 1);
      c.convert[static_cast<int>(cls)][static_cast<int>(own)](to + i, wide, 1);
    }
  }
  const T* data() const { return static_cast<const T*>(memory_.get()); }
  const T& operator[](int64_t i) const { return data()[i]; }

 private:
  Scratch memory_;
};

}  // namespace tessera::cpu
