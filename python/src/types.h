// The small types: torch.dtype, torch.device, torch.Size.
#pragma once
#include "py.h"
#include "tessera/base/device.h"
#include "tessera/base/dims.h"
#include "tessera/base/dtype.h"

namespace tessera::python {

struct DTypeObject {
  PyObject_HEAD DType dtype;
};
// What was written: torch.device("cpu:0") is not torch.device("cpu"), though both are one place.
struct DeviceObject {
  PyObject_HEAD Device device;
  int16_t index;        // -1: none was given
  const char* foreign;  // a kind of device that PyTorch knows and that is not here; else null
};

extern PyTypeObject* dtype_type;
extern PyTypeObject* device_type;
extern PyTypeObject* size_type;

PyObject* wrap_dtype(DType t);  // new reference
PyObject* wrap_device(Device d);
PyObject* wrap_size(const Dims& d);
PyObject* wrap_ints(const Dims& d);  // a plain tuple

// False, with no error set, for an object of another type. Python's bool, int and float are dtypes.
bool read_dtype(PyObject* o, DType& out);
// A device object, a string or an int. Raises for a string that names no device.
bool read_device(PyObject* o, Device& out);

void init_types(PyObject* module);

}  // namespace tessera::python
