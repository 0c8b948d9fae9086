#include "numbers.h"

#include <cstring>

#include "tessera/base/half.h"
#include "tessera/fuse/stream.h"
#include "tessera/ops/call.h"

namespace tessera::python {

namespace {

bool is_numpy_bool(PyObject* o) {
  const char* name = Py_TYPE(o)->tp_name;
  return std::strncmp(name, "numpy.bool", 10) == 0;
}

// Returns true for NumPy's numeric scalars. Other number types, such as Decimal, are not numbers
// for operators, as in PyTorch: they may define `number * tensor` themselves.
bool is_numpy_number(PyObject* o) {
  PyObject* mro = Py_TYPE(o)->tp_mro;
  for (Py_ssize_t i = 0; mro && i < PyTuple_GET_SIZE(mro); ++i) {
    auto* base = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(mro, i));
    if (!std::strcmp(base->tp_name, "numpy.number")) return true;
  }
  return false;
}

// Returns true for NumPy's scalars and other number types, but not for arrays, which have a length.
bool is_foreign_number(PyObject* o) {
  PyTypeObject* t = Py_TYPE(o);
  return t->tp_as_number && !(t->tp_as_sequence && t->tp_as_sequence->sq_length);
}

int64_t to_int64(PyObject* o) {
  int overflow = 0;
  long long v = PyLong_AsLongLongAndOverflow(o, &overflow);
  if (overflow)
    throw raise_python(PyExc_RuntimeError,
                       "Overflow when unpacking long: %R does not fit in 64 bits", o);
  if (v == -1 && PyErr_Occurred()) throw PythonError{};
  return v;
}

template <class T>
T load(const char* at) {
  T v;
  std::memcpy(&v, at, sizeof v);
  return v;
}
template <class T>
void store(char* at, T v) {
  std::memcpy(at, &v, sizeof v);
}

}  // namespace

bool read_int(PyObject* o, int64_t& out) {
  if (PyLong_Check(o)) {
    if (PyBool_Check(o)) return false;
    out = to_int64(o);
    return true;
  }
  if (is_tensor(o)) {
    const TensorBase& t = unwrap(o);
    if (t.numel() != 1 || t.dim() != 0 || !is_integral(t.dtype(), false)) return false;
    out = item_of(t).to_int();
    return true;
  }
  if (!is_foreign_number(o) || !PyIndex_Check(o) || is_numpy_bool(o)) return false;
  PyRef index(checked(PyNumber_Index(o)));
  out = to_int64(index.get());
  return true;
}

bool read_bool(PyObject* o, bool& out) {
  if (!PyBool_Check(o) && !is_numpy_bool(o)) return false;
  out = PyObject_IsTrue(o) == 1;
  return true;
}

bool read_scalar(PyObject* o, Scalar& out) {
  if (PyBool_Check(o)) {
    out = Scalar(o == Py_True);
    return true;
  }
  if (PyLong_Check(o)) {
    out = Scalar(to_int64(o));
    return true;
  }
  if (PyFloat_Check(o)) {
    out = Scalar(PyFloat_AS_DOUBLE(o));
    return true;
  }
  if (PyComplex_Check(o)) {
    Py_complex c = PyComplex_AsCComplex(o);
    out = Scalar(c128(c.real, c.imag));
    return true;
  }
  if (is_tensor(o)) {
    const TensorBase& t = unwrap(o);
    if (t.dim() != 0 || (t.requires_grad() && is_differentiable(t.dtype()))) return false;
    out = item_of(t);
    return true;
  }
  bool flag;
  int64_t integer;
  if (is_numpy_bool(o)) {
    if (!read_bool(o, flag)) return false;
    out = Scalar(flag);
    return true;
  }
  if (!is_numpy_number(o)) return false;
  if (PyIndex_Check(o) && read_int(o, integer)) {
    out = Scalar(integer);
    return true;
  }
  if (!Py_TYPE(o)->tp_as_number->nb_float) return false;
  double v = PyFloat_AsDouble(o);
  if (v == -1 && PyErr_Occurred()) throw PythonError{};
  out = Scalar(v);
  return true;
}

Scalar load_element(const char* at, DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return Scalar(load<uint8_t>(at) != 0);
    case DType::kUInt8:
      return Scalar(int64_t{load<uint8_t>(at)});
    case DType::kInt8:
      return Scalar(int64_t{load<int8_t>(at)});
    case DType::kInt16:
      return Scalar(int64_t{load<int16_t>(at)});
    case DType::kInt32:
      return Scalar(int64_t{load<int32_t>(at)});
    case DType::kInt64:
      return Scalar(load<int64_t>(at));
    case DType::kFloat16:
      return Scalar(half_to_float(load<uint16_t>(at)));
    case DType::kBFloat16:
      return Scalar(bfloat16_to_float(load<uint16_t>(at)));
    case DType::kFloat32:
      return Scalar(load<float>(at));
    case DType::kFloat64:
      return Scalar(load<double>(at));
    case DType::kComplex64:
      return Scalar(c128(load<c64>(at)));
    case DType::kComplex128:
      return Scalar(load<c128>(at));
  }
  return Scalar();
}

void store_element(char* at, DType dtype, Scalar s) {
  switch (dtype) {
    case DType::kBool:
      return store<uint8_t>(at, !s.is_zero());
    case DType::kUInt8:
      return store(at, static_cast<uint8_t>(s.to_int()));
    case DType::kInt8:
      return store(at, static_cast<int8_t>(s.to_int()));
    case DType::kInt16:
      return store(at, static_cast<int16_t>(s.to_int()));
    case DType::kInt32:
      return store(at, static_cast<int32_t>(s.to_int()));
    case DType::kInt64:
      return store(at, s.to_int());
    case DType::kFloat16:
      return store(at, float_to_half(static_cast<float>(s.to_double())));
    case DType::kBFloat16:
      return store(at, float_to_bfloat16(static_cast<float>(s.to_double())));
    case DType::kFloat32:
      return store(at, static_cast<float>(s.to_double()));
    case DType::kFloat64:
      return store(at, s.to_double());
    case DType::kComplex64:
      return store(at, c64(s.to_complex()));
    case DType::kComplex128:
      return store(at, s.to_complex());
  }
}

Scalar item_of(const TensorBase& t) {
  if (t.numel() != 1)
    throw raise_python(PyExc_RuntimeError,
                       "a Tensor with %lld elements cannot be converted to Scalar",
                       static_cast<long long>(t.numel()));
  if (t.device().is_meta())
    throw raise_python(PyExc_RuntimeError, "Tensor.item() cannot be called on meta tensors");
  TensorBase host = t;
  if (t.device().is_cuda()) {
    host = new_empty(t.sizes(), t.dtype(), Device{});
    copy_into(host, t, false);
  }
  fuse::ensure_readable(host, fuse::Reason::kHostRead);
  return load_element(host.raw(), host.dtype());
}

PyObject* scalar_object(Scalar s, DType dtype) {
  if (dtype == DType::kBool) return PyBool_FromLong(s.to_int() != 0);
  if (is_complex(dtype)) return PyComplex_FromDoubles(s.d, s.im);
  if (is_floating(dtype)) return PyFloat_FromDouble(s.to_double());
  return PyLong_FromLongLong(s.to_int());
}

}  // namespace tessera::python
