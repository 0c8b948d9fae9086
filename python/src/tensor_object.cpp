#include "tensor_object.h"

#include <structmember.h>

#include <new>
#include <vector>

#include "slots.h"
#include "tessera/autograd/node.h"

namespace tessera::python {

PyTypeObject* tensor_type = nullptr;
PyTypeObject* parameter_type = nullptr;

namespace {

TensorObject* as_object(PyObject* o) { return reinterpret_cast<TensorObject*>(o); }

// Allows the finalizer of an object that came back to life to run again: CPython calls it once, and
// remembers that in the header of the garbage collector, which has no public setter.
void forget_finalized(PyObject* o) {
#if PY_VERSION_HEX < 0x030E0000 && !defined(Py_GIL_DISABLED)
  // Two words lie before the object: the next one's address, and the previous one's with flags.
  auto* words = reinterpret_cast<uintptr_t*>(o);
  constexpr uintptr_t kFinalized = 1;
  words[-1] &= ~kFinalized;
#else
  (void)o;
#endif
}

bool worth_keeping(TensorObject* self) {
  return self->weakrefs || !(Py_TYPE(self) == tensor_type) ||
         (self->dict && PyDict_GET_SIZE(self->dict) > 0);
}

void tensor_finalize(PyObject* o) {
  TensorObject* self = as_object(o);
  TensorImpl* impl = self->tensor.impl();
  if (!impl || impl->owns_python || impl->use_count() <= 1 || !worth_keeping(self)) return;
  impl->owns_python = true;  // before the reference goes: it may then die in another thread
  Py_INCREF(o);
  if (impl->unref()) {
    // The other owner went just now.
    impl->owns_python = false;
    Py_DECREF(o);
  }
}

void tensor_dealloc(PyObject* o) {
  TensorObject* self = as_object(o);
  PyTypeObject* type = Py_TYPE(o);
  if (TensorImpl* impl = self->tensor.impl();
      impl && impl->use_count() > 1 && worth_keeping(self)) {
    if (PyObject_CallFinalizerFromDealloc(o) < 0) return;
  }
  if (PyObject_GC_IsTracked(o)) PyObject_GC_UnTrack(o);
  if (self->weakrefs) PyObject_ClearWeakRefs(o);
  if (TensorImpl* impl = self->tensor.impl()) impl->python = nullptr;
  Py_CLEAR(self->dict);
  self->tensor.~TensorBase();
  type->tp_free(o);
  Py_DECREF(type);
}

int tensor_traverse(PyObject* o, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(o));
  Py_VISIT(as_object(o)->dict);
  return 0;
}

int tensor_clear(PyObject* o) {
  Py_CLEAR(as_object(o)->dict);
  return 0;
}

// Plain tensors are not tracked by the garbage collector until they have attributes: before that
// they refer to nothing it could follow.
int tensor_setattro(PyObject* o, PyObject* name, PyObject* value) {
  int status = PyObject_GenericSetAttr(o, name, value);
  if (as_object(o)->dict && !PyObject_GC_IsTracked(o)) PyObject_GC_Track(o);
  return status;
}

PyObject* get_dict(PyObject* o, void*) {
  PyObject* dict = PyObject_GenericGetDict(o, nullptr);
  if (dict && !PyObject_GC_IsTracked(o)) PyObject_GC_Track(o);
  return dict;
}

Py_hash_t tensor_hash(PyObject* o) { return _Py_HashPointer(o); }

// Called by the tensor's destructor, in any thread.
void release_object(void* p) {
  if (!may_enter_python()) return;
  PyGILState_STATE state = PyGILState_Ensure();
  auto* self = static_cast<TensorObject*>(p);
  new (&self->tensor) TensorBase();  // it merely pointed to the dying tensor
  Py_DECREF(reinterpret_cast<PyObject*>(self));
  PyGILState_Release(state);
}

PyMemberDef members[] = {
    {"__dictoffset__", T_PYSSIZET, offsetof(TensorObject, dict), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(TensorObject, weakrefs), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

PyGetSetDef dict_getset[] = {
    {"__dict__", get_dict, PyObject_GenericSetDict, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

}  // namespace

PyObject* wrap_as(PyTypeObject* type, TensorBase t) {
  PyObject* o;
  if (type == tensor_type) {
    auto* fresh = PyObject_GC_New(TensorObject, type);
    if (!fresh) throw PythonError{};
    fresh->dict = nullptr;
    fresh->weakrefs = nullptr;
    o = reinterpret_cast<PyObject*>(fresh);
  } else {
    o = checked(type->tp_alloc(type, 0));
  }
  t.impl()->python = o;
  new (&as_object(o)->tensor) TensorBase(std::move(t));
  return o;
}

PyObject* wrap(TensorBase t) {
  TensorImpl* impl = t.impl();
  if (!impl) Py_RETURN_NONE;
  if (!impl->python) return wrap_as(tensor_type, std::move(t));
  auto* o = static_cast<PyObject*>(impl->python);
  if (!impl->owns_python) return Py_NewRef(o);
  impl->owns_python = false;
  impl->ref();
  forget_finalized(o);
  return o;  // the reference that the tensor had
}

TensorBase alias_with_history(const TensorBase& t) {
  TensorBase made = alias(t, t.sizes(), t.strides(), t.storage_offset());
  if (t.requires_grad()) {
    autograd::Edge edge = autograd::gradient_edge(t);
    autograd::set_history(made, edge.node, edge.output);
  }
  return made;
}

const TensorBase& unwrap_checked(PyObject* o, const char* what) {
  if (!is_tensor(o))
    throw raise_python(PyExc_TypeError, "%s must be Tensor, not %s", what, Py_TYPE(o)->tp_name);
  return unwrap(o);
}

void init_tensor_type(PyObject* module) {
  std::vector<PyType_Slot> slots = {
      {Py_tp_dealloc, reinterpret_cast<void*>(tensor_dealloc)},
      {Py_tp_finalize, reinterpret_cast<void*>(tensor_finalize)},
      {Py_tp_traverse, reinterpret_cast<void*>(tensor_traverse)},
      {Py_tp_clear, reinterpret_cast<void*>(tensor_clear)},
      {Py_tp_setattro, reinterpret_cast<void*>(tensor_setattro)},
      {Py_tp_hash, reinterpret_cast<void*>(tensor_hash)},
      {Py_tp_members, members},
      {Py_tp_getset, dict_getset},
      {Py_tp_doc, const_cast<char*>("A strided array of one dtype on one device.")},
  };
  add_protocol_slots(slots);
  add_buffer_slots(slots);
  slots.push_back({0, nullptr});
  PyType_Spec spec = {"tessera.Tensor", sizeof(TensorObject), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots.data()};
  tensor_type = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&spec)));
  tensor_type->tp_name = "Tensor";  // as Python's own errors name it
  release_python_object = release_object;
  if (PyModule_AddObjectRef(module, "Tensor", reinterpret_cast<PyObject*>(tensor_type)) < 0)
    throw PythonError{};
}

}  // namespace tessera::python
