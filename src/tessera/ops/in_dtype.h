// A tensor in a dtype, to be read: itself where it has that already. `_to_dtype` always copies.
#pragma once
#include "tessera/gen/copy.h"

namespace tessera {

inline TensorBase in_dtype(const TensorBase& t, DType dtype) {
  return t.dtype() == dtype ? t : op::_to_dtype(t, dtype);
}

}  // namespace tessera
