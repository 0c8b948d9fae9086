// Builds a graph of cuDNN's operations over tensors of four dimensions. The first failure is kept
// and nothing is done after it, so that a graph reads as the expression it stands for.
#pragma once
#include "cudnn_plan.h"

namespace tessera::cuda {

struct CudnnShape {
  int64_t sizes[4], strides[4];
};

class CudnnGraphBuilder {
 public:
  using Tensor = cudnnBackendDescriptor_t;

  CudnnGraphBuilder(const CudnnApi& api, CudnnParts* parts) : api_(api), parts_(*parts) {
    parts_.clear();
  }

  // Memory that a plan is given by this number.
  Tensor given(int64_t name, const char* what, const CudnnShape& s, cudnnDataType_t type) {
    return tensor(name, what, s, type, false, false);
  }
  // A float on the host.
  Tensor number(int64_t name, const char* what) {
    return tensor(name, what, {{1, 1, 1, 1}, {1, 1, 1, 1}}, CUDNN_DATA_FLOAT, false, true);
  }
  // What only the next operations see.
  Tensor between(const char* what, const CudnnShape& s, cudnnDataType_t type = CUDNN_DATA_FLOAT) {
    return tensor(next_++, what, s, type, true, false);
  }

  // Each writes `to`, and returns it.
  Tensor matmul(const char* what, Tensor a, Tensor b, Tensor to);
  Tensor reduce(const char* what, cudnnReduceTensorOp_t how, Tensor x, Tensor to);
  // The same memory under other sizes and strides.
  Tensor reshape(const char* what, Tensor x, Tensor to);
  struct Also {
    Tensor b = nullptr, t = nullptr;  // the second operand, the third: a condition
    cudnnDataType_t compute = CUDNN_DATA_FLOAT;
    int64_t axis = -1;
  };
  Tensor pointwise(const char* what, cudnnPointwiseMode_t mode, Tensor x, Tensor to, Also also);
  Tensor pointwise(const char* what, cudnnPointwiseMode_t mode, Tensor x, Tensor to) {
    return pointwise(what, mode, x, to, Also());
  }
  Tensor pointwise(const char* what, cudnnPointwiseMode_t mode, Tensor x, Tensor b, Tensor to) {
    return pointwise(what, mode, x, to, Also{.b = b});
  }

  // The graph of all operations so far, or the first failure.
  Status finish(cudnnHandle_t handle);

 private:
  Tensor tensor(int64_t name, const char* what, const CudnnShape& s, cudnnDataType_t type,
                bool is_virtual, bool by_value);
  CudnnDescriptor& create(cudnnBackendDescriptorType_t type, const char* what);
  void set(CudnnDescriptor& d, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
           int64_t count, const void* values, const char* what);
  void part(CudnnDescriptor& d, cudnnBackendAttributeName_t name, cudnnBackendDescriptor_t value,
            const char* what);
  cudnnBackendDescriptor_t done(CudnnDescriptor& d);

  const CudnnApi& api_;
  CudnnParts& parts_;
  std::vector<cudnnBackendDescriptor_t> operations_;
  int64_t next_ = 1000;
  Status status_;
};

}  // namespace tessera::cuda
