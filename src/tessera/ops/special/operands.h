// What operators of two numbers check, either of which may be Python's.
#pragma once
#include "tessera/ops/call.h"

namespace tessera {

// At least one of the first two arguments must be a tensor.
inline void check_some_tensor(const Call& c) {
  TS_CHECK_TYPE(c.args[0].is_tensor() || c.args[1].is_tensor(), c.op.name,
                "() received an invalid combination of arguments - got two numbers, but expected "
                "(Tensor, Tensor), (Number, Tensor) or (Tensor, Number)");
}

}  // namespace tessera
