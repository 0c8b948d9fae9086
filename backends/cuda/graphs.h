// Captured work. See tessera/driver/backend.h for what is promised.
#pragma once
#include "context.h"

namespace tessera::cuda {

// Captures under way in the process; where there is none, nothing below costs more than a look.
extern std::atomic<int> captures;

// Note [Unsafe calls]
// While some thread captures in the global mode, the driver refuses calls that could wait for the
// captured stream: allocating, loading a kernel, asking an event. What we do of these while
// launching touches no captured stream, so this thread is allowed them as long as this lives.
class Relaxed {
 public:
  enum When { kCapturing, kAlways };  // always: another library may be capturing
  explicit Relaxed(When when = kCapturing) {
    if (when == kCapturing && captures.load(std::memory_order_relaxed) == 0) [[likely]]
      return;
    exchanged_ = driver().cuThreadExchangeStreamCaptureMode(&mode_) == CUDA_SUCCESS;
  }
  ~Relaxed() {
    if (exchanged_) driver().cuThreadExchangeStreamCaptureMode(&mode_);
  }
  Relaxed(const Relaxed&) = delete;
  Relaxed& operator=(const Relaxed&) = delete;

 private:
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
  bool exchanged_ = false;
};

bool is_capturing(CUstream stream);

Status capture_begin_on(Device& d, CUstream stream, CaptureMode mode);
Status capture_end_on(Device& d, CUstream stream, GraphHandle* out);
Status capture_state_on(Device& d, CUstream stream, CaptureState* state, uint64_t* id);
Status graph_instantiate_on(Device& d, GraphHandle g);
Status graph_launch_on(Device& d, GraphHandle g, CUstream stream);
Status graph_destroy_on(Device& d, GraphHandle g);
void graph_raw_of(GraphHandle g, void** graph, void** executable);

}  // namespace tessera::cuda
