// torch.cuda for C++: -1 means the current device.
#pragma once
#include <string>

#include "tessera/base/device.h"
#include "tessera/driver/backend.h"
#include "tessera/face/streams.h"

namespace tessera::cuda {

bool is_available();
// Why there is no device, in words to act on; empty where there is one.
std::string why_unavailable();
int device_count();
int current_device();
void set_device(int device);
std::string device_name(int device = -1);
bool is_virtual(int device = -1);
DeviceProps device_properties(int device = -1);
// "GPU-8f1e5b1c-...", as nvidia-smi and CUDA_VISIBLE_DEVICES spell it.
std::string device_uuid(int device = -1);
// Whether kernels of one device can use another one's memory.
bool can_device_access_peer(int device, int peer);
// What the device is doing now; -1 where it cannot say.
DeviceMonitor device_monitor(int device = -1);
// Runs what is pending and waits for the device.
void synchronize(int device = -1);

struct MemoryInfo {
  int64_t free;
  int64_t total;
};
MemoryInfo mem_get_info(int device = -1);
int64_t memory_allocated(int device = -1);
int64_t max_memory_allocated(int device = -1);
int64_t memory_reserved(int device = -1);
int64_t max_memory_reserved(int device = -1);
void reset_peak_memory_stats(int device = -1);
void empty_cache();

// Device memory between its making and stop() (or now), in bytes and in MB of a million bytes:
//   cuda::MemoryTracker tracker;
//   Tensor y = model(x);
//   tracker.stop();
//   std::printf("%.2f MB\n", tracker.peak_memory_mb());
// It resets the device's peak: one tracker at a time.
class MemoryTracker {
 public:
  explicit MemoryTracker(int device = -1);
  void stop();
  int64_t peak_memory() const;   // the most that was allocated at once
  int64_t memory_delta() const;  // what is allocated now beyond what was
  double peak_memory_mb() const { return static_cast<double>(peak_memory()) / 1e6; }
  double memory_delta_mb() const { return static_cast<double>(memory_delta()) / 1e6; }

 private:
  int device_;
  int64_t start_;
  int64_t end_ = 0;
  int64_t peak_ = 0;
  bool stopped_ = false;
};

}  // namespace tessera::cuda

namespace tessera {

// The first cuda device where there is one, else the CPU.
Device best_device();

}  // namespace tessera
