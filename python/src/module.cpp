// The extension module tessera._C: types and operators through Python's C API, where calls have to
// be short; the rest through nanobind.
#include <cxxabi.h>
#include <nanobind/nanobind.h>
#include <unistd.h>

#include "default_device.h"
#include "generator.h"
#include "methods.h"
#include "node_object.h"
#include "save.h"
#include "scaffolding.h"
#include "slots.h"
#include "tessera/base/blocking.h"
#include "tessera/driver/ending.h"
#include "types.h"

namespace tessera::python {

PyObject* make_subclass(PyObject*, PyObject* args, PyObject* kwargs);  // values.cpp

namespace {

namespace nb = nanobind;

// While the interpreter ends its lock is not given up: taking it again would end the thread.
void* leave_python() { return !finalizing() && PyGILState_Check() ? PyEval_SaveThread() : nullptr; }
// When the interpreter has ended meanwhile, Python ends the thread by unwinding its stack, which
// C++ frames (destructors above all) do not survive. Such a thread waits for the process to end
// instead, as it does from Python 3.14 on.
void enter_python(void* token) {
  try {
    PyEval_RestoreThread(static_cast<PyThreadState*>(token));
  } catch (abi::__forced_unwind&) {
    for (;;) pause();
  }
}

PyObject* set_parameter_type(PyObject*, PyObject* type) {
  parameter_type = reinterpret_cast<PyTypeObject*>(Py_NewRef(type));
  Py_RETURN_NONE;
}

PyMethodDef functions[] = {
    {"_set_parameter_type", set_parameter_type, METH_O, nullptr},
    {"_make_subclass", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(make_subclass)),
     METH_VARARGS | METH_KEYWORDS, "A tensor of a subclass over the memory of another."},
    {nullptr, nullptr, 0, nullptr},
};

void translate(const std::exception_ptr& p, void*) {
  try {
    std::rethrow_exception(p);
  } catch (const Error&) {
    set_python_error();
  } catch (const PythonError&) {
  }
}

void fill(nb::module_& m) {
  PyObject* module = m.ptr();
  set_blocking_hooks(leave_python, enter_python);
  init_errors(module);
  init_types(module);
  init_torch_function(module);
  init_callables();
  load_op_sets();
  init_tensor_type(module);
  load_protocol();
  init_node_type(module);
  add_attributes();
  add_shape_methods();
  add_conversions();
  add_value_methods();
  add_buffers(module);
  add_storage(module);
  add_save(module);
  add_safetensors(module);
  add_dlpack(module);
  add_comparison(module);
  add_autograd(module);
  add_construction(module);
  PyRef operators(make_operators());
  if (PyModule_AddObjectRef(module, "ops", operators.get()) < 0) throw PythonError{};
  if (PyModule_AddFunctions(module, functions) < 0) throw PythonError{};
  bind_generator(m);
  bind_cuda(m);
  bind_watch(m);
  bind_graphs(m);
  bind_pin(m);
  bind_fuse(m);
  bind_records(m);
  bind_hooks(m);
  add_function_node(module);
  bind_modes(m);
  bind_threads(m);
  add_default_device(module);
  bind_printing(m);
  bind_distributed(m);
  bind_parallel(m);
  bind_profiler(m);
}

}  // namespace
}  // namespace tessera::python

NB_MODULE(_C, m) {
#ifdef NDEBUG
  // A program that ends by an exception leaves objects behind, and its traceback is what to read.
  nanobind::set_leak_warnings(false);
#endif
  if (Py_AtExit(tessera::end_everything) == 0) tessera::promise_end();
  nanobind::register_exception_translator(tessera::python::translate);
  try {
    tessera::python::fill(m);
  } catch (const tessera::python::PythonError&) {
    throw nanobind::python_error();
  }
}
