#include "tessera/base/dtype.h"

#include <algorithm>

namespace tessera {

DType promote(DType a, DType b) {
  if (a == b) return a;
  if (a > b) std::swap(a, b);  // a is the lower in the enum's order
  if (is_complex(b)) {
    return a == DType::kFloat64 ? DType::kComplex128 : b;
  }
  if (is_floating(b)) {
    // float16 with bfloat16 has no common 16-bit type.
    if (a == DType::kFloat16 && b == DType::kBFloat16) return DType::kFloat32;
    return b;
  }
  if (a == DType::kBool) return b;
  // uint8 with a signed type: the smallest signed type that holds both.
  if (a == DType::kUInt8) return b == DType::kInt8 ? DType::kInt16 : b;
  return b;
}

bool can_cast(DType from, DType to) {
  if (is_complex(from) && !is_complex(to)) return false;
  if (is_floating(from) && is_integral(to, true)) return false;
  if (from != DType::kBool && to == DType::kBool) return false;
  return true;
}

const char* dtype_title(DType t) {
  constexpr const char* names[kNumDTypes] = {"Bool",  "Byte",   "Char",         "Short",
                                             "Int",   "Long",   "Half",         "BFloat16",
                                             "Float", "Double", "ComplexFloat", "ComplexDouble"};
  return names[static_cast<int>(t)];
}

}  // namespace tessera
