// Losses: modules over the functions of the same names. `reduction` is "mean", "sum" or "none".
#pragma once
#include "tessera/nn/functional.h"
#include "tessera/nn/module.h"

namespace tessera::nn {

struct LossOptions {
  std::string reduction = "mean";
};

// A loss of an input and its target.
class Loss : public Module {
 public:
  virtual Tensor forward(const Tensor& input, const Tensor& target) = 0;
  Tensor operator()(const Tensor& input, const Tensor& target) { return forward(input, target); }

  std::string reduction;

 protected:
  explicit Loss(std::string reduction) : reduction(std::move(reduction)) {}
  using Module::forward;
};

#define TS_LOSS(Name)                                                               \
  class Name : public Loss {                                                        \
   public:                                                                          \
    explicit Name(LossOptions options = {}) : Loss(std::move(options.reduction)) {} \
    Tensor forward(const Tensor& input, const Tensor& target) override;             \
  };
TS_LOSS(L1Loss)                // the absolute difference
TS_LOSS(MSELoss)               // the squared difference
TS_LOSS(MultiLabelMarginLoss)  // a margin between the labels that hold and those that do not
TS_LOSS(SoftMarginLoss)        // log(1 + exp(-y x))
#undef TS_LOSS

struct SmoothL1LossOptions {
  std::string reduction = "mean";
  double beta = 1.0;
};
// Squared where small, absolute where large.
class SmoothL1Loss : public Loss {
 public:
  explicit SmoothL1Loss(SmoothL1LossOptions options = {})
      : Loss(std::move(options.reduction)), beta(options.beta) {}
  Tensor forward(const Tensor& input, const Tensor& target) override;

  double beta;
};

struct HuberLossOptions {
  std::string reduction = "mean";
  double delta = 1.0;
};
// Squared where small, absolute times delta where large.
class HuberLoss : public Loss {
 public:
  explicit HuberLoss(HuberLossOptions options = {})
      : Loss(std::move(options.reduction)), delta(options.delta) {}
  Tensor forward(const Tensor& input, const Tensor& target) override;

  double delta;
};

struct KLDivLossOptions {
  std::string reduction = "mean";  // or "batchmean"
  bool log_target = false;
};
// The divergence of two distributions, the first as logarithms.
class KLDivLoss : public Loss {
 public:
  explicit KLDivLoss(KLDivLossOptions options = {})
      : Loss(std::move(options.reduction)), log_target(options.log_target) {}
  Tensor forward(const Tensor& input, const Tensor& target) override;

  bool log_target;
};

struct PoissonNLLLossOptions {
  bool log_input = true;
  bool full = false;
  double eps = 1e-8;
  std::string reduction = "mean";
};
// The negative log-likelihood of counts.
class PoissonNLLLoss : public Loss {
 public:
  explicit PoissonNLLLoss(PoissonNLLLossOptions options = {})
      : Loss(options.reduction), options(std::move(options)) {}
  Tensor forward(const Tensor& input, const Tensor& target) override;

  PoissonNLLLossOptions options;
};

struct MarginLossOptions {
  double margin = 1.0;
  std::string reduction = "mean";
};
// x for similar pairs, max(0, margin - x) for others.
class HingeEmbeddingLoss : public Loss {
 public:
  explicit HingeEmbeddingLoss(MarginLossOptions options = {})
      : Loss(std::move(options.reduction)), margin(options.margin) {}
  Tensor forward(const Tensor& input, const Tensor& target) override;

  double margin;
};

// ---- with weights, which are buffers ----------------------------------------------------------

class WeightedLoss : public Loss {
 public:
  Tensor& weight() const { return buffer_at(0); }

 protected:
  WeightedLoss(std::string reduction, Tensor weight);
};

struct NLLLossOptions {
  Tensor weight = {};
  int64_t ignore_index = -100;
  std::string reduction = "mean";
};
// The negative log-likelihood of the target's class.
class NLLLoss : public WeightedLoss {
 public:
  explicit NLLLoss(NLLLossOptions options = {})
      : WeightedLoss(std::move(options.reduction), std::move(options.weight)),
        ignore_index(options.ignore_index) {}
  Tensor forward(const Tensor& input, const Tensor& target) override;

  int64_t ignore_index;
};

struct CrossEntropyLossOptions {
  Tensor weight = {};
  int64_t ignore_index = -100;
  std::string reduction = "mean";
  double label_smoothing = 0.0;
};
// NLLLoss of the log-softmax.
class CrossEntropyLoss : public WeightedLoss {
 public:
  explicit CrossEntropyLoss(CrossEntropyLossOptions options = {})
      : WeightedLoss(std::move(options.reduction), std::move(options.weight)),
        ignore_index(options.ignore_index),
        label_smoothing(options.label_smoothing) {}
  Tensor forward(const Tensor& input, const Tensor& target) override;

