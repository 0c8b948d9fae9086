// Element types, and the register class each one computes in.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "tessera/base/error.h"

namespace tessera {

enum class DType : uint8_t {
  kBool,
  kUInt8,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kFloat16,
  kBFloat16,
  kFloat32,
  kFloat64,
  kComplex64,
  kComplex128,
};
inline constexpr int kNumDTypes = 12;

// Bodies are written on a few compute types; every other dtype converts at load and is rounded
// after each operator. kB8 is bool: one byte, 0 or 1.
enum class RegClass : uint8_t { kF32, kF64, kI64, kB8, kC64, kC128 };
inline constexpr int kNumRegClasses = 6;

constexpr size_t itemsize(DType t) {
  constexpr size_t sizes[kNumDTypes] = {1, 1, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16};
  return sizes[static_cast<int>(t)];
}
constexpr const char* dtype_name(DType t) {
  constexpr const char* names[kNumDTypes] = {"bool",    "uint8",   "int8",      "int16",
                                             "int32",   "int64",   "float16",   "bfloat16",
                                             "float32", "float64", "complex64", "complex128"};
  return names[static_cast<int>(t)];
}
constexpr bool is_floating(DType t) { return t >= DType::kFloat16 && t <= DType::kFloat64; }
constexpr bool is_complex(DType t) { return t >= DType::kComplex64; }
// Has gradients.
constexpr bool is_differentiable(DType t) { return t >= DType::kFloat16; }
// The dtype of a complex number's parts; a real dtype is its own.
constexpr DType real_dtype(DType t) {
  if (t == DType::kComplex64) return DType::kFloat32;
  return t == DType::kComplex128 ? DType::kFloat64 : t;
}
constexpr DType complex_dtype(DType t) {
  if (is_complex(t)) return t;
  return t == DType::kFloat64 ? DType::kComplex128 : DType::kComplex64;
}
constexpr bool is_reduced_floating(DType t) {
  return t == DType::kFloat16 || t == DType::kBFloat16;
}
constexpr bool is_integral(DType t, bool include_bool) {
  return t <= DType::kInt64 && (include_bool || t != DType::kBool);
}
constexpr RegClass reg_class(DType t) {
  if (t == DType::kBool) return RegClass::kB8;
  if (t <= DType::kInt64) return RegClass::kI64;
  if (is_complex(t)) return t == DType::kComplex64 ? RegClass::kC64 : RegClass::kC128;
  return t == DType::kFloat64 ? RegClass::kF64 : RegClass::kF32;
}
constexpr size_t reg_size(RegClass c) {
  constexpr size_t sizes[kNumRegClasses] = {4, 8, 8, 1, 8, 16};
  return sizes[static_cast<int>(c)];
}
// True when a value of `t` in memory is already in the form registers hold.
constexpr bool is_register_form(DType t) {
  return t == DType::kFloat32 || t == DType::kFloat64 || t == DType::kInt64 || t == DType::kBool ||
         is_complex(t);
}

// PyTorch's promotion of two dtypes.
DType promote(DType a, DType b);
// PyTorch's can_cast: does `to` keep the kind of `from` (an in-place float result cannot go into
// an integer tensor)?
bool can_cast(DType from, DType to);

// "Float" for torch.float32, as PyTorch's casting errors say.
const char* dtype_title(DType t);
// "torch.float32", as PyTorch prints it.
inline void append(std::string& out, DType t) {
  out += "torch.";
  out += dtype_name(t);
}

}  // namespace tessera
