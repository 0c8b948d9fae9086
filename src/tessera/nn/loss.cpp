#include "tessera/nn/loss.h"

#include "tessera/nn/shape.h"
#include "tessera/nn/text.h"

namespace tessera::nn {

namespace {
constexpr std::nullopt_t none = std::nullopt;  // size_average and reduce, of old programs
}

WeightedLoss::WeightedLoss(std::string reduction, Tensor weight) : Loss(std::move(reduction)) {
  register_buffer("weight", std::move(weight));
}

Tensor L1Loss::forward(const Tensor& x, const Tensor& y) {
  return l1_loss(x, y, none, none, reduction);
}
Tensor MSELoss::forward(const Tensor& x, const Tensor& y) {
  return mse_loss(x, y, none, none, reduction);
}
Tensor MultiLabelMarginLoss::forward(const Tensor& x, const Tensor& y) {
  return multilabel_margin_loss(x, y, none, none, reduction);
}
Tensor SoftMarginLoss::forward(const Tensor& x, const Tensor& y) {
  return soft_margin_loss(x, y, none, none, reduction);
}
Tensor SmoothL1Loss::forward(const Tensor& x, const Tensor& y) {
  return smooth_l1_loss(x, y, none, none, reduction, beta);
}
Tensor HuberLoss::forward(const Tensor& x, const Tensor& y) {
  return huber_loss(x, y, reduction, delta);
}
Tensor KLDivLoss::forward(const Tensor& x, const Tensor& y) {
  return kl_div(x, y, none, none, reduction, log_target);
}
Tensor PoissonNLLLoss::forward(const Tensor& x, const Tensor& y) {
  return poisson_nll_loss(x, y, options.log_input, options.full, none, options.eps, none,
                          reduction);
}
Tensor HingeEmbeddingLoss::forward(const Tensor& x, const Tensor& y) {
  return hinge_embedding_loss(x, y, margin, none, none, reduction);
}
Tensor NLLLoss::forward(const Tensor& x, const Tensor& y) {
  return nll_loss(x, y, weight(), none, ignore_index, none, reduction);
}
Tensor CrossEntropyLoss::forward(const Tensor& x, const Tensor& y) {
  return cross_entropy(x, y, weight(), none, ignore_index, none, reduction, label_smoothing);
}
Tensor BCELoss::forward(const Tensor& x, const Tensor& y) {
  return binary_cross_entropy(x, y, weight(), none, none, reduction);
}
Tensor MultiLabelSoftMarginLoss::forward(const Tensor& x, const Tensor& y) {
  return multilabel_soft_margin_loss(x, y, weight(), none, none, reduction);
}

BCEWithLogitsLoss::BCEWithLogitsLoss(BCEWithLogitsLossOptions o)
    : WeightedLoss(std::move(o.reduction), std::move(o.weight)) {
  register_buffer("pos_weight", std::move(o.pos_weight));
}
Tensor BCEWithLogitsLoss::forward(const Tensor& x, const Tensor& y) {
  return binary_cross_entropy_with_logits(x, y, weight(), none, none, reduction, pos_weight());
}

MultiMarginLoss::MultiMarginLoss(MultiMarginLossOptions o)
    : WeightedLoss(std::move(o.reduction), o.weight), p(o.p), margin(o.margin) {
  TS_CHECK_VALUE(p == 1 || p == 2, "only p == 1 and p == 2 supported");
  TS_CHECK_VALUE(!o.weight.defined() || o.weight.dim() == 1,
                 "MultiMarginLoss: expected weight to be None or 1D tensor, got ", o.weight.dim(),
                 "D instead");
}
Tensor MultiMarginLoss::forward(const Tensor& x, const Tensor& y) {
  return multi_margin_loss(x, y, p, margin, weight(), none, none, reduction);
}

Tensor GaussianNLLLoss::forward(const Tensor& x, const Tensor& y, const Tensor& var) {
  return gaussian_nll_loss(x, y, var, full, eps, reduction);
}
Tensor CosineEmbeddingLoss::forward(const Tensor& a, const Tensor& b, const Tensor& y) {
  return cosine_embedding_loss(a, b, y, margin, none, none, reduction);
}
Tensor MarginRankingLoss::forward(const Tensor& a, const Tensor& b, const Tensor& y) {
  return margin_ranking_loss(a, b, y, margin, none, none, reduction);
}

TripletMarginLoss::TripletMarginLoss(TripletMarginLossOptions o)
    : Loss3(o.reduction), options(std::move(o)) {
  TS_CHECK_VALUE(options.margin > 0,
                 "TripletMarginLoss: expected margin to be greater than 0, got ",
                 py(options.margin), " instead");
}
Tensor TripletMarginLoss::forward(const Tensor& a, const Tensor& p, const Tensor& n) {
  return triplet_margin_loss(a, p, n, options.margin, options.p, options.eps, options.swap, none,
                             none, reduction);
}

TripletMarginWithDistanceLoss::TripletMarginWithDistanceLoss(TripletMarginWithDistanceLossOptions o)
    : Loss3(o.reduction), options(std::move(o)) {
  TS_CHECK_VALUE(options.margin > 0,
                 "TripletMarginWithDistanceLoss: expected margin to be greater than 0, got ",
                 py(options.margin), " instead");
  if (!options.distance_function) add_module("distance_function", PairwiseDistance());
}
Tensor TripletMarginWithDistanceLoss::forward(const Tensor& a, const Tensor& p, const Tensor& n) {
  return functional::triplet_margin_with_distance_loss(a, p, n, options.distance_function,
                                                       options.margin, options.swap, reduction);
}
Tensor CTCLoss::forward(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                        const Tensor& target_lengths) {
  return ctc_loss(log_probs, targets, input_lengths, target_lengths, options.blank,
                  options.reduction, options.zero_infinity);
}

}  // namespace tessera::nn
