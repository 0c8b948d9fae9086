#include "tessera/ops/value.h"

namespace tessera {

namespace {
std::atomic<DType> g_default_dtype{DType::kFloat32};
}

DType default_dtype() { return g_default_dtype.load(std::memory_order_relaxed); }

void set_default_dtype(DType dtype) {
  TS_CHECK_TYPE(is_floating(dtype), "only floating-point types are supported as the default type");
  g_default_dtype.store(dtype, std::memory_order_relaxed);
}

DType Scalar::dtype() const {
  if (kind == Kind::kBool) return DType::kBool;
  if (kind == Kind::kInt) return DType::kInt64;
  return is_complex() ? complex_dtype(default_dtype()) : default_dtype();
}

}  // namespace tessera
