// Devices: the primary context of each, its default stream, and its error state.
#pragma once
#include <atomic>
#include <cstdint>

#include "data_error.h"
#include "driver_api.h"
#include "status.h"

namespace tessera::cuda {

struct Launches;

inline constexpr int kMaxDevices = 64;

struct Device {
  int ordinal = 0;
  CUdevice device = 0;
  CUcontext context = nullptr;
  CUstream default_stream = nullptr;
  int arch = 0;  // 90 for compute capability 9.0
  int multiprocessors = 0;
  size_t memory = 0;             // bytes, all of it
  int max_shared = 0;            // bytes a block may ask for
  bool has_pages = false;        // virtual memory management
  bool can_share_pages = false;  // ... with another process
  ErrorSlot* slot = nullptr;
  CUdeviceptr slot_on_device = 0;
  Launches* launches = nullptr;  // never null once it is initialised
  // The first cause that made the device unusable; null while it is well.
  std::atomic<const char*> fault{nullptr};
};

// The device, initialised at its first use and made current on this thread; fails at once, with the
// first cause, after a sticky error.
Status acquire(int ordinal, Device** out);

inline CUstream stream_of(const Device& d, StreamHandle s) {
  return s ? static_cast<CUstream>(s) : d.default_stream;
}

// Turns a driver's result into a status; remembers results after which the device is lost.
Status failed(Device& d, CUresult r, const char* what);
inline Status check(Device& d, CUresult r, const char* what) {
  return r == CUDA_SUCCESS ? ok() : failed(d, r, what);
}

// After the device's work has been waited for: what its kernels reported, once.
Status take_data_error(Device& d);

// The core's services, once it has handed them over.
extern std::atomic<const HostServices*> services;

// Device memory from the core's allocator, ordered on a stream: taken and given back without
// waiting for the device.
class Scratch {
 public:
  Scratch(Device& d, CUstream stream) : device_(d), stream_(stream) {}
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch();
  Status take(size_t bytes);
  CUdeviceptr address() const { return reinterpret_cast<CUdeviceptr>(address_); }
  template <class T>
  T* as() const {
    return static_cast<T*>(address_);
  }

 private:
  Device& device_;
  CUstream stream_;
  void* address_ = nullptr;
  void* handle_ = nullptr;
};

}  // namespace tessera::cuda
