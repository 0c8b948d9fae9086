// The numbers of a tensor's repr; the core writes them for both faces.
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
      "_tensor_contents",
      [](nb::handle tensor, int64_t indent, int precision, double threshold, int64_t edgeitems,
         int64_t linewidth, std::optional<bool> sci_mode) {
        return contents_text(unwrap_checked(tensor.ptr(), "repr()"), indent,
                             {precision, threshold, edgeitems, linewidth, sci_mode});
      },
      nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg().none());
}

}  // namespace tessera::python
