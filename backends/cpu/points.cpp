#include "points.h"

#include <cstring>

#include "convert_scalar.h"
#include "strided.h"

namespace tessera::cpu {

namespace {

template <class T>
void read_as(void* dst_, const void* base_, const int64_t* at, int64_t n) {
  T* dst = static_cast<T*>(dst_);
  const T* base = static_cast<const T*>(base_);
  for (int64_t k = 0; k < n; ++k) dst[k] = base[at[k]];
}

template <class T>
void read_run_as(void* dst_, const void* base_, const int64_t* index, int64_t n, int64_t step,
                 int64_t stride) {
  T* dst = static_cast<T*>(dst_);
  const T* base = static_cast<const T*>(base_);
  if (step == 0 && stride == 1) {
    for (int64_t k = 0; k < n; ++k) dst[k] = base[index[k]];
  } else {
    for (int64_t k = 0; k < n; ++k) dst[k] = base[k * step + index[k] * stride];
  }
}

template <class T>
int64_t keep_as(int64_t low, int64_t high, int64_t* at, void* with_, int64_t n) {
  T* with = static_cast<T*>(with_);
  int64_t kept = 0;
  for (int64_t k = 0; k < n; ++k) {
    const int64_t a = at[k];
    at[kept] = a;
    with[kept] = with[k];
    kept += (a >= low) & (a < high);
  }
  return kept;
}

// 16-bit floats are added in float and rounded each time, as their tensors are.
template <class T>
using Wide =
    std::conditional_t<std::is_same_v<T, Half> || std::is_same_v<T, BFloat>, float,
                       std::conditional_t<std::is_integral_v<T> && !std::is_same_v<T, bool>,
                                          std::make_unsigned_t<int64_t>, T>>;

template <Combine C, class T>
TS_INLINE T combined(T into, T from) {
  if constexpr (C == Combine::kAssign) {
    return from;
  } else if constexpr (std::is_same_v<T, bool>) {
    return C == Combine::kAdd || C == Combine::kMax ? (into | from) : (into & from);
  } else if constexpr (C == Combine::kAdd || C == Combine::kMul) {
    using W = Wide<T>;
    W a = cast<W>(into), b = cast<W>(from);
    return cast<T>(C == Combine::kAdd ? a + b : a * b);
  } else {
    auto value = [](T x) {
      if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat>)
        return cast<float>(x);
      else
        return x;
    };
    auto a = value(into), b = value(from);
    if (a != a) return into;  // a NaN stays
    if (b != b) return from;
    return (C == Combine::kMin ? b < a : a < b) ? from : into;
  }
}

template <Combine C, class T>
void write_as(void* base_, const int64_t* at, const void* src_, int64_t n) {
  T* base = static_cast<T*>(base_);
  const T* src = static_cast<const T*>(src_);
  for (int64_t k = 0; k < n; ++k) base[at[k]] = combined<C>(base[at[k]], src[k]);
}

template <Combine C, class T>
void write_run_as(void* base_, const int64_t* index, const void* src_, int64_t n, int64_t step,
                  int64_t stride) {
  T* base = static_cast<T*>(base_);
  const T* src = static_cast<const T*>(src_);
  if (step == 0 && stride == 1) {
    for (int64_t k = 0; k < n; ++k) base[index[k]] = combined<C>(base[index[k]], src[k]);
    return;
  }
  for (int64_t k = 0; k < n; ++k) {
    T& to = base[k * step + index[k] * stride];
    to = combined<C>(to, src[k]);
  }
}

template <Combine C, class T>
void run_as(void* dst_, const void* src_, int64_t n) {
  T* dst = static_cast<T*>(dst_);
  const T* src = static_cast<const T*>(src_);
  if constexpr (C == Combine::kAssign)
    std::memcpy(dst, src, static_cast<size_t>(n) * sizeof(T));
  else
    for (int64_t k = 0; k < n; ++k) dst[k] = combined<C>(dst[k], src[k]);
}

// A type of the same size: data that is only moved needs no other.
template <class F>
decltype(auto) with_size(DType t, F&& f) {
  switch (itemsize(t)) {
    case 1:
      return f(std::type_identity<uint8_t>());
    case 2:
      return f(std::type_identity<uint16_t>());
    case 4:
      return f(std::type_identity<uint32_t>());
    case 8:
      return f(std::type_identity<uint64_t>());
    default:
      return f(std::type_identity<c128>());
  }
}

// Calls f.operator()<C, T>() with the type of the dtype; for data that is only moved with one of
// its size. Null where complex numbers would have to be compared.
template <class Fn, class F>
Fn choose(Combine combine, DType dtype, F&& f) {
  auto typed = [&]<Combine C>() -> Fn {
    return with_type(dtype, [&]<class T>(std::type_identity<T>) -> Fn {
      if constexpr (is_complex_v<T> && (C == Combine::kMin || C == Combine::kMax))
        return nullptr;
      else
        return f.template operator()<C, T>();
    });
  };
  switch (combine) {
    case Combine::kAssign:
      break;
    case Combine::kAdd:
      return typed.template operator()<Combine::kAdd>();
    case Combine::kMul:
      return typed.template operator()<Combine::kMul>();
    case Combine::kMin:
      return typed.template operator()<Combine::kMin>();
    case Combine::kMax:
      return typed.template operator()<Combine::kMax>();
  }
  return with_size(dtype, [&]<class T>(std::type_identity<T>) -> Fn {
    return f.template operator()<Combine::kAssign, T>();
  });
}

}  // namespace

