#include "graphs.h"

namespace tessera::cuda {

std::atomic<int> captures{0};

namespace {

struct Graph {
  CUgraph graph = nullptr;
  CUgraphExec executable = nullptr;
};
Graph* graph_of(GraphHandle g) { return static_cast<Graph*>(g); }

}  // namespace

bool is_capturing(CUstream stream) {
  if (captures.load(std::memory_order_relaxed) == 0) [[likely]]
    return false;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  return driver().cuStreamIsCapturing(stream, &status) == CUDA_SUCCESS &&
         status != CU_STREAM_CAPTURE_STATUS_NONE;
}

Status capture_begin_on(Device& d, CUstream stream, CaptureMode mode) {
  const CUstreamCaptureMode cu = mode == CaptureMode::kGlobal ? CU_STREAM_CAPTURE_MODE_GLOBAL
                                 : mode == CaptureMode::kThreadLocal
                                     ? CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
                                     : CU_STREAM_CAPTURE_MODE_RELAXED;
  TS_TRY(check(d, driver().cuStreamBeginCapture(stream, cu), "beginning a capture"));
  captures.fetch_add(1);
  return ok();
}

Status capture_end_on(Device& d, CUstream stream, GraphHandle* out) {
  *out = nullptr;
  if (!is_capturing(stream)) return fail(Code::kFailed, "the stream is not being captured");
  CUgraph graph = nullptr;
  const CUresult r = driver().cuStreamEndCapture(stream, &graph);
  if (r != CUDA_ERROR_STREAM_CAPTURE_UNMATCHED && r != CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD)
    captures.fetch_sub(1);
  if (r == CUDA_SUCCESS && graph) {
    *out = new Graph{graph, nullptr};
    return ok();
  }
  if (graph) driver().cuGraphDestroy(graph);
  return check(d, r == CUDA_SUCCESS ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : r,
               "ending a capture");
}

Status capture_state_on(Device& d, CUstream stream, CaptureState* state, uint64_t* id) {
  *state = CaptureState::kNone;
  *id = 0;
  if (captures.load(std::memory_order_relaxed) == 0) return ok();
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  cuuint64_t number = 0;
  TS_TRY(check(d, driver().capture_info(stream, &status, &number, nullptr, nullptr, nullptr),
               "asking about a capture"));
  if (status == CU_STREAM_CAPTURE_STATUS_NONE) return ok();
  *state = status == CU_STREAM_CAPTURE_STATUS_ACTIVE ? CaptureState::kActive
                                                     : CaptureState::kInvalidated;
  *id = number;
  return ok();
}

Status graph_instantiate_on(Device& d, GraphHandle g) {
  Graph& graph = *graph_of(g);
  if (graph.executable) {
    TS_TRY(check(d, driver().cuGraphExecDestroy(graph.executable), "instantiating a graph"));
    graph.executable = nullptr;
  }
  return check(d, driver().cuGraphInstantiate(&graph.executable, graph.graph, 0),
               "instantiating a graph");
}

Status graph_launch_on(Device& d, GraphHandle g, CUstream stream) {
  if (!graph_of(g)->executable) TS_TRY(graph_instantiate_on(d, g));
  return check(d, driver().cuGraphLaunch(graph_of(g)->executable, stream), "replaying a graph");
}

Status graph_destroy_on(Device& d, GraphHandle g) {
  Graph* graph = graph_of(g);
  if (graph->executable) driver().cuGraphExecDestroy(graph->executable);
  const CUresult r = driver().cuGraphDestroy(graph->graph);
  delete graph;
  return check(d, r, "destroying a graph");
}

void graph_raw_of(GraphHandle g, void** graph, void** executable) {
  *graph = graph_of(g)->graph;
  *executable = graph_of(g)->executable;
}

}  // namespace tessera::cuda
