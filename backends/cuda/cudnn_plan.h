// One convolution in cuDNN's graph API: from shapes to execution plans.
#pragma once
#include <memory>
#include <vector>

#include "cudnn_api.h"
#include "status.h"
#include "tessera/base/dtype.h"

namespace tessera::cuda {

// A descriptor, owned. Failures name it and what was done to it.
class CudnnDescriptor {
 public:
  CudnnDescriptor() = default;
  CudnnDescriptor(CudnnDescriptor&& o) noexcept
      : api_(o.api_), name_(o.name_), descriptor_(o.descriptor_) {
    o.descriptor_ = nullptr;
  }
  CudnnDescriptor& operator=(CudnnDescriptor&& o) noexcept;
  ~CudnnDescriptor() { reset(); }

  Status create(const CudnnApi& api, cudnnBackendDescriptorType_t type, const char* name);
  Status set(cudnnBackendAttributeName_t attribute, cudnnBackendAttributeType_t type, int64_t count,
             const void* values, const char* what);
  // *found: how many there are, which may be more than `room`.
  Status get(cudnnBackendAttributeName_t attribute, cudnnBackendAttributeType_t type, int64_t room,
             int64_t* found, void* values, const char* what) const;
  Status finalize();
  void reset();
  cudnnBackendDescriptor_t get() const { return descriptor_; }

 private:
  Status check(cudnnStatus_t r, const char* doing, const char* what) const;

  const CudnnApi* api_ = nullptr;
  const char* name_ = "";
  cudnnBackendDescriptor_t descriptor_ = nullptr;
};

struct CudnnTensor {
  int64_t sizes[5], strides[5];
  int64_t alignment;
};

// x: the input, w: the weight, y: the output; `kind` says which of them is computed.
struct CudnnConv {
  enum class Kind : uint8_t { kForward, kBackwardData, kBackwardFilter };
  Kind kind;
  DType dtype;
  int spatial;  // 2 or 3
  CudnnTensor x, w, y;
  int64_t stride[3], padding[3], dilation[3];
};
// Names of the tensors in plans.
inline constexpr int64_t kCudnnX = 1, kCudnnW = 2, kCudnnY = 3;

// What engines may do.
struct CudnnLimits {
  bool deterministic, tf32;
  int64_t workspace;
};

struct CudnnPlan {
  // What the plan was made from stays as long as it does.
  std::shared_ptr<std::vector<CudnnDescriptor>> graph;
  CudnnDescriptor config, plan;
  int64_t workspace = 0;
};

// At most `wanted` plans that keep to the limits, the most promising first; empty if there is none,
// and then *why says what the last engine was refused for.
Status cudnn_plans(const CudnnApi& api, cudnnHandle_t handle, const CudnnConv& conv,
                   const CudnnLimits& limits, int64_t wanted, std::vector<CudnnPlan>* out,
                   std::string* why);
// Queues it on the handle's stream.
Status run_cudnn(const CudnnApi& api, cudnnHandle_t handle, const CudnnPlan& plan, const void* x,
                 const void* w, const void* y, void* workspace);

}  // namespace tessera::cuda
