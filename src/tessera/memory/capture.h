// Captures under way: which streams they are of, what they may not do, and what their graph needs
// when it is replayed.
#pragma once
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tessera/base/mutex.h"
#include "tessera/driver/backend.h"
#include "tessera/tensor/rng.h"
#include "tessera/tensor/tensor.h"

namespace tessera::memory {

class Capture {
 public:
  // What one generator gives a graph: each replay takes so many blocks from it, and its seed and
  // offset are put where the captured kernels read them.
  struct Draws {
    Mt19937Generator* generator;
    uint64_t blocks = 0;
    TensorBase state;  // seed, offset
  };

  Capture(int device, StreamHandle stream, uint64_t id, CaptureMode mode)
      : device(device), stream(stream), id(id), mode(mode) {}

  const int device;
  const StreamHandle stream;  // that it began on
  const uint64_t id;
  const CaptureMode mode;
  const std::thread::id thread = std::this_thread::get_id();

  // The place of so many blocks among those that a replay takes, and where the others lie.
  uint64_t take(Mt19937Generator& generator, uint64_t blocks, TensorBase* state);
  // What generators there may be, with room for what they give. It is allocated before the capture:
  // memory of the graph's own pool may be workspace of kernels that run before it is read.
  struct Source {
    Mt19937Generator* generator;
    TensorBase state;
  };
  std::vector<Source> sources;

  // Host memory that captured copies read or write, for as long as the graph lives.
  void keep(Ref<Storage> storage);

  // Raises, and the capture can no longer end well: what a program does after an error that it
  // caught is not what it would do at each replay.
  [[noreturn]] void refuse(const std::string& what);
  std::string why_invalid();

  std::vector<Draws> take_draws();
  std::vector<Ref<Storage>> take_kept();

 private:
  Mutex mutex_;
  std::vector<Draws> draws_;
  std::vector<Ref<Storage>> kept_;
  std::string invalid_;
};

namespace detail {
extern std::atomic<int> captures;
std::shared_ptr<Capture> find_capture(int device, StreamHandle stream);
void refuse_beside_capture(int device, bool of_any_thread, const char* what);
}  // namespace detail

void enter(const std::shared_ptr<Capture>& capture);
void leave(const std::shared_ptr<Capture>& capture);

// The capture that the stream belongs to; null unless it is being captured.
inline std::shared_ptr<Capture> capture_of(int device, StreamHandle stream) {
  if (detail::captures.load(std::memory_order_relaxed) == 0) [[likely]]
    return nullptr;
  return detail::find_capture(device, stream);
}

// Raises if the stream is being captured. `what` names the operation.
inline void refuse_in_capture(int device, StreamHandle stream, const char* what) {
  if (auto capture = capture_of(device, stream)) [[unlikely]]
    capture->refuse(what);
}
// ... if anything of the device is, by this thread or (`of_any_thread`) another.
inline void refuse_beside_capture(int device, bool of_any_thread, const char* what) {
  if (detail::captures.load(std::memory_order_relaxed) != 0) [[unlikely]]
    detail::refuse_beside_capture(device, of_any_thread, what);
}

}  // namespace tessera::memory
