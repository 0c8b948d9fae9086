// Graphs: work in the order in which it was queued, over all streams of a capture. A wait can only
// name what was queued before it, so that order respects every wait.
#include <algorithm>
#include <atomic>

#include "device.h"

namespace emulator {
namespace {

std::atomic<uint64_t> g_captures{0};
thread_local CUstreamCaptureMode t_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

Graph* graph_of(CUgraph g) { return reinterpret_cast<Graph*>(g); }
Graph* graph_of(CUgraphExec g) { return reinterpret_cast<Graph*>(g); }

}  // namespace

Capture::Capture(Stream* from) : origin(from), id(++g_captures) {}

void Capture::add(Stream* s, Work work) {
  std::lock_guard lock(mutex);
  work_.push_back(std::move(work));
  last_[s] = work_.size();
}

std::map<Stream*, size_t> Capture::reach(Stream* s) {
  std::lock_guard lock(mutex);
  std::map<Stream*, size_t> r = seen_[s];
  r[s] = last_[s];
  return r;
}

void Capture::wait(Stream* s, const std::map<Stream*, size_t>& reach) {
  std::lock_guard lock(mutex);
  for (const auto& [other, n] : reach) seen_[s][other] = std::max(seen_[s][other], n);
}

CUresult Capture::end(Graph** out) {
  std::lock_guard lock(mutex);
  ended = true;
  for (Stream* s : joined) s->set_capture(nullptr);
  origin->set_capture(nullptr);
  if (invalid) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  for (const auto& [s, n] : last_)
    if (s != origin && seen_[origin][s] < n) return CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
  *out = new Graph{std::move(work_)};
  return CUDA_SUCCESS;
}

}  // namespace emulator

using namespace emulator;

CUresult cuStreamBeginCapture(CUstream s, CUstreamCaptureMode) {
  Stream* stream = stream_of(s);
  if (stream->capture()) return CUDA_ERROR_ILLEGAL_STATE;
  stream->set_capture(std::make_shared<Capture>(stream));
  return CUDA_SUCCESS;
}

CUresult cuStreamEndCapture(CUstream s, CUgraph* out) {
  *out = nullptr;
  Stream* stream = stream_of(s);
  std::shared_ptr<Capture> capture = stream->capture();
  if (!capture) return CUDA_ERROR_ILLEGAL_STATE;
  if (capture->origin != stream) return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  return capture->end(reinterpret_cast<Graph**>(out));
}

CUresult cuStreamIsCapturing(CUstream s, CUstreamCaptureStatus* out) {
  std::shared_ptr<Capture> capture = stream_of(s)->capture();
  *out = !capture           ? CU_STREAM_CAPTURE_STATUS_NONE
         : capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                            : CU_STREAM_CAPTURE_STATUS_ACTIVE;
  return CUDA_SUCCESS;
}

extern "C" CUresult cuStreamGetCaptureInfo_v2(CUstream s, CUstreamCaptureStatus* status,
                                              cuuint64_t* id, CUgraph*, const CUgraphNode**,
                                              size_t*) {
  std::shared_ptr<Capture> capture = stream_of(s)->capture();
  if (id) *id = capture ? capture->id : 0;
  return cuStreamIsCapturing(s, status);
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  std::swap(*mode, t_mode);
  return CUDA_SUCCESS;
}

CUresult cuGraphInstantiate(CUgraphExec* out, CUgraph g, unsigned long long) {
  *out = reinterpret_cast<CUgraphExec>(new Graph(*graph_of(g)));
  return CUDA_SUCCESS;
}

CUresult cuGraphLaunch(CUgraphExec g, CUstream s) {
  Stream* stream = stream_of(s);
  for (const Work& work : graph_of(g)->work)
    if (CUresult r = stream->add(work); r != CUDA_SUCCESS) return r;
  return CUDA_SUCCESS;
}

CUresult cuGraphExecDestroy(CUgraphExec g) {
  delete graph_of(g);
  return CUDA_SUCCESS;
}
CUresult cuGraphDestroy(CUgraph g) {
  delete graph_of(g);
  return CUDA_SUCCESS;
}
