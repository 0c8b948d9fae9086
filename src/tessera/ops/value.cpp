#include "tessera/ops/value.h"

#include <cmath>
#include <limits>

namespace tessera {

namespace {
std::atomic<DType> g_default_dtype{DType::kFloat32};
}

DType default_dtype() { return g_default_dtype.load(std::memory_order_relaxed); }

void set_default_dtype(DType dtype) {
  TS_CHECK_TYPE(is_floating(dtype), "only floating-point types are supported as the default type");
  g_default_dtype.store(dtype, std::memory_order_relaxed);
}

IntRange int_range(DType dtype) {
  if (dtype == DType::kBool) return {0, 1};
  if (dtype == DType::kUInt8) return {0, 255};
  int64_t high = std::numeric_limits<int64_t>::max() >> (64 - 8 * itemsize(dtype));
  return {-high - 1, high};
}

namespace {

// As C++ names them, which PyTorch's message does.
constexpr const char* kTypeNames[kNumDTypes] = {"bool",
                                                "uint8_t",
                                                "int8_t",
                                                "int16_t",
                                                "int",
                                                "int64_t",
                                                "c10::Half",
                                                "c10::BFloat16",
                                                "float",
                                                "double",
                                                "c10::complex<float>",
                                                "c10::complex<double>"};

bool fits_float(double v, DType dtype) {
  if (!std::isfinite(v)) return true;
  constexpr double kHalf = 65504, kBFloat16 = 0x1.fep127;
  switch (dtype) {
    case DType::kFloat16:
      return std::abs(v) <= kHalf;
    case DType::kBFloat16:
      return std::abs(v) <= kBFloat16;
    case DType::kFloat32:
      return std::abs(v) <= double{std::numeric_limits<float>::max()};
    default:
      return true;
  }
}

}  // namespace

bool fits(const Scalar& value, DType dtype) {
  if (dtype == DType::kBool) return true;
  if (is_complex(dtype))
    return fits_float(value.to_double(), real_dtype(dtype)) &&
           fits_float(value.im, real_dtype(dtype));
  if (value.im != 0) return false;
  if (is_floating(dtype)) return fits_float(value.to_double(), dtype);
  IntRange range = int_range(dtype);
  if (!value.is_double())
    return value.i <= range.high && value.i >= (range.low == 0 ? -range.high : range.low);
  // Without its fraction it may still be the highest one; of int64 that is no double.
  double end = dtype == DType::kInt64 ? 0x1p63 : static_cast<double>(range.high + 1);
  return value.d < end && value.d >= static_cast<double>(range.low);
}

void check_fits(const Scalar& value, DType dtype) {
  TS_CHECK(fits(value, dtype), "value cannot be converted to type ",
           kTypeNames[static_cast<int>(dtype)], " without overflow");
}

int64_t Scalar::from_unsigned(uint64_t v) {
  TS_CHECK(v <= static_cast<uint64_t>(INT64_MAX),
           "value cannot be converted to type int64_t without overflow");
  return static_cast<int64_t>(v);
}

DType Scalar::dtype() const {
  if (kind == Kind::kBool) return DType::kBool;
  if (kind == Kind::kInt) return DType::kInt64;
  return is_complex() ? complex_dtype(default_dtype()) : default_dtype();
}

}  // namespace tessera
