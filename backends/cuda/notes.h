// What a profile knows of the device: CUPTI's records, or where it cannot be used the times between
// two events around each call of the table.
#pragma once
#include "context.h"

namespace tessera::cuda {

Status profile_begin(const char** how);
Status profile_take(const ActivitySink* sink);
Status profile_end();

inline std::atomic<bool> timing_by_events{false};
inline std::atomic<bool> recorded_by_cupti{false};  // it stays loaded when a profile has ended

// Around a call that queues work; does nothing unless events take the times.
class TimedCall {
 public:
  TimedCall(Device& d, CUstream stream, DeviceActivity::Kind kind, const char* name,
            int64_t bytes = 0)
      : device_(d), stream_(stream) {
    if (timing_by_events.load(std::memory_order_relaxed)) [[unlikely]]
      begin(kind, name, bytes);
  }
  ~TimedCall() {
    if (note_) end();
  }
  TimedCall(const TimedCall&) = delete;

 private:
  void begin(DeviceActivity::Kind kind, const char* name, int64_t bytes);
  void end();
  Device& device_;
  CUstream stream_;
  struct TimedNote* note_ = nullptr;
};

}  // namespace tessera::cuda
