// torch.Size: a tuple that prints its own way and stays one through slicing and adding.
#include "types.h"

namespace tessera::python {

PyTypeObject* size_type = nullptr;

void init_dtypes(PyObject* module);
void init_device(PyObject* module);

namespace {

// A tuple of ints; what is no int is refused.
PyObject* size_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  PyRef self(PyTuple_Type.tp_new(type, args, kwargs));
  if (!self) return nullptr;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(self.get()); ++i) {
    PyObject* item = PyTuple_GET_ITEM(self.get(), i);
    if (PyLong_Check(item)) continue;
    PyRef number(PyIndex_Check(item) ? PyNumber_Index(item) : nullptr);
    if (!number) {
      PyErr_Clear();
      PyErr_Format(PyExc_TypeError, "torch.Size() takes an iterable of 'int' (item %zd is '%s')", i,
                   Py_TYPE(item)->tp_name);
      return nullptr;
    }
    PyTuple_SET_ITEM(self.get(), i, number.release());
    Py_DECREF(item);
  }
  return self.release();
}

PyObject* repr(PyObject* o) {
  PyRef list(PySequence_List(o));
  if (!list) return nullptr;
  return PyUnicode_FromFormat("torch.Size(%R)", list.get());
}

PyObject* numel(PyObject* o, PyObject*) {
  int64_t n = 1;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); ++i) {
    int64_t v = PyLong_AsLongLong(PyTuple_GET_ITEM(o, i));
    if (v == -1 && PyErr_Occurred()) return nullptr;
    n *= v;
  }
  return PyLong_FromLongLong(n);
}

// What tuple's own function gives, as a Size.
PyObject* as_size(PyObject* owned) {
  PyRef made(owned);
  if (!made || !PyTuple_CheckExact(made.get())) return made.release();
  return PyObject_CallOneArg(reinterpret_cast<PyObject*>(size_type), made.get());
}
PyObject* subscript(PyObject* o, PyObject* index) {
  return as_size(PyTuple_Type.tp_as_mapping->mp_subscript(o, index));
}
PyObject* concat(PyObject* o, PyObject* other) {
  return as_size(PyTuple_Type.tp_as_sequence->sq_concat(o, other));
}
PyObject* repeat(PyObject* o, Py_ssize_t n) {
  return as_size(PyTuple_Type.tp_as_sequence->sq_repeat(o, n));
}
PyObject* reduce(PyObject* o, PyObject*) {
  PyRef plain(PyTuple_GetSlice(o, 0, PyTuple_GET_SIZE(o)));
  if (!plain) return nullptr;
  return Py_BuildValue("O(O)", Py_TYPE(o), plain.get());
}

PyMethodDef methods[] = {
    {"numel", numel, METH_NOARGS, nullptr},
    {"__reduce__", reduce, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyType_Slot slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(size_new)},
    {Py_tp_repr, reinterpret_cast<void*>(repr)},
    {Py_tp_methods, methods},
    {Py_mp_subscript, reinterpret_cast<void*>(subscript)},
    {Py_sq_concat, reinterpret_cast<void*>(concat)},
    {Py_sq_repeat, reinterpret_cast<void*>(repeat)},
    {0, nullptr},
};
PyType_Spec spec = {"tessera.Size", 0, 0, Py_TPFLAGS_DEFAULT, slots};

PyObject* fill(PyObject* tuple, const Dims& d) {
  for (size_t i = 0; i < d.size(); ++i)
    PyTuple_SET_ITEM(tuple, static_cast<Py_ssize_t>(i), checked(PyLong_FromLongLong(d[i])));
  return tuple;
}

}  // namespace

PyObject* wrap_size(const Dims& d) {
  return fill(checked(size_type->tp_alloc(size_type, static_cast<Py_ssize_t>(d.size()))), d);
}
PyObject* wrap_ints(const Dims& d) {
  return fill(checked(PyTuple_New(static_cast<Py_ssize_t>(d.size()))), d);
}

void init_types(PyObject* module) {
  PyRef bases(checked(PyTuple_Pack(1, &PyTuple_Type)));
  size_type =
      reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpecWithBases(&spec, bases.get())));
  size_type->tp_name = "torch.Size";
  if (PyModule_AddObjectRef(module, "Size", reinterpret_cast<PyObject*>(size_type)) < 0)
    throw PythonError{};
  init_dtypes(module);
  init_device(module);
}

}  // namespace tessera::python
