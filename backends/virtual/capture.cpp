#include "capture.h"

#include <algorithm>

#include "notes.h"
#include "state.h"

namespace tessera::vgpu {

Graph::~Graph() {
  for (Task* t : tasks) t->destroy(t);
}

namespace {
std::atomic<uint64_t> g_captures{0};
}

Capture::Capture(Stream& origin) : id_(++g_captures), origin_(origin) {}

void Capture::add(const Stream& stream, Task* task) {
  std::lock_guard lock(mutex_);
  size_t& last = last_[&stream];
  graph_->tasks.push_back(task);  // where an exception is thrown the task stays the caller's
  last = graph_->tasks.size();
}

Capture::Reach Capture::reach(const Stream& stream) {
  std::lock_guard lock(mutex_);
  Reach reach = seen_[&stream];
  reach[&stream] = last_[&stream];
  return reach;
}

void Capture::wait(const Stream& stream, const Reach& reach) {
  std::lock_guard lock(mutex_);
  Reach& seen = seen_[&stream];
  for (const auto& [other, count] : reach) seen[other] = std::max(seen[other], count);
}

void Capture::join(std::shared_ptr<Stream> stream) {
  std::lock_guard lock(mutex_);
  joined_.push_back(std::move(stream));
}

bool Capture::ended() {
  std::lock_guard lock(mutex_);
  return ended_;
}

void Capture::invalidate(const std::string& why) {
  std::lock_guard lock(mutex_);
  if (invalid_.empty()) invalid_ = why;
}

std::string Capture::why_invalid() {
  std::lock_guard lock(mutex_);
  return invalid_;
}

std::shared_ptr<Graph> Capture::end(std::string* why) {
  std::vector<std::shared_ptr<Stream>> joined;
  std::shared_ptr<Graph> graph;
  {
    std::lock_guard lock(mutex_);
    ended_ = true;
    const Reach& seen = seen_[&origin_];
    for (const auto& [stream, count] : last_) {
      auto waited = seen.find(stream);
      if (stream != &origin_ && (waited == seen.end() || waited->second < count) &&
          invalid_.empty())
        invalid_ =
            "the capture of a stream ended before it waited for another stream that had "
            "joined it";
    }
    joined.swap(joined_);
    graph.swap(graph_);
    *why = invalid_;
  }
  for (const auto& stream : joined) stream->set_capture(nullptr);
  origin_.set_capture(nullptr);
  return why->empty() ? graph : nullptr;
}

namespace {
std::shared_ptr<Graph>& graph_of(GraphHandle g) { return *static_cast<std::shared_ptr<Graph>*>(g); }
}  // namespace

Status capture_begin(int device, StreamHandle s, CaptureMode) {
  return on_stream(device, s, [&](Stream& stream) -> Status {
    if (stream.capture()) return fail(Code::kFailed, "the stream is being captured already");
    stream.set_capture(std::make_shared<Capture>(stream));
    return {};
  });
}

Status capture_end(int device, StreamHandle s, GraphHandle* out) {
  *out = nullptr;
  return on_stream(device, s, [&](Stream& stream) -> Status {
    std::shared_ptr<Capture> capture = stream.capture();
    if (!capture) return fail(Code::kFailed, "the stream is not being captured");
    if (&capture->origin() != &stream)
      return fail(Code::kFailed, "the capture has to end on the stream that it began on");
    std::string why;
    std::shared_ptr<Graph> graph = capture->end(&why);
    if (!graph) return fail(Code::kFailed, why);
    *out = new std::shared_ptr<Graph>(std::move(graph));
    return {};
  });
}

Status capture_state(int device, StreamHandle s, CaptureState* state, uint64_t* id) {
  return on_stream(device, s, [&](Stream& stream) -> Status {
    std::shared_ptr<Capture> capture = stream.capture();
    *id = capture ? capture->id() : 0;
    *state = !capture                         ? CaptureState::kNone
             : capture->why_invalid().empty() ? CaptureState::kActive
                                              : CaptureState::kInvalidated;
    return {};
  });
}

Status graph_instantiate(int device, GraphHandle) {
  return on_device(device, [](Device&) -> Status { return {}; });
}

Status graph_launch(int device, GraphHandle g, StreamHandle s) {
  return on_stream(device, s, [&](Stream& stream) -> Status {
    const uint64_t correlation = note_graph();
    stream.submit(make_task([graph = graph_of(g), correlation](Stream& worker) -> Status {
      for (Task* t : graph->tasks) {
        if (stopping.load()) break;
        Status status = run_noted(*t, worker, correlation);
        if (!status.ok()) worker.device().report(status);
      }
      return {};
    }));
    return {};
  });
}

Status graph_destroy(int, GraphHandle g) {
  delete &graph_of(g);
  return {};
}

Status graph_raw(int, GraphHandle, void** graph, void** executable) {
  *graph = *executable = nullptr;
  return {};
}

}  // namespace tessera::vgpu
