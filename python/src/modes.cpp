// State of the thread or the process: autocast, the default dtype, seeds.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "numbers.h"
#include "py.h"
#include "scaffolding.h"
#include "tessera/amp/autocast.h"
#include "tessera/amp/weight_cache.h"
#include "tessera/base/deterministic.h"
#include "tessera/call/types.h"
#include "tessera/tensor/generators.h"
#include "types.h"

namespace tessera::python {

namespace nb = nanobind;

namespace {

DeviceType device_type_of(const std::string& text) { return parse_device(text).type; }

DType dtype_from(nb::handle o) {
  DType t;
  if (!read_dtype(o.ptr(), t))
    raise(ErrorKind::kType, cat("dtype must be torch.dtype, not ", Py_TYPE(o.ptr())->tp_name));
  return t;
}

}  // namespace

void bind_modes(nb::module_& m) {
  m.def("_autocast_enabled",
        [](const std::string& type) { return amp::autocast_enabled(device_type_of(type)); });
  m.def("_autocast_dtype", [](const std::string& type) {
    return nb::steal(wrap_dtype(amp::autocast_dtype(device_type_of(type))));
  });
  m.def("_set_autocast", [](const std::string& type, bool enabled, nb::handle dtype) {
    amp::set_autocast(device_type_of(type), enabled, dtype_from(dtype));
  });
  m.def("_autocast_enter", &amp::enter_region);
  m.def("_autocast_leave", &amp::leave_region);
  m.def("_autocast_cache_enabled", &amp::cache_enabled);
  m.def("_set_autocast_cache", &amp::set_cache_enabled);
  m.def("_clear_autocast_cache", &amp::forget_casts);
  m.def("_set_deterministic", [](bool on) { set_deterministic(on); });
  m.def("get_default_dtype", [] { return nb::steal(wrap_dtype(default_dtype())); });
  m.def("set_default_dtype", [](nb::handle d) { set_default_dtype(dtype_from(d)); });
  m.def(
      "promote_types",
      [](nb::handle a, nb::handle b) {
        return nb::steal(wrap_dtype(promote(dtype_from(a), dtype_from(b))));
      },
      nb::arg("type1"), nb::arg("type2"));
  m.def(
      "can_cast",
      [](nb::handle from, nb::handle to) {
        return tessera::can_cast(dtype_from(from), dtype_from(to));
      },
      nb::arg("from_"), nb::arg("to"));
  m.def(
      "result_type",
      [](nb::handle a, nb::handle b) {
        Promotion promotion;
        for (nb::handle h : {a, b}) {
          Scalar number;
          if (is_tensor(h.ptr()))
            promotion.add(unwrap(h.ptr()));
          else if (read_number(h.ptr(), number))
            promotion.add(number);
          else
            throw nb::type_error("result_type() takes tensors and numbers");
        }
        return nb::steal(wrap_dtype(promotion.result()));
      },
      nb::arg("tensor1"), nb::arg("tensor2"));
  m.def("_manual_seed", [](uint64_t seed) { manual_seed(seed); });
  m.def("_device_seed", [](int device, uint64_t seed) {
    Mt19937Generator& g = default_generator(
        device < 0 ? Device{} : Device{DeviceType::kCUDA, static_cast<int16_t>(device)});
    GeneratorLock lock(g);
    g.manual_seed(seed);
  });
  m.def("initial_seed", [] {
    Mt19937Generator& g = default_generator(Device{});
    GeneratorLock lock(g);
    return g.seed();
  });
}

}  // namespace tessera::python
