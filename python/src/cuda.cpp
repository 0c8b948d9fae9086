// Devices, memory statistics, streams and events. Everything that looks at a device from outside
// runs the pending work first, and says why.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "scaffolding.h"
#include "tensor_object.h"
#include "tessera/base/blocking.h"
#include "tessera/driver/about.h"
#include "tessera/driver/current.h"
#include "tessera/fuse/stream.h"
#include "tessera/memory/allocator.h"

namespace tessera::python {

namespace nb = nanobind;
using fuse::Reason;

namespace {

int resolve(int device) {
  return resolve_device(Device{DeviceType::kCUDA, static_cast<int16_t>(device)}).index;
}

DeviceProps props_of(int device) {
  DeviceProps p;
  int d = resolve(device);  // first: raises where there is no accelerator
  check(accelerator()->device_props(d, &p), "asking for device properties");
  return p;
}

// A stream of our own, or the device's default one (null handle).
struct Stream {
  int device;
  StreamHandle handle = nullptr;

  Stream(int d, int priority) : device(resolve(d)) {
    check(accelerator()->stream_create(device, priority, &handle), "creating a stream");
  }
  Stream(int d, StreamHandle h) : device(d), handle(h) {}
  Stream(const Stream&) = delete;
  // Handles are kept for the life of the process, as PyTorch's pool keeps them: memory that was
  // used on a stream refers to it for as long as it is cached.

  void synchronize() {
    fuse::run_device(device, Reason::kSynchronize);
    BlockingScope scope;
    check(accelerator()->stream_synchronize(device, handle), "synchronizing a stream");
  }
  bool query() {
    fuse::run_device(device, Reason::kEvent);
    Status s = accelerator()->stream_query(device, handle);
    if (s.code == Code::kNotReady) return false;
    check(s, "asking a stream");
    return true;
  }
};

struct Event {
  int device = -1;
  EventHandle handle = nullptr;
  bool timing;

