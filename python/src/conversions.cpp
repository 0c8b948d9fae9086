// to(), cpu(), float(), detach() ...: the same values elsewhere.
#include "methods.h"
#include "numbers.h"
#include "source.h"
#include "tessera/autograd/node.h"
#include "tessera/call/pin.h"
#include "tessera/driver/current.h"
#include "tessera/fuse/stream.h"
#include "tessera/memory/pinned.h"
#include "types.h"

namespace tessera::python {

TensorBase detached(const TensorBase& t) {
  return alias(t, t.sizes(), t.strides(), t.storage_offset());
}

TensorBase converted(const TensorBase& t, DType dtype, Device device, bool non_blocking, bool copy,
                     MemoryFormat format) {
  static const Op& to_dtype = get_op("_to_dtype");
  static const Op& to_device = get_op("_to_device");
  static const Op& clone = get_op("clone");
  bool types = dtype != t.dtype();
  bool devices = !(device == t.device());
  bool laid_out = format == MemoryFormat::kPreserve || suggested_format(t) == format;
  if (!types && !devices) {
    if (laid_out && !copy) return t;
    return call_op(clone, {Value(t), Value(format)});
  }
  TensorBase out = t;
  // The smaller of both forms crosses the bus.
  bool first = types && (!devices || itemsize(dtype) <= itemsize(t.dtype()));
  if (first) out = call_op(to_dtype, {Value(out), Value(dtype), Value(format)});
  if (devices) out = call_op(to_device, {Value(out), Value(device), Value(non_blocking)});
  if (types && !first) out = call_op(to_dtype, {Value(out), Value(dtype), Value(format)});
  if (format != MemoryFormat::kPreserve && !is_contiguous_in(out, format))
    out = call_op(clone, {Value(out), Value(format)});
  return out;
}

MemoryFormat read_format(PyObject* o, const char* function, MemoryFormat otherwise) {
  if (!o || o == Py_None) return otherwise;
  Value value;
  if (!read_memory_format(o, value))
    throw raise_python(PyExc_TypeError,
                       "%s(): argument 'memory_format' must be torch.memory_format, not %s",
                       function, Py_TYPE(o)->tp_name);
  return static_cast<MemoryFormat>(value.scalar.to_int());
}

TensorBase on_host(const TensorBase& t) {
  TensorBase host = t;
  if (t.device().is_cuda()) {
    autograd::GradMode off(false);
    host = call_op("_to_device", {Value(detached(t)), Value(Device{})});
  }
  fuse::ensure_readable(host, fuse::Reason::kHostRead);
  return host;
}

namespace {

PyObject* result(PyObject* self, const TensorBase& t) {
  return t.is_same(unwrap(self)) ? Py_NewRef(self) : wrap(t);
}

// The result of moving `self`; one that the program drops is an error nobody sees until later.
PyObject* moved(PyObject* self, const TensorBase& t, const char* method) {
  if (!(t.device() == unwrap(self).device()) && drops_result_first()) [[unlikely]] {
    std::string text =
        cat("the result of Tensor.", method, "() is not used: it returns a tensor on ", t.device(),
            " and leaves the one it is called on where it is, on ", unwrap(self).device(),
            ". Write x = x.", method, "(...)");
    if (PyErr_WarnEx(PyExc_UserWarning, text.c_str(), 1) < 0) throw PythonError{};
  }
  return result(self, t);
}

struct To {
  PyObject *device = nullptr, *dtype = nullptr, *other = nullptr;
  PyObject *non_blocking = nullptr, *copy = nullptr, *memory_format = nullptr;
};

To read_to(const Arguments& args) {
  To to;
  if (args.count == 0) {
    PyObject* o[6];
    bind_arguments("to", {"device", "dtype", "non_blocking", "copy", "other", "memory_format"},
                   args, o);
    return {o[0], o[1], o[4], o[2], o[3], o[5]};
  }
  DType dtype;
  PyObject* o[5];
  if (is_tensor(args.items[0]) || read_dtype(args.items[0], dtype)) {
    bool tensor = is_tensor(args.items[0]);
    bind_arguments("to", {tensor ? "other" : "dtype", "non_blocking", "copy", "memory_format"},
                   args, o);
    (tensor ? to.other : to.dtype) = o[0];
    to.non_blocking = o[1];
    to.copy = o[2];
    to.memory_format = o[3];
    return to;
  }
  bind_arguments("to", {"device", "dtype", "non_blocking", "copy", "memory_format"}, args, o);
  return {o[0], o[1], nullptr, o[2], o[3], o[4]};
}

PyObject* to(PyObject* self, const Arguments& args) {
  const TensorBase& t = unwrap(self);
  To asked = read_to(args);
  DType dtype = t.dtype();
  Device device = t.device();
  if (asked.other && asked.other != Py_None) {
    dtype = unwrap_checked(asked.other, "to(): argument 'other'").dtype();
    device = unwrap(asked.other).device();
  }
  if (asked.dtype && asked.dtype != Py_None && !read_dtype(asked.dtype, dtype))
    throw raise_python(PyExc_TypeError, "to(): argument 'dtype' must be torch.dtype, not %s",
                       Py_TYPE(asked.dtype)->tp_name);
  if (asked.device && asked.device != Py_None) {
    if (!read_device(asked.device, device))
      throw raise_python(
          PyExc_TypeError,
          "to() received an invalid combination of arguments - got (%s), but expected "
          "one of:\n * (torch.device device, torch.dtype dtype, bool non_blocking, "
          "bool copy)\n * (torch.dtype dtype, bool non_blocking, bool copy)\n * "
          "(Tensor other, bool non_blocking, bool copy)",
          Py_TYPE(asked.device)->tp_name);
    device = resolve_device(device);
  }
  return moved(self,
               converted(t, dtype, device, truth(asked.non_blocking, false),
                         truth(asked.copy, false), read_format(asked.memory_format, "to")),
               "to");
}

PyObject* cpu(PyObject* self, const Arguments& args) {
  PyObject* memory_format;
  bind_arguments("cpu", {"memory_format"}, args, &memory_format);
  const TensorBase& t = unwrap(self);
  return moved(self,
               converted(t, t.dtype(), Device{}, false, false, read_format(memory_format, "cpu")),
               "cpu");
}

PyObject* cuda(PyObject* self, const Arguments& args) {
  PyObject* o[3];
  bind_arguments("cuda", {"device", "non_blocking", "memory_format"}, args, o);
  const TensorBase& t = unwrap(self);
  Device device{DeviceType::kCUDA, -1};
  if (o[0] && o[0] != Py_None && !read_device(o[0], device))
    throw raise_python(PyExc_TypeError, "cuda(): argument 'device' must be torch.device, not %s",
                       Py_TYPE(o[0])->tp_name);
  if (!device.is_cuda())
    throw raise_python(PyExc_RuntimeError, "Invalid device, must be cuda device");
  return moved(self,
               converted(t, t.dtype(), resolve_device(device), truth(o[1], false), false,
                         read_format(o[2], "cuda")),
               "cuda");
}

// Which device it is pinned for makes no difference: pinned memory is every device's.
void check_pin_device(PyObject* o, const char* function) {
  Device device;
  if (!o || o == Py_None) return;
  if (!read_device(o, device))
    throw raise_python(PyExc_TypeError, "%s(): argument 'device' must be torch.device, not %s",
                       function, Py_TYPE(o)->tp_name);
  if (!device.is_cuda())
    throw raise_python(PyExc_RuntimeError, "%s(): memory is pinned for a cuda device, not for %U",
                       function, PyRef(checked(PyObject_Str(o))).get());
}

bool is_pinned(const TensorBase& t) {
  return t.device().is_cpu() && memory::is_pinned(t.storage());
}

PyObject* pin_memory(PyObject* self, const Arguments& args) {
  PyObject* device;
  bind_arguments("pin_memory", {"device"}, args, &device);
  check_pin_device(device, "pin_memory");
  return result(self, pinned(unwrap(self)));
}

PyObject* get_is_pinned(PyObject* self, const Arguments& args) {
  PyObject* device;
  bind_arguments("is_pinned", {"device"}, args, &device);
  check_pin_device(device, "is_pinned");
  return PyBool_FromLong(is_pinned(unwrap(self)));
}

template <DType dtype>
PyObject* cast(PyObject* self, const Arguments& args) {
  PyObject* memory_format;
  bind_arguments(dtype_name(dtype), {"memory_format"}, args, &memory_format);
  const TensorBase& t = unwrap(self);
  return result(self, converted(t, dtype, t.device(), false, false,
                                read_format(memory_format, dtype_name(dtype))));
}

PyObject* detach_(PyObject* self, const Arguments& args) {
  bind_arguments("detach_", {}, args, nullptr);
  const TensorBase& t = unwrap(self);
  if (autograd::Meta* m = autograd::try_meta(t)) {
    TS_CHECK(!m->base.defined(),
             "Can't detach views in-place. Use detach() instead. If you are using "
             "DistributedDataParallel (DDP) for training, and gradient_as_bucket_view is set as "
             "True, gradients are views of DDP buckets, and hence detach_() cannot be called on "
             "these gradients.");
    m->grad_fn = {};
  }
  t.impl()->requires_grad = false;
  return Py_NewRef(self);
}

}  // namespace

void add_conversions() {
  add_native_method("to", to, "The tensor with another dtype or on another device.");
  add_native_method("cpu", cpu, "The tensor in host memory.");
  add_native_method("cuda", cuda, "The tensor on a cuda device.");
  add_native_method("pin_memory", pin_memory, "A copy in memory that devices read directly.");
  add_native_method("is_pinned", get_is_pinned, "Is it in memory that devices read directly?");
  add_native_method("float", cast<DType::kFloat32>, "to(torch.float32)");
  add_native_method("double", cast<DType::kFloat64>, "to(torch.float64)");
  add_native_method("half", cast<DType::kFloat16>, "to(torch.float16)");
  add_native_method("bfloat16", cast<DType::kBFloat16>, "to(torch.bfloat16)");
  add_native_method("cfloat", cast<DType::kComplex64>, "to(torch.complex64)");
  add_native_method("cdouble", cast<DType::kComplex128>, "to(torch.complex128)");
  add_native_method("bool", cast<DType::kBool>, "to(torch.bool)");
  add_native_method("byte", cast<DType::kUInt8>, "to(torch.uint8)");
  add_native_method("char", cast<DType::kInt8>, "to(torch.int8)");
  add_native_method("short", cast<DType::kInt16>, "to(torch.int16)");
  add_native_method("int", cast<DType::kInt32>, "to(torch.int32)");
  add_native_method("long", cast<DType::kInt64>, "to(torch.int64)");
  add_native_method("detach_", detach_, "Takes the tensor out of the graph.");
}

}  // namespace tessera::python
