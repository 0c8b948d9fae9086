#include "tessera/distributed/reduce.h"

#include <complex>
#include <type_traits>

#include "tessera/base/half.h"

namespace tessera::distributed {

namespace {

// Half floats are added in float and rounded after every step.
struct Float16 {
  uint16_t bits;
  explicit Float16(float f) : bits(float_to_half(f)) {}
  explicit operator float() const { return half_to_float(bits); }
};
struct BFloat16 {
  uint16_t bits;
  explicit BFloat16(float f) : bits(float_to_bfloat16(f)) {}
  explicit operator float() const { return bfloat16_to_float(bits); }
};

template <ReduceOp Op, class T>
T combine(T a, T b) {
  if constexpr (Op == ReduceOp::kSum || Op == ReduceOp::kAvg) {
    if constexpr (std::is_same_v<T, bool>)
      return a || b;
    else if constexpr (std::is_integral_v<T>)
      return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) +
                            static_cast<std::make_unsigned_t<T>>(b));
    else
      return a + b;
  } else if constexpr (Op == ReduceOp::kProduct) {
    if constexpr (std::is_same_v<T, bool>)
      return a && b;
    else if constexpr (std::is_integral_v<T>)
      return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
    else
      return a * b;
  } else if constexpr (Op == ReduceOp::kMin) {
    // A NaN stays, as in torch.minimum.
    return a != a || a < b ? a : b;
  } else if constexpr (Op == ReduceOp::kMax) {
    return a != a || a > b ? a : b;
  } else if constexpr (Op == ReduceOp::kBand) {
    return static_cast<T>(a & b);
  } else if constexpr (Op == ReduceOp::kBor) {
    return static_cast<T>(a | b);
  } else {
    return static_cast<T>(a ^ b);
  }
}

template <ReduceOp Op, class T>
void loop(void* c, const void* a, const void* b, size_t n) {
  auto* out = static_cast<T*>(c);
  auto* x = static_cast<const T*>(a);
  auto* y = static_cast<const T*>(b);
  for (size_t i = 0; i < n; ++i) out[i] = combine<Op>(x[i], y[i]);
}

template <ReduceOp Op, class H>
void half_loop(void* c, const void* a, const void* b, size_t n) {
  auto* out = static_cast<H*>(c);
  auto* x = static_cast<const H*>(a);
  auto* y = static_cast<const H*>(b);
  for (size_t i = 0; i < n; ++i)
    out[i] = H(combine<Op>(static_cast<float>(x[i]), static_cast<float>(y[i])));
}

template <ReduceOp Op>
ReduceFunction function_of(DType t) {
  constexpr bool bitwise = Op == ReduceOp::kBand || Op == ReduceOp::kBor || Op == ReduceOp::kBxor;
  constexpr bool ordered = Op == ReduceOp::kMin || Op == ReduceOp::kMax;
  switch (t) {
    case DType::kBool:
      return loop<Op, bool>;
    case DType::kUInt8:
      return loop<Op, uint8_t>;
    case DType::kInt8:
      return loop<Op, int8_t>;
    case DType::kInt16:
      return loop<Op, int16_t>;
    case DType::kInt32:
      return loop<Op, int32_t>;
    case DType::kInt64:
      return loop<Op, int64_t>;
    default:
      break;
  }
  if constexpr (!bitwise) {
    switch (t) {
      case DType::kFloat16:
        return half_loop<Op, Float16>;
      case DType::kBFloat16:
        return half_loop<Op, BFloat16>;
      case DType::kFloat32:
        return loop<Op, float>;
      case DType::kFloat64:
        return loop<Op, double>;
      default:
        break;
    }
    if constexpr (!ordered) {
      if (t == DType::kComplex64) return loop<Op, std::complex<float>>;
      if (t == DType::kComplex128) return loop<Op, std::complex<double>>;
    }
  }
  raise(ErrorKind::kRuntime, cat("ReduceOp.", reduce_name(Op), " is not defined for ", t));
}

template <class T>
void divide(void* data, size_t n, int by) {
  auto* p = static_cast<T*>(data);
  for (size_t i = 0; i < n; ++i) p[i] = static_cast<T>(p[i] / static_cast<T>(by));
}

template <class H>
void divide_half(void* data, size_t n, int by) {
  auto* p = static_cast<H*>(data);
  for (size_t i = 0; i < n; ++i) p[i] = H(static_cast<float>(p[i]) / static_cast<float>(by));
}

}  // namespace

ReduceFunction reduce_function(DType dtype, ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return function_of<ReduceOp::kSum>(dtype);
    case ReduceOp::kAvg:
      TS_CHECK(dtype != DType::kBool, "ReduceOp.AVG is not defined for torch.bool");
      return function_of<ReduceOp::kSum>(dtype);
    case ReduceOp::kProduct:
      return function_of<ReduceOp::kProduct>(dtype);
    case ReduceOp::kMin:
      return function_of<ReduceOp::kMin>(dtype);
    case ReduceOp::kMax:
      return function_of<ReduceOp::kMax>(dtype);
    case ReduceOp::kBand:
      return function_of<ReduceOp::kBand>(dtype);
    case ReduceOp::kBor:
      return function_of<ReduceOp::kBor>(dtype);
    case ReduceOp::kBxor:
      break;
  }
  return function_of<ReduceOp::kBxor>(dtype);
}

void divide_by(void* data, size_t n, DType dtype, int by) {
  switch (dtype) {
    case DType::kBool:
      return;
    case DType::kUInt8:
      return divide<uint8_t>(data, n, by);
    case DType::kInt8:
      return divide<int8_t>(data, n, by);
    case DType::kInt16:
      return divide<int16_t>(data, n, by);
    case DType::kInt32:
      return divide<int32_t>(data, n, by);
    case DType::kInt64:
      return divide<int64_t>(data, n, by);
    case DType::kFloat16:
      return divide_half<Float16>(data, n, by);
    case DType::kBFloat16:
      return divide_half<BFloat16>(data, n, by);
    case DType::kFloat32:
      return divide<float>(data, n, by);
    case DType::kFloat64:
      return divide<double>(data, n, by);
    case DType::kComplex64:
      return divide<std::complex<float>>(data, n, by);
    case DType::kComplex128:
      return divide<std::complex<double>>(data, n, by);
  }
}

}  // namespace tessera::distributed
