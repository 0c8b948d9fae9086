// What gradients of pointwise operators are written with.
#pragma once
#include "tessera/gen/binary.h"
#include "tessera/gen/bitwise.h"
#include "tessera/gen/compare.h"
#include "tessera/gen/complex.h"
#include "tessera/gen/creation.h"
#include "tessera/gen/ternary.h"
#include "tessera/gen/unary.h"
#include "tessera/ops/call.h"

namespace tessera::grad {

inline TensorBase conj(const TensorBase& t) { return is_complex(t.dtype()) ? op::conj(t) : t; }
inline Scalar conj(Scalar s) {
  s.im = -s.im;
  return s;
}

// The gradient g of a result times the conjugate of the result's derivative.
inline TensorBase times(const TensorBase& g, const TensorBase& derivative) {
  return op::mul(g, conj(derivative));
}
inline TensorBase times(const TensorBase& g, const Value& derivative) {
  return derivative.is_tensor() ? times(g, *derivative.tensor)
                                : op::mul(g, conj(derivative.scalar));
}
// ... where the derivative is 1 / divisor.
inline TensorBase over(const TensorBase& g, const TensorBase& divisor) {
  return op::div(g, conj(divisor));
}
inline TensorBase over(const TensorBase& g, const Value& divisor) {
  return divisor.is_tensor() ? over(g, *divisor.tensor) : op::div(g, conj(divisor.scalar));
}

inline TensorBase square(const TensorBase& t) { return op::mul(t, t); }
inline TensorBase one_minus(const TensorBase& t) { return op::rsub(t, Scalar(1)); }

// Of a step function: zero wherever it is defined.
inline void zero(Backward& b) { b.set(0, op::zeros_like(b.grad)); }

}  // namespace tessera::grad

namespace tessera {

// Raises where bools would be computed with, which bodies on integers would take.
inline void refuse_bool(const Call& c) {
  for (size_t i = 0; i < c.args.size(); ++i) {
    ArgSpec::Type type = c.op.args[i].type;
    bool source = type == ArgSpec::Type::kTensor || type == ArgSpec::Type::kTensorOrScalar ||
                  type == ArgSpec::Type::kNumber;
    if (source && !c.args[i].is_none() && c.dtype_of(static_cast<int>(i)) != DType::kBool) return;
  }
  raise(ErrorKind::kNotImplemented, cat("\"", c.op.name, "\" not implemented for 'Bool'"));
}

}  // namespace tessera
