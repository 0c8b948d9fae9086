#include "tessera/memory/capture.h"

#include <algorithm>

#include "tessera/base/error.h"
#include "tessera/base/fork.h"
#include "tessera/tensor/generators.h"

namespace tessera::memory {

namespace detail {
constinit std::atomic<int> captures{0};
}

namespace {

struct Captures {
  Mutex mutex;
  std::vector<std::shared_ptr<Capture>> all;
};
// Never destroyed: threads may work while the process ends.
Captures& under_way() {
  static Captures* c = new Captures;
  return *c;
}
Mutex& lock_of_captures() { return under_way().mutex; }
const HeldDuringFork<ForkStage::kCaptures, lock_of_captures> g_at_fork;

}  // namespace

uint64_t Capture::take(Mt19937Generator& generator, uint64_t blocks, TensorBase* state) {
  auto source = std::find_if(sources.begin(), sources.end(),
                             [&](const Source& s) { return s.generator == &generator; });
  if (source == sources.end())
    refuse(
        "drawing random numbers from a generator that the graph does not know (call "
        "graph.register_generator_state(generator) before the capture)");
  std::lock_guard lock(mutex_);
  auto found = std::find_if(draws_.begin(), draws_.end(),
                            [&](const Draws& d) { return d.generator == &generator; });
  if (found == draws_.end()) found = draws_.insert(draws_.end(), {&generator, 0, source->state});
  *state = found->state;
  const uint64_t at = found->blocks;
  found->blocks += blocks;
  return at;
}

void Capture::keep(Ref<Storage> storage) {
  std::lock_guard lock(mutex_);
  kept_.push_back(std::move(storage));
}

void Capture::refuse(const std::string& what) {
  {
    std::lock_guard lock(mutex_);
    if (invalid_.empty()) invalid_ = what;
  }
  raise(ErrorKind::kRuntime,
        cat("CUDA error: operation not permitted when stream is capturing: ", what,
            ". A graph holds work of the device alone; what the host does is not repeated when it "
            "is replayed."));
}

std::string Capture::why_invalid() {
  std::lock_guard lock(mutex_);
  return invalid_;
}

std::vector<Capture::Draws> Capture::take_draws() {
  std::lock_guard lock(mutex_);
  return std::move(draws_);
}

std::vector<Ref<Storage>> Capture::take_kept() {
  std::lock_guard lock(mutex_);
  return std::move(kept_);
}

void enter(const std::shared_ptr<Capture>& capture) {
  Captures& c = under_way();
  std::lock_guard lock(c.mutex);
  c.all.push_back(capture);
  detail::captures.fetch_add(1);
}

void leave(const std::shared_ptr<Capture>& capture) {
  Captures& c = under_way();
  std::lock_guard lock(c.mutex);
  detail::captures.fetch_sub(static_cast<int>(std::erase(c.all, capture)));
}

std::shared_ptr<Capture> detail::find_capture(int device, StreamHandle stream) {
  Captures& c = under_way();
  std::lock_guard lock(c.mutex);
  uint64_t id = 0;
  for (const auto& capture : c.all) {
    if (capture->device != device) continue;
    if (capture->stream == stream) return capture;
    CaptureState state = CaptureState::kNone;
    if (id == 0 && !accelerator()->capture_state(device, stream, &state, &id).ok()) return nullptr;
    if (id == 0) return nullptr;
    if (id == capture->id) return capture;
  }
  return nullptr;
}

void detail::refuse_beside_capture(int device, bool of_any_thread, const char* what) {
  std::shared_ptr<Capture> found;
  {
    Captures& c = under_way();
    std::lock_guard lock(c.mutex);
    for (const auto& capture : c.all)
      if (capture->device == device &&
          (of_any_thread || (capture->thread == std::this_thread::get_id() &&
                             capture->mode != CaptureMode::kRelaxed)))
        found = capture;
  }
  if (!found) return;
  if (found->thread == std::this_thread::get_id()) found->refuse(what);
  raise(ErrorKind::kRuntime, cat("CUDA error: operation not permitted while another thread "
                                 "captures a stream of the device: ",
                                 what));
}

}  // namespace tessera::memory
