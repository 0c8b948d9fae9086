#include "tessera/driver/current.h"

#include <atomic>
#include <cstddef>

#include "tessera/base/error.h"
#include "tessera/driver/used.h"

namespace tessera {

namespace {
thread_local int t_device = 0;
// An array, not a vector: destructors of static objects may look here after the thread's variables
// were destroyed.
constexpr size_t kMaxDevices = 64;
constinit thread_local StreamHandle t_streams[kMaxDevices] = {};
std::atomic<bool> g_used{false};
}  // namespace

int current_device() { return t_device; }

void set_current_device(int index) {
  resolve_device(Device{DeviceType::kCUDA, static_cast<int16_t>(index)});
  t_device = index;
}

StreamHandle current_stream(int device) {
  size_t d = static_cast<size_t>(device);
  return d < kMaxDevices ? t_streams[d] : nullptr;
}

void set_current_stream(int device, StreamHandle stream) {
  size_t d = static_cast<size_t>(device);
  TS_CHECK(d < kMaxDevices, "set_stream: expected a device below ", kMaxDevices, ", got ", device);
  t_streams[d] = stream;
}

int device_count() {
  // No static variable with a guard: a thread may be in the initializer while the process forks.
  static constinit std::atomic<int> known{-1};
  int count = known.load(std::memory_order_relaxed);
  if (count < 0) [[unlikely]] {
    const Backend* b = accelerator();
    known.store(count = b ? b->device_count(nullptr) : 0, std::memory_order_relaxed);
  }
  return count;
}

Device resolve_device(Device d) {
  if (d.is_cpu()) return Device{};
  if (d.is_meta()) return d;
  if (d.index < 0) d.index = static_cast<int16_t>(t_device);
  if (device_count() == 0) {
    const char* why = nullptr;
    accelerator(&why);
    raise(ErrorKind::kRuntime, cat("CUDA is not available: ", why ? why : "no device was found"));
  }
  TS_CHECK(d.index < device_count(), "CUDA error: invalid device ordinal: ", d,
           " was asked for, and ", device_count(),
           device_count() == 1 ? " device exists" : " devices exist");
  if (!g_used.load(std::memory_order_relaxed)) g_used.store(true, std::memory_order_relaxed);
  return d;
}

bool accelerator_used() { return g_used.load(std::memory_order_relaxed); }

}  // namespace tessera
