// C++ errors as Python's exceptions.
#include <cstdarg>
#include <new>

#include "device_mismatch.h"
#include "py.h"
#include "tessera/call/mismatch.h"
#include "tessera/distributed/error.h"

namespace tessera::python {

PyObject* class_of_dist_error(const distributed::DistError& e);  // distributed.cpp

namespace {

PyObject* g_out_of_memory = nullptr;
PyObject* g_linalg_error = nullptr;

PyObject* class_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kValue:
      return PyExc_ValueError;
    case ErrorKind::kType:
      return PyExc_TypeError;
    case ErrorKind::kIndex:
      return PyExc_IndexError;
    case ErrorKind::kNotImplemented:
      return PyExc_NotImplementedError;
    case ErrorKind::kOutOfMemory:
      return g_out_of_memory;
    case ErrorKind::kLinAlg:
      return g_linalg_error;
    case ErrorKind::kRuntime:
    case ErrorKind::kInternal:
      break;
  }
  return PyExc_RuntimeError;
}

void set_message(PyObject* type, const char* message) noexcept {
  if (PyRef text(decode_message(message)); text) PyErr_SetObject(type, text.get());
}

}  // namespace

PyObject* decode_message(std::string_view message) noexcept {
  return PyUnicode_DecodeUTF8(message.data(), static_cast<Py_ssize_t>(message.size()),
                              "backslashreplace");
}

void set_python_error() noexcept {
  try {
    throw;
  } catch (const PythonError&) {
    // Already set.
  } catch (const DeviceMismatch& e) {
    set_mismatch_error(e);
  } catch (const distributed::DistError& e) {
    set_message(class_of_dist_error(e), e.what());
  } catch (const Error& e) {
    set_message(class_of(e.kind()), e.what());
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& e) {
    set_message(PyExc_RuntimeError, e.what());
  } catch (...) {
    PyErr_SetString(PyExc_SystemError, "an exception of unknown type");
  }
}

PythonError raise_python(PyObject* type, const char* format, ...) {
  va_list args;
  va_start(args, format);
  PyErr_FormatV(type, format, args);
  va_end(args);
  return {};
}

void init_errors(PyObject* module) {
  g_out_of_memory = checked(PyErr_NewExceptionWithDoc(
      "tessera.OutOfMemoryError", "A device has no memory left for what was asked.",
      PyExc_RuntimeError, nullptr));
  g_linalg_error = checked(
      PyErr_NewExceptionWithDoc("tessera.linalg.LinAlgError",
                                "A matrix has no such factors, or an algorithm did not converge.",
                                PyExc_RuntimeError, nullptr));
  if (PyModule_AddObjectRef(module, "OutOfMemoryError", g_out_of_memory) < 0) throw PythonError{};
  if (PyModule_AddObjectRef(module, "_LinAlgError", g_linalg_error) < 0) throw PythonError{};
}

}  // namespace tessera::python
