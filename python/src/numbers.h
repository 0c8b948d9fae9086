// Numbers of Python, NumPy and 0-d tensors as ours.
#pragma once
#include "py.h"
#include "tensor_object.h"
#include "tessera/ops/value.h"

namespace tessera::python {

// Each returns false, with no error set, for an object of another type. A number that does not fit
// raises.
bool read_int(PyObject* o, int64_t& out);
bool read_bool(PyObject* o, bool& out);
bool read_scalar(PyObject* o, Scalar& out);
inline bool read_number(PyObject* o, Scalar& out) {
  if (PyFloat_CheckExact(o)) {
    out = Scalar(PyFloat_AS_DOUBLE(o));
    return true;
  }
  return read_scalar(o, out);
}

// The value of a tensor of one element; waits for it.
Scalar item_of(const TensorBase& t);
PyObject* scalar_object(Scalar s, DType dtype);
// Reads one element at an address.
Scalar load_element(const char* at, DType dtype);
void store_element(char* at, DType dtype, Scalar value);

}  // namespace tessera::python
