#include "tessera/optim/optimizers.h"

#include "tessera/nn/text.h"

namespace tessera::optim {

namespace {

using Groups = std::vector<ParamGroup>;
using Lists = std::vector<TensorBase>;

bool on(const ParamGroup& group, const char* name) { return group[name] != 0; }

void check_usual(double lr, double eps, double weight_decay) {
  check_option(lr, "learning rate");
  check_option(eps, "epsilon value");
  check_option(weight_decay, "weight_decay value");
}

}  // namespace

// ---- SGD --------------------------------------------------------------------------------------

SGD::SGD(Groups groups, SGDOptions o)
    : Optimizer(std::move(groups),
                {{"lr", o.lr},
                 {"momentum", o.momentum},
                 {"dampening", o.dampening},
                 {"weight_decay", o.weight_decay},
                 {"nesterov", o.nesterov},
                 {"maximize", o.maximize}},
                {"momentum_buffer"}) {
  check_option(o.lr, "learning rate");
  check_option(o.momentum, "momentum value");
  check_option(o.weight_decay, "weight_decay value");
  TS_CHECK_VALUE(!o.nesterov || (o.momentum > 0 && o.dampening == 0),
                 "Nesterov momentum requires a momentum and zero dampening");
}

void SGD::step_group(const ParamGroup& group, Work& work) {
  auto run = [&](const Lists& params, const Lists& grads, const Lists& momenta, bool first) {
    op::_sgd_step_(params, grads, momenta, group["lr"], group["momentum"], group["dampening"],
                   group["weight_decay"], on(group, "nesterov"), on(group, "maximize"), first);
  };
  if (group["momentum"] == 0) return run(work.params, work.grads, {}, false);
  // A momentum that is not there yet starts with the gradient.
  Lists params[2], grads[2], momenta[2];
  std::vector<Tensor*> begun;
  for (size_t i = 0; i < work.size(); ++i) {
    Tensor& momentum = (*work.states[i])[0];
    bool fresh = !momentum.defined();
    if (fresh) begun.push_back(&momentum);
    params[fresh].push_back(work.params[i]);
    grads[fresh].push_back(work.grads[i]);
    momenta[fresh].push_back(fresh ? op::zeros_like(work.params[i]) : TensorBase(momentum));
  }
  for (int fresh : {0, 1})
    if (!params[fresh].empty()) run(params[fresh], grads[fresh], momenta[fresh], fresh == 1);
  for (size_t i = 0; i < begun.size(); ++i) *begun[i] = Tensor(momenta[1][i]);
}

// ---- Adam -------------------------------------------------------------------------------------

Adam::Adam(Groups groups, AdamOptions o)
    : Optimizer(std::move(groups),
                {{"lr", o.lr},
                 {"beta1", o.betas.first},
                 {"beta2", o.betas.second},
                 {"eps", o.eps},
                 {"weight_decay", o.weight_decay},
                 {"amsgrad", o.amsgrad},
                 {"maximize", o.maximize},
                 {"decoupled_weight_decay", o.decoupled_weight_decay}},
                {"step", "exp_avg", "exp_avg_sq", "max_exp_avg_sq"}) {
  check_usual(o.lr, o.eps, o.weight_decay);
  check_betas(o.betas.first, o.betas.second);
}

void Adam::start(const ParamGroup& group, const Tensor& p, State& state) const {
  Optimizer::start(group, p, state);
  if (!on(group, "amsgrad")) state[3] = Tensor();
}

void Adam::step_group(const ParamGroup& group, Work& work) {
  Lists largest;
  if (on(group, "amsgrad")) largest = work.at(3);
  op::_adam_step_(work.params, work.grads, work.at(1), work.at(2), largest, work.at(0), group["lr"],
                  group["beta1"], group["beta2"], group["eps"], group["weight_decay"],
                  on(group, "decoupled_weight_decay"), on(group, "maximize"));
}

// ---- RMSprop ----------------------------------------------------------------------------------

RMSprop::RMSprop(Groups groups, RMSpropOptions o)
    : Optimizer(std::move(groups),
                {{"lr", o.lr},
                 {"momentum", o.momentum},
                 {"alpha", o.alpha},
                 {"eps", o.eps},
                 {"centered", o.centered},
                 {"weight_decay", o.weight_decay},
                 {"maximize", o.maximize}},
                {"step", "square_avg", "momentum_buffer", "grad_avg"}) {
  check_usual(o.lr, o.eps, o.weight_decay);
  check_option(o.momentum, "momentum value");
  check_option(o.alpha, "alpha value");
}

void RMSprop::start(const ParamGroup& group, const Tensor& p, State& state) const {
  Optimizer::start(group, p, state);
  if (!(group["momentum"] > 0)) state[2] = Tensor();
  if (!on(group, "centered")) state[3] = Tensor();
}

void RMSprop::step_group(const ParamGroup& group, Work& work) {
  Lists momenta, means;
  if (group["momentum"] > 0) momenta = work.at(2);
  if (on(group, "centered")) means = work.at(3);
  op::_rmsprop_step_(work.params, work.grads, work.at(1), means, momenta, work.at(0), group["lr"],
                     group["alpha"], group["eps"], group["weight_decay"], group["momentum"],
                     on(group, "maximize"));
}

// ---- Adagrad ----------------------------------------------------------------------------------

Adagrad::Adagrad(Groups groups, AdagradOptions o)
    : Optimizer(std::move(groups),
                {{"lr", o.lr},
                 {"lr_decay", o.lr_decay},
                 {"eps", o.eps},
                 {"weight_decay", o.weight_decay},
                 {"initial_accumulator_value", o.initial_accumulator_value},
                 {"maximize", o.maximize}},
                {"step", "sum"}) {
  check_usual(o.lr, o.eps, o.weight_decay);
  check_option(o.lr_decay, "lr_decay value");
  check_option(o.initial_accumulator_value, "initial_accumulator_value value");
}

void Adagrad::start(const ParamGroup& group, const Tensor& p, State& state) const {
  state[0] = new_step();
  state[1] = Tensor(op::full(p.sizes(), group["initial_accumulator_value"], p.dtype(), p.device()));
}

void Adagrad::step_group(const ParamGroup& group, Work& work) {
  op::_adagrad_step_(work.params, work.grads, work.at(1), work.at(0), group["lr"],
                     group["lr_decay"], group["eps"], group["weight_decay"], on(group, "maximize"));
}

// ---- Adadelta ---------------------------------------------------------------------------------

Adadelta::Adadelta(Groups groups, AdadeltaOptions o)
    : Optimizer(std::move(groups),
                {{"lr", o.lr},
                 {"rho", o.rho},
                 {"eps", o.eps},
                 {"weight_decay", o.weight_decay},
                 {"maximize", o.maximize}},
                {"step", "square_avg", "acc_delta"}) {
  check_usual(o.lr, o.eps, o.weight_decay);
  TS_CHECK_VALUE(o.rho >= 0 && o.rho <= 1, "Invalid rho value: ", nn::py(o.rho));
}

void Adadelta::step_group(const ParamGroup& group, Work& work) {
  op::_adadelta_step_(work.params, work.grads, work.at(1), work.at(2), work.at(0), group["lr"],
                      group["rho"], group["eps"], group["weight_decay"], on(group, "maximize"));
}

// ---- Adamax -----------------------------------------------------------------------------------

Adamax::Adamax(Groups groups, AdamaxOptions o)
    : Optimizer(std::move(groups),
                {{"lr", o.lr},
                 {"beta1", o.betas.first},
                 {"beta2", o.betas.second},
                 {"eps", o.eps},
                 {"weight_decay", o.weight_decay},
                 {"maximize", o.maximize}},
                {"step", "exp_avg", "exp_inf"}) {
  check_usual(o.lr, o.eps, o.weight_decay);
  check_betas(o.betas.first, o.betas.second);
}

void Adamax::step_group(const ParamGroup& group, Work& work) {
  op::_adamax_step_(work.params, work.grads, work.at(1), work.at(2), work.at(0), group["lr"],
                    group["beta1"], group["beta2"], group["eps"], group["weight_decay"],
                    on(group, "maximize"));
}

// ---- NAdam ------------------------------------------------------------------------------------

NAdam::NAdam(Groups groups, NAdamOptions o)
    : Optimizer(std::move(groups),
                {{"lr", o.lr},
                 {"beta1", o.betas.first},
                 {"beta2", o.betas.second},
                 {"eps", o.eps},
                 {"weight_decay", o.weight_decay},
                 {"momentum_decay", o.momentum_decay},
                 {"decoupled_weight_decay", o.decoupled_weight_decay},
                 {"maximize", o.maximize}},
                {"step", "mu_product", "exp_avg", "exp_avg_sq"}) {
  check_usual(o.lr, o.eps, o.weight_decay);
  check_betas(o.betas.first, o.betas.second);
  check_option(o.momentum_decay, "momentum_decay value");
}

void NAdam::start(const ParamGroup& group, const Tensor& p, State& state) const {
  Optimizer::start(group, p, state);
  state[1] = new_step(1.0);
}

void NAdam::step_group(const ParamGroup& group, Work& work) {
  op::_nadam_step_(work.params, work.grads, work.at(2), work.at(3), work.at(1), work.at(0),
                   group["lr"], group["beta1"], group["beta2"], group["eps"], group["weight_decay"],
                   group["momentum_decay"], on(group, "decoupled_weight_decay"),
                   on(group, "maximize"));
}

// ---- RAdam ------------------------------------------------------------------------------------

RAdam::RAdam(Groups groups, RAdamOptions o)
    : Optimizer(std::move(groups),
                {{"lr", o.lr},
                 {"beta1", o.betas.first},
                 {"beta2", o.betas.second},
                 {"eps", o.eps},
                 {"weight_decay", o.weight_decay},
                 {"maximize", o.maximize},
                 {"decoupled_weight_decay", o.decoupled_weight_decay}},
                {"step", "exp_avg", "exp_avg_sq"}) {
  check_usual(o.lr, o.eps, o.weight_decay);
  check_betas(o.betas.first, o.betas.second);
}

void RAdam::step_group(const ParamGroup& group, Work& work) {
  op::_radam_step_(work.params, work.grads, work.at(1), work.at(2), work.at(0), group["lr"],
                   group["beta1"], group["beta2"], group["eps"], group["weight_decay"],
                   on(group, "decoupled_weight_decay"), on(group, "maximize"));
}

// ---- Rprop ------------------------------------------------------------------------------------

Rprop::Rprop(Groups groups, RpropOptions o)
    : Optimizer(std::move(groups),
                {{"lr", o.lr},
                 {"eta_minus", o.etas.first},
                 {"eta_plus", o.etas.second},
                 {"step_size_min", o.step_sizes.first},
                 {"step_size_max", o.step_sizes.second},
                 {"maximize", o.maximize}},
                {"step", "prev", "step_size"}) {
  check_option(o.lr, "learning rate");
  TS_CHECK_VALUE(o.etas.first > 0 && o.etas.first < 1 && o.etas.second > 1,
                 "Invalid eta values: ", nn::py(o.etas.first), ", ", nn::py(o.etas.second));
}

void Rprop::start(const ParamGroup& group, const Tensor& p, State& state) const {
  Optimizer::start(group, p, state);
  op::fill_(state[2], group["lr"]);
}

void Rprop::step_group(const ParamGroup& group, Work& work) {
  op::_rprop_step_(work.params, work.grads, work.at(1), work.at(2), work.at(0), group["eta_minus"],
                   group["eta_plus"], group["step_size_min"], group["step_size_max"],
                   on(group, "maximize"));
}

// ---- ASGD -------------------------------------------------------------------------------------

ASGD::ASGD(Groups groups, ASGDOptions o)
    : Optimizer(std::move(groups),
                {{"lr", o.lr},
                 {"lambd", o.lambd},
                 {"alpha", o.alpha},
                 {"t0", o.t0},
                 {"weight_decay", o.weight_decay},
                 {"maximize", o.maximize}},
                {"step", "eta", "mu", "ax"}) {
  check_option(o.lr, "learning rate");
  check_option(o.weight_decay, "weight_decay value");
}

void ASGD::start(const ParamGroup& group, const Tensor& p, State& state) const {
  Optimizer::start(group, p, state);
  state[1] = new_step(group["lr"]);
  state[2] = new_step(1.0);
}

void ASGD::step_group(const ParamGroup& group, Work& work) {
  op::_asgd_step_(work.params, work.grads, work.at(3), work.at(1), work.at(2), work.at(0),
                  group["lr"], group["lambd"], group["alpha"], group["t0"], group["weight_decay"],
                  on(group, "maximize"));
}

}  // namespace tessera::optim
