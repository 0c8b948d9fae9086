#include "default_device.h"
#include "numbers.h"
#include "types.h"

namespace tessera::python {

PyTypeObject* device_type = nullptr;

namespace {

Device value_of(PyObject* o) { return reinterpret_cast<DeviceObject*>(o)->device; }
const char* type_name(Device d) { return d.is_cpu() ? "cpu" : d.is_cuda() ? "cuda" : "meta"; }

PyObject* make(PyTypeObject* type, Device d) {
  auto* o = reinterpret_cast<DeviceObject*>(checked(type->tp_alloc(type, 0)));
  o->device = d;
  return reinterpret_cast<PyObject*>(o);
}

PyObject* device_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    static const char* names[] = {"device", "index", nullptr};
    static const char* typed_names[] = {"type", "index", nullptr};
    PyObject *what = nullptr, *index = nullptr;
    bool typed = kwargs && PyDict_GetItemString(kwargs, "type");
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:device",
                                     const_cast<char**>(typed ? typed_names : names), &what,
                                     &index))
      throw PythonError{};
    Device d;
    if (!read_device(what, d))
      throw raise_python(PyExc_TypeError,
                         "device(): argument 'device' must be torch.device, str or int, not %s",
                         Py_TYPE(what)->tp_name);
    if (index && index != Py_None) {
      int64_t i;
      if (!read_int(index, i))
        throw raise_python(PyExc_TypeError, "device(): argument 'index' must be int, not %s",
                           Py_TYPE(index)->tp_name);
      if (PyUnicode_Check(what) && d.is_cuda() && d.index >= 0)
        throw raise_python(PyExc_RuntimeError,
                           "type (string) must not include an index because index was passed "
                           "explicitly: %U",
                           what);
      if (i < 0) throw raise_python(PyExc_RuntimeError, "Device index must not be negative");
      if (d.is_cuda()) d.index = static_cast<int16_t>(i);
    }
    return make(type, d);
  });
}

PyObject* repr(PyObject* o) {
  Device d = value_of(o);
  if (!d.is_cuda() || d.index < 0) return PyUnicode_FromFormat("device(type='%s')", type_name(d));
  return PyUnicode_FromFormat("device(type='%s', index=%d)", type_name(d), int{d.index});
}
PyObject* str(PyObject* o) {
  Device d = value_of(o);
  if (!d.is_cuda() || d.index < 0) return PyUnicode_FromString(type_name(d));
  return PyUnicode_FromFormat("%s:%d", type_name(d), int{d.index});
}
Py_hash_t hash(PyObject* o) {
  Device d = value_of(o);
  return (static_cast<Py_hash_t>(d.type) << 16) + d.index + 2;
}
PyObject* compare(PyObject* a, PyObject* b, int what) {
  if ((what != Py_EQ && what != Py_NE) || Py_TYPE(b) != device_type) Py_RETURN_NOTIMPLEMENTED;
  return PyBool_FromLong((value_of(a) == value_of(b)) == (what == Py_EQ));
}
PyObject* get_type(PyObject* o, void*) { return PyUnicode_FromString(type_name(value_of(o))); }
PyObject* get_index(PyObject* o, void*) {
  Device d = value_of(o);
  if (!d.is_cuda() || d.index < 0) Py_RETURN_NONE;
  return PyLong_FromLong(d.index);
}
PyObject* reduce(PyObject* o, PyObject*) {
  PyRef text(str(o));
  return Py_BuildValue("O(O)", Py_TYPE(o), text.get());
}

PyGetSetDef getset[] = {
    {"type", get_type, nullptr, nullptr, nullptr},
    {"index", get_index, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyMethodDef methods[] = {
    {"__reduce__", reduce, METH_NOARGS, nullptr},
    {"__enter__", enter_device, METH_NOARGS, "Makes it the default device for a while."},
    {"__exit__", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(leave_device)),
     METH_FASTCALL, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyType_Slot slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(device_new)},
    {Py_tp_repr, reinterpret_cast<void*>(repr)},
    {Py_tp_str, reinterpret_cast<void*>(str)},
    {Py_tp_hash, reinterpret_cast<void*>(hash)},
    {Py_tp_richcompare, reinterpret_cast<void*>(compare)},
    {Py_tp_getset, getset},
    {Py_tp_methods, methods},
    {0, nullptr},
};
PyType_Spec spec = {"tessera.device", sizeof(DeviceObject), 0, Py_TPFLAGS_DEFAULT, slots};

}  // namespace

PyObject* wrap_device(Device d) { return make(device_type, d); }

bool read_device(PyObject* o, Device& out) {
  if (Py_TYPE(o) == device_type) {
    out = value_of(o);
    return true;
  }
  if (PyUnicode_Check(o)) {
    Py_ssize_t size;
    const char* text = PyUnicode_AsUTF8AndSize(o, &size);
    if (!text) throw PythonError{};
    out = parse_device(std::string(text, static_cast<size_t>(size)));
    return true;
  }
  int64_t index;
  if (PyLong_Check(o) && !PyBool_Check(o) && read_int(o, index)) {
    if (index < 0) throw raise_python(PyExc_RuntimeError, "Device index must not be negative");
    out = Device{DeviceType::kCUDA, static_cast<int16_t>(index)};
    return true;
  }
  return false;
}

void init_device(PyObject* module) {
  device_type = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&spec)));
  device_type->tp_name = "torch.device";
  if (PyModule_AddObjectRef(module, "device", reinterpret_cast<PyObject*>(device_type)) < 0)
    throw PythonError{};
}

}  // namespace tessera::python
