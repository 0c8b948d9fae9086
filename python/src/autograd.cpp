// backward(), grad(), grad modes.
#include "tessera/autograd/node.h"

#include "methods.h"

namespace tessera::python {

namespace {

using autograd::Grads;

PyObject* requires_grad_(PyObject* self, const Arguments& args) {
  PyObject* flag;
  bind_arguments("requires_grad_", {"requires_grad"}, args, &flag);
  autograd::set_requires_grad(unwrap(self), truth(flag, true));
  return Py_NewRef(self);
}

// A tensor, or a sequence of tensors in which None may stand if `optional`.
Grads read_tensors(PyObject* o, const char* what, bool optional) {
  Grads out;
  if (!o || o == Py_None) return out;
  if (is_tensor(o)) {
    out.push_back(unwrap(o));
    return out;
  }
  PyRef items(PySequence_Fast(o, ""));
  if (!items) {
    PyErr_Clear();
    throw raise_python(PyExc_TypeError, "%s must be a Tensor or a sequence of Tensors, not %s",
                       what, Py_TYPE(o)->tp_name);
  }
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
    PyObject* item = PySequence_Fast_GET_ITEM(items.get(), i);
    if (item == Py_None && optional)
      out.emplace_back();
    else
      out.push_back(unwrap_checked(item, what));
  }
  return out;
}

void run(PyObject* tensors, PyObject* gradients, PyObject* retain, PyObject* create,
         PyObject* inputs) {
  Grads roots = read_tensors(tensors, "tensors", false);
  Grads start = read_tensors(gradients, "grad_tensors", true);
  Grads leaves = read_tensors(inputs, "inputs", false);
  TS_CHECK(!inputs || inputs == Py_None || !leaves.empty(),
           "'inputs' argument to backward cannot "
           "be empty.");
  TS_CHECK(start.empty() || start.size() == roots.size(), "got ",
           static_cast<int64_t>(roots.size()), " tensors and ", static_cast<int64_t>(start.size()),
           " gradients");
  bool graph = truth(create, false);
  if (leaves.empty())
    autograd::run_backward(roots, start, truth(retain, graph), graph, {}, true);
  else
    autograd::run_backward_into(roots, start, truth(retain, graph), graph, leaves);
}

PyObject* backward(PyObject* self, const Arguments& args) {
  PyObject* o[4];
  bind_arguments("backward", {"gradient", "retain_graph", "create_graph", "inputs"}, args, o);
  run(self, o[0], o[1], o[2], o[3]);
  Py_RETURN_NONE;
}

PyObject* run_backward_function(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *tensors, *gradients, *retain, *create, *inputs;
    if (!PyArg_UnpackTuple(args, "backward", 5, 5, &tensors, &gradients, &retain, &create, &inputs))
      throw PythonError{};
    run(tensors, gradients, retain, create, inputs);
    Py_RETURN_NONE;
  });
}

PyObject* grad_function(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *outputs, *inputs, *start, *retain, *create, *allow_unused;
    if (!PyArg_UnpackTuple(args, "grad", 6, 6, &outputs, &inputs, &start, &retain, &create,
                           &allow_unused))
      throw PythonError{};
    Grads roots = read_tensors(outputs, "outputs", false);
    Grads leaves = read_tensors(inputs, "inputs", false);
    TS_CHECK_VALUE(!leaves.empty(), "grad requires non-empty inputs.");
    bool graph = truth(create, false);
    Grads found =
        autograd::run_backward(roots, read_tensors(start, "grad_outputs", true),
                               truth(retain, graph), graph, leaves, truth(allow_unused, false));
    PyRef all(checked(PyTuple_New(static_cast<Py_ssize_t>(found.size()))));
    for (size_t i = 0; i < found.size(); ++i)
      PyTuple_SET_ITEM(all.get(), static_cast<Py_ssize_t>(i), wrap(std::move(found[i])));
    return all.release();
  });
}

PyObject* is_enabled(PyObject*, PyObject*) { return PyBool_FromLong(autograd::grad_enabled()); }
PyObject* set_enabled(PyObject*, PyObject* flag) {
  autograd::set_grad_enabled(PyObject_IsTrue(flag) == 1);
  Py_RETURN_NONE;
}

PyObject* is_inference_enabled(PyObject*, PyObject*) { return PyBool_FromLong(inference_mode()); }
PyObject* set_inference(PyObject*, PyObject* flag) {
  set_inference_mode(PyObject_IsTrue(flag) == 1);
  Py_RETURN_NONE;
}
PyObject* is_inference(PyObject*, PyObject* tensor) {
  return guarded([&]() -> PyObject* {
    const TensorBase& t = unwrap_checked(tensor, "is_inference(): argument 'input'");
    return PyBool_FromLong(t.impl()->inference != TensorImpl::Inference::kNone);
  });
}

// The counter of writes, also of an inference tensor.
PyObject* count_writes(PyObject*, PyObject* tensor) {
  return guarded([&]() -> PyObject* {
    return PyLong_FromUnsignedLong(version_of(unwrap_checked(tensor, "tensor")));
  });
}

PyMethodDef functions[] = {
    {"_count_writes", count_writes, METH_O, nullptr},
    {"is_inference_mode_enabled", is_inference_enabled, METH_NOARGS, "Is inference mode on?"},
    {"_set_inference_mode", set_inference, METH_O, nullptr},
    {"_is_inference", is_inference, METH_O, nullptr},
    {"is_grad_enabled", is_enabled, METH_NOARGS, "Are operators recorded for backward()?"},
    {"_set_grad_enabled", set_enabled, METH_O, nullptr},
    {"_run_backward", run_backward_function, METH_VARARGS, nullptr},
    {"_grad", grad_function, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void add_autograd(PyObject* module) {
  add_native_method("requires_grad_", requires_grad_, "Sets requires_grad and returns the tensor.");
  add_native_method("backward", backward, "Computes the gradients of the leaves it came from.");
  if (PyModule_AddFunctions(module, functions) < 0) throw PythonError{};
}

}  // namespace tessera::python
