// torch.cuda's graphs for C++: work of a stream, captured once and replayed at the cost of one
// launch.
//   cuda::CUDAGraph graph;
//   {
//     cuda::Stream side;
//     cuda::GraphCapture capture(graph, side);  // after a few steps on `side` to warm up
//     y = model->forward(x);
//   }
//   x.copy_(batch);
//   graph.replay();  // y holds the result
#pragma once
#include <memory>

#include "tessera/driver/backend.h"
#include "tessera/face/streams.h"
#include "tessera/memory/allocator.h"
#include "tessera/tensor/rng.h"

namespace tessera::cuda {

using MempoolId_t = memory::PoolId;

// A pool that several graphs may be captured into.
MempoolId_t graph_pool_handle();
bool is_current_stream_capturing();

class CUDAGraph {
 public:
  // keep_graph: instantiate() is the program's to call, which may change the raw graph before.
  explicit CUDAGraph(bool keep_graph = false);
  ~CUDAGraph();
  CUDAGraph(const CUDAGraph&) = delete;
  CUDAGraph& operator=(const CUDAGraph&) = delete;

  // From now on what goes to the current stream, which is not the default one, is kept and not run.
  void capture_begin(MempoolId_t pool = {}, CaptureMode mode = CaptureMode::kGlobal);
  // Raises, and the graph is empty again, if something could not be captured.
  void capture_end();
  // Ends a capture that an error has broken off: the stream works as before, the graph is empty.
  void abandon() noexcept;
  void instantiate();
  // On the current stream of its device; random numbers go on from where the generator is.
  void replay();
  // Waits for replays and lets graph and memory go.
  void reset();
  MempoolId_t pool() const;
  // A generator beside the device's default one that the capture will draw from. It has to outlive
  // the graph.
  void register_generator_state(Mt19937Generator& generator);

  // CUgraph and CUgraphExec; null on a device that has no such things.
  void* raw_cuda_graph() const;
  void* raw_cuda_graph_exec() const;
  bool captured() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Captures what a scope does on a stream, after what the device has to do is done. The graph is
// empty if the scope is left by an exception; call end() to hear of a capture that failed.
class GraphCapture {
 public:
  GraphCapture(CUDAGraph& graph, const Stream& stream, MempoolId_t pool = {},
               CaptureMode mode = CaptureMode::kGlobal);
  ~GraphCapture();
  void end();
  GraphCapture(const GraphCapture&) = delete;
  GraphCapture& operator=(const GraphCapture&) = delete;

 private:
  CUDAGraph& graph_;
  StreamGuard stream_;
  int exceptions_;
  bool ended_ = false;
};

}  // namespace tessera::cuda
