// Other memory under the same tensor.
#pragma once
#include "tessera/tensor/tensor.h"

namespace tessera {

// The same tensor over the memory, dtype and shape of another: Python's `t.data = from`.
void set_data(const TensorBase& t, const TensorBase& from);

}  // namespace tessera
