// What torch.UntypedStorage is written with: a storage as a tensor of its bytes, and tensors over
// it.
#include <cstring>

#include "methods.h"
#include "numbers.h"
#include "tessera/fuse/stream.h"
#include "types.h"

namespace tessera::python {

namespace {

TensorBase over(const TensorBase& t, DType dtype, Dims sizes, Dims strides, int64_t offset) {
  return TensorBase(Ref<TensorImpl>::make(Ref<Storage>(t.impl()->storage), dtype, std::move(sizes),
                                          std::move(strides), offset));
}

PyObject* storage_bytes(PyObject*, PyObject* o) {
  return guarded([&] {
    const TensorBase& t = unwrap_checked(o, "_storage_bytes(): argument");
    auto n = static_cast<int64_t>(t.storage().nbytes);
    return wrap(over(t, DType::kUInt8, {n}, {1}, 0));
  });
}

PyObject* storage_key(PyObject*, PyObject* o) {
  return guarded(
      [&] { return PyLong_FromVoidPtr(&unwrap_checked(o, "_storage_key(): argument").storage()); });
}

PyObject* storage_resizable(PyObject*, PyObject* o) {
  return guarded([&] {
    return PyBool_FromLong(
        unwrap_checked(o, "_storage_resizable(): argument").storage().can_resize());
  });
}

Dims read_dims(PyObject* o, const char* what) {
  PyRef items(checked(PySequence_Fast(o, what)));
  Dims out;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(items.get()); ++i) {
    int64_t n;
    if (!read_int(PySequence_Fast_GET_ITEM(items.get(), i), n))
      throw raise_python(PyExc_TypeError, "%s must be ints", what);
    out.push_back(n);
  }
  return out;
}

PyObject* over_storage(PyObject*, PyObject* args) {
  return guarded([&]() -> PyObject* {
    PyObject *bytes, *dtype_object, *size, *stride;
    long long offset;
    if (!PyArg_ParseTuple(args, "OOLOO:_over_storage", &bytes, &dtype_object, &offset, &size,
                          &stride))
      throw PythonError{};
    const TensorBase& t = unwrap_checked(bytes, "_over_storage(): storage");
    DType dtype;
    if (!read_dtype(dtype_object, dtype))
      throw raise_python(PyExc_TypeError, "_over_storage(): dtype must be torch.dtype");
    Dims sizes = read_dims(size, "size"), strides = read_dims(stride, "stride");
    check_in_storage(t.storage(), sizes, strides, offset, dtype);
    return wrap(over(t, dtype, std::move(sizes), std::move(strides), offset));
  });
}

// The memory of a host tensor without gaps, copied.
PyObject* to_bytes(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    const TensorBase& t = unwrap_checked(o, "_to_bytes(): argument");
    TS_CHECK(t.device().is_cpu() && t.is_contiguous(),
             "_to_bytes() needs a contiguous host tensor");
    fuse::ensure_readable(t, fuse::Reason::kHostRead);
    auto n = static_cast<Py_ssize_t>(t.nbytes());
    return PyBytes_FromStringAndSize(n ? t.raw() : nullptr, n);
  });
}

PyObject* from_bytes(PyObject*, PyObject* o) {
  return guarded([&]() -> PyObject* {
    Py_buffer view;
    if (PyObject_GetBuffer(o, &view, PyBUF_SIMPLE) < 0) throw PythonError{};
    TensorBase t = new_empty({view.len}, DType::kUInt8, Device{});
    if (view.len) std::memcpy(t.raw(), view.buf, static_cast<size_t>(view.len));
    PyBuffer_Release(&view);
    return wrap(std::move(t));
  });
}

PyMethodDef functions[] = {
    {"_storage_bytes", storage_bytes, METH_O, "A tensor's whole storage, as bytes."},
    {"_storage_key", storage_key, METH_O, "A number that tells storages apart."},
    {"_storage_resizable", storage_resizable, METH_O, "Whether a tensor's storage may be resized."},
    {"_over_storage", over_storage, METH_VARARGS,
     "A tensor over a storage: bytes, dtype, offset, size, stride."},
    {"_to_bytes", to_bytes, METH_O, "A copy of a host tensor's memory."},
    {"_from_bytes", from_bytes, METH_O, "A tensor of bytes, copied."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void add_storage(PyObject* module) {
  if (PyModule_AddFunctions(module, functions) < 0) throw PythonError{};
}

}  // namespace tessera::python
