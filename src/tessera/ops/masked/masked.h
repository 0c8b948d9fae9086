// What masked operators share: elements whose mask is false are left out.
#pragma once
#include <limits>

#include "tessera/gen/copy.h"
#include "tessera/gen/creation.h"
#include "tessera/gen/ternary.h"
#include "tessera/gen/view.h"
#include "tessera/ops/call.h"
#include "tessera/ops/in_dtype.h"

namespace tessera {

// The dimensions of a call: all where there are none, sorted.
inline Dims masked_dims(const Call& c, int arg) {
  const int ndim = c.tensor(0).dim();
  Dims given;
  if (c.has(arg)) {
    if (c.args[arg].is_scalar())
      given.push_back(c.integer(arg));
    else
      given = c.ints(arg);
  }
  Dims dims;
  for (int64_t d : given) {
    const int64_t at = wrap_dim(d, ndim);
    TS_CHECK(std::find(dims.begin(), dims.end(), at) == dims.end(), "dim=", at,
             " appears multiple times in the list of dims");
    dims.push_back(at);
  }
  std::sort(dims.begin(), dims.end());
  if (dims.empty())
    for (int d = 0; d < ndim; ++d) dims.push_back(d);
  return ndim == 0 ? Dims() : dims;
}

// The mask in the shape of the input, as booleans.
inline TensorBase full_mask(const TensorBase& input, const TensorBase& mask) {
  TS_CHECK_INDEX(mask.dim() <= input.dim(),
                 "_input_mask expected broadcastable mask (got mask dimensionality higher than of "
                 "the input)");
  TensorBase m = in_dtype(mask, DType::kBool);
  return op::expand(m, input.sizes().span());
}

enum class Fill : uint8_t { kZero, kOne, kLowest, kHighest, kNan };

// What does not count in a reduction.
inline Scalar fill_value(Fill fill, DType t) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const int bits = static_cast<int>(itemsize(t)) * 8;
  switch (fill) {
    case Fill::kZero:
      return Scalar(0);
    case Fill::kOne:
      return Scalar(1);
    case Fill::kNan:
      return Scalar(std::numeric_limits<double>::quiet_NaN());
    case Fill::kLowest:
      if (!is_integral(t, true)) return Scalar(-kInfinity);
      return t <= DType::kUInt8 ? Scalar(0) : Scalar(INT64_MIN >> (64 - bits));
    case Fill::kHighest:
      break;
  }
  if (!is_integral(t, true)) return Scalar(kInfinity);
  if (t == DType::kBool) return Scalar(1);
  return t == DType::kUInt8 ? Scalar(255) : Scalar(INT64_MAX >> (64 - bits));
}

// The input with `fill` where the mask (an argument that may be missing) is false.
inline TensorBase masked_input(const TensorBase& input, const TensorBase& mask, Fill fill) {
  if (!mask.defined()) return input;
  TensorBase value = op::full({}, fill_value(fill, input.dtype()), input.dtype(), input.device());
  return op::where(full_mask(input, mask), input, value);
}

}  // namespace tessera
