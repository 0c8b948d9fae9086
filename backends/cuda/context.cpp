#include "context.h"

#include <pthread.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <thread>

#include "dynlib.h"
#include "nvrtc_api.h"
#include "relaunch.h"

namespace tessera::cuda {
namespace {

std::atomic<Device*> g_devices[kMaxDevices];
std::mutex g_init_mutex;

// After these the context answers nothing but the same error again.
bool is_sticky(CUresult r) {
  switch (r) {
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
      return true;
    default:
      return false;
  }
}

Status initialise(Device& d) {
  const DriverApi& cu = driver();
  TS_TRY(check(d, cu.cuDeviceGet(&d.device, d.ordinal), "opening the device"));
  TS_TRY(check(d, cu.cuDevicePrimaryCtxRetain(&d.context, d.device), "creating its context"));
  TS_TRY(check(d, cu.cuCtxSetCurrent(d.context), "using its context"));
  auto attribute = [&](CUdevice_attribute a) {
    int v = 0;
    cu.cuDeviceGetAttribute(&v, a, d.device);
    return v;
  };
  d.arch = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) * 10 +
           attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  d.multiprocessors = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  TS_TRY(check(d, cu.cuDeviceTotalMem(&d.memory, d.device), "asking for its memory"));
  d.max_shared = attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  d.has_pages = attribute(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED) != 0;
  d.can_share_pages =
      attribute(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED) != 0;
  TS_TRY(check(d, cu.cuStreamCreateWithPriority(&d.default_stream, CU_STREAM_NON_BLOCKING, 0),
               "creating the default stream"));
  void* slot = nullptr;
  TS_TRY(check(d,
               cu.cuMemHostAlloc(&slot, sizeof(ErrorSlot),
                                 CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_PORTABLE),
               "allocating the error slot"));
  std::memset(slot, 0, sizeof(ErrorSlot));
  d.slot = static_cast<ErrorSlot*>(slot);
  return check(d, cu.cuMemHostGetDevicePointer(&d.slot_on_device, slot, 0),
               "mapping the error slot");
}

// The driver's state is the parent's: in a child every call would fail in words that say nothing.
constexpr const char* kForked =
    "Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must "
    "use "
    "the 'spawn' start method";
std::atomic<bool> g_forked{false};

void in_child() {
  for (auto& device : g_devices)
    if (Device* d = device.load()) {
      g_forked.store(true);
      d->fault.store(kForked);
    }
  g_init_mutex.unlock();
}
// Registered while the library is loaded: see Note [Locks during a fork] in base/fork.h.
[[maybe_unused]] const int g_at_fork =
    pthread_atfork([] { g_init_mutex.lock(); }, [] { g_init_mutex.unlock(); }, in_child);

// Note [The end of a GPU]
// When the process begins to end (driver/ending.h), tessera_backend_end() waits until the devices
// have finished their work, at most kDrainLimit: kernels and callbacks may use libraries that exit
// handlers tear down. From then on calls of other threads than the one that ends the process do not
// return for kOthersWait, and fail then. A device that does not finish keeps the driver's own exit
// handler blocked indefinitely, so the process ends with _exit() and its exit status.
constexpr auto kDrainLimit = std::chrono::seconds(5);
constexpr auto kOthersWait = std::chrono::seconds(10);
std::atomic<bool> g_ending{false};
std::atomic<pid_t> g_ending_thread{0};

void leave_now(int status, void*) {
  std::fflush(nullptr);
  _exit(status);
}

// Waits on a thread of its own, since the driver's waits have no limit.
bool drain_devices() {
  struct Wait {
    std::mutex mutex;
    std::condition_variable changed;
    bool done = false;
  };
  auto wait = std::make_shared<Wait>();
  std::thread([wait] {
    const DriverApi& cu = driver();
    for (auto& device : g_devices)
      if (Device* d = device.load(); d && !d->fault.load())
        if (cu.cuCtxSetCurrent(d->context) == CUDA_SUCCESS) cu.cuCtxSynchronize();
    std::lock_guard lock(wait->mutex);
    wait->done = true;
    wait->changed.notify_all();
  }).detach();
  std::unique_lock lock(wait->mutex);
  return wait->changed.wait_for(lock, kDrainLimit, [&] { return wait->done; });
}

void end_devices() {
  bool any = false;
  for (auto& device : g_devices) any |= device.load() != nullptr;
  if (!any || g_forked.load()) return;
  g_ending_thread.store(gettid());
  g_ending.store(true);
  bool drained = false;
  try {
    drained = drain_devices();
  } catch (...) {
    return;  // without a thread to wait on, the driver's exit handler has to do
  }
  if (drained) return;
  std::fprintf(stderr,
               "tessera: a GPU had work queued %d s after the process began to end; it was "
               "abandoned\n",
               static_cast<int>(kDrainLimit.count()));
  on_exit(leave_now, nullptr);
}

Status usable_at_end() {
  if (gettid() == g_ending_thread.load()) return ok();
  std::this_thread::sleep_for(kOthersWait);
  return fail(Code::kFailed, "the process is exiting: the device is not used any more");
}

Status first_use(int ordinal, Device** out) {
  if (g_forked.load()) return fail(Code::kFailed, "%s", kForked);
  const char* why = nullptr;
  const DriverApi* cu = driver_api(&why);
  if (!cu) return fail(Code::kFailed, "%s", why);
  int count = 0;
  cu->cuDeviceGetCount(&count);
  if (ordinal < 0 || ordinal >= count || ordinal >= kMaxDevices)
    return fail(Code::kFailed, "cuda:%d does not exist: there are %d CUDA devices", ordinal, count);
  std::lock_guard lock(g_init_mutex);
  Device* d = g_devices[ordinal].load(std::memory_order_acquire);
  if (!d) {
    prepare_nvrtc(cu->version);
    // Devices live as long as the process.
    d = new Device;
    d->ordinal = ordinal;
    if (Status s = initialise(*d); !s.ok()) {
      delete d;
      return s;
    }
    d->launches = make_launches(d->memory);
    g_devices[ordinal].store(d, std::memory_order_release);
    renew_exit_handler();  // the driver registers its own handler when it is first used
  }
  *out = d;
  return ok();
}

}  // namespace

