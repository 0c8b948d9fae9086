// A tensor's repr; the core writes it for both faces.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "scaffolding.h"
#include "tensor_object.h"
#include "tessera/face/print.h"

namespace tessera::python {

namespace nb = nanobind;

void bind_printing(nb::module_& m) {
  m.def(
      "_tensor_text",
      [](nb::handle tensor, const std::string& name, std::optional<std::string> contents,
         int precision, double threshold, int64_t edgeitems, int64_t linewidth,
         std::optional<bool> sci_mode) {
        return to_text(unwrap_checked(tensor.ptr(), "repr()"),
                       {precision, threshold, edgeitems, linewidth, sci_mode}, name, contents);
      },
      nb::arg(), nb::arg(), nb::arg().none(), nb::arg(), nb::arg(), nb::arg(), nb::arg(),
      nb::arg().none());
}

}  // namespace tessera::python
