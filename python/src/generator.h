// torch.Generator: a stream of random numbers of its own.
#pragma once
#include <nanobind/nanobind.h>

#include "py.h"
#include "tessera/tensor/generators.h"

namespace tessera::python {

// False, with no error set, for an object of another type.
bool read_generator(PyObject* o, Mt19937Generator*& out);
void bind_generator(nanobind::module_& m);

}  // namespace tessera::python
