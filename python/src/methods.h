// What tensors have in Python beside their operators, file by file.
#pragma once
#include "callable.h"

namespace tessera::python {

// Calls an operator of one result.
TensorBase call_op(const Op& op, std::initializer_list<Value> args);
// The same by name, for the few operators that the binder itself is written with.
TensorBase call_op(const char* name, std::initializer_list<Value> args);
// True or false from an argument that may be missing.
bool truth(PyObject* o, bool otherwise);

// to(), as one function: what is not given stays.
TensorBase converted(const TensorBase& t, DType dtype, Device device, bool non_blocking, bool copy,
                     MemoryFormat format = MemoryFormat::kPreserve);
// A memory_format argument; `otherwise` where it is missing or None.
MemoryFormat read_format(PyObject* o, const char* function,
                         MemoryFormat otherwise = MemoryFormat::kPreserve);
TensorBase detached(const TensorBase& t);
// On the host and up to date.
TensorBase on_host(const TensorBase& t);

// Nested sequences, numbers, buffers. `dtype` and `device` null: found out, the CPU.
TensorBase tensor_from_data(PyObject* data, const DType* dtype, const Device* device);
TensorBase tensor_from_buffer(PyObject* exporter);
bool is_array(PyObject* o);

void add_attributes();
void add_shape_methods();
void add_conversions();
void add_value_methods();
void add_autograd(PyObject* module);
void add_construction(PyObject* module);
void add_buffers(PyObject* module);
void add_storage(PyObject* module);
void add_dlpack(PyObject* module);
void add_comparison(PyObject* module);

}  // namespace tessera::python
