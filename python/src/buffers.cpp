// Memory shared through Python's buffer protocol: with NumPy in both directions without its headers
// and without importing it, with memoryview(), and by torch.frombuffer().
#include <cstring>
#include <memory>
#include <vector>

#include "exported_view.h"
#include "methods.h"
#include "numbers.h"
#include "slots.h"
#include "tessera/fuse/stream.h"
#include "types.h"

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

// ---- out: what a view of a tensor's memory keeps -----------------------------------------------

struct Exported {
  ExportedView view;
  std::vector<Py_ssize_t> geometry;  // sizes, then strides in bytes
};

int refuse(const char* why) {
  PyErr_SetString(PyExc_BufferError, why);
  return -1;
}

int get_buffer(PyObject* o, Py_buffer* view, int flags) {
  view->obj = nullptr;
  try {
    const TensorBase& t = unwrap(o);
    if (!t.device().is_cpu())
      return refuse("only tensors in host memory have a buffer: use Tensor.cpu() first");
    if (t.requires_grad())
      return refuse("a tensor that requires grad has no buffer: use Tensor.detach() first");
    const char* code = nullptr;
    for (const auto& f : kFormats)
      if (f.dtype == t.dtype() && *f.code != 'q') code = f.code;
    if (!code) return refuse("bfloat16 has no buffer: use Tensor.float() first");
    if ((flags & PyBUF_STRIDES) != PyBUF_STRIDES && !t.is_contiguous())
      return refuse("the tensor is not contiguous");
    std::unique_ptr<Exported> kept(new Exported{ExportedView(t), {}});
    const TensorBase& seen = kept->view.tensor();
    void* address = fuse::expose(seen);  // may wait: other threads may change `t` meanwhile
    auto item = static_cast<Py_ssize_t>(itemsize(seen.dtype()));
    for (int64_t n : seen.sizes()) kept->geometry.push_back(static_cast<Py_ssize_t>(n));
    for (int64_t n : seen.strides()) kept->geometry.push_back(static_cast<Py_ssize_t>(n) * item);
    view->buf = address;
    view->len = static_cast<Py_ssize_t>(seen.nbytes());
    view->itemsize = item;
    view->readonly = 0;
    view->ndim = seen.dim();
    view->format = flags & PyBUF_FORMAT ? const_cast<char*>(code) : nullptr;
    bool shaped = flags & PyBUF_ND, stepped = (flags & PyBUF_STRIDES) == PyBUF_STRIDES;
    view->shape = shaped ? kept->geometry.data() : nullptr;
    view->strides = stepped ? kept->geometry.data() + seen.dim() : nullptr;
    view->suboffsets = nullptr;
    view->internal = kept.release();
    view->obj = Py_NewRef(o);
    return 0;
  } catch (...) {
    set_python_error();
    return -1;
  }
}

void release_view(PyObject*, Py_buffer* view) { delete static_cast<Exported*>(view->internal); }

// ---- in: tensors over others' memory -----------------------------------------------------------

// Storage may die in any thread.
void release_buffer(void* p) {
  if (!may_enter_python()) return;
  PyGILState_STATE state = PyGILState_Ensure();
  auto* view = static_cast<Py_buffer*>(p);
  PyBuffer_Release(view);
  delete view;
  PyGILState_Release(state);
}

// A buffer until somebody takes it over.
class Held {
 public:
  Held(PyObject* exporter, int flags) : view_(new Py_buffer) {
    if (PyObject_GetBuffer(exporter, view_, flags) == 0) return;
    delete view_;
    view_ = nullptr;
    throw PythonError{};
  }
  Held(const Held&) = delete;
  ~Held() {
    if (!view_) return;
    PyBuffer_Release(view_);
    delete view_;
  }
  Py_buffer* operator->() const { return view_; }
  const Py_buffer& operator*() const { return *view_; }
  TensorBase tensor(void* data, const Dims& sizes, const Dims& strides, DType dtype) {
    TensorBase t = from_blob(data, sizes, strides, dtype, Device{}, view_, release_buffer);
    view_ = nullptr;
    return t;
  }

 private:
  Py_buffer* view_;
};

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

int64_t read_count(PyObject* o, int64_t otherwise, const char* name) {
  int64_t v = otherwise;
  if (o && !read_int(o, v))
    throw raise_python(PyExc_TypeError, "frombuffer(): argument '%s' must be int, not %s", name,
                       Py_TYPE(o)->tp_name);
  return v;
}

