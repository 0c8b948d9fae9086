#include "tessera/nn/adaptive.h"

#include <cmath>

namespace tessera::nn {

namespace {

std::vector<int64_t> checked(std::vector<int64_t> cutoffs, int64_t n_classes) {
  TS_CHECK_VALUE(!cutoffs.empty(), "cutoffs should be a sequence of length larger than 0");
  int64_t before = 0;
  for (int64_t cutoff : cutoffs) {
    TS_CHECK_VALUE(cutoff > before && cutoff <= n_classes - 1,
                   "cutoffs should be a sequence of unique, positive integers sorted in an "
                   "increasing order, where each value is between 1 and n_classes-1");
    before = cutoff;
  }
  cutoffs.push_back(n_classes);
  return cutoffs;
}

}  // namespace

AdaptiveLogSoftmaxWithLoss::AdaptiveLogSoftmaxWithLoss(int64_t in_features, int64_t n_classes,
                                                       std::vector<int64_t> cutoffs,
                                                       const AdaptiveLogSoftmaxOptions& o)
    : cutoffs_(checked(std::move(cutoffs), n_classes)),
      n_classes_(n_classes),
      head_(register_module(
          "head", Linear(in_features, cutoffs_[0] + static_cast<int64_t>(cutoffs_.size()) - 1,
                         {o.head_bias, o.device, o.dtype}))) {
  for (size_t i = 0; i + 1 < cutoffs_.size(); ++i) {
    auto hidden = static_cast<int64_t>(std::floor(
        static_cast<double>(in_features) / std::pow(o.div_value, static_cast<double>(i + 1))));
    tail_.append(
        Sequential{Linear(in_features, hidden, {false, o.device, o.dtype}),
                   Linear(hidden, cutoffs_[i + 1] - cutoffs_[i], {false, o.device, o.dtype})});
  }
  add_module("tail", tail_);
}

std::tuple<Tensor, Tensor> AdaptiveLogSoftmaxWithLoss::forward(const Tensor& given_input,
                                                               const Tensor& given_target) {
  bool batched = given_target.dim() == 1;
  TS_CHECK(given_target.dim() <= 1, "0D or 1D target tensor expected, multi-target not supported");
  TS_CHECK(given_input.dim() == (batched ? 2 : 1), batched ? "1D" : "0D", " target tensor expects ",
           batched ? "2D" : "1D", " input tensors, but found inputs with size ",
           given_input.sizes());
  TS_CHECK(!batched || given_input.size(0) == given_target.size(0),
           "Input and target should have the same size in the batch dimension.");
  Tensor input = batched ? given_input : given_input.unsqueeze(0);
  Tensor target = batched ? given_target : given_target.unsqueeze(0);
  int64_t used = 0;
  Tensor output = zeros({target.size(0)}, input.dtype(), input.device());
  Tensor place = zeros_like(target);
  for (size_t i = 0; i < cutoffs_.size(); ++i) {
    int64_t low = i == 0 ? 0 : cutoffs_[i - 1], high = cutoffs_[i];
    Tensor rows = ((target >= low) & (target < high)).nonzero().squeeze(1);
    if (rows.numel() == 0) continue;
    Tensor own = target.index_select(0, rows);
    if (i == 0) {
      place = Tensor(op::index_copy(place, 0, rows, own));
    } else {
      auto number = static_cast<int64_t>(i) - 1;
      Tensor cluster = tail_[number](input.index_select(0, rows));
      Tensor found = log_softmax(cluster, 1).gather(1, (own - low).unsqueeze(1)).squeeze(1);
      place = Tensor(op::index_fill(place, 0, rows, cutoffs_[0] + number));
      output = Tensor(op::index_copy(output, 0, rows, found.to(output.dtype())));
    }
    used += rows.numel();
  }
  TS_CHECK(used == target.size(0), "Target values should be in [0, ", n_classes_ - 1,
           "], but values in range [", target.min().item<int64_t>(), ", ",
           target.max().item<int64_t>(), "] were found. ");
  Tensor head = log_softmax(head_(input), 1);
  output = output + head.gather(1, place.unsqueeze(1)).squeeze();
  Tensor loss = (-output).mean();
  return {batched ? output : output.squeeze(0), loss};
}

Tensor AdaptiveLogSoftmaxWithLoss::log_prob(const Tensor& input) {
  Tensor head = log_softmax(head_(input), 1);
  std::vector<TensorBase> parts{head.slice(1, 0, cutoffs_[0])};
  for (size_t i = 0; i < tail_.size(); ++i) {
    auto number = static_cast<int64_t>(i);
    parts.push_back(log_softmax(tail_[number](input), 1) +
                    head.select(1, cutoffs_[0] + number).unsqueeze(1));
  }
  return Tensor(op::cat(parts, 1));
}

Tensor AdaptiveLogSoftmaxWithLoss::predict(const Tensor& input) {
  return log_prob(input).argmax(1);
}

}  // namespace tessera::nn
