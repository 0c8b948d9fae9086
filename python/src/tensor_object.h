// The Python object of a tensor.
//
// Note [One object per tensor]
// TensorImpl::python points, borrowed, to the one Python object that stands for the tensor, so that
// `p.grad is p.grad`, and attributes and subclasses are found again. Normally the object owns the
// tensor. When Python's last reference goes while C++ still holds the tensor, and the object has
// something to lose (attributes, a subclass, weak references), the finalizer turns ownership round:
// the tensor owns the object (owns_python), and the object merely points to the tensor. wrap()
// turns it back when the tensor next comes to Python; the tensor's destructor drops an object that
// it still owns.
#pragma once
#include "py.h"
#include "tessera/tensor/tensor.h"

namespace tessera::python {

struct TensorObject {
  PyObject_HEAD TensorBase tensor;
  PyObject* dict;
  PyObject* weakrefs;
};

extern PyTypeObject* tensor_type;
// nn.Parameter, once Python has made it; null before.
extern PyTypeObject* parameter_type;

// The types that never override __torch_function__: what nearly every argument is.
inline bool is_plain_tensor(PyObject* o) {
  PyTypeObject* t = Py_TYPE(o);
  return t == tensor_type || t == parameter_type;
}
inline bool is_tensor(PyObject* o) {
  return is_plain_tensor(o) || PyType_IsSubtype(Py_TYPE(o), tensor_type);
}
inline const TensorBase& unwrap(PyObject* o) { return reinterpret_cast<TensorObject*>(o)->tensor; }
// Raises TypeError, naming what the caller wanted it for.
const TensorBase& unwrap_checked(PyObject* o, const char* what);

// The tensor's object, new or known; None for an undefined tensor.
PyObject* wrap(TensorBase t);
// A new object of `type` (Tensor or a subclass) for a tensor that has none yet.
PyObject* wrap_as(PyTypeObject* type, TensorBase t);
// A tensor of its own over the same memory and history.
TensorBase alias_with_history(const TensorBase& t);

void init_tensor_type(PyObject* module);

}  // namespace tessera::python
