// Other memory under the same tensor.
#pragma once
#include "tessera/tensor/tensor.h"

namespace tessera {

// The same tensor over the memory, dtype and shape of another: Python's `t.data = from`. `from` may
// be the tensor itself or a view of it.
void set_data(const TensorBase& t, const TensorBase& from);

}  // namespace tessera
