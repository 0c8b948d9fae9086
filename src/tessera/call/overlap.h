// Writing where something else is read: what is refused, what is copied first.
#pragma once
#include "tessera/ops/call.h"

namespace tessera {

// Raises for a target whose elements share memory.
void check_writable(const Op& op, const TensorBase& target);
// Does `source` lie, element for element, elsewhere in the memory being written? Raises in the
// cases PyTorch refuses; true when the source has to be copied first.
bool needs_copy_before_write(const Op& op, const TensorBase& source, const TensorBase& target);
// A fresh dense copy, run at once or deferred like any operator.
TensorBase copy_of(const TensorBase& t);
// Gives an `out=` tensor the shape of the result.
void resize_output(const TensorBase& out, const Dims& shape);
// The value of a tensor with one element on the CPU, its memory up to date.
Scalar read_scalar(const TensorBase& t);
// Raises where a result of this dtype does not go into the tensor that is to be written.
// The name of the element's type in C++, as PyTorch's messages have it: "long int".
const char* dtype_cpp_name(DType t);
void check_result_fits(const Op& op, DType result, DType target);

}  // namespace tessera
