// The accelerator contract: one versioned table of functions per backend, loaded by name with
// dlopen. Functions return a status and never throw; devices are numbered within the backend.
#pragma once
#include <cstddef>
#include <cstdint>

#include "tessera/driver/program.h"

namespace tessera {

inline constexpr uint32_t kBackendAbi = 5;

enum class Code : int32_t {
  kOk = 0,
  kOutOfMemory = 1,
  kNotReady = 2,     // a query: the work is still running
  kUnsupported = 3,  // this backend has no such kernel, dtype or feature
  kInvalid = 4,      // an index in the data was out of range: IndexError, the message as it is
  kDeviceFault = 5,  // sticky: the device cannot be used any more
  kFailed = 6,
  kRefused = 7,  // the data was wrong otherwise: RuntimeError, the message as it is
};

// `message` points into storage of the calling thread's last failure, valid until its next call.
struct Status {
  Code code = Code::kOk;
  const char* message = nullptr;
  bool ok() const { return code == Code::kOk; }
};

// Streams and events are opaque to the core. A null stream is the device's default stream.
using StreamHandle = void*;
using EventHandle = void*;

using PageHandle = uint64_t;  // physical memory that can be mapped; opaque
using GraphHandle = void*;    // captured work

// Which calls the device's own driver refuses while a stream is captured: unsafe ones of every
// thread, of the capturing thread, or none. The core refuses what a capture cannot hold in each.
enum class CaptureMode : uint8_t { kGlobal, kThreadLocal, kRelaxed };
enum class CaptureState : uint8_t { kNone, kActive, kInvalidated };

struct DeviceProps {
  char name[128];
  int major;  // compute capability; of the virtual GPU 0.0
  int minor;
  int64_t total_memory;
  int multiprocessors;
  int warp_size;
  bool is_virtual;
  bool integrated;
  // 0 where the device has nothing of the kind.
  int threads_per_block;
  int threads_per_multiprocessor;
  int registers_per_multiprocessor;
  int64_t shared_per_block;
  int64_t shared_per_block_optin;
  int64_t shared_per_multiprocessor;
  int64_t l2_cache;
  int clock_khz;
  int memory_clock_khz;
  int memory_bus_bits;
  int pci_domain;
  int pci_bus;
  int pci_device;
  uint8_t uuid[16];
};

// What the device is doing now; -1 where it is not known.
struct DeviceMonitor {
  int busy_percent;         // of the time, some kernel ran
  int memory_busy_percent;  // of the time, memory was read or written
  int temperature;          // degrees Celsius
  int64_t power_mw;
  int fan_percent;
  int clock_mhz;
  int memory_clock_mhz;
  int performance_state;  // 0 is the fastest
};

// What the core does for a backend.
struct HostServices {
  // Memory of the caching allocator, ordered on the stream: for kernels that need room while they
  // run. `release` may be called as soon as the last work that uses it is queued.
  Status (*allocate)(int device, size_t bytes, StreamHandle stream, void** out, void** handle);
  void (*release)(void* handle);
  // Every body that a program may name, in an order that does not change within the process.
  const PointwiseBody* const* (*bodies)(int* count);
  // Has `end` called before the process begins to end (before libraries clear what they hold);
  // false where nobody promises that. For threads that have to be gone by then.
  bool (*at_end)(void (*end)());
};

enum class CopyKind : uint8_t { kHostToDevice, kDeviceToHost, kDeviceToDevice };

// One thing that a profile saw: a call of the device's library, or what such a call had queued.
struct DeviceActivity {
  enum class Kind : uint8_t { kCall, kKernel, kCopy, kSet };
  Kind kind = Kind::kKernel;
  const char* name = nullptr;  // until the sink returns
  int64_t start_ns = 0;        // of std::chrono::steady_clock
  int64_t end_ns = 0;
  uint64_t correlation = 0;  // the same for a call and what it queued
  uint32_t thread = 0;       // of a call: the system's number of the thread
  int device = 0;
  int64_t stream = 0;
  int64_t bytes = 0;  // moved or set
  int grid[3] = {0, 0, 0};
  int block[3] = {0, 0, 0};
  int registers = 0;  // of a thread
  int64_t shared = 0;
};
struct ActivitySink {
  void* to;
  void (*take)(void* to, const DeviceActivity& activity);
};

// Where a launch goes.
struct Exec {
  int device;
  StreamHandle stream;
};

struct Backend {
  uint32_t abi;  // kBackendAbi of the header it was built with
  const char* name;

