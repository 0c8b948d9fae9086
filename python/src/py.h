// What every file of the binder needs of Python: an owned reference, and the border at which C++
// exceptions become Python's.
#pragma once
#include <Python.h>
#include <string_view>

#include <utility>

#include "tessera/base/error.h"
#include "tessera/base/mutex.h"

namespace tessera::python {

// Owns one reference.
class PyRef {
 public:
  PyRef() = default;
  explicit PyRef(PyObject* owned) : p_(owned) {}
  static PyRef borrow(PyObject* p) { return PyRef(Py_XNewRef(p)); }
  PyRef(PyRef&& o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
  PyRef& operator=(PyRef o) noexcept {
    std::swap(p_, o.p_);
    return *this;
  }
  ~PyRef() { Py_XDECREF(p_); }
  PyObject* get() const { return p_; }
  PyObject* release() { return std::exchange(p_, nullptr); }
  explicit operator bool() const { return p_ != nullptr; }

 private:
  PyObject* p_ = nullptr;
};

#if PY_VERSION_HEX >= 0x030D0000
inline bool finalizing() { return Py_IsFinalizing(); }
#else
inline bool finalizing() { return _Py_IsFinalizing(); }
#endif
// May this thread take Python's lock? When the interpreter ends only the one that has it may go on;
// others would be ended in the middle of C++ frames.
inline bool may_enter_python() {
  if (!PyGILState_Check()) require_no_mutex("Python's lock is taken");
  return Py_IsInitialized() && (!finalizing() || PyGILState_Check());
}

// Thrown where Python's error is set already and C++ frames have to be left.
struct PythonError {};

// Sets Python's error for the exception in flight. Call it in a catch block only.
void set_python_error() noexcept;
// Text of a message as str; it may name files whose names are not UTF-8, which are escaped. Null
// with Python's error set.
PyObject* decode_message(std::string_view message) noexcept;
// Like PyErr_Format, for use in `throw raise_python(...)`.
PythonError raise_python(PyObject* type, const char* format, ...);

// Turns what leaves `work` into Python's error and null.
template <class Work>
PyObject* guarded(Work&& work) noexcept {
  try {
    return work();
  } catch (...) {
    set_python_error();
    return nullptr;
  }
}

inline PyObject* checked(PyObject* p) {
  if (!p) throw PythonError{};
  return p;
}

// Makes OutOfMemoryError and adds it to the module.
void init_errors(PyObject* module);

}  // namespace tessera::python
