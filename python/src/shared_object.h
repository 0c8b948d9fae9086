// A Python object that C++ keeps where any thread may let go of it.
#pragma once
#include <memory>

#include "py.h"

namespace tessera::python {

inline std::shared_ptr<PyObject> share_object(PyObject* borrowed) {
  return std::shared_ptr<PyObject>(Py_NewRef(borrowed), [](PyObject* o) {
    if (!may_enter_python()) return;
    PyGILState_STATE state = PyGILState_Ensure();
    Py_DECREF(o);
    PyGILState_Release(state);
  });
}

}  // namespace tessera::python
