#include "tensor_object.h"
#include "types.h"

namespace tessera::python {

PyTypeObject* dtype_type = nullptr;

namespace {

PyObject* g_dtypes[kNumDTypes];

DType value_of(PyObject* o) { return reinterpret_cast<DTypeObject*>(o)->dtype; }

PyObject* repr(PyObject* o) { return PyUnicode_FromFormat("torch.%s", dtype_name(value_of(o))); }
// A string: copies and pickles are the object of that name in the package.
PyObject* reduce(PyObject* o, PyObject*) { return PyUnicode_FromString(dtype_name(value_of(o))); }

PyObject* is_floating_point(PyObject* o, void*) {
  return PyBool_FromLong(is_floating(value_of(o)));
}
PyObject* is_complex(PyObject* o, void*) {
  return PyBool_FromLong(tessera::is_complex(value_of(o)));
}

PyObject* is_signed(PyObject* o, void*) {
  return PyBool_FromLong(value_of(o) != DType::kBool && value_of(o) != DType::kUInt8);
}
PyObject* item_size(PyObject* o, void*) { return PyLong_FromSize_t(itemsize(value_of(o))); }
PyObject* module_name(PyObject*, void*) { return PyUnicode_FromString("tessera"); }

PyGetSetDef getset[] = {
    {"is_floating_point", is_floating_point, nullptr, nullptr, nullptr},
    {"is_complex", is_complex, nullptr, nullptr, nullptr},
    {"is_signed", is_signed, nullptr, nullptr, nullptr},
    {"itemsize", item_size, nullptr, nullptr, nullptr},
    {"__module__", module_name, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyMethodDef methods[] = {
    {"__reduce__", reduce, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyType_Slot slots[] = {
    {Py_tp_repr, reinterpret_cast<void*>(repr)},
    {Py_tp_getset, getset},
    {Py_tp_methods, methods},
    {0, nullptr},
};
PyType_Spec spec = {"tessera.dtype", sizeof(DTypeObject), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};

// PyTorch's second names.
constexpr struct {
  const char* alias;
  DType dtype;
} kAliases[] = {
    {"cfloat", DType::kComplex64}, {"cdouble", DType::kComplex128}, {"half", DType::kFloat16},
    {"float", DType::kFloat32},    {"double", DType::kFloat64},     {"short", DType::kInt16},
    {"int", DType::kInt32},        {"long", DType::kInt64},
};

}  // namespace

PyObject* wrap_dtype(DType t) { return Py_NewRef(g_dtypes[static_cast<int>(t)]); }

bool read_dtype(PyObject* o, DType& out) {
  if (Py_TYPE(o) == dtype_type) {
    out = value_of(o);
  } else if (o == reinterpret_cast<PyObject*>(&PyFloat_Type)) {
    out = DType::kFloat64;
  } else if (o == reinterpret_cast<PyObject*>(&PyLong_Type)) {
    out = DType::kInt64;
  } else if (o == reinterpret_cast<PyObject*>(&PyComplex_Type)) {
    out = DType::kComplex128;
  } else if (o == reinterpret_cast<PyObject*>(&PyBool_Type)) {
    out = DType::kBool;
  } else {
    return false;
  }
  return true;
}

void init_dtypes(PyObject* module) {
  dtype_type = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&spec)));
  dtype_type->tp_name = "torch.dtype";
  if (PyModule_AddObjectRef(module, "dtype", reinterpret_cast<PyObject*>(dtype_type)) < 0)
    throw PythonError{};
  PyRef names(checked(PyDict_New()));
  for (int i = 0; i < kNumDTypes; ++i) {
    auto* o = PyObject_New(DTypeObject, dtype_type);
    if (!o) throw PythonError{};
    o->dtype = static_cast<DType>(i);
    g_dtypes[i] = reinterpret_cast<PyObject*>(o);
    if (PyDict_SetItemString(names.get(), dtype_name(o->dtype), g_dtypes[i]) < 0)
      throw PythonError{};
  }
  for (const auto& a : kAliases)
    if (PyDict_SetItemString(names.get(), a.alias, g_dtypes[static_cast<int>(a.dtype)]) < 0)
      throw PythonError{};
  if (PyModule_AddObjectRef(module, "dtypes", names.get()) < 0) throw PythonError{};
}

}  // namespace tessera::python
