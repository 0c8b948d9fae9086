#include "generator.h"

#include <nanobind/stl/string.h>

#include <cstring>
#include <random>

#include "tensor_object.h"
#include "tessera/driver/current.h"
#include "tessera/fuse/stream.h"
#include "tessera/memory/capture.h"
#include "types.h"

namespace tessera::python {

namespace nb = nanobind;

namespace {

// A generator of its own, or the default one of a device, which lives as long as the process.
struct Generator {
  Device device;
  std::unique_ptr<Mt19937Generator> own;
  Mt19937Generator* at;
};

Device device_of(nb::handle o) {
  Device d;
  if (!read_device(o.ptr(), d)) throw nb::type_error("Generator(): device is no device");
  return resolve_device(d);
}

// A replay draws from where the generator is then.
void refuse_in_capture(const Generator& g, const char* what) {
  if (!g.device.is_cuda()) return;
  memory::refuse_in_capture(g.device.index, current_stream(g.device.index), what);
}

// Of a cuda device the seed and the offset, as PyTorch's 16 bytes; of the CPU the whole generator.
nb::object get_state(Generator& g) {
  refuse_in_capture(g, "reading the state of a generator");
  const bool of_cuda = g.device.is_cuda();
  Dims size{of_cuda ? 16 : static_cast<int64_t>(Mt19937Generator::state_bytes())};
  TensorBase t = new_empty(size, DType::kUInt8, Device{});
  {
    GeneratorLock lock(*g.at);
    const uint64_t words[2] = {g.at->philox_seed(), g.at->philox_offset()};
    if (of_cuda)
      std::memcpy(t.raw(), words, sizeof words);
    else
      g.at->get_state(reinterpret_cast<uint8_t*>(t.raw()));
  }
  return nb::steal(wrap(std::move(t)));
}

void set_state(Generator& g, nb::handle state) {
  TS_CHECK_TYPE(is_tensor(state.ptr()), "expected a torch.ByteTensor, but got ",
                Py_TYPE(state.ptr())->tp_name);
  const TensorBase& t = unwrap(state.ptr());
  TS_CHECK_TYPE(t.dtype() == DType::kUInt8 && t.device().is_cpu() && t.is_contiguous(),
                "RNG state must be a torch.ByteTensor");
  fuse::ensure_readable(t, fuse::Reason::kHostRead);
  refuse_in_capture(g, "setting the state of a generator");
  if (g.device.is_cuda()) {
    TS_CHECK(t.numel() == 16, "RNG state is wrong size");
    uint64_t words[2];
    std::memcpy(words, t.raw(), sizeof words);
    GeneratorLock lock(*g.at);
    g.at->manual_seed(words[0]);
    g.at->set_philox_offset(words[1]);
    return;
  }
  GeneratorLock lock(*g.at);
  TS_CHECK(
      g.at->set_state(reinterpret_cast<const uint8_t*>(t.raw()), static_cast<size_t>(t.numel())),
      "RNG state is wrong size or damaged");
}

nb::object manual_seed_of(nb::object self, nb::int_ seed) {
  Generator& g = nb::cast<Generator&>(self);
  // Negative seeds count from 2^64 down, as PyTorch's do.
  uint64_t value = PyLong_AsUnsignedLongLongMask(seed.ptr());
  {
    GeneratorLock lock(*g.at);
    g.at->manual_seed(value);
  }
  return self;
}

uint64_t new_seed(Generator& g) {
  std::random_device device;
  // 53 bits, so that a double holds the number.
  uint64_t value = ((uint64_t{device()} << 32) | device()) & ((uint64_t{1} << 53) - 1);
  GeneratorLock lock(*g.at);
  g.at->manual_seed(value);
  return value;
}

}  // namespace

bool read_generator(PyObject* o, Mt19937Generator*& out) {
  Generator* g = nullptr;
  if (!nb::try_cast<Generator*>(nb::handle(o), g, false) || !g) return false;
  out = g->at;
  return true;
}

void bind_generator(nb::module_& m) {
  nb::class_<Generator>(m, "Generator")
      .def(
          "__init__",
          [](Generator* self, nb::object device) {
            Device d = device.is_none() ? Device{} : device_of(device);
            auto own = std::make_unique<Mt19937Generator>();
            Mt19937Generator* at = own.get();
            at->of_cuda = d.is_cuda();
            new (self) Generator{d, std::move(own), at};
          },
          nb::arg("device") = nb::none())
      .def("manual_seed", manual_seed_of)
      .def("seed", new_seed)
      .def("initial_seed",
           [](Generator& g) {
             GeneratorLock lock(*g.at);
             return g.at->seed();
           })
      .def("get_state", get_state)
      .def("set_state",
           [](nb::object self, nb::handle state) {
             set_state(nb::cast<Generator&>(self), state);
             return self;
           })
      .def("clone_state",
           [](Generator& g) {
             auto own = std::make_unique<Mt19937Generator>();
             std::vector<uint8_t> bytes(Mt19937Generator::state_bytes());
             {
               GeneratorLock lock(*g.at);
               g.at->get_state(bytes.data());
             }
             own->set_state(bytes.data(), bytes.size());
             Mt19937Generator* at = own.get();
             at->of_cuda = g.device.is_cuda();
             return Generator{g.device, std::move(own), at};
           })
      .def_prop_ro("device", [](Generator& g) { return nb::steal(wrap_device(g.device)); });
  m.def("_default_generator", [](nb::object device) {
    Device d = device_of(device);
    return Generator{d, nullptr, &default_generator(d)};
  });
}

}  // namespace tessera::python