std::atomic<const HostServices*> services{nullptr};

Status acquire(int ordinal, Device** out) {
  Device* d = ordinal >= 0 && ordinal < kMaxDevices
                  ? g_devices[ordinal].load(std::memory_order_acquire)
                  : nullptr;
  if (!d) [[unlikely]]
    TS_TRY(first_use(ordinal, &d));
  if (g_ending.load(std::memory_order_relaxed)) [[unlikely]]
    TS_TRY(usable_at_end());
  if (const char* fault = d->fault.load(std::memory_order_acquire)) [[unlikely]]
    return fail(Code::kDeviceFault, "%s", fault);
  // Asked rather than remembered: another library in the process may have switched it.
  CUcontext current = nullptr;
  const DriverApi& cu = driver();
  if (cu.cuCtxGetCurrent(&current) != CUDA_SUCCESS || current != d->context)
    TS_TRY(check(*d, cu.cuCtxSetCurrent(d->context), "using the device's context"));
  *out = d;
  return ok();
}

Status failed(Device& d, CUresult r, const char* what) {
  if (r == CUDA_ERROR_NOT_READY) return Status{Code::kNotReady, nullptr};
  const DriverApi& cu = driver();
  const char *name = "unknown error", *text = "";
  cu.cuGetErrorName(r, &name);
  cu.cuGetErrorString(r, &text);
  if (r == CUDA_ERROR_OUT_OF_MEMORY)
    return fail(Code::kOutOfMemory, "CUDA out of memory in %s on cuda:%d", what, d.ordinal);
  if (!is_sticky(r))
    return fail(Code::kFailed, "CUDA error in %s on cuda:%d: %s (%s)", what, d.ordinal, text, name);
  char message[512];
  std::snprintf(message, sizeof message,
                "CUDA error in %s on cuda:%d: %s (%s). The device cannot be used any more in this "
                "process. Kernels report late, so the cause may be an earlier operator.",
                what, d.ordinal, text, name);
  const char* expected = nullptr;
  char* first = strdup(message);
  if (!d.fault.compare_exchange_strong(expected, first)) std::free(first);
  return fail(Code::kDeviceFault, "%s", d.fault.load());
}

Status Scratch::take(size_t bytes) {
  const HostServices* host = services.load(std::memory_order_acquire);
  if (!host) return fail(Code::kFailed, "the backend was given no allocator");
  StreamHandle stream = stream_ == device_.default_stream ? nullptr : stream_;
  return host->allocate(device_.ordinal, bytes, stream, &address_, &handle_);
}

Scratch::~Scratch() {
  if (handle_) services.load(std::memory_order_acquire)->release(handle_);
}

}  // namespace tessera::cuda

extern "C" __attribute__((visibility("default"))) void tessera_backend_end() {
  tessera::cuda::end_devices();
}
