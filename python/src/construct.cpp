// torch.tensor(data) and Tensor(...): tensors from Python's values.
#include "data_reader.h"
#include "default_device.h"
#include "methods.h"
#include "numbers.h"
#include "slots.h"
#include "tessera/call/pin.h"
#include "tessera/driver/current.h"
#include "types.h"

namespace tessera::python {

namespace {

TensorBase placed(TensorBase t, const DType* dtype, const Device* device, bool copy) {
  return converted(t, dtype ? *dtype : t.dtype(), device ? *device : t.device(), false, copy);
}

struct Options {
  PyObject* data;
  DType dtype;
  Device device;
  const DType* dtype_given = nullptr;
  const Device* device_given = nullptr;
  bool requires_grad = false;
  bool pin_memory = false;
};

void read_options(const char* function, const Arguments& args, Options& out) {
  PyObject* o[6];
  if (args.count > 1)
    throw raise_python(PyExc_TypeError, "%s() takes 1 positional argument but %zd were given",
                       function, args.count);
  bind_arguments(function, {"data", "dtype", "device", "requires_grad", "pin_memory", "names"},
                 args, o);
  if (!o[0])
    throw raise_python(PyExc_TypeError, "%s() missing 1 required positional arguments: \"data\"",
                       function);
  if (o[5] && o[5] != Py_None)
    throw raise_python(PyExc_NotImplementedError,
                       "%s(names=...): named tensors are not implemented in Tessera yet", function);
  out.data = o[0];
  if (o[1] && o[1] != Py_None) {
    if (!read_dtype(o[1], out.dtype))
      throw raise_python(PyExc_TypeError, "%s(): argument 'dtype' must be torch.dtype, not %s",
                         function, Py_TYPE(o[1])->tp_name);
    out.dtype_given = &out.dtype;
  }
  if (o[2] && o[2] != Py_None) {
    if (!read_device(o[2], out.device))
      throw raise_python(PyExc_TypeError, "%s(): argument 'device' must be torch.device, not %s",
                         function, Py_TYPE(o[2])->tp_name);
    out.device = resolve_device(out.device);
    out.device_given = &out.device;
  } else if (const Device* usual = default_device()) {
    out.device = resolve_device(*usual);
    out.device_given = &out.device;
  }
  out.requires_grad = truth(o[3], false);
  out.pin_memory = truth(o[4], false);
  TS_CHECK(!out.pin_memory || !out.device_given || out.device.is_cpu(),
           "Only dense CPU tensors can be pinned");
}

PyObject* tensor_function(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  return guarded([&]() -> PyObject* {
    Options o;
    read_options("tensor", {args, n, names}, o);
    if (is_tensor(o.data) &&
        PyErr_WarnEx(PyExc_UserWarning,
                     "To copy construct from a tensor, it is recommended to use "
                     "sourceTensor.detach().clone() or "
                     "sourceTensor.detach().clone().requires_grad_(True), rather than "
                     "torch.tensor(sourceTensor).",
                     1) < 0)
      throw PythonError{};
    TensorBase t = is_tensor(o.data)
                       ? placed(detached(unwrap(o.data)), o.dtype_given, o.device_given, true)
                       : tensor_from_data(o.data, o.dtype_given, o.device_given);
    if (o.pin_memory) t = pinned(t);
    TS_CHECK(!o.requires_grad || is_differentiable(t.dtype()),
             "Only Tensors of floating point and complex dtype can require gradients");
    t.impl()->requires_grad = o.requires_grad;
    return wrap(std::move(t));
  });
}

PyObject* as_tensor(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  return guarded([&]() -> PyObject* {
    Options o;
    read_options("as_tensor", {args, n, names}, o);
    TensorBase t;
    if (is_tensor(o.data))
      t = placed(unwrap(o.data), o.dtype_given, o.device_given, false);
    else if (is_array(o.data))
      t = placed(tensor_from_buffer(o.data), o.dtype_given, o.device_given, false);
    else
      t = tensor_from_data(o.data, o.dtype_given, o.device_given);
    return wrap(std::move(t));
  });
}

PyMethodDef functions[] = {
    {"tensor", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(tensor_function)),
     METH_FASTCALL | METH_KEYWORDS, "A tensor with a copy of the data."},
    {"as_tensor", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(as_tensor)),
     METH_FASTCALL | METH_KEYWORDS, "A tensor of the data, sharing memory where that can be."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

TensorBase tensor_from_data(PyObject* data, const DType* dtype, const Device* device) {
  if (is_tensor(data)) return placed(detached(unwrap(data)), dtype, device, false);
  if (is_array(data)) return placed(tensor_from_buffer(data), dtype, device, true);
  DataReader reader(data);
  DType found = dtype ? *dtype : reader.infer();
  TensorBase t = new_empty(reader.sizes(), found, Device{});
  reader.fill(t.raw(), found);
  return placed(std::move(t), nullptr, device, false);
}

// The old constructor: Tensor(), Tensor(2, 3), Tensor([1, 2]).
PyObject* tensor_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    if (kwargs && PyDict_GET_SIZE(kwargs) > 0) {
      PyObject* device = PyDict_GetItemString(kwargs, "device");
      if (!device || PyDict_GET_SIZE(kwargs) > 1)
        throw raise_python(PyExc_TypeError, "Tensor() takes no keywords but device");
    }
    Py_ssize_t n = PyTuple_GET_SIZE(args);
    PyObject* first = n ? PyTuple_GET_ITEM(args, 0) : nullptr;
    DType dtype = default_dtype();
    int64_t size;
    if (n == 1 && is_tensor(first)) return wrap_as(type, detached(unwrap(first)));
    if (n == 1 && !PySequence_Check(first) && !read_int(first, size))
      throw raise_python(PyExc_TypeError, "new(): data must be a sequence (got %s)",
                         Py_TYPE(first)->tp_name);
    if (n == 1 && Py_TYPE(first) != size_type && !read_int(first, size))
      return wrap_as(type, tensor_from_data(first, &dtype, nullptr));
    PyObject* sizes = n == 1 && Py_TYPE(first) == size_type ? first : args;
    Dims dims;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(sizes); ++i) {
      if (!read_int(PyTuple_GET_ITEM(sizes, i), size))
        throw raise_python(PyExc_TypeError, "Tensor() argument %zd must be int, not %s", i + 1,
                           Py_TYPE(PyTuple_GET_ITEM(sizes, i))->tp_name);
      dims.push_back(size);
    }
    if (n == 0) dims.push_back(0);
    return wrap_as(type, new_empty(dims, dtype, Device{}));
  });
}

void add_construction(PyObject* module) {
  if (PyModule_AddFunctions(module, functions) < 0) throw PythonError{};
}

}  // namespace tessera::python
