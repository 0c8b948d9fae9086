// Graphs: work in the order in which it was queued, over all streams of a capture. A wait can only
// name what was queued before it, so that order respects every wait.
#include <algorithm>
#include <atomic>

#include "device.h"

namespace emulator {
namespace {

std::atomic<uint64_t> g_captures{0}, g_launches{0}, g_executables{0};
std::atomic<bool> g_refuses{false};
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

// A node is its place in the work, from 1 on.
CUresult cuGraphCreate(CUgraph* out, unsigned) {
  *out = reinterpret_cast<CUgraph>(new Graph);
  return CUDA_SUCCESS;
}
CUresult cuGraphAddKernelNode(CUgraphNode* out, CUgraph g, const CUgraphNode*, size_t,
                              const CUDA_KERNEL_NODE_PARAMS* kernel) {
  Work work;
  if (CUresult r = kernel_work(*kernel, &work); r != CUDA_SUCCESS) return r;
  graph_of(g)->work.push_back(std::move(work));
  *out = reinterpret_cast<CUgraphNode>(graph_of(g)->work.size());
  return CUDA_SUCCESS;
}
CUresult cuGraphExecKernelNodeSetParams(CUgraphExec g, CUgraphNode node,
                                        const CUDA_KERNEL_NODE_PARAMS* kernel) {
  return kernel_work(*kernel, &graph_of(g)->work[reinterpret_cast<size_t>(node) - 1]);
}

CUresult cuGraphInstantiate(CUgraphExec* out, CUgraph g, unsigned long long) {
  if (g_refuses) return CUDA_ERROR_OUT_OF_MEMORY;
  *out = reinterpret_cast<CUgraphExec>(new Graph(*graph_of(g)));
  ++g_executables;
  return CUDA_SUCCESS;
}

CUresult cuGraphLaunch(CUgraphExec g, CUstream s) {
  ++g_launches;
  Stream* stream = stream_of(s);
  for (const Work& work : graph_of(g)->work)
    if (CUresult r = stream->add(work); r != CUDA_SUCCESS) return r;
  return CUDA_SUCCESS;
}

CUresult cuGraphExecDestroy(CUgraphExec g) {
  --g_executables;
  delete graph_of(g);
  return CUDA_SUCCESS;
}
CUresult cuGraphDestroy(CUgraph g) {
  delete graph_of(g);
  return CUDA_SUCCESS;
}

// For tests: launches of graphs so far, executable graphs that there are, and making none.
extern "C" uint64_t emulator_graph_launches() { return g_launches; }
extern "C" uint64_t emulator_executables() { return g_executables; }
extern "C" void emulator_refuse_graphs(int refuses) { g_refuses = refuses != 0; }
