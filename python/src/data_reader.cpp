#include "data_reader.h"

#include <cstring>
#include <limits>

#include "numbers.h"

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
  if (PyFloat_CheckExact(o)) {
    out = default_dtype();
    return true;
  }
  if (PyLong_CheckExact(o)) {
    out = DType::kInt64;
    return true;
  }
  if (is_tensor(o)) {
    out = unwrap(o).dtype();
    return true;
  }
  const char* name = Py_TYPE(o)->tp_name;
  if (!std::strncmp(name, "numpy.", 6)) {
    size_t length = std::strcspn(name + 6, "_");
    for (const auto& known : kNumPyScalars) {
      if (std::strlen(known.name) != length || std::strncmp(name + 6, known.name, length)) continue;
      out = known.dtype;
      return true;
    }
  }
  Scalar s;
  if (!read_number(o, s)) return false;
  out = s.dtype();
  return true;
}

// Tensors in a list are numbers, as in PyTorch, whatever their shape.
bool is_sequence(PyObject* o) {
  return PyList_Check(o) || PyTuple_Check(o) ||
         (PySequence_Check(o) && !is_tensor(o) && !PyUnicode_Check(o) && !PyBytes_Check(o) &&
          !PyDict_Check(o));
}

PythonError invalid(PyObject* data) {
  return raise_python(PyExc_TypeError, "new(): invalid data type '%s'", Py_TYPE(data)->tp_name);
}

Scalar checked_integer(Scalar s, DType dtype) {
  if (!fits(s, dtype))
    throw raise_python(PyExc_RuntimeError, "value cannot be converted to type %s without overflow",
                       dtype_name(dtype));
  return Scalar(s.to_int());
}

double real_number(PyObject* o) {
  double v = PyFloat_AsDouble(o);
  if (v == -1 && PyErr_Occurred()) throw PythonError{};
  return v;
}

// A number in the form that `dtype` asks for.
Scalar value_of(PyObject* o, DType dtype) {
  if (PyFloat_CheckExact(o) && is_floating(dtype)) return Scalar(PyFloat_AS_DOUBLE(o));
  if (is_tensor(o)) {
    const TensorBase& t = unwrap(o);
    if (t.numel() != 1)
      throw raise_python(PyExc_ValueError,
                         "only one element tensors can be converted to Python scalars");
    Scalar s = item_of(t);
    return is_integral(dtype, false) ? checked_integer(s, dtype) : s;
  }
  if (is_complex(dtype)) {
    Py_complex c = PyComplex_AsCComplex(o);
    if (c.real == -1 && PyErr_Occurred()) throw PythonError{};
    return Scalar(c128(c.real, c.imag));
  }
  // Python's own words where it is no real number; an int of any size where it becomes a float.
  if (is_floating(dtype)) return Scalar(real_number(o));
  Scalar s;
  if (PyComplex_Check(o) || !read_number(o, s)) {
    if (dtype == DType::kBool) return Scalar(real_number(o) != 0);
    PyRef index(checked(PyNumber_Index(o)));  // raises TypeError where there is none
    read_number(index.get(), s);
  }
  return dtype == DType::kBool ? Scalar(!s.is_zero()) : checked_integer(s, dtype);
}

}  // namespace

DataReader::DataReader(PyObject* data) : data_(data) {
  if (PyUnicode_Check(data) || PyBytes_Check(data)) throw invalid(data);
  PyRef at = PyRef::borrow(data);
  while (is_sequence(at.get())) {
    Py_ssize_t n = PySequence_Size(at.get());
    if (n < 0) {
      // It has items and no length: no sequence.
      if (!PyErr_ExceptionMatches(PyExc_TypeError)) throw PythonError{};
      PyErr_Clear();
      break;
    }
    sizes_.push_back(n);
    if (sizes_.size() > 128)
      throw raise_python(PyExc_ValueError, "too many dimensions '%s'", Py_TYPE(at.get())->tp_name);
    if (n == 0) break;
    at = PyRef(checked(PySequence_GetItem(at.get(), 0)));
    if (PyUnicode_Check(at.get()))
      throw raise_python(PyExc_ValueError, "too many dimensions 'str'");
  }
}

template <class Work>
void DataReader::each(PyObject* data, size_t dim, Work&& work) const {
  if (!is_sequence(data)) throw raise_python(PyExc_TypeError, "not a sequence");
  PyRef items(checked(PySequence_Fast(data, "not a sequence")));
  Py_ssize_t n = PySequence_Fast_GET_SIZE(items.get());
  if (n != sizes_[dim])
    throw raise_python(PyExc_ValueError, "expected sequence of length %lld at dim %zu (got %zd)",
                       static_cast<long long>(sizes_[dim]), dim, n);
  for (Py_ssize_t i = 0; i < n; ++i) {
    // A number's own code may change the list meanwhile.
    if (PySequence_Fast_GET_SIZE(items.get()) != n)
      throw raise_python(PyExc_RuntimeError, "the data changed its length while it was read");
    PyRef item = PyRef::borrow(PySequence_Fast_GET_ITEM(items.get(), i));
    work(item.get());
  }
}

DType DataReader::infer(PyObject* data, size_t dim) const {
  DType t = default_dtype();
  if (dim == sizes_.size()) {
    if (is_sequence(data)) return DType::kBool;  // does not count; fill() refuses it
    if (PyUnicode_Check(data) || PyBytes_Check(data)) throw invalid(data);
    if (!dtype_of_number(data, t))
      throw raise_python(PyExc_RuntimeError, "Could not infer dtype of %s", Py_TYPE(data)->tp_name);
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

char* DataReader::fill(PyObject* data, size_t dim, char* at, DType dtype) const {
  if (dim < sizes_.size()) {
    each(data, dim, [&](PyObject* item) { at = fill(item, dim + 1, at, dtype); });
    return at;
  }
  store_element(at, dtype, value_of(data, dtype));
  return at + itemsize(dtype);
}

}  // namespace tessera::python
