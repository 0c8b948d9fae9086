#include "default_device.h"
#include "numbers.h"
#include "types.h"

namespace tessera::python {

PyTypeObject* device_type = nullptr;

namespace {

const DeviceObject& written(PyObject* o) { return *reinterpret_cast<DeviceObject*>(o); }

const char* type_name(PyObject* o) {
  const DeviceObject& w = written(o);
  if (w.foreign) return w.foreign;
  return w.device.is_cpu() ? "cpu" : w.device.is_cuda() ? "cuda" : "meta";
}

// Kinds of devices that programs name, if only to compare with them.
constexpr const char* kForeign[] = {"ipu",    "xpu", "mkldnn", "opengl", "opencl",       "ideep",
                                    "hip",    "ve",  "fpga",   "maia",   "xla",          "lazy",
                                    "vulkan", "mps", "hpu",    "mtia",   "privateuseone"};

constexpr int64_t kMostDevices = 1024;

PyObject* make(PyTypeObject* type, const DeviceObject& what) {
  auto* o = reinterpret_cast<DeviceObject*>(checked(type->tp_alloc(type, 0)));
  o->device = what.device;
  o->index = what.index;
  o->foreign = what.foreign;
  return reinterpret_cast<PyObject*>(o);
}

PythonError not_here(const char* kind) {
  return raise_python(
      PyExc_RuntimeError,
      "Tessera is not linked with support for %s devices: it has cpu, cuda and meta", kind);
}

DeviceObject read_text(const std::string& text) {
  DeviceObject out{};
  size_t colon = text.find(':');
  out.index = -1;
  for (const char* kind : kForeign)
    if (text.compare(0, colon, kind) == 0) {
      out.foreign = kind;
      // The index is read as a cuda device's is.
      if (colon != std::string::npos) out.index = parse_device("cuda" + text.substr(colon)).index;
      return out;
    }
  out.device = parse_device(text);
  if (colon != std::string::npos) {
    Device numbered = parse_device("cuda" + text.substr(colon));
    out.index = numbered.index;
  }
  return out;
}

bool read_written(PyObject* o, DeviceObject& out) {
  if (Py_TYPE(o) == device_type) {
    out = written(o);
    return true;
  }
  if (PyUnicode_Check(o)) {
    Py_ssize_t size;
    const char* text = PyUnicode_AsUTF8AndSize(o, &size);
    if (!text) throw PythonError{};
    out = read_text(std::string(text, static_cast<size_t>(size)));
    return true;
  }
  int64_t index;
  if (PyLong_Check(o) && !PyBool_Check(o) && read_int(o, index)) {
    if (index < 0) throw raise_python(PyExc_RuntimeError, "Device index must not be negative");
    if (index >= kMostDevices)
      throw raise_python(PyExc_RuntimeError, "Device index %lld is out of range",
                         static_cast<long long>(index));
    out = DeviceObject{};
    out.index = static_cast<int16_t>(index);
    out.device = Device{DeviceType::kCUDA, out.index};
    return true;
  }
  return false;
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
    DeviceObject d{};
    if (!read_written(what, d))
      throw raise_python(PyExc_TypeError,
                         "device(): argument 'device' must be torch.device, str or int, not %s",
                         Py_TYPE(what)->tp_name);
    if (index && index != Py_None) {
      int64_t i;
      if (!read_int(index, i))
        throw raise_python(PyExc_TypeError, "device(): argument 'index' must be int, not %s",
                           Py_TYPE(index)->tp_name);
      if (d.index >= 0)
        throw raise_python(PyExc_RuntimeError,
                           "type (string) must not include an index because index was passed "
                           "explicitly: %S",
                           what);
      if (i < 0) throw raise_python(PyExc_RuntimeError, "Device index must not be negative");
      if (i >= kMostDevices || (d.device.is_cpu() && !d.foreign && i > 0))
        throw raise_python(PyExc_RuntimeError, "Device index %lld is out of range",
                           static_cast<long long>(i));
      d.index = static_cast<int16_t>(i);
      if (d.device.is_cuda()) d.device.index = d.index;
    }
    return make(type, d);
  });
}

PyObject* repr(PyObject* o) {
  int index = written(o).index;
  if (index < 0) return PyUnicode_FromFormat("device(type='%s')", type_name(o));
  return PyUnicode_FromFormat("device(type='%s', index=%d)", type_name(o), index);
}
PyObject* str(PyObject* o) {
  int index = written(o).index;
  if (index < 0) return PyUnicode_FromString(type_name(o));
  return PyUnicode_FromFormat("%s:%d", type_name(o), index);
}
Py_hash_t hash(PyObject* o) {
  const DeviceObject& w = written(o);
  Py_hash_t kind = w.foreign ? (w.foreign[0] << 8) + w.foreign[1] : static_cast<int>(w.device.type);
  return (kind << 16) + w.index + 2;
}
PyObject* compare(PyObject* a, PyObject* b, int what) {
  if ((what != Py_EQ && what != Py_NE) || Py_TYPE(b) != device_type) Py_RETURN_NOTIMPLEMENTED;
  const DeviceObject &x = written(a), &y = written(b);
  bool same = x.foreign == y.foreign && x.device.type == y.device.type && x.index == y.index;
  return PyBool_FromLong(same == (what == Py_EQ));
}
PyObject* get_type(PyObject* o, void*) { return PyUnicode_FromString(type_name(o)); }
PyObject* get_index(PyObject* o, void*) {
  if (written(o).index < 0) Py_RETURN_NONE;
  return PyLong_FromLong(written(o).index);
}
PyObject* reduce(PyObject* o, PyObject*) {
  PyRef text(str(o));
  return Py_BuildValue("O(O)", Py_TYPE(o), text.get());
}

// @torch.device("cuda") before a function.
PyObject* call(PyObject* o, PyObject* args, PyObject*) {
  return guarded([&]() -> PyObject* {
    PyObject* function = nullptr;
    if (!PyArg_ParseTuple(args, "O:device", &function)) throw PythonError{};
    PyRef module(checked(PyImport_ImportModule("tessera._device_scope")));
    return PyObject_CallMethod(module.get(), "decorated", "OO", o, function);
  });
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
    {Py_tp_call, reinterpret_cast<void*>(call)},
    {Py_tp_hash, reinterpret_cast<void*>(hash)},
    {Py_tp_richcompare, reinterpret_cast<void*>(compare)},
    {Py_tp_getset, getset},
    {Py_tp_methods, methods},
    {0, nullptr},
};
PyType_Spec spec = {"tessera.device", sizeof(DeviceObject), 0, Py_TPFLAGS_DEFAULT, slots};

}  // namespace

PyObject* wrap_device(Device d) {
  DeviceObject o{};
  o.device = d;
  o.index = d.is_cuda() ? d.index : int16_t{-1};
  return make(device_type, o);
}

bool read_device(PyObject* o, Device& out) {
  DeviceObject w{};
  if (!read_written(o, w)) return false;
  if (w.foreign) throw not_here(w.foreign);
  out = w.device;
  return true;
}

void init_device(PyObject* module) {
  device_type = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&spec)));
  device_type->tp_name = "torch.device";
  if (PyModule_AddObjectRef(module, "device", reinterpret_cast<PyObject*>(device_type)) < 0)
    throw PythonError{};
}

}  // namespace tessera::python
