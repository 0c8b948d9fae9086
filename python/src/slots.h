// Python's operator protocol on tensors: +, @, [], <, len ... Which operator stands behind which
// symbol is said by the records.
#pragma once
#include <vector>

#include "callable.h"

namespace tessera::python {

void add_protocol_slots(std::vector<PyType_Slot>& slots);
// Python's buffer protocol.
void add_buffer_slots(std::vector<PyType_Slot>& slots);
// Reads the records' `operators` words.
void load_protocol();

// index.cpp
PyObject* tensor_getitem(PyObject* self, PyObject* index);
int tensor_setitem(PyObject* self, PyObject* index, PyObject* value);
int tensor_contains(PyObject* self, PyObject* element);
// construct.cpp
PyObject* tensor_new(PyTypeObject* type, PyObject* args, PyObject* kwargs);

}  // namespace tessera::python
