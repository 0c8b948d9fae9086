// The optimizers that step by gradients. Each step is one call over all parameters of a group.
#pragma once
#include "tessera/optim/optimizer.h"

namespace tessera::optim {

struct SGDOptions {
  double lr = 1e-3;
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;
  bool maximize = false;
};

struct AdamOptions {
  double lr = 1e-3;
  std::pair<double, double> betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0;
  bool amsgrad = false;
  bool maximize = false;
  bool decoupled_weight_decay = false;
};

struct AdamWOptions {
  double lr = 1e-3;
  std::pair<double, double> betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 1e-2;
  bool amsgrad = false;
  bool maximize = false;
};

struct RMSpropOptions {
  double lr = 1e-2;
  double alpha = 0.99;
  double eps = 1e-8;
  double weight_decay = 0;
  double momentum = 0;
  bool centered = false;
  bool maximize = false;
};

struct AdagradOptions {
  double lr = 1e-2;
  double lr_decay = 0;
  double weight_decay = 0;
  double initial_accumulator_value = 0;
  double eps = 1e-10;
  bool maximize = false;
};

struct AdadeltaOptions {
  double lr = 1.0;
  double rho = 0.9;
  double eps = 1e-6;
  double weight_decay = 0;
  bool maximize = false;
};

struct AdamaxOptions {
  double lr = 2e-3;
  std::pair<double, double> betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0;
  bool maximize = false;
};

struct NAdamOptions {
  double lr = 2e-3;
  std::pair<double, double> betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0;
  double momentum_decay = 4e-3;
  bool decoupled_weight_decay = false;
  bool maximize = false;
};

struct RAdamOptions {
  double lr = 1e-3;
  std::pair<double, double> betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0;
  bool decoupled_weight_decay = false;
  bool maximize = false;
};

struct RpropOptions {
  double lr = 1e-2;
  std::pair<double, double> etas = {0.5, 1.2};
  std::pair<double, double> step_sizes = {1e-6, 50};
  bool maximize = false;
};

struct ASGDOptions {
  double lr = 1e-2;
  double lambd = 1e-4;
  double alpha = 0.75;
  double t0 = 1e6;
  double weight_decay = 0;
  bool maximize = false;
};

#define TS_OPTIMIZER_MEMBERS(Name, Given)                                        \
 public:                                                                         \
  explicit Name(std::vector<Tensor> params, Given options = {})                  \
      : Name(std::vector<ParamGroup>{ParamGroup(std::move(params))}, options) {} \
  explicit Name(std::vector<ParamGroup> groups, Given options = {});             \
                                                                                 \
 protected:                                                                      \
  void step_group(const ParamGroup& group, Work& work) override;

// With a state that starts as zeros, or in a way of its own.
#define TS_OPTIMIZER(Name, ...)               \
  class Name : public Optimizer {             \
    TS_OPTIMIZER_MEMBERS(Name, Name##Options) \
    __VA_ARGS__                               \
  };
#define TS_STARTS void start(const ParamGroup& group, const Tensor& p, State& state) const override;
TS_OPTIMIZER(SGD, void start(const ParamGroup&, const Tensor&, State&) const override{})
TS_OPTIMIZER(Adam, TS_STARTS)
TS_OPTIMIZER(RMSprop, TS_STARTS)
TS_OPTIMIZER(Adagrad, TS_STARTS)
TS_OPTIMIZER(Adadelta)
TS_OPTIMIZER(Adamax)
TS_OPTIMIZER(NAdam, TS_STARTS)
TS_OPTIMIZER(RAdam)
TS_OPTIMIZER(Rprop, TS_STARTS)
TS_OPTIMIZER(ASGD, TS_STARTS)
#undef TS_STARTS
#undef TS_OPTIMIZER
#undef TS_OPTIMIZER_MEMBERS

// Adam whose weight decay is a factor of the weights.
class AdamW : public Adam {
 public:
  explicit AdamW(std::vector<Tensor> params, AdamWOptions options = {})
      : AdamW(std::vector<ParamGroup>{ParamGroup(std::move(params))}, options) {}
  explicit AdamW(std::vector<ParamGroup> groups, AdamWOptions o = {})
      : Adam(std::move(groups),
             {o.lr, o.betas, o.eps, o.weight_decay, o.amsgrad, o.maximize, true}) {}
  // It decays so also with a state that Adam has saved.
  void load_state_dict(const StateDict& state) override {
    Adam::load_state_dict(state);
    for (ParamGroup& group : param_groups()) group["decoupled_weight_decay"] = 1;
  }
};

}  // namespace tessera::optim
