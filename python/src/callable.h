// The callables of the module: one type of function and one of method, for all operators (by their
// records) and for the few functions that are none.
#pragma once
#include "parse.h"

namespace tessera::python {

// A method that is no record. `args` excludes self.
using NativeMethod = PyObject* (*)(PyObject* self, const Arguments& args);

struct CallableObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject* name;
  const char* doc;
  const OpSet* set;     // an operator, or
  NativeMethod native;  // a method of ours
  Form form;
};

// Calls an operator by its overloads; `callable` is what __torch_function__ gets as its function.
PyObject* call_operator(const OpSet& set, Form form, PyObject* callable, PyObject* name,
                        const Arguments& call);
// Runs an overload on arguments that are read already; `self` is returned by in-place forms.
PyObject* run_operator(const OpInfo& info, Form form, Parsed& parsed, PyObject* self);
PyObject* wrap_tuple(Outputs& outputs);

// The type torch.return_types.NAME of an operator with named results, made at first use.
PyTypeObject* named_tuple_of(const Op& op);

// Adds a method that is no record to Tensor.
void add_native_method(const char* name, NativeMethod method, const char* doc);
// Gives Tensor the methods of all records, and returns a dictionary of their functions by path:
// "relu", "nn.functional.relu".
PyObject* make_operators();
// The function of this path; borrowed.
PyObject* find_function(const std::string& path);
// The method of Tensor that stands for an operator, for __torch_function__; borrowed.
PyObject* find_method(PyObject* name);

// The arguments of a native method by name, null where not given.
void bind_arguments(const char* function, std::initializer_list<const char*> names,
                    const Arguments& args, PyObject** out);

void init_callables();

}  // namespace tessera::python
