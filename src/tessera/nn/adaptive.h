// A softmax over many classes, with the rare ones in clusters.
#pragma once
#include <tuple>

#include "tessera/nn/container.h"
#include "tessera/nn/linear.h"

namespace tessera::nn {

struct AdaptiveLogSoftmaxOptions {
  double div_value = 4.0;
  bool head_bias = false;
  std::optional<Device> device = std::nullopt;
  std::optional<DType> dtype = std::nullopt;
};

// Frequent classes, and one entry for each cluster, in the head; each cluster has a tail.
class AdaptiveLogSoftmaxWithLoss : public Module {
 public:
  AdaptiveLogSoftmaxWithLoss(int64_t in_features, int64_t n_classes, std::vector<int64_t> cutoffs,
                             const AdaptiveLogSoftmaxOptions& options = {});
  // The log-probability of each target, and the loss.
  std::tuple<Tensor, Tensor> forward(const Tensor& input, const Tensor& target);
  std::tuple<Tensor, Tensor> operator()(const Tensor& input, const Tensor& target) {
    return forward(input, target);
  }
  Tensor log_prob(const Tensor& input);  // of all classes
  Tensor predict(const Tensor& input);   // the likeliest class

 private:
  std::vector<int64_t> cutoffs_;
  int64_t n_classes_;
  Linear head_;
  ModuleList tail_;
};

}  // namespace tessera::nn
