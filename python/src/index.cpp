// x[...] and x[...] = y: Python's objects as parts of an index, which face/indexing applies.
#include "tessera/face/indexing.h"

#include "methods.h"
#include "numbers.h"
#include "slots.h"
#include "tessera/ops/index/layout.h"

namespace tessera::python {

namespace {

const Op& select_op() {
  static const Op& op = get_op("select");
  return op;
}

PythonError invalid_index(PyObject* o) {
  return raise_python(PyExc_IndexError,
                      "only integers, slices (`:`), ellipsis (`...`), None and long or byte "
                      "Variables are valid indices (got %s)",
                      Py_TYPE(o)->tp_name);
}

// A list or an array: a mask if its elements are booleans, else positions.
TensorBase tensor_of(PyObject* o) {
  TensorBase t = tensor_from_data(o, nullptr, nullptr);
  if (t.dtype() == DType::kBool || t.dtype() == DType::kUInt8) return t;
  return converted(t, DType::kInt64, t.device(), false, false);
}

std::optional<int64_t> bound(PyObject* o) {
  if (o == Py_None) return std::nullopt;
  int64_t i;
  if (!read_int(o, i))
    throw raise_python(PyExc_TypeError,
                       "slice indices must be integers or None or have an __index__ method");
  return i;
}

TensorIndex part_of(PyObject* o) {
  if (o == Py_None) return None;
  if (o == Py_Ellipsis) return Ellipsis;
  bool truth;
  int64_t i;
  if (PySlice_Check(o)) {
    auto* s = reinterpret_cast<PySliceObject*>(o);
    Slice slice;
    slice.start = bound(s->start);
    slice.stop = bound(s->stop);
    if (s->step != Py_None) slice.step = *bound(s->step);
    TS_CHECK_VALUE(slice.step != 0, "slice step cannot be zero");
    return slice;
  }
  if (is_tensor(o)) return unwrap(o);
  if (read_bool(o, truth)) return truth;
  if (read_int(o, i)) return i;
  if (PyUnicode_Check(o)) throw raise_python(PyExc_TypeError, "new(): invalid data type 'str'");
  if (is_array(o) || PySequence_Check(o)) return tensor_of(o);
  throw invalid_index(o);
}

// A list that holds slices, tensors, lists and the like stands for the tuple of them.
bool stands_for_tuple(PyObject* o) {
  if (!PyList_Check(o) || PyList_GET_SIZE(o) >= 32) return false;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(o); ++i) {
    PyObject* item = PyList_GET_ITEM(o, i);
    bool part = item == Py_None || item == Py_Ellipsis || PySlice_Check(item) || is_tensor(item) ||
                is_array(item) || PyList_Check(item) || PyTuple_Check(item);
    if (!part) continue;
    int failed = PyErr_WarnEx(
        PyExc_UserWarning,
        "Using a non-tuple sequence for multidimensional indexing is deprecated and will be "
        "changed "
        "in pytorch 2.9; use x[tuple(seq)] instead of x[seq]. In pytorch 2.9 this will be "
        "interpreted as tensor index, x[torch.tensor(seq)], which will result either in an error "
        "or "
        "a different result",
        1);
    if (failed) throw PythonError{};
    return true;
  }
  return false;
}

std::vector<TensorIndex> parts_of(PyObject* index) {
  std::vector<TensorIndex> parts;
  if (!PyTuple_Check(index) && !stands_for_tuple(index)) {
    parts.push_back(part_of(index));
    return parts;
  }
  Py_ssize_t n = PySequence_Fast_GET_SIZE(index);
  parts.reserve(static_cast<size_t>(n));
  for (Py_ssize_t i = 0; i < n; ++i) parts.push_back(part_of(PySequence_Fast_GET_ITEM(index, i)));
  return parts;
}

bool handled(PyObject* self, const char* name, PyObject** args, int n, PyRef& result) {
  Overriders found;
  if (!self_overrides(self, found)) return false;
  PyRef method(checked(PyObject_GetAttrString(reinterpret_cast<PyObject*>(tensor_type), name)));
  result = PyRef(checked(call_torch_function(found, method.get(), args, n, nullptr)));
  return true;
}

void assign_object(const TensorBase& self, std::span<const TensorIndex> parts, PyObject* value) {
  Scalar s;
  if (!is_tensor(value) && read_number(value, s)) {
    check_fits(s, self.dtype());
    Indexed at = apply_index(self, parts);
    if (at.tensors.empty()) {
      call_op("fill_", {Value(at.view), Value(s)});
      return;
    }
    static const Op& put = get_op("index_put");
    TensorBase number = number_like(s, self);
    Value args[] = {Value(at.view), Value(std::span<const TensorBase>(at.tensors)), Value(number),
                    Value(false)};
    dispatch_inplace(put, args);
    return;
  }
  if (is_tensor(value)) return set_index(self, parts, unwrap(value));
  if (!PySequence_Check(value)) {
    PyRef tensor(wrap(self));
    PyRef type(checked(PyObject_CallMethod(tensor.get(), "type", nullptr)));
    throw raise_python(PyExc_TypeError, "can't assign a %s to a %U", Py_TYPE(value)->tp_name,
                       type.get());
  }
  DType dtype = self.dtype();
  set_index(self, parts, tensor_from_data(value, &dtype, nullptr));
}

}  // namespace

PyObject* tensor_getitem(PyObject* self, PyObject* index) {
  return guarded([&]() -> PyObject* {
    PyRef result;
    PyObject* args[] = {self, index};
    if (handled(self, "__getitem__", args, 2, result)) return result.release();
    const TensorBase& t = unwrap(self);
    if (PyLong_CheckExact(index) && t.dim() > 0) {
      int64_t i;
      read_int(index, i);
      const int64_t size = t.sizes()[0];
      TS_CHECK_INDEX(i >= -size && i < size, "index ", i,
                     " is out of bounds for dimension 0 with size ", size);
      return wrap(call_op(select_op(), {Value(t), Value(0), Value(i)}));
    }
    return wrap(get_index(t, parts_of(index)));
  });
}

int tensor_setitem(PyObject* self, PyObject* index, PyObject* value) {
  try {
    if (!value) throw raise_python(PyExc_TypeError, "Tensor does not support deleting items");
    PyRef result;
    PyObject* args[] = {self, index, value};
    if (handled(self, "__setitem__", args, 3, result)) return 0;
    assign_object(unwrap(self), parts_of(index), value);
    return 0;
  } catch (...) {
    set_python_error();
    return -1;
  }
}

int tensor_contains(PyObject* self, PyObject* element) {
  try {
    PyRef result;
    PyObject* args[] = {self, element};
    if (handled(self, "__contains__", args, 2, result)) return PyObject_IsTrue(result.get());
    Scalar s;
    Value other;
    if (is_tensor(element))
      other = Value(unwrap(element));
    else if (read_number(element, s))
      other = Value(s);
    else
      throw raise_python(PyExc_RuntimeError,
                         "Tensor.__contains__ only supports Tensor or scalar, but you passed in a "
                         "%R.",
                         reinterpret_cast<PyObject*>(Py_TYPE(element)));
    TensorBase same = call_op("eq", {Value(unwrap(self)), other});
    return call_op("_flat_nonzero", {Value(same)}).numel() > 0;
  } catch (...) {
    set_python_error();
    return -1;
  }
}

}  // namespace tessera::python