  int64_t ignore_index;
  double label_smoothing;
};

struct WeightedLossOptions {
  Tensor weight = {};
  std::string reduction = "mean";
};
#define TS_LOSS(Name)                                                              \
  class Name : public WeightedLoss {                                               \
   public:                                                                         \
    explicit Name(WeightedLossOptions options = {})                                \
        : WeightedLoss(std::move(options.reduction), std::move(options.weight)) {} \
    Tensor forward(const Tensor& input, const Tensor& target) override;            \
  };
TS_LOSS(BCELoss)                   // the cross entropy of probabilities of one class
TS_LOSS(MultiLabelSoftMarginLoss)  // the mean of BCEWithLogitsLoss over the labels
#undef TS_LOSS

struct BCEWithLogitsLossOptions {
  Tensor weight = {};
  std::string reduction = "mean";
  Tensor pos_weight = {};
};
// BCELoss of the sigmoid, without overflow.
class BCEWithLogitsLoss : public WeightedLoss {
 public:
  explicit BCEWithLogitsLoss(BCEWithLogitsLossOptions options = {});
  Tensor& pos_weight() const { return buffer_at(1); }
  Tensor forward(const Tensor& input, const Tensor& target) override;
};

struct MultiMarginLossOptions {
  int64_t p = 1;
  double margin = 1.0;
  Tensor weight = {};
  std::string reduction = "mean";
};
// A margin between the target's class and the others.
class MultiMarginLoss : public WeightedLoss {
 public:
  explicit MultiMarginLoss(MultiMarginLossOptions options = {});
  Tensor forward(const Tensor& input, const Tensor& target) override;

  int64_t p;
  double margin;
};

// ---- of three tensors and more ----------------------------------------------------------------

class Loss3 : public Module {
 public:
  virtual Tensor forward(const Tensor& a, const Tensor& b, const Tensor& c) = 0;
  Tensor operator()(const Tensor& a, const Tensor& b, const Tensor& c) { return forward(a, b, c); }

  std::string reduction;

 protected:
  explicit Loss3(std::string reduction) : reduction(std::move(reduction)) {}
  using Module::forward;
};

struct GaussianNLLLossOptions {
  bool full = false;
  double eps = 1e-6;
  std::string reduction = "mean";
};
// The negative log-likelihood of normal distributions.
class GaussianNLLLoss : public Loss3 {
 public:
  explicit GaussianNLLLoss(GaussianNLLLossOptions options = {})
      : Loss3(std::move(options.reduction)), full(options.full), eps(options.eps) {}
  Tensor forward(const Tensor& input, const Tensor& target, const Tensor& var) override;

  bool full;
  double eps;
};

struct PairLossOptions {
  double margin = 0.0;
  std::string reduction = "mean";
};
// 1 - cos for similar pairs, max(0, cos - margin) for others.
class CosineEmbeddingLoss : public Loss3 {
 public:
  explicit CosineEmbeddingLoss(PairLossOptions options = {})
      : Loss3(std::move(options.reduction)), margin(options.margin) {}
  Tensor forward(const Tensor& input1, const Tensor& input2, const Tensor& target) override;

  double margin;
};
// max(0, -y (x1 - x2) + margin).
class MarginRankingLoss : public Loss3 {
 public:
  explicit MarginRankingLoss(PairLossOptions options = {})
      : Loss3(std::move(options.reduction)), margin(options.margin) {}
  Tensor forward(const Tensor& input1, const Tensor& input2, const Tensor& target) override;

  double margin;
};

struct TripletMarginLossOptions {
  double margin = 1.0;
  double p = 2.0;
  double eps = 1e-6;
  bool swap = false;
  std::string reduction = "mean";
};
// max(0, d(anchor, positive) - d(anchor, negative) + margin).
class TripletMarginLoss : public Loss3 {
 public:
  explicit TripletMarginLoss(TripletMarginLossOptions options = {});
  Tensor forward(const Tensor& anchor, const Tensor& positive, const Tensor& negative) override;

  TripletMarginLossOptions options;
};

struct TripletMarginWithDistanceLossOptions {
  functional::Distance distance_function = {};
  double margin = 1.0;
  bool swap = false;
  std::string reduction = "mean";
};
// TripletMarginLoss with a distance of one's own.
class TripletMarginWithDistanceLoss : public Loss3 {
 public:
  explicit TripletMarginWithDistanceLoss(TripletMarginWithDistanceLossOptions options = {});
  Tensor forward(const Tensor& anchor, const Tensor& positive, const Tensor& negative) override;

  TripletMarginWithDistanceLossOptions options;
};

struct CTCLossOptions {
  int64_t blank = 0;
  std::string reduction = "mean";
  bool zero_infinity = false;
};
// The likelihood of a labelling over all its alignments.
class CTCLoss : public Module {
 public:
  explicit CTCLoss(CTCLossOptions options = {}) : options(std::move(options)) {}
  Tensor forward(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                 const Tensor& target_lengths);
  Tensor operator()(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                    const Tensor& target_lengths) {
    return forward(log_probs, targets, input_lengths, target_lengths);
  }

  CTCLossOptions options;
};

}  // namespace tessera::nn
