// The table of the virtual GPU, and the functions that are not about events, copies or launches.
#include <cstdio>
#include <cstring>
#include <thread>

#include "copies.h"
#include "events.h"
#include "launches.h"
#include "state.h"

namespace tessera::vgpu {

namespace {

int device_count(const char** why) {
  State& s = state();
  if (s.count() == 0 && why) *why = s.config().error.c_str();
  return s.count();
}

Status device_props(int device, DeviceProps* out) {
  return on_device(device, [&](Device& d) -> Status {
    std::memset(out, 0, sizeof *out);
    std::snprintf(out->name, sizeof out->name, "Virtual GPU");
    out->total_memory = d.total();
    out->multiprocessors = static_cast<int>(std::thread::hardware_concurrency());
    out->warp_size = 32;
    out->is_virtual = true;
    return {};
  });
}

Status memory_info(int device, int64_t* free, int64_t* total) {
  return on_device(device, [&](Device& d) -> Status {
    *total = d.total();
    *free = d.total() - d.used();
    return {};
  });
}

Status allocate(int device, size_t bytes, void** out) {
  return on_device(device, [&](Device& d) { return d.allocate(bytes, out); });
}

Status deallocate(int device, void* p) {
  return on_device(device, [&](Device& d) { return d.deallocate(p); });
}

Status host_allocate(size_t bytes, void** out) {
  return guarded([&] { return state().host_allocate(bytes, out); });
}

Status host_deallocate(void* p) {
  return guarded([&] { return state().host_deallocate(p); });
}

Status stream_create(int device, int, StreamHandle* out) {
  return on_device(device, [&](Device& d) -> Status {
    *out = d.create_stream();
    return {};
  });
}

Status stream_destroy(int device, StreamHandle s) {
  return on_device(device, [&](Device& d) -> Status {
    if (s) d.destroy_stream(static_cast<Stream*>(s));
    return {};
  });
}

Status stream_query(int device, StreamHandle s) {
  return on_stream(device, s, [&](Stream& stream) -> Status {
    if (!stream.reached(stream.submitted())) return {Code::kNotReady, nullptr};
    return {};
  });
}

Status stream_synchronize(int device, StreamHandle s) {
  return on_stream(device, s, [&](Stream& stream) -> Status {
    if (!stream.wait(stream.submitted())) return usable();
    return stream.device().take_failure();
  });
}

Status device_synchronize(int device) {
  return on_device(device, [&](Device& d) -> Status {
    if (!d.drain()) return usable();
    return d.take_failure();
  });
}

void compile_stats(int64_t* compiled, int64_t* from_cache) { *compiled = *from_cache = 0; }

constexpr Backend table = {
    .abi = kBackendAbi,
    .name = "virtual",
    .device_count = device_count,
    .device_props = device_props,
    .memory_info = memory_info,
    .allocate = allocate,
    .deallocate = deallocate,
    .host_allocate = host_allocate,
    .host_deallocate = host_deallocate,
    .stream_create = stream_create,
    .stream_destroy = stream_destroy,
    .stream_query = stream_query,
    .stream_synchronize = stream_synchronize,
    .device_synchronize = device_synchronize,
    .event_create = event_create,
    .event_destroy = event_destroy,
    .event_record = event_record,
    .event_query = event_query,
    .event_synchronize = event_synchronize,
    .event_elapsed_ms = event_elapsed_ms,
    .stream_wait_event = stream_wait_event,
    .copy = copy,
    .copy_peer = copy_peer,
    .run_group = run_group,
    .run_reduce = run_reduce,
    .run_kernel = run_kernel,
    .has_kernel = has_kernel,
    .compile_stats = compile_stats,
};

}  // namespace
}  // namespace tessera::vgpu

extern "C" __attribute__((visibility("default"))) const tessera::Backend* tessera_backend_v1() {
  return &tessera::vgpu::table;
}
