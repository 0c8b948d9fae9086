// item(), tolist(), as_subclass(): values and objects out of tensors.
#include <optional>

#include "methods.h"
#include "numbers.h"
#include "tessera/fuse/stream.h"
#include "tessera/profile/record.h"

namespace tessera::python {

namespace {

PyObject* item(PyObject* self, const Arguments& args) {
  bind_arguments("item", {}, args, nullptr);
  const TensorBase& t = unwrap(self);
  std::optional<profile::Scope> outer, inner;
  if (profile::recording()) [[unlikely]] {
    outer.emplace(profile::Kind::kOperator, "item");
    inner.emplace(profile::Kind::kOperator, "_local_scalar_dense");
  }
  const Scalar value = item_of(t);
  inner.reset();
  return scalar_object(value, t.dtype());
}

PyObject* nested(const TensorBase& t, const char* at, int dim) {
  if (dim == t.dim()) return scalar_object(load_element(at, t.dtype()), t.dtype());
  size_t d = static_cast<size_t>(dim);
  int64_t n = t.sizes()[d];
  int64_t step = t.strides()[d] * static_cast<int64_t>(itemsize(t.dtype()));
  PyRef list(checked(PyList_New(static_cast<Py_ssize_t>(n))));
  for (int64_t i = 0; i < n; ++i, at += step)
    PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), checked(nested(t, at, dim + 1)));
  return list.release();
}

PyObject* tolist(PyObject* self, const Arguments& args) {
  bind_arguments("tolist", {}, args, nullptr);
  TensorBase host = on_host(unwrap(self));
  return nested(host, host.raw(), 0);
}

PyTypeObject* read_subclass(PyObject* o, const char* function) {
  if (!o || !PyType_Check(o) || !PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(o), tensor_type))
    throw raise_python(PyExc_TypeError, "%s(): cls must be a subclass of Tensor", function);
  return reinterpret_cast<PyTypeObject*>(o);
}

PyObject* as_subclass(PyObject* self, const Arguments& args) {
  PyObject* cls;
  bind_arguments("as_subclass", {"cls"}, args, &cls);
  return wrap_as(read_subclass(cls, "as_subclass"), alias_with_history(unwrap(self)));
}

}  // namespace

PyObject* make_subclass(PyObject*, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    static const char* names[] = {"cls", "data", "require_grad", nullptr};
    PyObject *cls, *data;
    int require_grad = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|p:_make_subclass", const_cast<char**>(names),
                                     &cls, &data, &require_grad))
      throw PythonError{};
    PyTypeObject* type = read_subclass(cls, "_make_subclass");
    TensorBase t = detached(unwrap_checked(data, "_make_subclass(): argument 'data'"));
    TS_CHECK(!require_grad || is_differentiable(t.dtype()),
             "Only Tensors of floating point and complex dtype can require gradients");
    TS_CHECK(
        !require_grad || t.impl()->inference == TensorImpl::Inference::kNone || inference_mode(),
        "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.");
    t.impl()->requires_grad = require_grad;
    return wrap_as(type, std::move(t));
  });
}

void add_value_methods() {
  add_native_method("item", item, "The value of a tensor of one element, as a Python number.");
  add_native_method("tolist", tolist, "The values as nested lists.");
  add_native_method("as_subclass", as_subclass, "The same tensor as an object of another class.");
}

}  // namespace tessera::python
