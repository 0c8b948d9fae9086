#include "tessera/face/graph.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <thread>
#include <utility>
#include <vector>

#include "tessera/base/blocking.h"
#include "tessera/driver/current.h"
#include "tessera/driver/used.h"
#include "tessera/face/cuda.h"
#include "tessera/fuse/stream.h"
#include "tessera/memory/capture.h"
#include "tessera/tensor/generators.h"

namespace tessera::cuda {

using fuse::Reason;
using memory::Capture;

namespace {

// Pools of graphs and of handles are told apart by which number counts, as PyTorch's are.
std::atomic<uint64_t> g_pools{0};
std::atomic<uint64_t> g_handles{0};

}  // namespace

MempoolId_t graph_pool_handle() { return {0, ++g_handles}; }

bool is_current_stream_capturing() {
  if (!accelerator_used()) return false;
  const int d = tessera::current_device();
  return memory::capture_of(d, tessera::current_stream(d)) != nullptr;
}

struct CUDAGraph::State {
  bool keep_graph = false;
  int device = -1;
  MempoolId_t pool;
  bool has_pool = false;
  GraphHandle graph = nullptr;
  std::shared_ptr<Capture> capture;  // under way
  std::vector<Mt19937Generator*> registered;
  std::vector<Capture::Draws> draws;
  std::vector<Ref<Storage>> kept;
  std::vector<StreamHandle> replayed_on;

  // Ends the capture at the device; what it gives, or the reason why not.
  Status end(GraphHandle* out) {
    Status status = accelerator()->capture_end(device, capture->stream, out);
    memory::end_capture(device, capture->id);
    memory::leave(capture);
    return status;
  }

  // By asking: a call that waits would take the failure of somebody's kernel with it.
  void await_replays() {
    const Backend& b = *accelerator();
    for (StreamHandle s : std::exchange(replayed_on, {})) {
      EventHandle e = nullptr;
      if (memory::capture_of(device, s) || !b.event_create(device, false, &e).ok()) continue;
      if (b.event_record(device, e, s).ok())
        while (b.event_query(device, e).code == Code::kNotReady)
          std::this_thread::sleep_for(std::chrono::microseconds(20));
      b.event_destroy(device, e);
    }
  }

