// torch.cuda's streams and events for C++. Handles: copies are the same stream or event.
#pragma once
#include <memory>

#include "tessera/base/device.h"
#include "tessera/driver/backend.h"

namespace tessera::cuda {

class Event;

// A queue of work of a device.
class Stream {
 public:
  // From a pool; a lower priority number goes first. -1 means the current device.
  explicit Stream(int device = -1, int priority = 0);
  // One that other code made: a CUstream. It has to outlive its last use here.
  static Stream external(void* handle, int device = -1);

  int device_index() const { return device_; }
  Device device() const { return Device{DeviceType::kCUDA, static_cast<int16_t>(device_)}; }
  StreamHandle handle() const { return handle_; }  // null: the device's default stream
  int priority() const;

  bool query() const;  // is all its work done?
  void synchronize() const;
  // Work queued here from now on runs after the event, or after what the other stream has now.
  void wait_event(const Event& event) const;
  void wait_stream(const Stream& other) const;
  Event record_event() const;

  bool operator==(const Stream&) const = default;

 private:
  Stream(int device, StreamHandle handle) : device_(device), handle_(handle) {}
  friend Stream current_stream(int device);
  friend Stream default_stream(int device);

  int device_;
  StreamHandle handle_ = nullptr;
};

struct EventOptions {
  bool enable_timing = false;
};

// A point in a stream. It belongs to the device it is first recorded on.
class Event {
 public:
  explicit Event(EventOptions options = {});

  void record() const;  // on the current stream
  void record(const Stream& stream) const;
  void wait() const;  // the current stream waits for it
  void wait(const Stream& stream) const;
  bool query() const;
  void synchronize() const;
  // Milliseconds from this event to `end`; both have to be done, and made with enable_timing.
  float elapsed_time(const Event& end) const;

  int device_index() const;    // -1 until it is recorded
  EventHandle handle() const;  // null until it is recorded

 private:
  struct State;
  std::shared_ptr<State> state_;
};

Stream current_stream(int device = -1);
Stream default_stream(int device = -1);
void set_stream(const Stream& stream);
// The lowest and the highest priority, as numbers: 0 and a negative one.
struct PriorityRange {
  int least;
  int greatest;
};
PriorityRange priority_range(int device = -1);

// Makes a device current until the end of the scope.
class DeviceGuard {
 public:
  explicit DeviceGuard(int device);
  ~DeviceGuard();
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

 private:
  int before_;
};

// Makes a stream current until the end of the scope, and its device.
class StreamGuard {
 public:
  explicit StreamGuard(const Stream& stream);
  ~StreamGuard();
  StreamGuard(const StreamGuard&) = delete;
  StreamGuard& operator=(const StreamGuard&) = delete;

 private:
  DeviceGuard device_;
  Stream before_;
};

}  // namespace tessera::cuda
