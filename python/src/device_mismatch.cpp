// Two devices in one operator: the error's text is made in Python, where the running frames say
// what the program calls its tensors and which module a parameter belongs to.
#include "device_mismatch.h"

#include "tensor_object.h"
#include "tessera/call/mismatch.h"

namespace tessera::python {

void set_mismatch_error(const DeviceMismatch& e) noexcept {
  PyRef text;
  try {
    PyRef module(checked(PyImport_ImportModule("tessera._two_devices")));
    PyRef first(wrap(e.first().tensor)), second(wrap(e.second().tensor));
    text = PyRef(checked(PyObject_CallMethod(module.get(), "message", "ssOsO", e.op_name().c_str(),
                                             e.first().name.c_str(), first.get(),
                                             e.second().name.c_str(), second.get())));
  } catch (...) {
    PyErr_Clear();  // a riddle about the riddle helps nobody: what the core knows is said
  }
  if (text)
    PyErr_SetObject(PyExc_RuntimeError, text.get());
  else
    PyErr_SetString(PyExc_RuntimeError, e.what());
}

}  // namespace tessera::python
