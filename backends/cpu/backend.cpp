// The CPU's table. Everything is done when the call returns: streams and events are null handles.
#include "tessera/driver/backend.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <new>

#include "host_cache.h"
#include "joined.h"
#include "kernels.h"
#include "reduce.h"
#include "thread_pool.h"
#include "vm.h"

namespace tessera::cpu {

namespace {

using Clock = std::chrono::steady_clock;

// An event that is to be timed holds the time it was recorded.
struct Event {
  Clock::time_point time;
};

int device_count(const char** why) {
  if (why) *why = nullptr;
  return 1;
}

int64_t meminfo(const char* key) {
  FILE* f = std::fopen("/proc/meminfo", "r");
  if (!f) return -1;
  char line[256];
  int64_t kib = -1;
  size_t n = std::strlen(key);
  while (std::fgets(line, sizeof line, f))
    if (!std::strncmp(line, key, n) && std::sscanf(line + n, " %ld", &kib) == 1) break;
  std::fclose(f);
  return kib < 0 ? -1 : kib * 1024;
}

Status memory_info(int, int64_t* free, int64_t* total) {
  *total = meminfo("MemTotal:");
  *free = meminfo("MemAvailable:");
  if (*total < 0) *total = sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGE_SIZE);
  if (*free < 0) *free = sysconf(_SC_AVPHYS_PAGES) * sysconf(_SC_PAGE_SIZE);
  return {};
}

Status device_props(int, DeviceProps* out) {
  std::memset(out, 0, sizeof *out);
  std::snprintf(out->name, sizeof out->name, "CPU");
  int64_t free;
  out->multiprocessors = num_threads();
  out->warp_size = 1;
  return memory_info(0, &free, &out->total_memory);
}

Status allocate(int, size_t bytes, void** out) {
  *out = cache_allocate(bytes);
  if (!*out) return fail(Code::kOutOfMemory, "cannot allocate %zu bytes of host memory", bytes);
  return {};
}
Status deallocate(int, void* p) {
  cache_free(p);
  return {};
}
Status host_allocate(size_t bytes, void** out) { return allocate(0, bytes, out); }
Status host_deallocate(void* p) { return deallocate(0, p); }

Status stream_create(int, int, StreamHandle* out) {
  *out = nullptr;
  return {};
}
Status stream_nothing(int, StreamHandle) { return {}; }
Status device_synchronize(int) { return {}; }
Status event_create(int, bool timing, EventHandle* out) {
  *out = nullptr;
  if (!timing) return {};
  *out = new (std::nothrow) Event{Clock::now()};
  return *out ? Status{} : fail(Code::kOutOfMemory, "cannot allocate an event");
}
Status event_destroy(int, EventHandle e) {
  delete static_cast<Event*>(e);
  return {};
}
Status event_record(int, EventHandle e, StreamHandle) {
  if (e) static_cast<Event*>(e)->time = Clock::now();
  return {};
}
Status event_nothing(int, EventHandle) { return {}; }
Status event_elapsed_ms(int, EventHandle begin, EventHandle end, float* out) {
  if (!begin || !end) return fail(Code::kInvalid, "an event without timing has no elapsed time");
  std::chrono::duration<float, std::milli> d =
      static_cast<Event*>(end)->time - static_cast<Event*>(begin)->time;
  *out = d.count();
  return {};
}
Status stream_wait_event(int, StreamHandle, EventHandle) { return {}; }

void copy_bytes(void* dst, const void* src, size_t bytes) {
  constexpr int64_t kPiece = 256 * 1024;
  int64_t n = static_cast<int64_t>(bytes);
  if (n <= 2 * kPiece) {
    if (n > 0) std::memmove(dst, src, bytes);
    return;
  }
  char* d = static_cast<char*>(dst);
  const char* s = static_cast<const char*>(src);
  if (d < s + bytes && s < d + bytes) {
    std::memmove(dst, src, bytes);
    return;
  }
  parallel_for(0, n, kPiece, [=](int64_t b, int64_t e) {
    std::memcpy(d + b, s + b, static_cast<size_t>(e - b));
  });
}

Status copy(Exec, CopyKind, void* dst, const void* src, size_t bytes, bool) {
  copy_bytes(dst, src, bytes);
  return {};
}
Status copy_peer(Exec, void* dst, int, const void* src, int, size_t bytes) {
  copy_bytes(dst, src, bytes);
  return {};
}

Status run_kernel(Exec, const char* name, const KernelArgs* args) {
  KernelFn fn = find_kernel(name);
  if (!fn) return fail(Code::kUnsupported, "the CPU has no kernel named '%s'", name);
  try {
    return fn(*args);
  } catch (const std::bad_alloc&) {
    return fail(Code::kOutOfMemory, "%s(): no memory for its workspace", name);
  } catch (const std::exception& e) {
    return fail(Code::kFailed, "%s(): %s", name, e.what());
  } catch (...) {
    return fail(Code::kFailed, "%s(): unknown failure", name);
  }
}
bool has_kernel(const char* name) { return find_kernel(name) != nullptr; }

void compile_stats(int64_t* compiled, int64_t* from_cache) {
  *compiled = 0;
  *from_cache = 0;
}

Status group(Exec exec, const GroupProgram* program) { return run_group(exec, program); }
Status reduce(Exec exec, const ReduceProgram* program) { return run_reduce(exec, program); }

Status page_size(int, size_t*) { return {Code::kUnsupported, "the cpu backend maps no pages"}; }
Status monitor(int, DeviceMonitor*) {
  return {Code::kUnsupported, "the cpu backend does not watch the processor"};
}
Status priority_range(int, int* least, int* greatest) {
  *least = *greatest = 0;
  return {};
}
Status can_access_peer(int, int, bool* out) {
  *out = true;
  return {};
}
void use_services(const HostServices*) {}

constexpr Backend kBackend = {
    .abi = kBackendAbi,
    .name = "cpu",
    .device_count = device_count,
    .device_props = device_props,
    .memory_info = memory_info,
    .allocate = allocate,
    .deallocate = deallocate,
    .page_size = page_size,
    .host_allocate = host_allocate,
    .host_deallocate = host_deallocate,
    .priority_range = priority_range,
    .stream_create = stream_create,
    .stream_destroy = stream_nothing,
    .stream_query = stream_nothing,
    .stream_synchronize = stream_nothing,
    .device_synchronize = device_synchronize,
    .event_create = event_create,
    .event_destroy = event_destroy,
    .event_record = event_record,
    .event_query = event_nothing,
    .event_synchronize = event_nothing,
    .event_elapsed_ms = event_elapsed_ms,
    .stream_wait_event = stream_wait_event,
    .copy = copy,
    .copy_peer = copy_peer,
    .run_group = group,
    .run_reduce = reduce,
    .can_join = can_join,
    .run_joined = run_joined,
    .run_kernel = run_kernel,
    .has_kernel = has_kernel,
    .monitor = monitor,
    .can_access_peer = can_access_peer,
    .use_services = use_services,
    .compile_stats = compile_stats,
};

}  // namespace

}  // namespace tessera::cpu

extern "C" __attribute__((visibility("default"))) const tessera::Backend* tessera_backend_v3() {
  return &tessera::cpu::kBackend;
}
