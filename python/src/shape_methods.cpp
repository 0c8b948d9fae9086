// size(), stride(), dim() ...: methods that only look.
#include "methods.h"
#include "numbers.h"
#include "tessera/fuse/stream.h"
#include "types.h"

namespace tessera::python {

TensorBase call_op(const Op& op, std::initializer_list<Value> args) {
  Value all[kMaxArgs];
  size_t n = 0;
  for (const Value& v : args) all[n++] = v;
  for (; n < op.args.size(); ++n) all[n] = op.args[n].default_value;
  return dispatch(op, Args(all, n)).take();
}

TensorBase call_op(const char* name, std::initializer_list<Value> args) {
  return call_op(get_op(name), args);
}

bool truth(PyObject* o, bool otherwise) {
  if (!o || o == Py_None) return otherwise;
  int v = PyObject_IsTrue(o);
  if (v < 0) throw PythonError{};
  return v == 1;
}

namespace {

PyObject* one_or_all(const char* name, const Dims& all, PyObject* (*whole)(const Dims&),
                     const Arguments& args) {
  PyObject* dim = nullptr;
  if (args.count || args.names) bind_arguments(name, {"dim"}, args, &dim);
  if (!dim || dim == Py_None) return whole(all);
  int64_t d;
  if (!read_int(dim, d))
    throw raise_python(PyExc_TypeError, "%s(): argument 'dim' (position 1) must be int, not %s",
                       name, Py_TYPE(dim)->tp_name);
  TS_CHECK_INDEX(!all.empty(), "Dimension specified as ", d, " but tensor has no dimensions");
  return PyLong_FromLongLong(all[static_cast<size_t>(wrap_dim(d, all.ndim()))]);
}

PyObject* size(PyObject* o, const Arguments& args) {
  return one_or_all(
      "size", unwrap(o).sizes(), [](const Dims& d) -> PyObject* { return wrap_size(d); }, args);
}
PyObject* stride(PyObject* o, const Arguments& args) {
  return one_or_all(
      "stride", unwrap(o).strides(), [](const Dims& d) -> PyObject* { return wrap_ints(d); }, args);
}

#define TS_LOOK(name, expression)                      \
  PyObject* name(PyObject* o, const Arguments& args) { \
    bind_arguments(#name, {}, args, nullptr);          \
    [[maybe_unused]] const TensorBase& t = unwrap(o);  \
    return expression;                                 \
  }
TS_LOOK(dim, PyLong_FromLong(t.dim()))
TS_LOOK(ndimension, PyLong_FromLong(t.dim()))
TS_LOOK(numel, PyLong_FromLongLong(t.numel()))
TS_LOOK(nelement, PyLong_FromLongLong(t.numel()))
TS_LOOK(element_size, PyLong_FromSize_t(itemsize(t.dtype())))
TS_LOOK(storage_offset, PyLong_FromLongLong(t.storage_offset()))
TS_LOOK(is_floating_point, PyBool_FromLong(is_floating(t.dtype())))
TS_LOOK(is_complex, PyBool_FromLong(tessera::is_complex(t.dtype())))
TS_LOOK(is_signed, PyBool_FromLong(t.dtype() != DType::kBool && t.dtype() != DType::kUInt8))
TS_LOOK(get_device, PyLong_FromLong(t.device().is_cuda() ? t.device().index : -1))
TS_LOOK(data_ptr, PyLong_FromVoidPtr(fuse::expose(t)))
#undef TS_LOOK

PyObject* is_contiguous(PyObject* o, const Arguments& args) {
  PyObject* memory_format;
  bind_arguments("is_contiguous", {"memory_format"}, args, &memory_format);
  MemoryFormat format = read_format(memory_format, "is_contiguous", MemoryFormat::kContiguous);
  TS_CHECK(format != MemoryFormat::kPreserve,
           "preserve memory format is unsupported by the contiguous operator");
  return PyBool_FromLong(is_contiguous_in(unwrap(o), format));
}
PyObject* is_same_storage(PyObject* o, const Arguments& args) {
  PyObject* other;
  bind_arguments("_is_same_storage", {"other"}, args, &other);
  if (!other) throw raise_python(PyExc_TypeError, "_is_same_storage() needs another tensor");
  return PyBool_FromLong(&unwrap(o).storage() == &unwrap_checked(other, "other").storage());
}

}  // namespace

void add_shape_methods() {
  add_native_method("size", size, "Its size in each dimension, or in one.");
  add_native_method("stride", stride, "The step in each dimension, or in one, in elements.");
  add_native_method("dim", dim, "The number of its dimensions.");
  add_native_method("ndimension", ndimension, "The number of its dimensions.");
  add_native_method("numel", numel, "The number of its elements.");
  add_native_method("nelement", nelement, "The number of its elements.");
  add_native_method("element_size", element_size, "Bytes of one element.");
  add_native_method("storage_offset", storage_offset, "Where in its storage it begins.");
  add_native_method("is_floating_point", is_floating_point, "");
  add_native_method("is_complex", is_complex, "");
  add_native_method("is_signed", is_signed, "");
  add_native_method("get_device", get_device, "The cuda device's number, -1 on the CPU.");
  add_native_method("data_ptr", data_ptr, "The address of its first element.");
  add_native_method("is_contiguous", is_contiguous, "Is it row-major without gaps?");
  add_native_method("_is_same_storage", is_same_storage, "Do both lie in the same memory?");
}

}  // namespace tessera::python
