#include "torch_function.h"

namespace tessera::python {

namespace {

thread_local bool t_disabled = false;
PyObject* g_attribute = nullptr;  // "__torch_function__"
PyObject* g_disabled_impl = nullptr;

// Types that are asked for often and never override.
bool is_basic(PyObject* o) {
  return o == Py_None || PyBool_Check(o) || PyLong_CheckExact(o) || PyFloat_CheckExact(o) ||
         PyUnicode_CheckExact(o) || PyTuple_CheckExact(o) || PyList_CheckExact(o) ||
         PyDict_CheckExact(o);
}

PyObject* with_disabled(PyObject* func, PyObject* args, PyObject* kwargs) {
  bool before = std::exchange(t_disabled, true);
  PyObject* result = PyObject_Call(func, args, kwargs);
  t_disabled = before;
  return result;
}

PyObject* disabled_impl(PyObject*, PyObject* all) {
  PyObject *func, *types, *args = nullptr, *kwargs = nullptr;
  if (!PyArg_UnpackTuple(all, "_disabled_torch_function_impl", 2, 4, &func, &types, &args, &kwargs))
    return nullptr;
  PyRef no_args(args ? nullptr : PyTuple_New(0));
  PyRef as_tuple(PySequence_Tuple(args ? args : no_args.get()));
  if (!as_tuple) return nullptr;
  return with_disabled(func, as_tuple.get(), kwargs == Py_None ? nullptr : kwargs);
}

PyObject* set_disabled(PyObject*, PyObject* flag) {
  return PyBool_FromLong(std::exchange(t_disabled, PyObject_IsTrue(flag) == 1));
}

// Does any argument handle calls itself?
PyObject* has_torch_function(PyObject*, PyObject* const* args, Py_ssize_t n) {
  Overriders found;
  for (Py_ssize_t i = 0; i < n; ++i)
    if (!is_plain_tensor(args[i]) && note_overrider(args[i], found)) Py_RETURN_TRUE;
  Py_RETURN_FALSE;
}

PyMethodDef functions[] = {
    {"_has_torch_function",
     reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(has_torch_function)), METH_FASTCALL,
     "Does any argument handle calls itself?"},
    {"_disabled_torch_function_impl", disabled_impl, METH_VARARGS,
     "Calls the function as if no argument overrode __torch_function__."},
    {"_set_torch_function_disabled", set_disabled, METH_O, "Sets the flag; returns what it was."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

bool note_overrider(PyObject* o, Overriders& found) {
  if (t_disabled || is_basic(o)) return false;
  PyTypeObject* type = Py_TYPE(o);
  PyRef attribute(PyObject_GetAttr(reinterpret_cast<PyObject*>(type), g_attribute));
  if (!attribute) {
    PyErr_Clear();
    return false;
  }
  if (attribute.get() == g_disabled_impl) return false;
  int at = found.count;
  for (int i = 0; i < found.count; ++i) {
    PyTypeObject* other = Py_TYPE(found.items[i]);
    if (other == type) return true;
    if (at == found.count && PyType_IsSubtype(type, other)) at = i;
  }
  if (found.count == Overriders::kMax)
    throw raise_python(PyExc_NotImplementedError,
                       "a call with arguments of more than %d types that override "
                       "__torch_function__",
                       Overriders::kMax);
  for (int i = found.count; i > at; --i) found.items[i] = found.items[i - 1];
  found.items[at] = o;
  ++found.count;
  return true;
}

PyObject* call_torch_function(const Overriders& found, PyObject* func, PyObject* const* args,
                              Py_ssize_t count, PyObject* names) {
  PyRef types(checked(PyTuple_New(found.count)));
  for (int i = 0; i < found.count; ++i)
    PyTuple_SET_ITEM(types.get(), i,
                     Py_NewRef(reinterpret_cast<PyObject*>(Py_TYPE(found.items[i]))));
  PyRef positional(checked(PyTuple_New(count)));
  for (Py_ssize_t i = 0; i < count; ++i) PyTuple_SET_ITEM(positional.get(), i, Py_NewRef(args[i]));
  PyRef keywords(checked(PyDict_New()));
  for (Py_ssize_t i = 0; names && i < PyTuple_GET_SIZE(names); ++i)
    if (PyDict_SetItem(keywords.get(), PyTuple_GET_ITEM(names, i), args[count + i]) < 0)
      throw PythonError{};
  for (int i = 0; i < found.count; ++i) {
    PyRef handler(checked(PyObject_GetAttr(found.items[i], g_attribute)));
    PyObject* call[] = {func, types.get(), positional.get(), keywords.get()};
    PyRef result(checked(PyObject_Vectorcall(handler.get(), call, 4, nullptr)));
    if (result.get() != Py_NotImplemented) return result.release();
  }
  PyRef name(PyObject_GetAttrString(func, "__name__"));
  if (!name) PyErr_Clear();
  throw raise_python(PyExc_TypeError,
                     "no implementation found for '%S' on types that implement __torch_function__: "
                     "%R",
                     name ? name.get() : func, types.get());
}

void init_torch_function(PyObject* module) {
  g_attribute = checked(PyUnicode_InternFromString("__torch_function__"));
  if (PyModule_AddFunctions(module, functions) < 0) throw PythonError{};
  g_disabled_impl = checked(PyObject_GetAttrString(module, "_disabled_torch_function_impl"));
}

}  // namespace tessera::python