// The number of elements that torch.frombuffer() takes, as PyTorch counts and words it.
int64_t count_in(Py_ssize_t length, int64_t count, int64_t offset, int64_t item) {
  TS_CHECK_VALUE(length > 0 && count != 0, "both buffer length (", int64_t{length}, ") and count (",
                 count, ") must not be 0");
  TS_CHECK_VALUE(offset >= 0 && offset < length, "offset (", offset,
                 " bytes) must be non-negative and no greater than buffer length (",
                 int64_t{length}, " bytes) minus 1");
  int64_t rest = length - offset;
  if (count < 0) {
    TS_CHECK_VALUE(rest % item == 0, "buffer length (", rest, " bytes) after offset (", offset,
                   " bytes) must be a multiple of element size (", item, ")");
    return rest / item;
  }
  TS_CHECK_VALUE(count <= rest / item, "requested buffer length (", count, " * ", item,
                 " bytes) after offset (", offset,
                 " bytes) must not be greater than actual buffer length (", int64_t{length},
                 " bytes)");
  return count;
}

PyObject* frombuffer(PyObject*, PyObject* const* args, Py_ssize_t n, PyObject* names) {
  return guarded([&]() -> PyObject* {
    PyObject* o[5];
    bind_arguments("frombuffer", {"buffer", "dtype", "count", "offset", "requires_grad"},
                   {args, n, names}, o);
    for (int i = 0; i < 2; ++i)
      if (!o[i])
        throw raise_python(PyExc_TypeError,
                           "frombuffer() missing 1 required positional arguments: \"%s\"",
                           i ? "dtype" : "buffer");
    DType dtype;
    if (!read_dtype(o[1], dtype))
      throw raise_python(PyExc_TypeError,
                         "frombuffer(): argument 'dtype' must be torch.dtype, not %s",
                         Py_TYPE(o[1])->tp_name);
    if (!PyObject_CheckBuffer(o[0]))
      throw raise_python(PyExc_ValueError, "object does not implement Python buffer protocol.");
    bool wants_grad = truth(o[4], false);
    TS_CHECK(!wants_grad || is_differentiable(dtype),
             "Only Tensors of floating point and complex dtype can require gradients");
    Held view(o[0], PyBUF_SIMPLE);
    if (view->readonly &&
        PyErr_WarnEx(PyExc_UserWarning,
                     "The given buffer is not writable, and PyTorch does not support non-writable "
                     "tensors: writing to this tensor would write to the buffer's memory all the "
                     "same. Copy the buffer if that is not wanted.",
                     1) < 0)
      throw PythonError{};
    int64_t offset = read_count(o[3], 0, "offset");
    auto item = static_cast<int64_t>(itemsize(dtype));
    int64_t count = count_in(view->len, read_count(o[2], -1, "count"), offset, item);
    TensorBase t = view.tensor(static_cast<char*>(view->buf) + offset, {count}, {1}, dtype);
    t.impl()->requires_grad = wants_grad;
    return wrap(std::move(t));
  });
}

PyMethodDef functions[] = {
    {"_from_buffer", from_buffer, METH_O, "A tensor over the memory of an array."},
    {"frombuffer", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(frombuffer)),
     METH_FASTCALL | METH_KEYWORDS,
     "A tensor of one dimension over the memory of an object with Python's buffer protocol."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

bool is_array(PyObject* o) {
  if (is_tensor(o)) return false;
  PyObject* mro = Py_TYPE(o)->tp_mro;
  for (Py_ssize_t i = 0; mro && i < PyTuple_GET_SIZE(mro); ++i) {
    auto* base = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(mro, i));
    if (!std::strcmp(base->tp_name, "numpy.ndarray")) return true;
  }
  return false;
}

TensorBase tensor_from_buffer(PyObject* exporter) {
  Held view(exporter, PyBUF_STRIDED_RO | PyBUF_FORMAT);
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
      throw raise_python(PyExc_ValueError,
                         "given numpy array strides not a multiple of the element byte size. Copy "
                         "the numpy array to reallocate the memory.");
    sizes.push_back(view->shape[d]);
    strides.push_back(step / view->itemsize);
  }
  return view.tensor(view->buf, sizes, strides, dtype);
}

void add_buffer_slots(std::vector<PyType_Slot>& slots) {
  slots.push_back({Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)});
  slots.push_back({Py_bf_releasebuffer, reinterpret_cast<void*>(release_view)});
}

void add_buffers(PyObject* module) {
  if (PyModule_AddFunctions(module, functions) < 0) throw PythonError{};
}

}  // namespace tessera::python
