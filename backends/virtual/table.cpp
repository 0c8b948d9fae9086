// The table of the virtual GPU, and the functions that are not about events, copies or launches.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>

#include "capture.h"
#include "copies.h"
#include "events.h"
#include "launches.h"
#include "notes.h"
#include "shown.h"
#include "state.h"
#include "visible.h"

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
    device_uuid(d.config().numbers[static_cast<size_t>(device)], out->uuid);
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

Status page_size(int device, size_t* out) {
  return on_device(device, [&](Device&) -> Status {
    *out = kDevicePage;
    return {};
  });
}
Status reserve_addresses(int device, size_t bytes, void** out) {
  return on_device(device, [&](Device& d) { return d.reserve_addresses(bytes, out); });
}
Status release_addresses(int device, void* p, size_t bytes) {
  return on_device(device, [&](Device& d) { return d.release_addresses(p, bytes); });
}
Status create_pages(int device, size_t bytes, PageHandle* out) {
  return on_device(device, [&](Device& d) { return d.create_pages(bytes, out); });
}
Status destroy_pages(int device, PageHandle pages, size_t bytes) {
  return on_device(device, [&](Device& d) { return d.destroy_pages(pages, bytes); });
}
Status map_pages(int device, void* at, PageHandle pages, size_t bytes) {
  return on_device(device, [&](Device& d) { return d.map_pages(at, pages, bytes); });
}
Status enable_pages(int device, void*, size_t) {
  return on_device(device, [&](Device&) -> Status { return {}; });
}
Status unmap_pages(int device, void* at, size_t bytes) {
  return on_device(device, [&](Device& d) { return d.unmap_pages(at, bytes); });
}

Status host_allocate(size_t bytes, void** out) {
  return guarded([&] { return state().host_allocate(bytes, out); });
}

Status host_deallocate(void* p) {
  return guarded([&] { return state().host_deallocate(p); });
}

Status priority_range(int device, int* least, int* greatest) {
  return on_device(device, [&](Device&) -> Status {
    *least = 0;  // the workers are all alike
    *greatest = -1;
    return {};
  });
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
    if (stream.capture()) return fail(Code::kFailed, kCapturing);
    if (!stream.reached(stream.submitted())) return {Code::kNotReady, nullptr};
    return {};
  });
}

Status stream_synchronize(int device, StreamHandle s) {
  return on_stream(device, s, [&](Stream& stream) -> Status {
    if (auto capture = stream.capture()) {
      capture->invalidate(kCapturing);
      return fail(Code::kFailed, kCapturing);
    }
    if (!stream.wait(stream.submitted())) return usable();
    return stream.device().take_failure();
  });
}

Status device_synchronize(int device) {
  return on_device(device, [&](Device& d) -> Status {
    for (const auto& s : d.streams())
      if (s->capture()) return fail(Code::kFailed, kCapturing);
    if (!d.drain()) return usable();
    return d.take_failure();
  });
}

// Busy while some worker has a task, over the next hundredth of a second.
Status monitor(int device, DeviceMonitor* out) {
  return on_device(device, [&](Device& d) -> Status {
    *out = {-1, -1, -1, -1, -1, -1, -1, -1};
    const Shown::Device& seen = shown(d.index());
    const int64_t begin = monotonic_ns(), before = busy_ns(seen, begin);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    const int64_t end = monotonic_ns(), spent = busy_ns(seen, end) - before;
    out->busy_percent = static_cast<int>(std::clamp<int64_t>(spent * 100 / (end - begin), 0, 100));
    return {};
  });
}

Status can_access_peer(int device, int peer, bool* out) {
  return on_device(device, [&](Device&) -> Status {
    if (peer < 0 || peer >= state().count()) return no_device(peer);
    *out = true;
    return {};
  });
}

void use_services(const HostServices*) {}  // its kernels run on the host, with the host's memory

void compile_stats(int64_t* compiled, int64_t* from_cache) { *compiled = *from_cache = 0; }

constexpr Backend table = {
    .abi = kBackendAbi,
    .name = "virtual",
    .device_count = device_count,
    .device_props = device_props,
    .memory_info = memory_info,
    .allocate = allocate,
    .deallocate = deallocate,
    .page_size = page_size,
    .reserve_addresses = reserve_addresses,
    .release_addresses = release_addresses,
    .create_pages = create_pages,
    .destroy_pages = destroy_pages,
    .map_pages = map_pages,
    .enable_pages = enable_pages,
    .unmap_pages = unmap_pages,
    .host_allocate = host_allocate,
    .host_deallocate = host_deallocate,
    .priority_range = priority_range,
    .stream_create = stream_create,
    .stream_destroy = stream_destroy,
    .stream_query = stream_query,
    .stream_synchronize = stream_synchronize,
    .device_synchronize = device_synchronize,
    .event_create = event_create,
    .event_destroy = event_destroy,
    .event_record = event_record,
    .event_record_all = event_record_all,
    .event_query = event_query,
    .event_synchronize = event_synchronize,
    .event_elapsed_ms = event_elapsed_ms,
    .stream_wait_event = stream_wait_event,
    .copy = copy,
    .copy_peer = copy_peer,
    .run_group = run_group,
    .run_reduce = run_reduce,
    .can_join = can_join,
    .run_joined = run_joined,
    .run_kernel = run_kernel,
    .has_kernel = has_kernel,
    .monitor = monitor,
    .can_access_peer = can_access_peer,
    .use_services = use_services,
    .compile_stats = compile_stats,
    .capture_begin = capture_begin,
    .capture_end = capture_end,
    .capture_state = capture_state,
    .graph_instantiate = graph_instantiate,
    .graph_launch = graph_launch,
    .graph_destroy = graph_destroy,
    .graph_raw = graph_raw,
    .profile_begin = profile_begin,
    .profile_take = profile_take,
    .profile_end = profile_end,
};

}  // namespace
}  // namespace tessera::vgpu

extern "C" __attribute__((visibility("default"))) const tessera::Backend* tessera_backend_v3() {
  return &tessera::vgpu::table;
}
