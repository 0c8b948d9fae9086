// One element at a time: the rules that the vector loops repeat.
#pragma once
#include <cstdint>
#include <limits>
#include <type_traits>

#include "tessera/base/half.h"
#include "tessera/ops/loops.h"

namespace tessera::cpu {

// float16 and bfloat16 in memory.
struct Half {
  uint16_t bits;
};
struct BFloat {
  uint16_t bits;
};

// What x86's conversion gives: truncation, and the smallest integer for NaN and out of range.
template <class F>
TS_INLINE int64_t float_to_int(F x) {
  bool ok = (x >= F(-9223372036854775808.0)) & (x < F(9223372036854775808.0));
  int64_t v = static_cast<int64_t>(ok ? x : F(0));
  return ok ? v : std::numeric_limits<int64_t>::min();
}

// The same to 32 bits.
template <class F>
TS_INLINE int32_t float_to_int32(F x) {
  bool ok = (x >= F(-2147483648.0)) & (x < F(2147483648.0));
  int32_t v = static_cast<int32_t>(ok ? x : F(0));
  return ok ? v : std::numeric_limits<int32_t>::min();
}

// Any of float, double, int64_t, bool and the narrower integers to another, as PyTorch casts.
template <class To, class From>
TS_INLINE To cast(From x) {
  if constexpr (std::is_same_v<From, Half>)
    return cast<To>(half_to_float(x.bits));
  else if constexpr (std::is_same_v<From, BFloat>)
    return cast<To>(bfloat16_to_float(x.bits));
  else if constexpr (std::is_same_v<To, Half>)
    return Half{float_to_half(cast<float>(x))};
  else if constexpr (std::is_same_v<To, BFloat>)
    return BFloat{float_to_bfloat16(cast<float>(x))};
  else if constexpr (std::is_same_v<To, bool>)
    return !(x == From(0));
  else if constexpr (is_complex_v<From> && !is_complex_v<To>)
    return cast<To>(x.re);  // the imaginary part is dropped
  else if constexpr (is_complex_v<From> && is_complex_v<To>)
    return To(static_cast<real_t<To>>(x.re), static_cast<real_t<To>>(x.im));
  else if constexpr (is_complex_v<To>)
    return To(cast<real_t<To>>(x), 0);
  else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>)
    // Signed integers of up to 32 bits are the low bits of a 32-bit conversion, in PyTorch and on
    // GPUs; uint8 those of a 64-bit one.
    if constexpr (std::is_signed_v<To> && sizeof(To) <= 4)
      return static_cast<To>(float_to_int32(x));
    else
      return static_cast<To>(float_to_int(x));
  else
    return static_cast<To>(x);
}

template <DType D>
struct TypeOf;
#define TS_TYPE_OF(d, t)    \
  template <>               \
  struct TypeOf<DType::d> { \
    using type = t;         \
  };
TS_TYPE_OF(kBool, bool)
TS_TYPE_OF(kUInt8, uint8_t)
TS_TYPE_OF(kInt8, int8_t)
TS_TYPE_OF(kInt16, int16_t)
TS_TYPE_OF(kInt32, int32_t)
TS_TYPE_OF(kInt64, int64_t)
TS_TYPE_OF(kFloat16, Half)
TS_TYPE_OF(kBFloat16, BFloat)
TS_TYPE_OF(kFloat32, float)
TS_TYPE_OF(kFloat64, double)
TS_TYPE_OF(kComplex64, c64)
TS_TYPE_OF(kComplex128, c128)
#undef TS_TYPE_OF

// Calls f(std::type_identity<T>()) with the type of dtype.
template <class F>
decltype(auto) with_type(DType t, F&& f) {
  switch (t) {
    case DType::kBool:
      return f(std::type_identity<bool>());
    case DType::kUInt8:
      return f(std::type_identity<uint8_t>());
    case DType::kInt8:
      return f(std::type_identity<int8_t>());
    case DType::kInt16:
      return f(std::type_identity<int16_t>());
    case DType::kInt32:
      return f(std::type_identity<int32_t>());
    case DType::kInt64:
      return f(std::type_identity<int64_t>());
    case DType::kFloat16:
      return f(std::type_identity<Half>());
    case DType::kBFloat16:
      return f(std::type_identity<BFloat>());
    case DType::kFloat32:
      return f(std::type_identity<float>());
    case DType::kFloat64:
      return f(std::type_identity<double>());
    case DType::kComplex64:
      return f(std::type_identity<c64>());
    case DType::kComplex128:
      break;
  }
  return f(std::type_identity<c128>());
}

}  // namespace tessera::cpu
