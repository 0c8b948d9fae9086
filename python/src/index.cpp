// x[...] and x[...] = y: through the view operators, and one integer tensor through index_select.
#include "methods.h"
#include "numbers.h"
#include "slots.h"

namespace tessera::python {

namespace {

const Op& select_op() {
  static const Op& op = get_op("select");
  return op;
}

// A list of ints, an array or a 1-D integer tensor.
TensorBase read_index_tensor(PyObject* o) {
  TensorBase t = is_tensor(o) ? unwrap(o) : tensor_from_data(o, nullptr, nullptr);
  if (t.numel() == 0 && is_floating(t.dtype()))
    t = converted(t, DType::kInt64, t.device(), false, false);
  TS_CHECK_INDEX(!is_floating(t.dtype()),
                 "tensors used as indices must be long, int, byte or bool tensors");
  TS_CHECK_IMPLEMENTED(t.dtype() != DType::kBool && t.dtype() != DType::kUInt8, "indexing with a ",
                       t.dtype(), " mask (the operator `index`) is not implemented in Tessera yet");
  TS_CHECK_IMPLEMENTED(
      t.dim() == 1, "indexing with a tensor of ", t.dim(),
      " dimensions (the operator `index`) is not implemented in Tessera yet; a 1-D "
      "integer tensor is");
  return converted(t, DType::kInt64, t.device(), false, false);
}

class Indexer {
 public:
  explicit Indexer(const TensorBase& t) : view_(t) {}

  void apply(PyObject* index) {
    if (!PyTuple_Check(index)) {
      count(index);
      one(index);
      return;
    }
    Py_ssize_t n = PyTuple_GET_SIZE(index);
    for (Py_ssize_t i = 0; i < n; ++i) count(PyTuple_GET_ITEM(index, i));
    TS_CHECK_INDEX(taken_ <= view_.dim(), "too many indices for tensor of dimension ", view_.dim());
    for (Py_ssize_t i = 0; i < n; ++i) one(PyTuple_GET_ITEM(index, i));
  }

  const TensorBase& view() const { return view_; }
  bool has_index() const { return index_.defined(); }
  TensorBase result() const {
    if (!has_index()) return view_;
    TensorBase on = converted(index_, DType::kInt64, view_.device(), false, false);
    return call_op("index_select", {Value(view_), Value(index_dim_), Value(on)});
  }

 private:
  // Dimensions of the tensor that this part of the index takes.
  void count(PyObject* o) {
    if (o == Py_Ellipsis || o == Py_None) return;
    ++taken_;
  }

  void one(PyObject* o) {
    int64_t i;
    if (o == Py_None) {
      view_ = call_op("unsqueeze", {Value(view_), Value(dim_++)});
    } else if (o == Py_Ellipsis) {
      TS_CHECK_INDEX(!std::exchange(ellipsis_, true),
                     "an index can only have a single ellipsis ('...')");
      dim_ += rest();
    } else if (PySlice_Check(o)) {
      slice(o);
    } else if (PyBool_Check(o)) {
      throw raise_python(PyExc_NotImplementedError,
                         "indexing with True or False is not implemented in Tessera yet");
    } else if (read_int(o, i)) {
      TS_CHECK_INDEX(view_.dim() > 0,
                     "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or "
                     "`tensor.item<T>()` in C++ to convert a 0-dim tensor to a number");
      ++done_;
      if (index_.defined() && dim_ <= index_dim_) --index_dim_;
      view_ = call_op(select_op(), {Value(view_), Value(dim_), Value(i)});
    } else if (is_tensor(o) || is_array(o) || PyList_Check(o)) {
      TensorBase index = read_index_tensor(o);
      TS_CHECK_IMPLEMENTED(!index_.defined(),
                           "indexing with more than one tensor (the operator "
                           "`index`) is not implemented in Tessera yet");
      ++done_;
      index_ = std::move(index);
      index_dim_ = dim_++;
    } else {
      throw raise_python(PyExc_TypeError,
                         "only integers, slices (`:`), ellipsis (`...`), None and long or byte "
                         "Variables are valid indices (got %s)",
                         Py_TYPE(o)->tp_name);
    }
  }

  // Dimensions of the tensor that no part of the index names.
  int64_t rest() const { return view_.dim() - dim_ - (taken_ - done_); }

  static Value bound(PyObject* o) {
    if (o == Py_None) return Value();
    int64_t i;
    if (!read_int(o, i))
      throw raise_python(PyExc_TypeError,
                         "slice indices must be integers or None or have an __index__ method");
    return Value(i);
  }

  void slice(PyObject* o) {
    static const Op& op = get_op("slice");
    auto* s = reinterpret_cast<PySliceObject*>(o);
    Value step = s->step == Py_None ? Value(1) : bound(s->step);
    view_ = call_op(op, {Value(view_), Value(dim_++), bound(s->start), bound(s->stop), step});
    ++done_;
  }

  TensorBase view_;
  TensorBase index_;
  int64_t index_dim_ = 0;
  int64_t dim_ = 0;
  int taken_ = 0;
  int done_ = 0;
  bool ellipsis_ = false;
};

bool handled(PyObject* self, const char* name, PyObject** args, int n, PyRef& result) {
  Overriders found;
  if (!self_overrides(self, found)) return false;
  PyRef method(checked(PyObject_GetAttrString(reinterpret_cast<PyObject*>(tensor_type), name)));
  result = PyRef(checked(call_torch_function(found, method.get(), args, n, nullptr)));
  return true;
}

void assign(const TensorBase& view, PyObject* value) {
  Scalar s;
  if (!is_tensor(value) && read_number(value, s)) {
    call_op("fill_", {Value(view), Value(s)});
    return;
  }
  DType dtype = view.dtype();
  TensorBase from = is_tensor(value) ? unwrap(value) : tensor_from_data(value, &dtype, nullptr);
  // Leading dimensions of size one beyond the target's do not count.
  while (from.dim() > view.dim() && from.sizes()[0] == 1)
    from = call_op("squeeze", {Value(from), Value(0)});
  call_op("copy_", {Value(view), Value(from)});
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
      return wrap(call_op(select_op(), {Value(t), Value(0), Value(i)}));
    }
    Indexer indexer(t);
    indexer.apply(index);
    TensorBase out = indexer.result();
    if (out.is_same(t)) out = call_op("expand", {Value(t), Value(t.sizes())});
    if (out.is_same(t)) out = alias_with_history(t);
    return wrap(std::move(out));
  });
}

int tensor_setitem(PyObject* self, PyObject* index, PyObject* value) {
  try {
    if (!value) throw raise_python(PyExc_TypeError, "Tensor does not support deleting items");
    PyRef result;
    PyObject* args[] = {self, index, value};
    if (handled(self, "__setitem__", args, 3, result)) return 0;
    Indexer indexer(unwrap(self));
    indexer.apply(index);
    TS_CHECK_IMPLEMENTED(!indexer.has_index(),
                         "assigning to elements that a tensor names (the "
                         "operator `index_put_`) is not implemented in Tessera yet");
    assign(indexer.view(), value);
    return 0;
  } catch (...) {
    set_python_error();
    return -1;
  }
}

}  // namespace tessera::python
