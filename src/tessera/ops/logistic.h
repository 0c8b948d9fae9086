// The logistic function of bodies; CUDA has its own text for it (backends/cuda/prelude.cpp).
#pragma once
#include "tessera/ops/loops.h"

namespace tessera::math {

template <class T>
TS_MATH_FN T logistic(T x) {
  return T(1) / (T(1) + exp(negate(x)));
}

}  // namespace tessera::math
