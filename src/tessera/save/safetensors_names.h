// The dtypes of safetensors files.
#pragma once
#include <string_view>

#include "tessera/base/dtype.h"

namespace tessera::files {

struct SafeName {
  std::string_view name;
  int bits;
  bool ours;
  DType dtype;
};
inline constexpr SafeName kSafeNames[] = {
    {"BOOL", 8, true, DType::kBool},      {"U8", 8, true, DType::kUInt8},
    {"I8", 8, true, DType::kInt8},        {"I16", 16, true, DType::kInt16},
    {"I32", 32, true, DType::kInt32},     {"I64", 64, true, DType::kInt64},
    {"F16", 16, true, DType::kFloat16},   {"BF16", 16, true, DType::kBFloat16},
    {"F32", 32, true, DType::kFloat32},   {"F64", 64, true, DType::kFloat64},
    {"C64", 64, true, DType::kComplex64}, {"U16", 16, false, DType::kBool},
    {"U32", 32, false, DType::kBool},     {"U64", 64, false, DType::kBool},
    {"F4", 4, false, DType::kBool},       {"F6_E2M3", 6, false, DType::kBool},
    {"F6_E3M2", 6, false, DType::kBool},  {"F8_E4M3", 8, false, DType::kBool},
    {"F8_E5M2", 8, false, DType::kBool},  {"F8_E8M0", 8, false, DType::kBool},
};

// Null for a name that the format does not have.
inline const SafeName* find_safetensors_name(std::string_view name) {
  for (const SafeName& n : kSafeNames)
    if (n.name == name) return &n;
  return nullptr;
}
// Null for complex128, which the format has not.
inline const SafeName* safetensors_name(DType dtype) {
  for (const SafeName& n : kSafeNames)
    if (n.ours && n.dtype == dtype) return &n;
  return nullptr;
}

}  // namespace tessera::files
