// Where tensors are made when no device is named: torch.set_default_device(), `with device:`.
#pragma once
#include "operator_info.h"
#include "parse.h"

namespace tessera::python {

namespace detail {
extern thread_local bool default_device_set;
}

// Null where it is the CPU, as it is unless a program says otherwise.
const Device* default_device();

void fill_default_device(const OpInfo& info, Parsed& parsed);
// Gives a call that makes a tensor out of nothing the default device, unless it names one.
inline void use_default_device(const OpInfo& info, Parsed& parsed) {
  if (detail::default_device_set && info.factory_device >= 0) [[unlikely]]
    fill_default_device(info, parsed);
}

// torch.device as a context.
PyObject* enter_device(PyObject* device, PyObject*);
PyObject* leave_device(PyObject* device, PyObject* const* args, Py_ssize_t n);

void add_default_device(PyObject* module);

}  // namespace tessera::python
