#include "callable.h"

#include <structmember.h>

namespace tessera::python {

namespace {

PyTypeObject* g_function_type = nullptr;
PyTypeObject* g_method_type = nullptr;
PyObject* g_functions = nullptr;  // {path: function}

CallableObject* as_callable(PyObject* o) { return reinterpret_cast<CallableObject*>(o); }

PyObject* vectorcall_operator(PyObject* o, PyObject* const* args, size_t count, PyObject* names) {
  CallableObject* self = as_callable(o);
  try {
    return call_operator(*self->set, self->form, o, self->name,
                         {args, PyVectorcall_NARGS(count), names});
  } catch (...) {
    set_python_error();
    return nullptr;
  }
}

PyObject* vectorcall_native(PyObject* o, PyObject* const* args, size_t count, PyObject* names) {
  return guarded([&]() -> PyObject* {
    CallableObject* self = as_callable(o);
    Py_ssize_t n = PyVectorcall_NARGS(count);
    if (n < 1 || !is_tensor(args[0]))
      throw raise_python(PyExc_TypeError,
                         "descriptor '%U' for 'Tensor' objects doesn't apply to %s", self->name,
                         n < 1 ? "nothing" : Py_TYPE(args[0])->tp_name);
    Overriders found;
    if (self_overrides(args[0], found)) return call_torch_function(found, o, args, n, names);
    return self->native(args[0], {args + 1, n - 1, names});
  });
}

PyObject* get_bound(PyObject* o, PyObject* instance, PyObject*) {
  return instance ? PyMethod_New(o, instance) : Py_NewRef(o);
}
PyObject* get_name(PyObject* o, void*) { return Py_NewRef(as_callable(o)->name); }
PyObject* get_qualname(PyObject* o, void*) {
  if (Py_TYPE(o) == g_function_type) return Py_NewRef(as_callable(o)->name);
  return PyUnicode_FromFormat("Tensor.%U", as_callable(o)->name);
}
PyObject* get_doc(PyObject* o, void*) { return PyUnicode_FromString(as_callable(o)->doc); }
PyObject* get_module(PyObject*, void*) { return PyUnicode_FromString("tessera"); }
PyObject* repr(PyObject* o) {
  if (Py_TYPE(o) == g_function_type)
    return PyUnicode_FromFormat("<built-in function %U>", as_callable(o)->name);
  return PyUnicode_FromFormat("<method '%U' of 'Tensor' objects>", as_callable(o)->name);
}
// A string: copies and pickles are the object of that name in the package, or on Tensor.
PyObject* reduce(PyObject* o, PyObject*) { return get_qualname(o, nullptr); }

PyMethodDef methods[] = {
    {"__reduce__", reduce, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyGetSetDef getset[] = {
    {"__name__", get_name, nullptr, nullptr, nullptr},
    {"__qualname__", get_qualname, nullptr, nullptr, nullptr},
    {"__doc__", get_doc, nullptr, nullptr, nullptr},
    {"__module__", get_module, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(CallableObject, vectorcall), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

PyTypeObject* make_type(const char* name, bool method) {
  PyType_Slot slots[] = {
      {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
      {Py_tp_repr, reinterpret_cast<void*>(repr)},
      {Py_tp_methods, methods},
      {Py_tp_getset, getset},
      {Py_tp_members, members},
      {method ? Py_tp_descr_get : 0, reinterpret_cast<void*>(get_bound)},
      {0, nullptr},
  };
  unsigned flags =
      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION;
  // The interpreter then calls it with self as first argument, without making a bound method.
  if (method) flags |= Py_TPFLAGS_METHOD_DESCRIPTOR;
  PyType_Spec spec = {name, sizeof(CallableObject), 0, flags, slots};
  return reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&spec)));
}

PyObject* make_callable(PyTypeObject* type, const char* name, const OpSet* set, NativeMethod native,
                        Form form, const char* doc) {
  auto* o = PyObject_New(CallableObject, type);
  if (!o) throw PythonError{};
  o->vectorcall = set ? vectorcall_operator : vectorcall_native;
  o->name = checked(PyUnicode_InternFromString(name));
  o->doc = doc;
  o->set = set;
  o->native = native;
  o->form = form;
  return reinterpret_cast<PyObject*>(o);
}

void set_on_tensor(const char* name, PyObject* owned) {
  PyRef o(owned);
  if (PyObject_SetAttrString(reinterpret_cast<PyObject*>(tensor_type), name, o.get()) < 0)
    throw PythonError{};
}

}  // namespace

void add_native_method(const char* name, NativeMethod method, const char* doc) {
  set_on_tensor(name, make_callable(g_method_type, name, nullptr, method, Form::kMethod, doc));
}

PyObject* find_method(PyObject* name) {
  return PyDict_GetItemWithError(tensor_type->tp_dict, name);
}

PyObject* find_function(const std::string& path) {
  return PyDict_GetItemString(g_functions, path.c_str());
}

PyObject* make_operators() {
  PyRef functions(checked(PyDict_New()));
  g_functions = Py_NewRef(functions.get());
  auto add_function = [&](const std::string& path, const char* name, const OpSet& set, Form form,
                          const char* doc) {
    PyRef o(make_callable(g_function_type, name, &set, nullptr, form, doc));
    if (PyDict_SetItemString(functions.get(), path.c_str(), o.get()) < 0) throw PythonError{};
  };
  for (const OpSet* set : op_sets()) {
    const char* doc = set->overloads.front().op->record->doc;
    const char* name = PyUnicode_AsUTF8(set->name);
    if (set->forms & kFunction) add_function(set->path, name, *set, Form::kFunction, doc);
    if (set->forms & kMethod)
      set_on_tensor(name, make_callable(g_method_type, name, set, nullptr, Form::kMethod, doc));
    if (!(set->forms & kInplace)) continue;
    std::string inplace = std::string(name) + "_";
    if (set->forms & kFunction)
      add_function(set->path + "_", inplace.c_str(), *set, Form::kInplaceFunction, doc);
    if (set->forms & kMethod)
      set_on_tensor(inplace.c_str(), make_callable(g_method_type, inplace.c_str(), set, nullptr,
                                                   Form::kInplaceMethod, doc));
  }
  return functions.release();
}

void bind_arguments(const char* function, std::initializer_list<const char*> names,
                    const Arguments& args, PyObject** out) {
  size_t n = names.size();
  for (size_t i = 0; i < n; ++i) out[i] = nullptr;
  if (args.count > static_cast<Py_ssize_t>(n))
    throw raise_python(PyExc_TypeError, "%s() takes %zu positional argument%s but %zd %s given",
                       function, n, n == 1 ? "" : "s", args.count,
                       args.count == 1 ? "was" : "were");
  for (Py_ssize_t i = 0; i < args.count; ++i) out[i] = args.items[i];
  for (Py_ssize_t k = 0; args.names && k < PyTuple_GET_SIZE(args.names); ++k) {
    PyObject* name = PyTuple_GET_ITEM(args.names, k);
    size_t at = 0;
    for (const char* known : names) {
      if (PyUnicode_CompareWithASCIIString(name, known) == 0) break;
      ++at;
    }
    if (at == n)
      throw raise_python(PyExc_TypeError, "%s() got an unexpected keyword argument '%U'", function,
                         name);
    if (out[at])
      throw raise_python(PyExc_TypeError, "%s() got multiple values for argument '%U'", function,
                         name);
    out[at] = args.items[args.count + k];
  }
}

void init_callables() {
  g_function_type = make_type("tessera.builtin_function", false);
  g_method_type = make_type("tessera.builtin_method", true);
}

}  // namespace tessera::python