  // Number of devices, 0 when none; *why then says the reason in words a user can act on.
  int (*device_count)(const char** why);
  Status (*device_props)(int device, DeviceProps* out);
  Status (*memory_info)(int device, int64_t* free, int64_t* total);

  // Raw device memory; at least 512-byte aligned. The caching allocator above asks rarely.
  // deallocate returns the memory after the work queued so far that may still use it.
  Status (*allocate)(int device, size_t bytes, void** out);
  Status (*deallocate)(int device, void* p);

  // Address space, and pages to map into it: kUnsupported from page_size where there is no such
  // thing, and the others are then not called. Sizes and addresses are multiples of the page size.
  // What was mapped can be used after enable_pages (of several mappings side by side, at once), by
  // work of every device that can reach this one. unmap_pages takes what map_pages mapped, whole,
  // and does not wait: the caller knows that nothing uses it.
  Status (*page_size)(int device, size_t* out);
  Status (*reserve_addresses)(int device, size_t bytes, void** out);
  Status (*release_addresses)(int device, void* p, size_t bytes);
  Status (*create_pages)(int device, size_t bytes, PageHandle* out);
  Status (*destroy_pages)(int device, PageHandle pages, size_t bytes);
  Status (*map_pages)(int device, void* at, PageHandle pages, size_t bytes);
  Status (*enable_pages)(int device, void* at, size_t bytes);
  Status (*unmap_pages)(int device, void* at, size_t bytes);

  // Page-locked host memory.
  Status (*host_allocate)(size_t bytes, void** out);
  Status (*host_deallocate)(void* p);

  // Lower numbers go first.
  Status (*priority_range)(int device, int* least, int* greatest);
  Status (*stream_create)(int device, int priority, StreamHandle* out);
  Status (*stream_destroy)(int device, StreamHandle s);
  Status (*stream_query)(int device, StreamHandle s);
  Status (*stream_synchronize)(int device, StreamHandle s);
  Status (*device_synchronize)(int device);
  Status (*event_create)(int device, bool timing, EventHandle* out);
  Status (*event_destroy)(int device, EventHandle e);
  Status (*event_record)(int device, EventHandle e, StreamHandle s);
  // For all that is queued on the device so far, on streams of other libraries too; to be asked by
  // event_query alone, and not while anything is captured. kUnsupported where the driver cannot;
  // null: never.
  Status (*event_record_all)(int device, EventHandle e);
  Status (*event_query)(int device, EventHandle e);
  Status (*event_synchronize)(int device, EventHandle e);
  Status (*event_elapsed_ms)(int device, EventHandle begin, EventHandle end, float* out);
  Status (*stream_wait_event)(int device, StreamHandle s, EventHandle e);

  // Asynchronous on the stream. A copy from pageable host memory may return before the source has
  // been read only if `source_stable` says the caller keeps it alive and unchanged. A copy into
  // pageable host memory may wait, and then returns the failure of an earlier kernel too.
  Status (*copy)(Exec exec, CopyKind kind, void* dst, const void* src, size_t bytes,
                 bool source_stable);
  Status (*copy_peer)(Exec exec, void* dst, int dst_device, const void* src, int src_device,
                      size_t bytes);

