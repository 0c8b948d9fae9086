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

// The name and, in the base class, the wrapper of tensor_finalize.
PyObject* del_name = nullptr;
PyObject* base_del = nullptr;

// Calls the __del__ of a subclass, once.
void call_del(PyObject* o) {
  TensorObject* self = as_object(o);
  if (self->is_del_called || Py_TYPE(o) == tensor_type) return;
  PyObject* found = _PyType_Lookup(Py_TYPE(o), del_name);  // borrowed
  if (!found || found == base_del) return;
  self->is_del_called = true;
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyObject* method = PyObject_GetAttr(o, del_name);
  PyObject* result = method ? PyObject_CallNoArgs(method) : nullptr;
  if (!result) PyErr_WriteUnraisable(method ? method : o);
  Py_XDECREF(result);
  Py_XDECREF(method);
  PyErr_Restore(type, value, trace);
}

void tensor_finalize(PyObject* o) {
  TensorObject* self = as_object(o);
  if (TensorImpl* impl = self->tensor.impl(); impl && worth_keeping(self)) {
    Py_INCREF(o);  // before the bit is set: another thread may release it from then on
    if (impl->own_python()) return;
    Py_DECREF(o);
  }
  call_del(o);
}

// Python gives a class with __del__ a finalizer of its own.
void install_finalizer(PyTypeObject* type) {
  if (type->tp_finalize != tensor_finalize) type->tp_finalize = tensor_finalize;
}

void tensor_dealloc(PyObject* o) {
  TensorObject* self = as_object(o);
  PyTypeObject* type = Py_TYPE(o);
  // The finalizer of a subclass has run: its deallocator calls this one.
  if (type == tensor_type) {
    TensorImpl* impl = self->tensor.impl();
    if (impl && impl->use_count() > 1 && worth_keeping(self) &&
        PyObject_CallFinalizerFromDealloc(o) < 0)
      return;
  }
  if (PyObject_GC_IsTracked(o)) PyObject_GC_UnTrack(o);
  // Callbacks of weak references may ask for the tensor again: it gets another object.
  if (TensorImpl* impl = self->tensor.impl()) impl->python = nullptr;
  if (self->weakrefs) PyObject_ClearWeakRefs(o);
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
  if (Py_TYPE(o) != tensor_type) install_finalizer(Py_TYPE(o));  // __class__ may have been set
  if (as_object(o)->dict && !PyObject_GC_IsTracked(o)) PyObject_GC_Track(o);
  return status;
}

PyObject* get_dict(PyObject* o, void*) {
  PyObject* dict = PyObject_GenericGetDict(o, nullptr);
  if (dict && !PyObject_GC_IsTracked(o)) PyObject_GC_Track(o);
  return dict;
}

Py_hash_t tensor_hash(PyObject* o) { return _Py_HashPointer(o); }

// Called by TensorImpl::unref(), in any thread. When Python can no longer be entered, the object
// and its tensor stay until the process exits.
void release_object(void* p) {
  if (!may_enter_python()) return;
  PyGILState_STATE state = PyGILState_Ensure();
  auto* o = static_cast<PyObject*>(p);
  forget_finalized(o);
  Py_DECREF(o);
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
    fresh->is_del_called = false;
    o = reinterpret_cast<PyObject*>(fresh);
  } else {
    install_finalizer(type);
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
  if (!impl->disown_python()) return Py_NewRef(o);
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
  del_name = checked(PyUnicode_InternFromString("__del__"));
  base_del = checked(PyObject_GetAttr(reinterpret_cast<PyObject*>(tensor_type), del_name));
  if (PyModule_AddObjectRef(module, "Tensor", reinterpret_cast<PyObject*>(tensor_type)) < 0)
    throw PythonError{};
}

}  // namespace tessera::python
