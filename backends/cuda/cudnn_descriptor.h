// One descriptor of cuDNN's graph API.
#pragma once
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
  Status set_part(cudnnBackendAttributeName_t attribute, const CudnnDescriptor& part,
                  const char* what);
  Status finalize();
  void reset();
  cudnnBackendDescriptor_t get() const { return descriptor_; }

 private:
  Status check(cudnnStatus_t r, const char* doing, const char* what) const;

  const CudnnApi* api_ = nullptr;
  const char* name_ = "";
  cudnnBackendDescriptor_t descriptor_ = nullptr;
};

cudnnDataType_t cudnn_data_type(DType t);

}  // namespace tessera::cuda