  // Asynchronous on the stream; the program's arrays need live only until the call returns.
  Status (*run_group)(Exec exec, const GroupProgram* program);
  // Several that do not depend on each other, in any order or at once. kUnsupported before anything
  // has run if one of them cannot be run as it is. Null: one after the other by run_group.
  Status (*run_groups)(Exec exec, const GroupProgram* const* programs, int count);
  Status (*run_reduce)(Exec exec, const ReduceProgram* program);
  // Whether this kernel takes such company; null: none does.
  bool (*can_join)(const JoinedProgram* program);
  Status (*run_joined)(Exec exec, const JoinedProgram* program);
  // Several reductions that do not depend on each other, with the company that can_join allowed.
  // Null: one after the other by run_joined and run_reduce.
  Status (*run_reduces)(Exec exec, const JoinedProgram* const* programs, int count);
  // `name` is the operator's. kUnsupported if there is no such kernel.
  Status (*run_kernel)(Exec exec, const char* name, const KernelArgs* args);
  bool (*has_kernel)(const char* name);

  // kUnsupported where nothing is known.
  Status (*monitor)(int device, DeviceMonitor* out);
  // Whether kernels of `device` can use memory of `peer`.
  Status (*can_access_peer)(int device, int peer, bool* out);

  // Called once, before anything runs.
  void (*use_services)(const HostServices* services);

  // Number of programs compiled so far in this process (0 where nothing is compiled), and of those
  // read from the disk cache.
  void (*compile_stats)(int64_t* compiled, int64_t* from_cache);

  // Graphs; null in a backend that has none. From capture_begin on, what is queued on the stream is
  // kept instead of run, and so is what is queued on streams that wait for an event recorded there.
  // capture_end gives what was kept, and the stream works as before whether or not it succeeds: it
  // fails where something could not be kept, and where a joined stream was not waited for.
  Status (*capture_begin)(int device, StreamHandle s, CaptureMode mode);
  Status (*capture_end)(int device, StreamHandle s, GraphHandle* out);
  // `id` is of the capture, the same for all its streams; 0 where there is none.
  Status (*capture_state)(int device, StreamHandle s, CaptureState* state, uint64_t* id);
  // Makes it ready to run; graph_launch does so, too, where that was not done.
  Status (*graph_instantiate)(int device, GraphHandle g);
  // Queues all of it. Memory that it names is the caller's to keep.
  Status (*graph_launch)(int device, GraphHandle g, StreamHandle s);
  // Launches that run go on.
  Status (*graph_destroy)(int device, GraphHandle g);
  // The device library's own handles (CUgraph, CUgraphExec); null where there are none.
  Status (*graph_raw)(int device, GraphHandle g, void** graph, void** executable);

  // Profiles; null in a backend whose work is done when its functions return. From profile_begin on
  // calls and device work are noted; *how says in a few words what takes the times. profile_take
  // hands over what was noted and is done: work is waited for by the caller.
  Status (*profile_begin)(const char** how);
  Status (*profile_take)(const ActivitySink* sink);
  Status (*profile_end)();
};

// What a backend's shared library exports: `extern "C" const Backend* tessera_backend_v3()`.
using BackendEntry = const Backend* (*)();
inline constexpr const char* kBackendEntryName = "tessera_backend_v3";

// Registers a backend that is linked in (cpu), or was loaded.
void register_backend(const Backend* backend);
// By name, loading its library if needed; null if there is none.
const Backend* find_backend(const char* name);
// The backend that `cuda` devices are on: virtual when TESSERA_VIRTUAL_GPU is set, else cuda.
// Null when there is none; then *why says the reason.
const Backend* accelerator(const char** why = nullptr);
const Backend* cpu_backend();

// Raises the error a failed status stands for; `what` names the call.
[[noreturn]] void raise_status(Status status, const char* what);
inline void check(Status status, const char* what) {
  if (!status.ok()) [[unlikely]]
    raise_status(status, what);
}

}  // namespace tessera
