// x.grad_fn: a node of the graph, to look at.
#pragma once
#include "py.h"
#include "tessera/autograd/node.h"

namespace tessera::python {

PyObject* wrap_node(Ref<autograd::Node> node);  // None for null
Ref<autograd::Node> unwrap_node(PyObject* o);   // raises TypeError for anything else
void add_function_node(PyObject* module);
void init_node_type(PyObject* module);

}  // namespace tessera::python
