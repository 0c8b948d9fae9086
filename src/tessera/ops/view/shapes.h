// Shapes of views: what reshape, view and flatten work out.
#pragma once
#include "tessera/tensor/tensor.h"

namespace tessera {

// The shape asked for, with a -1 filled in; raises where it does not hold the tensor's elements.
Dims complete_shape(const TensorBase& t, Dims shape);
// Strides that show `t` in the new shape without a copy; false if there are none.
bool view_strides(const TensorBase& t, const Dims& shape, Dims& out);

}  // namespace tessera
