// Memory shared with NumPy and others through Python's buffer protocol: in both directions without
// NumPy's headers, and without importing it.
#include <cstring>

#include "methods.h"
#include "tessera/fuse/stream.h"

namespace tessera::python {

namespace {

constexpr struct {
  const char* code;
  DType dtype;
} kFormats[] = {
    {"?", DType::kBool},    {"B", DType::kUInt8},      {"b", DType::kInt8},
    {"h", DType::kInt16},   {"i", DType::kInt32},      {"l", DType::kInt64},
    {"q", DType::kInt64},   {"e", DType::kFloat16},    {"f", DType::kFloat32},
    {"d", DType::kFloat64}, {"Zf", DType::kComplex64}, {"Zd", DType::kComplex128},
};

// What NumPy keeps as the base of an array over a tensor's memory. Tensors themselves offer no
// buffer, as PyTorch's do not.
struct MemoryObject {
  PyObject_HEAD PyObject* tensor;
  const char* format;
  Py_ssize_t* geometry;  // sizes, then strides in bytes
};
PyTypeObject* g_memory_type = nullptr;

MemoryObject* as_memory(PyObject* o) { return reinterpret_cast<MemoryObject*>(o); }

int get_buffer(PyObject* o, Py_buffer* view, int) {
  MemoryObject* self = as_memory(o);
  const TensorBase& t = unwrap(self->tensor);
  view->obj = Py_NewRef(o);
  view->buf = t.raw();
  view->len = static_cast<Py_ssize_t>(t.nbytes());
  view->itemsize = static_cast<Py_ssize_t>(itemsize(t.dtype()));
  view->readonly = 0;
  view->ndim = t.dim();
  view->format = const_cast<char*>(self->format);
  view->shape = self->geometry;
  view->strides = self->geometry + t.dim();
  view->suboffsets = nullptr;
  view->internal = nullptr;
  return 0;
}

void dealloc(PyObject* o) {
  PyTypeObject* type = Py_TYPE(o);
  Py_XDECREF(as_memory(o)->tensor);
  delete[] as_memory(o)->geometry;
  type->tp_free(o);
  Py_DECREF(type);
}

PyType_Slot slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
    {Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)},
    {0, nullptr},
};
PyType_Spec spec = {"tessera._C.Memory", sizeof(MemoryObject), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};

PyObject* memory_of(PyObject* self, const Arguments& args) {
  bind_arguments("_memory", {}, args, nullptr);
  const TensorBase& t = unwrap(self);
  TS_CHECK_TYPE(t.device().is_cpu(), "can't convert ", t.device(),
                " device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory "
                "first.");
  const char* code = nullptr;
  for (const auto& f : kFormats)
    if (f.dtype == t.dtype() && *f.code != 'q') code = f.code;
  TS_CHECK_TYPE(code,
                "Got unsupported ScalarType BFloat16: NumPy has none. Use Tensor.float() "
                "first.");
  fuse::expose(t);
  auto* o = PyObject_New(MemoryObject, g_memory_type);
  if (!o) throw PythonError{};
  o->tensor = Py_NewRef(self);
  o->format = code;
  size_t n = t.sizes().size();
  o->geometry = new Py_ssize_t[2 * n + 1];
  for (size_t d = 0; d < n; ++d) {
    o->geometry[d] = static_cast<Py_ssize_t>(t.sizes()[d]);
    o->geometry[n + d] =
        static_cast<Py_ssize_t>(t.strides()[d]) * static_cast<Py_ssize_t>(itemsize(t.dtype()));
  }
  return reinterpret_cast<PyObject*>(o);
}

// Storage may die in any thread.
void release_buffer(void* p) {
  if (!may_enter_python()) return;
  PyGILState_STATE state = PyGILState_Ensure();
  auto* view = static_cast<Py_buffer*>(p);
  PyBuffer_Release(view);
  delete view;
  PyGILState_Release(state);
}

DType dtype_of(const Py_buffer& view) {
  const char* format = view.format ? view.format : "B";
  if (*format == '@' || *format == '=' || *format == '<') ++format;
  if (*format == '>' || *format == '!')
    throw raise_python(PyExc_ValueError,
                       "given numpy array has byte order different from the native byte order. "
                       "Conversion between byte orders is currently not supported.");
  for (const auto& f : kFormats)
    if (!std::strcmp(f.code, format) && itemsize(f.dtype) == static_cast<size_t>(view.itemsize))
      return f.dtype;
  throw raise_python(PyExc_TypeError,
                     "can't convert memory of format '%s'. The only supported types are: float64, "
                     "float32, float16, complex64, complex128, int64, int32, int16, int8, uint8, "
                     "and bool.",
                     format);
}

PyObject* from_buffer(PyObject*, PyObject* o) {
  return guarded([&] { return wrap(tensor_from_buffer(o)); });
}
PyMethodDef functions[] = {
    {"_from_buffer", from_buffer, METH_O, "A tensor over the memory of a buffer."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

bool is_array(PyObject* o) {
  return PyObject_CheckBuffer(o) && !PyBytes_Check(o) && !PyByteArray_Check(o) && !is_tensor(o);
}

TensorBase tensor_from_buffer(PyObject* exporter) {
  auto* view = new Py_buffer;
  if (PyObject_GetBuffer(exporter, view, PyBUF_STRIDED_RO | PyBUF_FORMAT) < 0) {
    delete view;
    throw PythonError{};
  }
  try {
    DType dtype = dtype_of(*view);
    Dims sizes, strides;
    for (int d = 0; d < view->ndim; ++d) {
      Py_ssize_t step = view->strides[d];
      if (step < 0)
        throw raise_python(PyExc_ValueError,
                           "At least one stride in the given numpy array is negative, and tensors "
                           "with negative strides are not currently supported. (You can probably "
                           "work around this by making a copy of your array  with array.copy().) ");
      if (step % view->itemsize)
        throw raise_python(
            PyExc_ValueError,
            "given numpy array strides not a multiple of the element byte size. Copy "
            "the numpy array to reallocate the memory.");
      sizes.push_back(view->shape[d]);
      strides.push_back(step / view->itemsize);
    }
    return from_blob(view->buf, sizes, strides, dtype, Device{}, view, release_buffer);
  } catch (...) {
    PyBuffer_Release(view);
    delete view;
    throw;
  }
}

void add_memory_type(PyObject* module) {
  g_memory_type = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&spec)));
  add_native_method("_memory", memory_of,
                    "Its memory, as an object with Python's buffer protocol.");
  if (PyModule_AddFunctions(module, functions) < 0) throw PythonError{};
}

}  // namespace tessera::python
