// The table.
#include <cstdlib>
#include <cstring>
#include <exception>

#include "compile.h"
#include "context.h"
#include "copy.h"
#include "graphs.h"
#include "group.h"
#include "interpret.h"
#include "kernel.h"
#include "kernels.h"
#include "monitor.h"
#include "notes.h"
#include "pages.h"
#include "reduce.h"
#include "relaunch.h"

namespace tessera::cuda {
namespace {

int device_count(const char** why) try {
  if (why) *why = nullptr;
  auto none = [&](const char* reason) {
    if (why) *why = reason;
    return 0;
  };
  const char* reason = nullptr;
  const DriverApi* cu = driver_api(&reason);
  // Said first where it is the cause: with no visible device the driver's own error is riddling.
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  bool hidden = visible && (!*visible || !std::strcmp(visible, "-1"));
  if (cu) {
    int count = 0;
    cu->cuDeviceGetCount(&count);
    if (count > 0) return count < kMaxDevices ? count : kMaxDevices;
    reason = "the NVIDIA driver found no device";
  } else if (hidden && std::strstr(reason, "NO_DEVICE") == nullptr) {
    hidden = false;
  }
  if (hidden)
    return none(*visible ? "CUDA_VISIBLE_DEVICES is -1, which hides every device"
                         : "CUDA_VISIBLE_DEVICES is set but empty, which hides every device");
  return none(reason);
} catch (...) {
  if (why) *why = "not enough memory to open the NVIDIA driver";
  return 0;
}

// Every entry begins by making its device current.
template <class F>
Status with(int ordinal, F f) try {
  Device* d = nullptr;
  TS_TRY(acquire(ordinal, &d));
  Relaxed relaxed;
  return f(*d);
} catch (const std::exception& e) {
  return fail(Code::kFailed, "CUDA backend: %s", e.what());
}

Status device_props(int device, DeviceProps* out) {
  return with(device, [&](Device& d) {
    const DriverApi& cu = driver();
    *out = {};
    TS_TRY(check(d, cu.cuDeviceGetName(out->name, sizeof out->name, d.device), "device_props"));
    auto attribute = [&](CUdevice_attribute a) {
      int v = 0;
      cu.cuDeviceGetAttribute(&v, a, d.device);
      return v;
    };
    out->major = d.arch / 10;
    out->minor = d.arch % 10;
    out->total_memory = static_cast<int64_t>(d.memory);
    out->multiprocessors = d.multiprocessors;
    out->warp_size = 32;
    out->integrated = attribute(CU_DEVICE_ATTRIBUTE_INTEGRATED) != 0;
    out->threads_per_block = attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    out->threads_per_multiprocessor = attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
    out->registers_per_multiprocessor =
        attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR);
    out->shared_per_block = attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
    out->shared_per_block_optin = d.max_shared;
    out->shared_per_multiprocessor =
        attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
    out->l2_cache = attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
    out->clock_khz = attribute(CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
    out->memory_clock_khz = attribute(CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
    out->memory_bus_bits = attribute(CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
    out->pci_domain = attribute(CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID);
    out->pci_bus = attribute(CU_DEVICE_ATTRIBUTE_PCI_BUS_ID);
    out->pci_device = attribute(CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID);
    CUuuid id{};
    cu.cuDeviceGetUuid(&id, d.device);
    std::memcpy(out->uuid, id.bytes, sizeof out->uuid);
    return ok();
  });
}

Status memory_info(int device, int64_t* free, int64_t* total) {
  return with(device, [&](Device& d) {
    size_t f = 0, t = 0;
    TS_TRY(check(d, driver().cuMemGetInfo(&f, &t), "memory_info"));
    *free = static_cast<int64_t>(f);
    *total = static_cast<int64_t>(t);
    return ok();
  });
}

Status allocate(int device, size_t bytes, void** out) {
  return with(device, [&](Device& d) {
    CUdeviceptr p = 0;
    TS_TRY(check(d, driver().cuMemAlloc(&p, bytes ? bytes : 1), "allocate"));
    *out = reinterpret_cast<void*>(p);
    return ok();
  });
}

Status deallocate(int device, void* p) {
  return with(device, [&](Device& d) {
    return check(d, driver().cuMemFree(reinterpret_cast<CUdeviceptr>(p)), "deallocate");
  });
}

Status page_size(int device, size_t* out) {
  return with(device, [&](Device& d) { return page_size_on(d, out); });
}
Status reserve_addresses(int device, size_t bytes, void** out) {
  return with(device, [&](Device& d) { return reserve_addresses_on(d, bytes, out); });
}
Status release_addresses(int device, void* p, size_t bytes) {
  return with(device, [&](Device& d) { return release_addresses_on(d, p, bytes); });
}
Status create_pages(int device, size_t bytes, PageHandle* out) {
  return with(device, [&](Device& d) { return create_pages_on(d, bytes, out); });
}
Status destroy_pages(int device, PageHandle pages, size_t) {
  return with(device, [&](Device& d) { return destroy_pages_on(d, pages); });
}
Status map_pages(int device, void* at, PageHandle pages, size_t bytes) {
  return with(device, [&](Device& d) { return map_pages_on(d, at, pages, bytes); });
}
Status enable_pages(int device, void* at, size_t bytes) {
  return with(device, [&](Device& d) { return enable_pages_on(d, at, bytes); });
}
Status unmap_pages(int device, void* at, size_t bytes) {
  return with(device, [&](Device& d) { return unmap_pages_on(d, at, bytes); });
}

// Page-locked for every device; any context will do to ask for it.
Status host_allocate(size_t bytes, void** out) {
  return with(0, [&](Device& d) {
    return check(d,
                 driver().cuMemHostAlloc(out, bytes ? bytes : 1,
                                         CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP),
                 "host_allocate");
  });
}

Status host_deallocate(void* p) {
  return with(0, [&](Device& d) { return check(d, driver().cuMemFreeHost(p), "host_deallocate"); });
}

Status priority_range(int device, int* least, int* greatest) {
  return with(device, [&](Device& d) {
    return check(d, driver().cuCtxGetStreamPriorityRange(least, greatest), "priority_range");
  });
}

Status stream_create(int device, int priority, StreamHandle* out) {
  return with(device, [&](Device& d) {
    CUstream s = nullptr;
    TS_TRY(check(d, driver().cuStreamCreateWithPriority(&s, CU_STREAM_NON_BLOCKING, priority),
                 "stream_create"));
    note_stream(d, s);
    *out = s;
    return ok();
  });
}

Status stream_destroy(int device, StreamHandle s) {
  return with(device, [&](Device& d) {
    if (!s) return ok();
    CUstream stream = static_cast<CUstream>(s);
    TS_TRY(check(d, driver().cuStreamSynchronize(stream), "stream_destroy"));
    end_stream(d, stream);
    return check(d, driver().cuStreamDestroy(stream), "stream_destroy");
  });
}

Status stream_query(int device, StreamHandle s) {
  return with(device, [&](Device& d) {
    return check(d, driver().cuStreamQuery(stream_of(d, s)), "stream_query");
  });
}

Status stream_synchronize(int device, StreamHandle s) {
  return with(device, [&](Device& d) {
    TS_TRY(check(d, driver().cuStreamSynchronize(stream_of(d, s)), "stream_synchronize"));
    return take_data_error(d);
  });
}

Status device_synchronize(int device) {
  return with(device, [&](Device& d) {
    TS_TRY(check(d, driver().cuCtxSynchronize(), "device_synchronize"));
    return take_data_error(d);
  });
}

Status event_create(int device, bool timing, EventHandle* out) {
  return with(device, [&](Device& d) {
    CUevent e = nullptr;
    unsigned flags = timing ? CU_EVENT_DEFAULT : CU_EVENT_DISABLE_TIMING;
    TS_TRY(check(d, driver().cuEventCreate(&e, flags), "event_create"));
    *out = e;
    return ok();
  });
}

Status event_destroy(int device, EventHandle e) {
  return with(device, [&](Device& d) {
    return check(d, driver().cuEventDestroy(static_cast<CUevent>(e)), "event_destroy");
  });
}

Status event_record(int device, EventHandle e, StreamHandle s) {
  return with(device, [&](Device& d) {
    return check(d, driver().cuEventRecord(static_cast<CUevent>(e), stream_of(d, s)),
                 "event_record");
  });
}

Status event_record_all(int device, EventHandle e) {
  return with(device, [&](Device& d) {
    const auto record = driver().ctx_record_event;
    if (!record) return fail(Code::kUnsupported, "the driver has no cuCtxRecordEvent");
    const CUresult r = record(d.context, static_cast<CUevent>(e));
    // Somebody else captures: that is nobody's fault.
    if (r == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)
      return fail(Code::kUnsupported, "a stream is being captured");
    return check(d, r, "event_record_all");
  });
}

Status event_query(int device, EventHandle e) {
  return with(device, [&](Device& d) {
    return check(d, driver().cuEventQuery(static_cast<CUevent>(e)), "event_query");
  });
}

Status event_synchronize(int device, EventHandle e) {
  return with(device, [&](Device& d) {
    TS_TRY(check(d, driver().cuEventSynchronize(static_cast<CUevent>(e)), "event_synchronize"));
    return take_data_error(d);
  });
}

Status event_elapsed_ms(int device, EventHandle begin, EventHandle end, float* out) {
  return with(device, [&](Device& d) {
    return check(
        d, driver().event_elapsed(out, static_cast<CUevent>(begin), static_cast<CUevent>(end)),
        "event_elapsed_ms");
  });
}

Status stream_wait_event(int device, StreamHandle s, EventHandle e) {
  return with(device, [&](Device& d) {
    return check(d, driver().cuStreamWaitEvent(stream_of(d, s), static_cast<CUevent>(e), 0),
                 "stream_wait_event");
  });
}

// The source of a host copy has always been read, or is page-locked and the caller's to keep, when
// this returns; `source_stable` allows nothing more.
Status copy(Exec exec, CopyKind kind, void* dst, const void* src, size_t bytes, bool) {
  return with(exec.device, [&](Device& d) {
    const CUstream stream = stream_of(d, exec.stream);
    static constexpr const char* names[] = {"Memcpy HtoD", "Memcpy DtoH", "Memcpy DtoD"};
    TimedCall timed(d, stream, DeviceActivity::Kind::kCopy, names[static_cast<int>(kind)],
                    static_cast<int64_t>(bytes));
    return copy_on(d, stream, kind, dst, src, bytes);
  });
}

Status copy_peer(Exec exec, void* dst, int dst_device, const void* src, int src_device,
                 size_t bytes) {
  return with(exec.device, [&](Device& d) {
    if (bytes == 0) return ok();
    Device *to = nullptr, *from = nullptr;
    TS_TRY(acquire(dst_device, &to));
    TS_TRY(acquire(src_device, &from));
    TS_TRY(check(d, driver().cuCtxSetCurrent(d.context), "copy_peer"));
    return check(d,
                 driver().cuMemcpyPeerAsync(reinterpret_cast<CUdeviceptr>(dst), to->context,
                                            reinterpret_cast<CUdeviceptr>(src), from->context,
                                            bytes, stream_of(d, exec.stream)),
                 "copy_peer");
  });
}

Status run_group(Exec exec, const GroupProgram* program) {
  return with(exec.device, [&](Device& d) {
    const CUstream stream = stream_of(d, exec.stream);
    TimedCall timed(d, stream, DeviceActivity::Kind::kKernel, "group");
    return run_group_on(d, stream, *program);
  });
}

Status run_groups(Exec exec, const GroupProgram* const* programs, int count) {
  return with(exec.device, [&](Device& d) {
    const CUstream stream = stream_of(d, exec.stream);
    TimedCall timed(d, stream, DeviceActivity::Kind::kKernel, "group");
    return run_groups_on(d, stream, programs, count);
  });
}

Status run_reduce(Exec exec, const ReduceProgram* program) {
  return with(exec.device, [&](Device& d) {
    const CUstream stream = stream_of(d, exec.stream);
    TimedCall timed(d, stream, DeviceActivity::Kind::kKernel, program->body->name);
    return run_reduce_on(d, stream, *program);
  });
}

bool can_join(const JoinedProgram* program) {
  const JoinedProgram& p = *program;
  if (!Joins::fit(p.before, p.after) || makes_too_many_kernels()) return false;
  if (p.reduce) return p.rows.n > 1 || !p.before;
  const JoinedKernel* k = find_joined_kernel(p.kernel);
  return k && k->takes(p.rows.rows, p.rows.n);
}

Status run_joined(Exec exec, const JoinedProgram* program) {
  const JoinedProgram& p = *program;
  const Joins joins(p.before, p.after);
  return with(exec.device, [&](Device& d) {
    const CUstream stream = stream_of(d, exec.stream);
    TimedCall timed(d, stream, DeviceActivity::Kind::kKernel, p.kernel);
    // Without its company it goes through memory.
    PutOff later(!is_much(d, p.rows.rows * p.rows.n) && compiles_meanwhile() &&
                 interprets(d, stream));
    TS_TRY(p.reduce ? run_reduce_on(d, stream, *p.reduce, joins)
                    : find_joined_kernel(p.kernel)->run(d, stream, *p.args, joins));
    return later.missing() ? fail(Code::kUnsupported, "its kernel is being compiled") : ok();
  });
}

Status run_reduces(Exec exec, const JoinedProgram* const* programs, int count) {
  return with(exec.device, [&](Device& d) {
    const CUstream stream = stream_of(d, exec.stream);
    TimedCall timed(d, stream, DeviceActivity::Kind::kKernel, "reductions");
    PutOff later(compiles_meanwhile() && interprets(d, stream));
    TS_TRY(run_reduces_on(d, stream, programs, count));
    return later.missing() ? fail(Code::kUnsupported, "their kernel is being compiled") : ok();
  });
}

Status run_kernel(Exec exec, const char* name, const KernelArgs* args) {
  KernelFn run = find_named_kernel(name);
  if (!run) return fail(Code::kUnsupported, "%s is not implemented for CUDA", name);
  return with(exec.device, [&](Device& d) {
    const CUstream stream = stream_of(d, exec.stream);
    TimedCall timed(d, stream, DeviceActivity::Kind::kKernel, name);
    return run(d, stream, *args);
  });
}

bool has_kernel(const char* name) { return find_named_kernel(name) != nullptr; }

Status monitor(int device, DeviceMonitor* out) {
  return with(device, [&](Device& d) { return monitor_on(d, out); });
}

Status can_access_peer(int device, int peer, bool* out) {
  return with(device, [&](Device& d) {
    CUdevice other = 0;
    int reaches = 0;
    TS_TRY(check(d, driver().cuDeviceGet(&other, peer), "can_access_peer"));
    TS_TRY(check(d, driver().cuDeviceCanAccessPeer(&reaches, d.device, other), "can_access_peer"));
    *out = reaches != 0;
    return ok();
  });
}

void use_services(const HostServices* given) { services.store(given, std::memory_order_release); }

void compile_stats(int64_t* compiled, int64_t* from_cache) {
  count_compilations(compiled, from_cache);
}

Status capture_begin(int device, StreamHandle s, CaptureMode mode) {
  return with(device, [&](Device& d) { return capture_begin_on(d, stream_of(d, s), mode); });
}
Status capture_end(int device, StreamHandle s, GraphHandle* out) {
  return with(device, [&](Device& d) { return capture_end_on(d, stream_of(d, s), out); });
}
Status capture_state(int device, StreamHandle s, CaptureState* state, uint64_t* id) {
  return with(device, [&](Device& d) { return capture_state_on(d, stream_of(d, s), state, id); });
}
Status graph_instantiate(int device, GraphHandle g) {
  return with(device, [&](Device& d) { return graph_instantiate_on(d, g); });
}
Status graph_launch(int device, GraphHandle g, StreamHandle s) {
  return with(device, [&](Device& d) { return graph_launch_on(d, g, stream_of(d, s)); });
}
Status graph_destroy(int device, GraphHandle g) {
  return with(device, [&](Device& d) { return graph_destroy_on(d, g); });
}
Status graph_raw(int device, GraphHandle g, void** graph, void** executable) {
  return with(device, [&](Device&) {
    graph_raw_of(g, graph, executable);
    return ok();
  });
}

constexpr Backend kBackend = {
    .abi = kBackendAbi,
    .name = "cuda",
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
    .run_groups = run_groups,
    .run_reduce = run_reduce,
    .can_join = can_join,
    .run_joined = run_joined,
    .run_reduces = run_reduces,
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
}  // namespace tessera::cuda

extern "C" __attribute__((visibility("default"))) const tessera::Backend* tessera_backend_v3() {
  return &tessera::cuda::kBackend;
}