  void clear() {
    if (capture) {
      try {
        // What the program asked for since the capture began goes with it: it must not run later.
        fuse::run_everything(Reason::kCapture);
      } catch (...) {
      }
      GraphHandle unfinished = nullptr;
      end(&unfinished);
      if (unfinished) accelerator()->graph_destroy(device, unfinished);
      capture.reset();
    }
    if (graph) {
      BlockingScope scope;
      await_replays();
      accelerator()->graph_destroy(device, std::exchange(graph, nullptr));
    }
    draws.clear();
    kept.clear();
    if (std::exchange(has_pool, false)) memory::leave_pool(device, pool);
  }
};

CUDAGraph::CUDAGraph(bool keep_graph) : state_(std::make_unique<State>()) {
  state_->keep_graph = keep_graph;
}

CUDAGraph::~CUDAGraph() { abandon(); }

bool CUDAGraph::captured() const { return state_->graph != nullptr; }

void CUDAGraph::register_generator_state(Mt19937Generator& generator) {
  state_->registered.push_back(&generator);
}

void CUDAGraph::capture_begin(MempoolId_t pool, CaptureMode mode) {
  State& s = *state_;
  TS_CHECK(!s.graph && !s.capture,
           "This CUDAGraph instance already owns a captured graph. To capture a new graph, create "
           "a new instance.");
  const Stream stream = current_stream();
  const int d = stream.device_index();
  const Backend& b = *accelerator();
  TS_CHECK_IMPLEMENTED(b.capture_begin, "the ", b.name, " backend cannot capture graphs");
  TS_CHECK(stream.handle(),
           "CUDA graphs must be captured on a non-default stream. (However, after capture, it's ok "
           "to replay them on the default stream.)");
  memory::refuse_in_capture(d, stream.handle(), "beginning another capture");
  fuse::run_everything(Reason::kCapture);  // belongs to what is before the capture

  const Device cuda{DeviceType::kCUDA, static_cast<int16_t>(d)};
  std::vector<Capture::Source> sources{{&default_generator(cuda), {}}};
  for (Mt19937Generator* g : s.registered) sources.push_back({g, {}});
  for (Capture::Source& source : sources) source.state = new_empty(Dims{2}, DType::kInt64, cuda);

  s.device = d;
  s.pool = pool == MempoolId_t{} ? MempoolId_t{++g_pools, 0} : pool;
  {
    BlockingScope scope;
    memory::use_pool(d, s.pool, stream.handle());
  }
  s.has_pool = true;
  uint64_t id = 0;
  try {
    CaptureState now = CaptureState::kNone;
    check(b.capture_begin(d, stream.handle(), mode), "capture_begin");
    Status status = b.capture_state(d, stream.handle(), &now, &id);
    if (!status.ok() || id == 0) {
      GraphHandle nothing = nullptr;
      b.capture_end(d, stream.handle(), &nothing);
      if (nothing) b.graph_destroy(d, nothing);
      check(status, "capture_begin");
      raise(ErrorKind::kRuntime, "capture_begin: the device did not begin to capture");
    }
  } catch (...) {
    s.clear();
    throw;
  }
  memory::begin_capture(d, s.pool, id);
  s.capture = std::make_shared<Capture>(d, stream.handle(), id, mode);
  s.capture->sources = std::move(sources);
  memory::enter(s.capture);
}

void CUDAGraph::capture_end() {
  State& s = *state_;
  TS_CHECK(s.capture, "capture_end() was called without a capture_begin() before it");
  TS_CHECK(current_stream(s.device).handle() == s.capture->stream,
           "Capture must end on the same stream it began on.");
  try {
    fuse::run_everything(Reason::kCapture);  // belongs to the capture
    const std::string invalid = s.capture->why_invalid();
    GraphHandle made = nullptr;
    Status status = s.end(&made);
    std::shared_ptr<Capture> capture = std::exchange(s.capture, nullptr);
    s.graph = made;
    TS_CHECK(invalid.empty(), "the capture was invalidated: ", invalid,
             " is not permitted when stream is capturing. The graph is empty");
    check(status, "capture_end");
    s.draws = capture->take_draws();
    s.kept = capture->take_kept();
    if (!s.keep_graph) check(accelerator()->graph_instantiate(s.device, s.graph), "capture_end");
  } catch (...) {
    abandon();
    throw;
  }
}

void CUDAGraph::abandon() noexcept {
  try {
    state_->clear();
  } catch (...) {  // the device is lost
  }
}

void CUDAGraph::instantiate() {
  const State& s = *state_;
  TS_CHECK(s.graph && s.keep_graph,
           "instantiate() is for a captured graph that was made with keep_graph=True");
  check(accelerator()->graph_instantiate(s.device, s.graph), "instantiate");
}

void CUDAGraph::replay() {
  State& s = *state_;
  TS_CHECK(s.graph, "Called CUDAGraph::replay without a preceding successful capture.");
  const Backend& b = *accelerator();
  const StreamHandle stream = tessera::current_stream(s.device);
  memory::refuse_in_capture(s.device, stream, "replaying a graph");
  raise_unreported_failure();  // the tensors that the graph reads are not known here
  // The graph may read what is pending, and write what pending work reads.
  fuse::run_everything(Reason::kCapture);
  for (const Capture::Draws& d : s.draws) {
    uint64_t words[2];
    {
      GeneratorLock lock(*d.generator);
      words[0] = d.generator->philox_seed();
      words[1] = d.generator->take_philox(d.blocks);
    }
    check(b.copy({s.device, stream}, CopyKind::kHostToDevice, d.state.raw(), words, sizeof words,
                 false),
          "replaying a graph");
  }
  if (std::find(s.replayed_on.begin(), s.replayed_on.end(), stream) == s.replayed_on.end())
    s.replayed_on.push_back(stream);
  check(b.graph_launch(s.device, s.graph, stream), "replaying a graph");
}

void CUDAGraph::reset() { state_->clear(); }

MempoolId_t CUDAGraph::pool() const {
  TS_CHECK(state_->has_pool, "Called CUDAGraph::pool() without a preceding successful capture.");
  return state_->pool;
}

void* CUDAGraph::raw_cuda_graph() const {
  TS_CHECK(state_->graph && state_->keep_graph,
           "raw_cuda_graph() is for a captured graph that was made with keep_graph=True");
  void *graph = nullptr, *executable = nullptr;
  check(accelerator()->graph_raw(state_->device, state_->graph, &graph, &executable),
        "raw_cuda_graph");
  return graph;
}

void* CUDAGraph::raw_cuda_graph_exec() const {
  TS_CHECK(state_->graph, "raw_cuda_graph_exec() is for a captured graph");
  void *graph = nullptr, *executable = nullptr;
  check(accelerator()->graph_raw(state_->device, state_->graph, &graph, &executable),
        "raw_cuda_graph_exec");
  return executable;
}

GraphCapture::GraphCapture(CUDAGraph& graph, const Stream& stream, MempoolId_t pool,
                           CaptureMode mode)
    : graph_(graph),
      stream_((synchronize(stream.device_index()), stream)),
      exceptions_(std::uncaught_exceptions()) {
  graph_.capture_begin(pool, mode);
}

void GraphCapture::end() {
  if (std::exchange(ended_, true)) return;
  graph_.capture_end();
}

GraphCapture::~GraphCapture() {
  if (ended_) return;
  if (std::uncaught_exceptions() > exceptions_) {
    graph_.abandon();
    return;
  }
  try {
    end();
  } catch (...) {  // the graph is empty, and says so when it is replayed
  }
}

}  // namespace tessera::cuda
