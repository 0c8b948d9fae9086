#include "node_object.h"

#include <new>

#include "tensor_object.h"

namespace tessera::python {

namespace {

using autograd::Node;

struct NodeObject {
  PyObject_HEAD Ref<Node> node;
};
PyTypeObject* g_node_type = nullptr;

Node& node_of(PyObject* o) { return *reinterpret_cast<NodeObject*>(o)->node; }

void dealloc(PyObject* o) {
  PyTypeObject* type = Py_TYPE(o);
  reinterpret_cast<NodeObject*>(o)->node.~Ref();
  type->tp_free(o);
  Py_DECREF(type);
}
PyObject* repr(PyObject* o) {
  return PyUnicode_FromFormat("<%s object at %p>", node_of(o).name(), &node_of(o));
}
PyObject* name(PyObject* o, PyObject*) { return PyUnicode_FromString(node_of(o).name()); }
PyObject* next_functions(PyObject* o, void*) {
  return guarded([&]() -> PyObject* {
    Node& n = node_of(o);
    PyRef all(checked(PyTuple_New(static_cast<Py_ssize_t>(n.next.size()))));
    for (size_t i = 0; i < n.next.size(); ++i) {
      PyRef to(wrap_node(n.next[i].node));
      PyTuple_SET_ITEM(all.get(), static_cast<Py_ssize_t>(i),
                       checked(Py_BuildValue("(OI)", to.get(), n.next[i].output)));
    }
    return all.release();
  });
}
// AccumulateGrad's leaf.
PyObject* variable(PyObject* o, void*) {
  return guarded([&]() -> PyObject* {
    auto* leaf = dynamic_cast<autograd::AccumulateGrad*>(&node_of(o));
    if (!leaf)
      throw raise_python(PyExc_AttributeError, "'%s' object has no attribute 'variable'",
                         node_of(o).name());
    return wrap(leaf->leaf());
  });
}
Py_hash_t hash(PyObject* o) { return _Py_HashPointer(&node_of(o)); }
PyObject* compare(PyObject* a, PyObject* b, int what) {
  if ((what != Py_EQ && what != Py_NE) || Py_TYPE(b) != g_node_type) Py_RETURN_NOTIMPLEMENTED;
  return PyBool_FromLong((&node_of(a) == &node_of(b)) == (what == Py_EQ));
}

PyMethodDef methods[] = {
    {"name", name, METH_NOARGS, "The name of the gradient's function."},
    {nullptr, nullptr, 0, nullptr},
};
PyGetSetDef getset[] = {
    {"next_functions", next_functions, nullptr, nullptr, nullptr},
    {"variable", variable, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyType_Slot slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
    {Py_tp_repr, reinterpret_cast<void*>(repr)},
    {Py_tp_hash, reinterpret_cast<void*>(hash)},
    {Py_tp_richcompare, reinterpret_cast<void*>(compare)},
    {Py_tp_methods, methods},
    {Py_tp_getset, getset},
    {0, nullptr},
};
PyType_Spec spec = {"tessera.autograd.graph.Node", sizeof(NodeObject), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};

}  // namespace

PyObject* wrap_node(Ref<Node> node) {
  if (!node) Py_RETURN_NONE;
  auto* o = PyObject_New(NodeObject, g_node_type);
  if (!o) throw PythonError{};
  new (&o->node) Ref<Node>(std::move(node));
  return reinterpret_cast<PyObject*>(o);
}

Ref<Node> unwrap_node(PyObject* o) {
  if (Py_TYPE(o) != g_node_type)
    throw raise_python(PyExc_TypeError, "expected a node of a graph, not %s", Py_TYPE(o)->tp_name);
  return reinterpret_cast<NodeObject*>(o)->node;
}

void init_node_type(PyObject* module) {
  g_node_type = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&spec)));
  if (PyModule_AddObjectRef(module, "Node", reinterpret_cast<PyObject*>(g_node_type)) < 0)
    throw PythonError{};
}

}  // namespace tessera::python
