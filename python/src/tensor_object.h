// The Python object of a tensor.
//
// Note [One object per tensor]
// TensorImpl::python points, borrowed, to the one Python object that stands for the tensor, so that
// `p.grad is p.grad`, and attributes and subclasses are found again. The object always owns a
// reference to the tensor. When Python drops its last reference to the object while C++ still holds
// the tensor, and the object has state (attributes, a subclass, weak references), the finalizer
// keeps the object: the tensor then owns a reference to it, recorded by the highest bit of the
// tensor's reference count (Note [Ownership bit] in tensor/tensor.h). The two own each other, and
//   - wrap() moves the tensor's reference to the object to Python,
//   - the unref() that leaves only the object's reference to the tensor releases the object.
// A weak reference that is called meanwhile returns one more reference to the object. Nothing has
// to notice: the object is an ordinary one, and its tensor is defined as long as it lives.
//
// A subclass with __del__ has the finalizer of this file too, which calls __del__ when the tensor
// really dies. When the garbage collector finds a cycle that holds the object, it clears weak
// references before it calls finalizers: the object survives then, its weak references do not.
#pragma once
#include "py.h"
#include "tessera/tensor/tensor.h"

namespace tessera::python {

struct TensorObject {
  PyObject_HEAD TensorBase tensor;
  PyObject* dict;
  PyObject* weakrefs;
  bool is_del_called;  // whether the __del__ of a subclass has run
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
