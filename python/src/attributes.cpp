// x.shape, x.dtype, x.grad ...: properties of tensors.
#include "methods.h"
#include "node_object.h"
#include "numbers.h"
#include "tessera/autograd/node.h"
#include "tessera/face/set_data.h"
#include "types.h"

namespace tessera::python {

namespace {

PyObject* boolean(bool b) { return PyBool_FromLong(b); }

// A subclass that handles calls itself handles its properties too: the function it is given is the
// property's __get__ or __set__.
bool overridden(PyObject* o, void* name, const char* access, PyObject* value, PyObject*& result) {
  Overriders overriders;
  if (is_plain_tensor(o) || !self_overrides(o, overriders)) return false;
  auto* type = reinterpret_cast<PyObject*>(tensor_type);
  PyRef property(checked(PyObject_GetAttrString(type, static_cast<const char*>(name))));
  PyRef function(checked(PyObject_GetAttrString(property.get(), access)));
  PyObject* args[] = {o, value};
  result = checked(call_torch_function(overriders, function.get(), args, value ? 2 : 1, nullptr));
  return true;
}

#define TS_GET(name, expression)                                                \
  PyObject* get_##name(PyObject* o, void* property) {                           \
    return guarded([&]() -> PyObject* {                                         \
      PyObject* handled;                                                        \
      if (overridden(o, property, "__get__", nullptr, handled)) return handled; \
      [[maybe_unused]] const TensorBase& t = unwrap(o);                         \
      return expression;                                                        \
    });                                                                         \
  }
TS_GET(shape, wrap_size(t.sizes()))
TS_GET(dtype, wrap_dtype(t.dtype()))
TS_GET(device, wrap_device(t.device().is_cpu() ? Device{} : t.device()))
TS_GET(ndim, PyLong_FromLong(t.dim()))
TS_GET(requires_grad, boolean(t.requires_grad()))
TS_GET(is_leaf, boolean(autograd::is_leaf(t)))
TS_GET(is_cuda, boolean(t.device().is_cuda()))
TS_GET(is_cpu, boolean(t.device().is_cpu()))
TS_GET(is_meta, boolean(t.device().is_meta()))
TS_GET(false, boolean(false))
TS_GET(itemsize, PyLong_FromSize_t(itemsize(t.dtype())))
TS_GET(nbytes, PyLong_FromSize_t(t.nbytes()))
TS_GET(version, [&] {
  TS_CHECK(t.impl()->inference == TensorImpl::Inference::kNone,
           "Inference tensors do not track version counter.");
  return PyLong_FromUnsignedLong(version_of(t));
}())
TS_GET(output_nr, [&] {
  autograd::Meta* m = autograd::try_meta(t);
  return PyLong_FromUnsignedLong(m ? m->grad_fn.output : 0);
}())
TS_GET(base, [&] {
  autograd::Meta* m = autograd::try_meta(t);
  return wrap(m ? m->base : TensorBase());
}())
TS_GET(grad, [&] {
  autograd::Meta* m = autograd::try_meta(t);
  return wrap(m ? m->grad_slot() : TensorBase());
}())
TS_GET(retains_grad, [&] {
  autograd::Meta* m = autograd::try_meta(t);
  return boolean(m && m->retained);
}())
TS_GET(grad_fn, wrap_node(autograd::grad_fn(t)))

TS_GET(data, [&]() -> PyObject* { return wrap(counted_apart(detached(t))); }())

// Properties that are operators of one tensor.
TensorBase reversed(const TensorBase& t) {
  Dims order;
  for (int d = t.dim() - 1; d >= 0; --d) order.push_back(d);
  return call_op("permute", {Value(t), Value(order)});
}
void check_matrix(const TensorBase& t, const char* name) {
  TS_CHECK(t.dim() != 1, "tensor.", name,
           " is only supported on matrices or batches of matrices. Got 1-D tensor.");
}
TensorBase last_exchanged(const TensorBase& t) {
  check_matrix(t, "mT");
  return t.dim() == 0 ? reversed(t) : call_op("transpose", {Value(t), Value(-2), Value(-1)});
}
TensorBase adjoint(const TensorBase& t) {
  check_matrix(t, "mH");
  return call_op("adjoint", {Value(t)});
}
TensorBase hermitian(const TensorBase& t) {
  TS_CHECK(t.dim() == 2 || t.dim() == 0,
           "tensor.H is only supported on matrices (2-D tensors). Got ", t.dim(), "-D tensor.",
           t.dim() > 2 ? " For batches of matrices, consider using tensor.mH" : "");
  return call_op("adjoint", {Value(t)});
}
TS_GET(T, wrap(reversed(t)))
TS_GET(mT, wrap(last_exchanged(t)))
TS_GET(H, wrap(hermitian(t)))
TS_GET(mH, wrap(adjoint(t)))
TS_GET(real, wrap(call_op("real", {Value(t)})))
TS_GET(imag, wrap(call_op("imag", {Value(t)})))
#undef TS_GET

template <class Work>
int guarded_set(Work&& work) noexcept {
  try {
    work();
    return 0;
  } catch (...) {
    set_python_error();
    return -1;
  }
}

// True when a subclass handled the assignment; deleting goes by __delete__.
bool set_overridden(PyObject* o, PyObject* value, void* property) {
  PyObject* result = nullptr;
  if (!overridden(o, property, value ? "__set__" : "__delete__", value, result)) return false;
  Py_XDECREF(result);
  return true;
}

int set_requires_grad(PyObject* o, PyObject* value, void* property) {
  return guarded_set([&] {
    if (set_overridden(o, value, property)) return;
    if (!value || !PyBool_Check(value))
      throw raise_python(PyExc_RuntimeError, "requires_grad must be a bool");
    autograd::set_requires_grad(unwrap(o), value == Py_True);
  });
}

int set_grad(PyObject* o, PyObject* value, void* property) {
  return guarded_set([&] {
    if (set_overridden(o, value, property)) return;
    const TensorBase& t = unwrap(o);
    if (!value || value == Py_None) {
      if (autograd::Meta* m = autograd::try_meta(t)) m->grad_slot() = TensorBase();
      return;
    }
    if (!is_tensor(value))
      throw raise_python(PyExc_TypeError,
                         "assigned grad expected to be a Tensor or None but got %s",
                         Py_TYPE(value)->tp_name);
    const TensorBase& g = unwrap(value);
    TS_CHECK(!g.is_same(t), "can't assign Variable as its own grad");
    TS_CHECK(g.dtype() == t.dtype(), "assigned grad has data of a different type: ", g.dtype(),
             " for a tensor of ", t.dtype());
    TS_CHECK(g.device() == t.device(),
             "assigned grad has data located on a different device: ", g.device(),
             " for a tensor on ", t.device());
    TS_CHECK(g.sizes() == t.sizes(), "assigned grad has data of a different size: ", g.sizes(),
             " for a tensor of ", t.sizes());
    autograd::meta_of(t).grad_slot() = g;
  });
}

// `p.data = x`: the same tensor over other memory.
int assign_data(PyObject* o, PyObject* value, void* property) {
  return guarded_set([&] {
    if (set_overridden(o, value, property)) return;
    if (!value) throw raise_python(PyExc_RuntimeError, "Deleting tensor data is not allowed");
    set_data(unwrap(o), unwrap_checked(value, "data"));
  });
}

// x.real = y: written through the view.
int write_part(const char* name, PyObject* o, PyObject* value) {
  return guarded_set([&] {
    if (!value) throw raise_python(PyExc_RuntimeError, "Deleting %s is not allowed", name);
    TensorBase part = call_op(name, {Value(unwrap(o))});
    Scalar s;
    if (!is_tensor(value) && read_number(value, s))
      call_op("fill_", {Value(part), Value(s)});
    else
      call_op("copy_", {Value(part), Value(unwrap_checked(value, name)), Value(false)});
  });
}
int set_real(PyObject* o, PyObject* value, void*) { return write_part("real", o, value); }
int set_imag(PyObject* o, PyObject* value, void*) { return write_part("imag", o, value); }

PyGetSetDef getset[] = {
    {"shape", get_shape, nullptr, "Its size in each dimension.", nullptr},
    {"dtype", get_dtype, nullptr, "The type of its elements.", nullptr},
    {"device", get_device, nullptr, "Where it lives.", nullptr},
    {"ndim", get_ndim, nullptr, "The number of its dimensions.", nullptr},
    {"requires_grad", get_requires_grad, set_requires_grad, "Is a gradient wanted?", nullptr},
    {"is_leaf", get_is_leaf, nullptr, "Is it no result of a recorded operator?", nullptr},
    {"is_cuda", get_is_cuda, nullptr, nullptr, nullptr},
    {"is_cpu", get_is_cpu, nullptr, nullptr, nullptr},
    {"is_sparse", get_false, nullptr, nullptr, nullptr},
    {"is_quantized", get_false, nullptr, nullptr, nullptr},
    {"is_meta", get_is_meta, nullptr, nullptr, nullptr},
    {"itemsize", get_itemsize, nullptr, nullptr, nullptr},
    {"nbytes", get_nbytes, nullptr, nullptr, nullptr},
    {"grad", get_grad, set_grad, "The gradient gathered by backward(), or None.", nullptr},
    {"retains_grad", get_retains_grad, nullptr, "Whether retain_grad() was called.", nullptr},
    {"grad_fn", get_grad_fn, nullptr, "What made it, for backward().", nullptr},
    {"output_nr", get_output_nr, nullptr, nullptr, nullptr},
    {"data", get_data, assign_data, "The same memory without its history.", nullptr},
    {"T", get_T, nullptr, "A view with the dimensions in reverse order.", nullptr},
    {"mT", get_mT, nullptr, "A view with the last two dimensions swapped.", nullptr},
    {"H", get_H, nullptr, "A matrix transposed and conjugated.", nullptr},
    {"mH", get_mH, nullptr, "The last two dimensions swapped, and conjugated.", nullptr},
    {"real", get_real, set_real, "A view of the real parts.", nullptr},
    {"imag", get_imag, set_imag, "A view of the imaginary parts.", nullptr},
    {"_version", get_version, nullptr, "How often it was written in place.", nullptr},
    {"_base", get_base, nullptr, "What it is a view of, or None.", nullptr},
};

}  // namespace

void add_attributes() {
  for (PyGetSetDef& def : getset) {
    def.closure = const_cast<char*>(def.name);
    PyRef property(checked(PyDescr_NewGetSet(tensor_type, &def)));
    if (PyObject_SetAttrString(reinterpret_cast<PyObject*>(tensor_type), def.name, property.get()) <
        0)
      throw PythonError{};
  }
}

}  // namespace tessera::python
