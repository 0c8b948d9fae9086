// From a graph of cuDNN's operations to execution plans.
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cudnn_descriptor.h"

namespace tessera::cuda {

// All that a graph is made of, the graph last.
using CudnnParts = std::vector<CudnnDescriptor>;
using MakeCudnnGraph = std::function<Status(CudnnParts* parts)>;

// What engines may do.
struct CudnnLimits {
  bool deterministic, tensor_cores;
  int64_t workspace;
};

struct CudnnPlan {
  // What the plan was made from stays as long as it does.
  std::shared_ptr<CudnnParts> graph;
  CudnnDescriptor config, plan;
  int64_t workspace = 0;
};

// At most `wanted` plans that keep to the limits, the most promising first; empty if there is none,
// and then *why says what the last engine was refused for.
Status cudnn_plans(const CudnnApi& api, cudnnHandle_t handle, const MakeCudnnGraph& make,
                   const CudnnLimits& limits, int64_t wanted, std::vector<CudnnPlan>* out,
                   std::string* why);

// The data of the tensor that a graph calls `name`.
struct CudnnData {
  int64_t name;
  const void* data;
};
// Queues it on the handle's stream; `what` is for messages.
Status run_cudnn(const CudnnApi& api, cudnnHandle_t handle, const CudnnPlan& plan,
                 std::span<const CudnnData> data, void* workspace, const char* what);

}  // namespace tessera::cuda