  explicit Event(bool enable_timing) : timing(enable_timing) {}
  Event(const Event&) = delete;
  ~Event() {
    if (handle) accelerator()->event_destroy(device, handle);
  }
  void record(int d, StreamHandle stream) {
    fuse::run_device(d, Reason::kEvent);
    if (handle && d != device)
      raise(ErrorKind::kRuntime, cat("Event device ", device,
                                     " does not match recording stream's "
                                     "device ",
                                     d, "."));
    if (!handle) {
      check(accelerator()->event_create(d, timing, &handle), "creating an event");
      device = d;
    }
    check(accelerator()->event_record(d, handle, stream), "recording an event");
  }
  bool query() {
    if (!handle) return true;
    fuse::run_device(device, Reason::kEvent);
    Status s = accelerator()->event_query(device, handle);
    if (s.code == Code::kNotReady) return false;
    check(s, "asking an event");
    return true;
  }
  void synchronize() {
    if (!handle) return;
    fuse::run_device(device, Reason::kEvent);
    BlockingScope scope;
    check(accelerator()->event_synchronize(device, handle), "waiting for an event");
  }
  float elapsed_time(const Event& end) {
    TS_CHECK(handle && end.handle, "Both events must be recorded before calculating elapsed time.");
    TS_CHECK(timing && end.timing,
             "Both events must be created with argument 'enable_timing=True'.");
    float ms = 0;
    check(accelerator()->event_elapsed_ms(device, handle, end.handle, &ms), "comparing two events");
    return ms;
  }
  void make_wait(const Stream& s) {
    fuse::run_device(s.device, Reason::kEvent);
    if (handle)
      check(accelerator()->stream_wait_event(s.device, s.handle, handle), "waiting for an event");
  }
};

int64_t address(void* p) { return static_cast<int64_t>(reinterpret_cast<intptr_t>(p)); }

void bind_streams(nb::module_& m) {
  nb::class_<Stream>(m, "StreamBase")
      .def(nb::init<int, int>(), nb::arg("device") = -1, nb::arg("priority") = 0)
      .def_ro("_device", &Stream::device)
      .def_prop_ro("cuda_stream", [](const Stream& s) { return address(s.handle); })
      .def("synchronize", &Stream::synchronize)
      .def("query", &Stream::query)
      .def("_make_current",
           [](const Stream& s) {
             if (s.handle == current_stream(s.device)) return;
             fuse::run_device(s.device, Reason::kStream);
             set_current_stream(s.device, s.handle);
           })
      .def("wait_event", [](const Stream& s, Event& e) { e.make_wait(s); })
      .def("__eq__", [](const Stream& a,
                        const Stream& b) { return a.device == b.device && a.handle == b.handle; })
      .def("__hash__", [](const Stream& s) { return address(s.handle) ^ s.device; });
  nb::class_<Event>(m, "EventBase")
      .def(nb::init<bool>(), nb::arg("enable_timing") = false)
      .def("_record", [](Event& e, const Stream& s) { e.record(s.device, s.handle); })
      .def("_wait", [](Event& e, const Stream& s) { e.make_wait(s); })
      .def("query", &Event::query)
      .def("synchronize", &Event::synchronize)
      .def("elapsed_time", &Event::elapsed_time, nb::arg("end_event"));
  m.def("_record_stream", [](nb::handle tensor, const Stream& s) {
    if (!is_tensor(tensor.ptr()))
      raise(ErrorKind::kType, "record_stream(): the first argument must be a Tensor");
    const TensorBase& t = unwrap(tensor.ptr());
    TS_CHECK(t.device().is_cuda(), "record_stream(): the tensor is on ", t.device(),
             "; memory of a stream is that of a cuda device");
    // Work that touches it runs on the stream it was called for, before another one may use it.
    fuse::ensure_writable(t, Reason::kRecordStream);
    memory::record_stream(t.storage(), s.handle);
  });
  m.def("_current_stream", [](int device) {
    int d = resolve(device);
    return new Stream(d, current_stream(d));  // nanobind takes it over
  });
  m.def("_default_stream", [](int device) { return new Stream(resolve(device), StreamHandle{}); });
}

}  // namespace

void bind_cuda(nb::module_& m) {
  bind_streams(m);
  m.def("_cuda_device_count", [] { return device_count(); });
  m.def("_cuda_why_unavailable", []() -> std::string {
    const char* why = nullptr;
    const Backend* b = accelerator(&why);
    if (b && b->device_count(&why) > 0) return "";
    return why ? why : "no device was found";
  });
  m.def("_about_backend", [](const std::string& name) { return about_backend(name.c_str()); });
  m.def("_backend_file", [](const std::string& name) { return backend_file(name.c_str()); });
  m.def("_compile_stats", [] {
    int64_t compiled = 0, from_cache = 0;
    if (const Backend* b = accelerator()) b->compile_stats(&compiled, &from_cache);
    return nb::make_tuple(compiled, from_cache);
  });
  m.def("_cuda_current_device", [] { return resolve(-1); });
  m.def("_cuda_set_device", [](int device) {
    int d = resolve(device);
    if (d == current_device()) return;
    fuse::run_everything(Reason::kStream);
    set_current_device(d);
  });
  m.def("_cuda_properties", [](int device) {
    DeviceProps p = props_of(device);
    nb::dict out;
    out["name"] = nb::str(p.name);
    out["major"] = p.major;
    out["minor"] = p.minor;
    out["total_memory"] = p.total_memory;
    out["multi_processor_count"] = p.multiprocessors;
    out["warp_size"] = p.warp_size;
    out["is_virtual"] = p.is_virtual;
    return out;
  });
  m.def("_cuda_synchronize", [](int device) {
    int d = resolve(device);
    fuse::run_device(d, Reason::kSynchronize);
    BlockingScope scope;
    check(accelerator()->device_synchronize(d), "synchronizing");
  });
  m.def("_cuda_memory_info", [](int device) {
    int64_t free = 0, total = 0;
    int d = resolve(device);
    check(accelerator()->memory_info(d, &free, &total), "asking for free memory");
    return nb::make_tuple(free, total);
  });
  m.def("_cuda_memory_allocated", [](int d) { return memory::memory_allocated(resolve(d)); });
  m.def("_cuda_max_memory_allocated",
        [](int d) { return memory::max_memory_allocated(resolve(d)); });
  m.def("_cuda_memory_reserved", [](int d) { return memory::memory_reserved(resolve(d)); });
  m.def("_cuda_max_memory_reserved", [](int d) { return memory::max_memory_reserved(resolve(d)); });
  m.def("_cuda_memory_counts", [](int d) {
    return nb::make_tuple(memory::num_alloc_retries(resolve(d)), memory::num_ooms(resolve(d)));
  });
  m.def("_cuda_reset_peak", [](int d) { memory::reset_peak(resolve(d)); });
  m.def("_cuda_empty_cache", [] {
    for (int d = 0; d < device_count(); ++d) {
      fuse::run_device(d, Reason::kMemory);
      memory::empty_cache(d);
    }
  });
  m.def("_cuda_set_memory_fraction",
        [](double fraction, int d) { memory::set_memory_fraction(resolve(d), fraction); });
}

}  // namespace tessera::python
