#include "tessera/face/cuda.h"

#include "tessera/base/blocking.h"
#include "tessera/driver/current.h"
#include "tessera/fuse/stream.h"
#include "tessera/memory/allocator.h"
#include "tessera/memory/capture.h"

namespace tessera::cuda {

namespace {

int resolve(int device) {
  return resolve_device(Device{DeviceType::kCUDA, static_cast<int16_t>(device)}).index;
}

}  // namespace

bool is_available() { return device_count() > 0; }

std::string why_unavailable() {
  const char* why = nullptr;
  if (accelerator(&why)) return "";
  return why ? why : "no device was found";
}

int device_count() { return tessera::device_count(); }
int current_device() { return resolve(-1); }

void set_device(int device) {
  int d = resolve(device);
  if (d == tessera::current_device()) return;
  fuse::run_everything(fuse::Reason::kStream);
  set_current_device(d);
}

DeviceProps device_properties(int device) {
  DeviceProps p{};
  int d = resolve(device);  // first: raises where there is no accelerator
  check(accelerator()->device_props(d, &p), "asking for device properties");
  return p;
}

std::string device_name(int device) { return device_properties(device).name; }
bool is_virtual(int device) { return device_properties(device).is_virtual; }

std::string device_uuid(int device) {
  DeviceProps p = device_properties(device);
  std::string text = "GPU-";
  constexpr char kDigits[] = "0123456789abcdef";
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += kDigits[p.uuid[i] >> 4];
    text += kDigits[p.uuid[i] & 15];
  }
  return text;
}

bool can_device_access_peer(int device, int peer) {
  int a = resolve(device), b = resolve(peer);
  if (a == b) return false;  // PyTorch's answer: a device is no peer of itself
  bool can = false;
  check(accelerator()->can_access_peer(a, b, &can), "asking about two devices");
  return can;
}

DeviceMonitor device_monitor(int device) {
  DeviceMonitor m{};
  int d = resolve(device);
  BlockingScope scope;
  check(accelerator()->monitor(d, &m), "asking what the device is doing");
  return m;
}

void synchronize(int device) {
  int d = resolve(device);
  memory::refuse_beside_capture(d, true, "torch.cuda.synchronize()");
  fuse::run_device(d, fuse::Reason::kSynchronize);
  BlockingScope scope;
  check(accelerator()->device_synchronize(d), "synchronizing");
  raise_unreported_failure();
}

MemoryInfo mem_get_info(int device) {
  MemoryInfo info{};
  int d = resolve(device);
  check(accelerator()->memory_info(d, &info.free, &info.total), "asking for free memory");
  return info;
}

int64_t memory_allocated(int device) { return memory::memory_allocated(resolve(device)); }
int64_t max_memory_allocated(int device) { return memory::max_memory_allocated(resolve(device)); }
int64_t memory_reserved(int device) { return memory::memory_reserved(resolve(device)); }
int64_t max_memory_reserved(int device) { return memory::max_memory_reserved(resolve(device)); }
void reset_peak_memory_stats(int device) { memory::reset_peak(resolve(device)); }

void empty_cache() {
  for (int d = 0; d < device_count(); ++d) {
    fuse::run_device(d, fuse::Reason::kMemory);
    memory::empty_cache(d);
  }
}

MemoryTracker::MemoryTracker(int device)
    : device_(resolve(device)), start_(cuda::memory_allocated(device_)) {
  reset_peak_memory_stats(device_);
}

void MemoryTracker::stop() {
  end_ = cuda::memory_allocated(device_);
  peak_ = max_memory_allocated(device_);
  stopped_ = true;
}

int64_t MemoryTracker::peak_memory() const {
  return stopped_ ? peak_ : max_memory_allocated(device_);
}

int64_t MemoryTracker::memory_delta() const {
  return (stopped_ ? end_ : cuda::memory_allocated(device_)) - start_;
}

}  // namespace tessera::cuda

namespace tessera {

Device best_device() { return cuda::is_available() ? Device{DeviceType::kCUDA, 0} : Device{}; }

}  // namespace tessera
