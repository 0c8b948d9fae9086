// Batches of a loader go to pinned memory all at once, while other Python threads go on.
#include <nanobind/nanobind.h>

#include <vector>

#include "scaffolding.h"
#include "tensor_object.h"
#include "tessera/call/pin.h"

namespace tessera::python {

namespace nb = nanobind;

void bind_pin(nb::module_& m) {
  m.def("_pin_tensors", [](nb::list tensors) {
    std::vector<TensorBase> all;
    for (nb::handle t : tensors) all.push_back(unwrap_checked(t.ptr(), "pin_memory(): an element"));
    nb::list out;
    for (TensorBase& t : pinned(all)) out.append(nb::steal(wrap(std::move(t))));
    return out;
  });
}

}  // namespace tessera::python