ReadPointsFn read_points(DType dtype) {
  return with_size(dtype,
                   []<class T>(std::type_identity<T>) -> ReadPointsFn { return read_as<T>; });
}

WritePointsFn write_points(Combine combine, DType dtype) {
  return choose<WritePointsFn>(
      combine, dtype, []<Combine C, class T>() -> WritePointsFn { return write_as<C, T>; });
}

WriteRunFn write_run(Combine combine, DType dtype) {
  return choose<WriteRunFn>(combine, dtype,
                            []<Combine C, class T>() -> WriteRunFn { return write_run_as<C, T>; });
}

CombineRunFn combine_run(Combine combine, DType dtype) {
  return choose<CombineRunFn>(combine, dtype,
                              []<Combine C, class T>() -> CombineRunFn { return run_as<C, T>; });
}

ReadRunFn read_run(DType dtype) {
  return with_size(dtype,
                   []<class T>(std::type_identity<T>) -> ReadRunFn { return read_run_as<T>; });
}

int64_t keep_within(int64_t low, int64_t high, int64_t* at, void* with, int64_t n,
                    size_t itemsize) {
  switch (itemsize) {
    case 1:
      return keep_as<uint8_t>(low, high, at, with, n);
    case 2:
      return keep_as<uint16_t>(low, high, at, with, n);
    case 4:
      return keep_as<uint32_t>(low, high, at, with, n);
    case 8:
      return keep_as<uint64_t>(low, high, at, with, n);
    default:
      return keep_as<c128>(low, high, at, with, n);
  }
}

OffsetWalk::OffsetWalk(int ndim, const int64_t* sizes, const int64_t* strides, int skip)
    : ndim_(ndim), sizes_(sizes) {
  for (int d = 0; d < ndim; ++d) strides_[d] = d == skip ? 0 : strides[d];
}

void OffsetWalk::offsets(int64_t first, int64_t n, int64_t* out) const {
  if (ndim_ == 0) {
    for (int64_t k = 0; k < n; ++k) out[k] = 0;
    return;
  }
  int64_t coords[kMaxDims], at = 0;
  unravel(first, ndim_, sizes_, coords);
  for (int d = 0; d < ndim_; ++d) at += coords[d] * strides_[d];
  const int last = ndim_ - 1;
  const int64_t step = strides_[last];
  int64_t left = sizes_[last] - coords[last];
  for (;;) {
    int64_t m = n < left ? n : left;
    for (int64_t k = 0; k < m; ++k) out[k] = at + k * step;
    n -= m;
    if (n == 0) return;
    out += m;
    at += m * step - sizes_[last] * step;
    left = sizes_[last];
    for (int d = last - 1; d >= 0; --d) {
      at += strides_[d];
      if (++coords[d] < sizes_[d]) break;
      at -= sizes_[d] * strides_[d];
      coords[d] = 0;
    }
  }
}

bool is_dense(const KernelTensor& t) {
  int64_t run = 1;
  for (int d = t.ndim - 1; d >= 0; --d) {
    if (t.sizes[d] != 1 && t.strides[d] != run) return false;
    run *= t.sizes[d];
  }
  return true;
}

TileReader::TileReader(const KernelTensor& t) : t_(t), dense_(is_dense(t)) {}

const void* TileReader::tile(int64_t first, int64_t n, void* room) const {
  const size_t item = itemsize(t_.dtype);
  if (dense_) return static_cast<const char*>(t_.data) + first * static_cast<int64_t>(item);
  int64_t coords[kMaxDims];
  unravel(first, t_.ndim, t_.sizes, coords);
  gather_run(room, t_.data, t_.ndim, t_.sizes, t_.strides, coords, n, item);
  return room;
}

}  // namespace tessera::cpu
