// Devices, memory statistics, streams and events: those of the C++ face.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "scaffolding.h"
#include "tensor_object.h"
#include "tessera/driver/about.h"
#include "tessera/driver/current.h"
#include "tessera/driver/used.h"
#include "tessera/face/cuda.h"
#include "tessera/face/tensor.h"
#include "tessera/memory/allocator.h"
#include "tessera/memory/config.h"

namespace tessera::python {

namespace nb = nanobind;
using cuda::Event;
using cuda::Stream;

namespace {

int resolve(int device) {
  return resolve_device(Device{DeviceType::kCUDA, static_cast<int16_t>(device)}).index;
}

int64_t address(void* p) { return static_cast<int64_t>(reinterpret_cast<intptr_t>(p)); }

void bind_streams(nb::module_& m) {
  nb::class_<Stream>(m, "StreamBase")
      .def(nb::init<int, int>(), nb::arg("device") = -1, nb::arg("priority") = 0)
      // One whose handle is known: the current one, the default one, another library's.
      .def(
          "__init__",
          [](Stream* self, int device, int64_t handle, bool) {
            new (self) Stream(
                Stream::external(reinterpret_cast<void*>(static_cast<intptr_t>(handle)), device));
          },
          nb::arg("device"), nb::arg("handle"), nb::arg("external"))
      .def_prop_ro("_device", &Stream::device_index)
      .def_prop_ro("_handle", [](const Stream& s) { return address(s.handle()); })
      .def_prop_ro("priority", &Stream::priority)
      .def("_synchronize", &Stream::synchronize)
      .def("_query", &Stream::query)
      .def("_make_current", &cuda::set_stream)
      .def("_wait_event", &Stream::wait_event);
  nb::class_<Event>(m, "EventBase")
      .def(
          "__init__",
          [](Event* self, bool timing) { new (self) Event(cuda::EventOptions{timing}); },
          nb::arg("enable_timing") = false)
      .def("_record", [](const Event& e, const Stream& s) { e.record(s); })
      .def("_wait", [](const Event& e, const Stream& s) { e.wait(s); })
      .def_prop_ro("_handle", [](const Event& e) { return address(e.handle()); })
      .def_prop_ro("_device", &Event::device_index)
      .def("_query", &Event::query)
      .def("_synchronize", &Event::synchronize)
      .def("_elapsed_time", &Event::elapsed_time);
  m.def("_record_stream", [](nb::handle tensor, const Stream& s) {
    if (!is_tensor(tensor.ptr()))
      raise(ErrorKind::kType, "record_stream(): the first argument must be a Tensor");
    Tensor(unwrap(tensor.ptr())).record_stream(s);
  });
  // A device and a handle: Python makes the object, of the class that programs know.
  m.def("_current_stream", [](int device) {
    int d = resolve(device);
    return nb::make_tuple(d, address(current_stream(d)));
  });
  m.def("_priority_range", [] {
    cuda::PriorityRange range = cuda::priority_range();
    return nb::make_tuple(range.least, range.greatest);
  });
}

nb::dict properties(int device) {
  DeviceProps p = cuda::device_properties(device);
  nb::dict out;
  out["name"] = nb::str(p.name);
  out["major"] = p.major;
  out["minor"] = p.minor;
  out["total_memory"] = p.total_memory;
  out["multi_processor_count"] = p.multiprocessors;
  out["is_integrated"] = static_cast<int>(p.integrated);
  out["is_multi_gpu_board"] = 0;
  out["max_threads_per_block"] = p.threads_per_block;
  out["max_threads_per_multi_processor"] = p.threads_per_multiprocessor;
  out["warp_size"] = p.warp_size;
  out["regs_per_multiprocessor"] = p.registers_per_multiprocessor;
  out["shared_memory_per_block"] = p.shared_per_block;
  out["shared_memory_per_block_optin"] = p.shared_per_block_optin;
  out["shared_memory_per_multiprocessor"] = p.shared_per_multiprocessor;
  out["L2_cache_size"] = p.l2_cache;
  out["clock_rate"] = p.clock_khz;
  out["memory_clock_rate"] = p.memory_clock_khz;
  out["memory_bus_width"] = p.memory_bus_bits;
  out["pci_domain_id"] = p.pci_domain;
  out["pci_bus_id"] = p.pci_bus;
  out["pci_device_id"] = p.pci_device;
  out["uuid"] = nb::str(cuda::device_uuid(device).substr(4).c_str());  // PyTorch leaves "GPU-" out
  out["is_virtual"] = p.is_virtual;
  return out;
}

nb::dict monitor(int device) {
  DeviceMonitor m = cuda::device_monitor(device);
  nb::dict out;
  out["busy"] = m.busy_percent;
  out["memory_busy"] = m.memory_busy_percent;
  out["temperature"] = m.temperature;
  out["power_mw"] = m.power_mw;
  out["fan"] = m.fan_percent;
  out["clock_mhz"] = m.clock_mhz;
  out["memory_clock_mhz"] = m.memory_clock_mhz;
  out["performance_state"] = m.performance_state;
  return out;
}

}  // namespace

void bind_cuda(nb::module_& m) {
  bind_streams(m);
  m.def("_cuda_device_count", [] { return device_count(); });
  m.def("_cuda_why_unavailable", &cuda::why_unavailable);
  m.def("_about_backend", [](const std::string& name) { return about_backend(name.c_str()); });
  m.def("_backend_file", [](const std::string& name) { return backend_file(name.c_str()); });
  m.def("_compile_stats", [] {
    int64_t compiled = 0, from_cache = 0;
    if (const Backend* b = accelerator()) b->compile_stats(&compiled, &from_cache);
    return nb::make_tuple(compiled, from_cache);
  });
  m.def("_cuda_current_device", [] { return resolve(-1); });
  m.def("_cuda_is_initialized", &accelerator_used);
  m.def("_cuda_set_device", &cuda::set_device);
  m.def("_cuda_properties", &properties);
  m.def("_cuda_monitor", &monitor);
  m.def("_cuda_can_access_peer", &cuda::can_device_access_peer);
  m.def("_cuda_synchronize", &cuda::synchronize);
  m.def("_cuda_memory_info", [](int device) {
    cuda::MemoryInfo info = cuda::mem_get_info(device);
    return nb::make_tuple(info.free, info.total);
  });
  m.def("_cuda_memory_allocated", [](int d) { return memory::memory_allocated(resolve(d)); });
  m.def("_cuda_max_memory_allocated",
        [](int d) { return memory::max_memory_allocated(resolve(d)); });
  m.def("_cuda_memory_reserved", [](int d) { return memory::memory_reserved(resolve(d)); });
  m.def("_cuda_max_memory_reserved", [](int d) { return memory::max_memory_reserved(resolve(d)); });
  m.def("_cuda_memory_stats", [](int d) {
    nb::dict out;
    for (const memory::NamedCount& c : memory::stats(resolve(d))) out[c.name.c_str()] = c.value;
    return out;
  });
  m.def("_cuda_reset_accumulated", [](int d) { memory::reset_accumulated(resolve(d)); });
  m.def("_cuda_memory_snapshot", [](int d) { return memory::snapshot(resolve(d)); });
  m.def("_cuda_start_history", [](bool trace, int stacks, int64_t max_entries) {
    memory::start_history(trace, static_cast<memory::StackOf>(stacks),
                          static_cast<size_t>(max_entries));
  });
  m.def("_cuda_allocator_settings", [] {
    const memory::Config& c = memory::config();
    nb::dict out;
    out["expandable_segments"] = c.expandable && c.caching;
    out["garbage_collection_threshold"] = c.gc_threshold;
    out["max_split_size"] = c.max_split == SIZE_MAX ? -1 : static_cast<int64_t>(c.max_split);
    out["roundup_power2_divisions"] = static_cast<int64_t>(c.roundup_divisions);
    return out;
  });
  m.def("_cuda_usage", [](int device) {
    const memory::Usage u = memory::usage(device);
    nb::dict out;
    out["used"] = u.used;
    out["charged"] = u.charged;
    out["hidden"] = u.hidden;
    out["unstored"] = u.unstored;
    out["peak"] = u.peak;
    out["real"] = u.real();
    return out;
  });
  m.def("_cuda_fail_after",
        [](int d, int64_t n, bool permanent) { memory::fail_after(resolve(d), n, permanent); });
  m.def("_cuda_stop_history", [] { memory::stop_history(); });
  m.def("_cuda_reset_peak", [](int d) { memory::reset_peak(resolve(d)); });
  m.def("_cuda_empty_cache", &cuda::empty_cache);
  m.def("_cuda_set_memory_fraction",
        [](double fraction, int d) { memory::set_memory_fraction(resolve(d), fraction); });
}

}  // namespace tessera::python
