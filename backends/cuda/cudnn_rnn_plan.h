// One recurrent network in cuDNN's terms: descriptors, sizes, and where its weights lie.
#pragma once
#include <utility>
#include <vector>

#include "context.h"
#include "cudnn_rnn_api.h"
#include "tessera/base/dtype.h"
#include "tessera/ops/rnn/cudnn_call.h"

namespace tessera::cuda {

struct CudnnRnn {
  DType dtype;
  rnn::Mode mode;
  bool has_biases, both_ways;
  int layers, input, hidden, projection;  // projection 0: none
  int steps, batch;
  // A backward will come.
  bool train;
  bool tf32;
  bool persistent;           // kernels that keep weights on the chip may be used
  bool packed;               // rows of each moment one after the other
  std::vector<int> lengths;  // of each sample

  int directions() const { return both_ways ? 2 : 1; }
  int out() const { return projection > 0 ? projection : hidden; }
};

// A descriptor, owned.
template <class D>
class CudnnOwned {
 public:
  CudnnOwned() = default;
  CudnnOwned(CudnnOwned&& o) noexcept : d_(o.d_), destroy_(o.destroy_) { o.d_ = nullptr; }
  CudnnOwned& operator=(CudnnOwned&& o) noexcept {
    std::swap(d_, o.d_);
    std::swap(destroy_, o.destroy_);
    return *this;
  }
  ~CudnnOwned() {
    if (d_) destroy_(d_);
  }
  cudnnStatus_t create(cudnnStatus_t (*make)(D*), cudnnStatus_t (*destroy)(D)) {
    destroy_ = destroy;
    return make(&d_);
  }
  D get() const { return d_; }

 private:
  D d_ = nullptr;
  cudnnStatus_t (*destroy_)(D) = nullptr;
};

struct CudnnRnnPlan {
  // Of the weights in the order they are handed over, in the weight space.
  struct Place {
    int64_t offset, bytes;
  };
  std::vector<Place> places;
  CudnnOwned<cudnnDropoutDescriptor_t> dropout;  // before what refers to it
  CudnnOwned<cudnnRNNDescriptor_t> rnn;
  CudnnOwned<cudnnRNNDataDescriptor_t> x, y;
  CudnnOwned<cudnnTensorDescriptor_t> h, c;
  size_t workspace = 0, reserve = 0, weights = 0;
  bool persistent = false;  // such kernels were chosen
};

Status cudnn_rnn_failed(const CudnnRnnApi& api, cudnnStatus_t r, const char* what);
// Fails where cuDNN refuses the network.
Status make_cudnn_rnn_plan(Device& d, CUstream stream, const CudnnRnnApi& api, cudnnHandle_t handle,
                           const CudnnRnn& net, CudnnRnnPlan* out);

}  // namespace tessera::cuda
