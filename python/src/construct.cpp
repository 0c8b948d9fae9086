// torch.tensor(data) and Tensor(...): tensors from Python's values.
#include <cstring>

#include "methods.h"
#include "numbers.h"
#include "slots.h"
#include "tessera/driver/current.h"
#include "types.h"

namespace tessera::python {

namespace {

constexpr struct {
  const char* name;
  DType dtype;
} kNumPyScalars[] = {
    {"bool", DType::kBool},
    {"uint8", DType::kUInt8},
    {"int8", DType::kInt8},
    {"int16", DType::kInt16},
    {"int32", DType::kInt32},
    {"int64", DType::kInt64},
    {"float16", DType::kFloat16},
    {"float32", DType::kFloat32},
    {"float64", DType::kFloat64},
    {"complex64", DType::kComplex64},
    {"complex128", DType::kComplex128},
};

// The dtype that a number has by itself; false for what is no number.
bool dtype_of_number(PyObject* o, DType& out) {
  const char* name = Py_TYPE(o)->tp_name;
  if (!std::strncmp(name, "numpy.", 6)) {
    size_t length = std::strcspn(name + 6, "_");
    for (const auto& known : kNumPyScalars) {
      if (std::strlen(known.name) != length || std::strncmp(name + 6, known.name, length)) continue;
      out = known.dtype;
      return true;
    }
  }
  if (is_tensor(o)) {
    out = unwrap(o).dtype();
    return unwrap(o).dim() == 0;
  }
  Scalar s;
  if (!read_number(o, s)) return false;
  out = s.dtype();
  return true;
}

bool is_list(PyObject* o) {
  return PyList_Check(o) || PyTuple_Check(o) ||
         (PySequence_Check(o) && !PyUnicode_Check(o) && !PyBytes_Check(o) && !PyByteArray_Check(o));
}

bool is_zero_dim_tensor(PyObject* o) { return is_tensor(o) && unwrap(o).dim() == 0; }

// Shape and dtype of nested sequences, read off their first elements and the rest checked in
// fill().
class Reader {
 public:
  explicit Reader(PyObject* data) {
    PyRef at = PyRef::borrow(data);
    while (is_list(at.get()) && !is_zero_dim_tensor(at.get())) {
      Py_ssize_t n = PySequence_Size(at.get());
      if (n < 0) throw PythonError{};
      sizes.push_back(n);
      TS_CHECK_VALUE(sizes.size() <= 128, "too many dimensions: the data contains itself?");
      if (n == 0) break;
      at = PyRef(checked(PySequence_GetItem(at.get(), 0)));
    }
  }

  DType infer(PyObject* data, size_t dim) {
    DType t = default_dtype();
    if (dim == sizes.size()) {
      if (!dtype_of_number(data, t))
        throw raise_python(PyExc_TypeError, "new(): invalid data type '%s'",
                           Py_TYPE(data)->tp_name);
      return t;
    }
    bool first = true;
    each(data, dim, [&](PyObject* item) {
      DType one = infer(item, dim + 1);
      t = first ? one : promote(t, one);
      first = false;
    });
    return t;
  }

  char* fill(PyObject* data, size_t dim, char* at, DType dtype) {
    if (dim < sizes.size()) {
      each(data, dim, [&](PyObject* item) { at = fill(item, dim + 1, at, dtype); });
      return at;
    }
    Scalar s;
    if (is_zero_dim_tensor(data))
      s = item_of(unwrap(data));
    else if (!read_number(data, s))
      throw raise_python(PyExc_TypeError, "new(): invalid data type '%s'", Py_TYPE(data)->tp_name);
    store_element(at, dtype, s);
    return at + itemsize(dtype);
  }

  Dims sizes;

 private:
  template <class Work>
  void each(PyObject* data, size_t dim, Work&& work) {
    if (!is_list(data) || is_zero_dim_tensor(data))
      throw raise_python(PyExc_TypeError, "expected a sequence at dim %zu, not %s", dim,
                         Py_TYPE(data)->tp_name);
    PyRef items(checked(PySequence_Fast(data, "expected a sequence")));
    Py_ssize_t n = PySequence_Fast_GET_SIZE(items.get());
    if (n != sizes[dim])
      throw raise_python(PyExc_ValueError, "expected sequence of length %lld at dim %zu (got %zd)",
                         static_cast<long long>(sizes[dim]), dim, n);
    for (Py_ssize_t i = 0; i < n; ++i) work(PySequence_Fast_GET_ITEM(items.get(), i));
  }
};

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
};

void read_options(const char* function, const Arguments& args, Options& out) {
  PyObject* o[5];
  bind_arguments(function, {"data", "dtype", "device", "requires_grad", "pin_memory"}, args, o);
  if (!o[0])
    throw raise_python(PyExc_TypeError, "%s() missing 1 required positional argument: \"data\"",
                       function);
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
  }
  out.requires_grad = truth(o[3], false);
}

PyObject* tensor_function(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  return guarded([&]() -> PyObject* {
    Options o;
    read_options("tensor", {args, n, names}, o);
    TensorBase t = is_tensor(o.data)
                       ? placed(detached(unwrap(o.data)), o.dtype_given, o.device_given, true)
                       : tensor_from_data(o.data, o.dtype_given, o.device_given);
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
  Reader reader(data);
  DType found = dtype ? *dtype : reader.infer(data, 0);
  TensorBase t = new_empty(reader.sizes, found, Device{});
  reader.fill(data, 0, t.raw(), found);
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
