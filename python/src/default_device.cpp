#include "default_device.h"

#include <optional>
#include <vector>

#include "tessera/driver/current.h"
#include "types.h"

namespace tessera::python {

namespace detail {
thread_local bool default_device_set = false;
}

namespace {

// The lowest is what set_default_device() set, the others are contexts.
thread_local std::optional<Device> t_set;
thread_local std::vector<Device> t_contexts;
thread_local Device t_current;

void update() {
  detail::default_device_set = t_set || !t_contexts.empty();
  if (!t_contexts.empty())
    t_current = t_contexts.back();
  else if (t_set)
    t_current = *t_set;
}

Device read(PyObject* o, const char* function) {
  Device d;
  if (!read_device(o, d))
    throw raise_python(PyExc_TypeError, "%s(): argument 'device' must be torch.device, not %s",
                       function, Py_TYPE(o)->tp_name);
  return d;
}

PyObject* set_default(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    if (o == Py_None)
      t_set.reset();
    else
      t_set = read(o, "set_default_device");
    update();
    Py_RETURN_NONE;
  });
}

PyObject* get_default(PyObject*, PyObject*) {
  return guarded([&]() -> PyObject* {
    if (!detail::default_device_set) return wrap_device(Device{});
    bool on_cpu = t_current.is_cpu() || t_current.is_meta();
    return wrap_device(on_cpu || t_current.index >= 0 ? t_current : resolve_device(t_current));
  });
}

PyMethodDef functions[] = {
    {"set_default_device", set_default, METH_O, "Where tensors are made when no device is named."},
    {"get_default_device", get_default, METH_NOARGS,
     "Where tensors are made when no device is named."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

const Device* default_device() { return detail::default_device_set ? &t_current : nullptr; }

void fill_default_device(const OpInfo& info, Parsed& parsed) {
  Value& value = parsed.values()[info.factory_device];
  if (value.tag == Value::Tag::kNone) value = Value(t_current);
}

PyObject* enter_device(PyObject* device, PyObject*) {
  return guarded([&]() -> PyObject* {
    t_contexts.push_back(read(device, "device"));
    update();
    return Py_NewRef(device);
  });
}

PyObject* leave_device(PyObject*, PyObject* const*, Py_ssize_t) {
  if (!t_contexts.empty()) t_contexts.pop_back();
  update();
  Py_RETURN_NONE;
}

void add_default_device(PyObject* module) {
  if (PyModule_AddFunctions(module, functions) < 0) throw PythonError{};
}

}  // namespace tessera::python
