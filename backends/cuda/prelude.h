// The text every generated kernel begins with, and the C text of loads, stores and conversions.
#pragma once
#include <string>

#include "tessera/base/dtype.h"
#include "tessera/driver/program.h"

namespace tessera::cuda {

// Everything generated stands in namespace tm (closed by the caller with "}"): the helpers there
// have the names and meanings of tessera/ops/math.h and hide CUDA's own of the same name; functions
// that are not among them are CUDA's.
// `complex`: with what kernels on complex numbers need beside it.
std::string prelude_text(bool complex = false);
const char* complex_prelude_text();
// What bodies name as `special::`, to stand after the prelude of those that do.
std::string special_text();
bool uses_special(const PointwiseBody& body);
bool uses_special(const GroupProgram& g);
inline bool is_complex(RegClass c) { return c >= RegClass::kC64; }

const char* storage_type(DType t);      // "unsigned short" for float16
const char* register_type(RegClass c);  // "float"
const char* class_suffix(RegClass c);   // "f32"

// An expression of the register class of `t`, from one of its storage type.
std::string load_text(DType t, const std::string& x);
// An expression of the storage type of `t`, from one of its register class.
std::string store_text(DType t, const std::string& x);
// x, the value of a call of the body, as it goes on.
std::string result_text(const PointwiseBody& body, const std::string& x);
// From class to class.
std::string convert_text(RegClass from, RegClass to, const std::string& x);
// From a class to that of a dtype: int32, int16 and int8 take the low bits of a 32-bit conversion,
// as their C++ casts do.
std::string convert_text(RegClass from, DType to, const std::string& x);

}  // namespace tessera::cuda
