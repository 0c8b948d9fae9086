// __torch_function__: objects that want to handle calls themselves.
#pragma once
#include "tensor_object.h"

namespace tessera::python {

// The arguments of a call that override __torch_function__, one of each type, subclasses first.
struct Overriders {
  static constexpr int kMax = 8;
  int count = 0;
  PyObject* items[kMax];
};

// Adds `o`, which is no plain tensor, if it overrides; false if it does not.
bool note_overrider(PyObject* o, Overriders& found);

// Asks them in turn; a call's arguments as in vectorcall.
PyObject* call_torch_function(const Overriders& found, PyObject* func, PyObject* const* args,
                              Py_ssize_t count, PyObject* names);

// For a method that is no record: null, without an error, if `self` wants to handle nothing.
inline bool self_overrides(PyObject* self, Overriders& found) {
  return !is_plain_tensor(self) && note_overrider(self, found);
}

void init_torch_function(PyObject* module);

}  // namespace tessera::python
