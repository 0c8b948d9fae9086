// Schedules with a formula: each step's rate from the last one's, as PyTorch has them.
#include "tessera/optim/lr_scheduler.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "tessera/nn/text.h"
#include "tessera/optim/put.h"

namespace tessera::optim {

namespace {
constexpr double kPi = std::numbers::pi;
}

void put(ParamGroup& group, const char* name, double value) {
  if (group.has(name))
    group[name] = value;
  else
    group.options.emplace_back(name, value);
}

// ---- what all share ---------------------------------------------------------------------------

LRScheduler::LRScheduler(Optimizer& optimizer, bool remember) : optimizer_(optimizer) {
  for (ParamGroup& group : groups()) {
    if (remember && !group.has("initial_lr")) put(group, "initial_lr", group["lr"]);
    base_lrs_.push_back(group[remember ? "initial_lr" : "lr"]);
  }
}

void LRScheduler::start() {
  step_count_ = 0;
  step();
}

void LRScheduler::step() {
  ++step_count_;
  ++last_epoch_;
  set(get_lr());
}

void LRScheduler::go_to(int64_t epoch) {
  last_epoch_ = epoch;
  set(closed_form());
}

void LRScheduler::set(const std::vector<double>& rates) {
  for (size_t i = 0; i < groups().size() && i < rates.size(); ++i) groups()[i]["lr"] = rates[i];
  last_lr_ = this->rates();
}

std::vector<double> LRScheduler::rates() const {
  std::vector<double> all;
  for (const ParamGroup& group : groups()) all.push_back(group["lr"]);
  return all;
}

std::vector<double> LRScheduler::scaled(double factor) const {
  std::vector<double> all = rates();
  for (double& lr : all) lr *= factor;
  return all;
}

std::vector<double> LRScheduler::of_base(double factor) const {
  std::vector<double> all = base_lrs_;
  for (double& lr : all) lr *= factor;
  return all;
}

StateDict LRScheduler::state_dict() const {
  StateDict out;
  out.emplace_back("last_epoch", number_tensor(static_cast<double>(last_epoch_)));
  out.emplace_back("_step_count", number_tensor(static_cast<double>(step_count_)));
  for (auto& [name, list] : {std::pair{"base_lrs.", &base_lrs_}, {"_last_lr.", &last_lr_}})
    for (size_t i = 0; i < list->size(); ++i)
      out.emplace_back(cat(name, i), number_tensor((*list)[i]));
  for (auto& [name, value] : const_cast<LRScheduler*>(this)->numbers())
    out.emplace_back(name, number_tensor(*value));
  return out;
}

void LRScheduler::load_state_dict(const StateDict& given) {
  last_epoch_ = static_cast<int64_t>(number_of(given, "last_epoch"));
  step_count_ = static_cast<int64_t>(number_of(given, "_step_count"));
  for (auto& [name, list] : {std::pair{"base_lrs.", &base_lrs_}, {"_last_lr.", &last_lr_}})
    for (size_t i = 0; i < list->size(); ++i) (*list)[i] = number_of(given, cat(name, i));
  for (auto& [name, value] : numbers()) *value = number_of(given, name);
}

// ---- by functions -----------------------------------------------------------------------------

LambdaLR::LambdaLR(Optimizer& optimizer, Schedule lr_lambda)
    : LambdaLR(optimizer, std::vector<Schedule>(optimizer.param_groups().size(), lr_lambda)) {}
LambdaLR::LambdaLR(Optimizer& optimizer, std::vector<Schedule> lr_lambdas)
    : LRScheduler(optimizer), lambdas_(std::move(lr_lambdas)) {
  TS_CHECK_VALUE(lambdas_.size() == groups().size(), "Expected ", groups().size(),
                 " lr_lambdas, but got ", lambdas_.size());
  start();
}
std::vector<double> LambdaLR::get_lr() {
  std::vector<double> all = base_lrs_;
  for (size_t i = 0; i < all.size(); ++i) all[i] *= lambdas_[i](last_epoch_);
  return all;
}

MultiplicativeLR::MultiplicativeLR(Optimizer& optimizer, Schedule lr_lambda)
    : LRScheduler(optimizer), lambda_(std::move(lr_lambda)) {
  start();
}
std::vector<double> MultiplicativeLR::get_lr() {
  return last_epoch_ > 0 ? scaled(lambda_(last_epoch_)) : rates();
}

// ---- steps and powers -------------------------------------------------------------------------

StepLR::StepLR(Optimizer& optimizer, int64_t step_size, GammaOptions o)
    : LRScheduler(optimizer), step_size_(step_size), gamma_(o.gamma) {
  TS_CHECK_VALUE(step_size > 0, "StepLR: step_size must be positive, got ", step_size);
  start();
}
std::vector<double> StepLR::get_lr() {
  return last_epoch_ == 0 || last_epoch_ % step_size_ != 0 ? rates() : scaled(gamma_);
}
std::vector<double> StepLR::closed_form() {
  return of_base(std::pow(gamma_, static_cast<double>(last_epoch_ / step_size_)));
}

MultiStepLR::MultiStepLR(Optimizer& optimizer, std::vector<int64_t> milestones, GammaOptions o)
    : LRScheduler(optimizer), milestones_(std::move(milestones)), gamma_(o.gamma) {
  std::sort(milestones_.begin(), milestones_.end());
  start();
}
std::vector<double> MultiStepLR::get_lr() {
  auto count = std::count(milestones_.begin(), milestones_.end(), last_epoch_);
  return count == 0 ? rates() : scaled(std::pow(gamma_, static_cast<double>(count)));
}
std::vector<double> MultiStepLR::closed_form() {
  auto passed = std::upper_bound(milestones_.begin(), milestones_.end(), last_epoch_);
  return of_base(std::pow(gamma_, static_cast<double>(passed - milestones_.begin())));
}

ExponentialLR::ExponentialLR(Optimizer& optimizer, double gamma)
    : LRScheduler(optimizer), gamma_(gamma) {
  start();
}
std::vector<double> ExponentialLR::get_lr() { return last_epoch_ == 0 ? rates() : scaled(gamma_); }
std::vector<double> ExponentialLR::closed_form() {
  return of_base(std::pow(gamma_, static_cast<double>(last_epoch_)));
}

// ---- over so many steps -----------------------------------------------------------------------

ConstantLR::ConstantLR(Optimizer& optimizer, ConstantLROptions o) : LRScheduler(optimizer), o_(o) {
  TS_CHECK_VALUE(o.factor <= 1 && o.factor >= 0,
                 "Constant multiplicative factor expected to be between 0 and 1.");
  start();
}
std::vector<double> ConstantLR::get_lr() {
  if (last_epoch_ == 0) return scaled(o_.factor);
  if (last_epoch_ != o_.total_iters) return rates();
  TS_CHECK_VALUE(o_.factor > 0, "ConstantLR: from a factor of 0 no rate can be found again");
  return scaled(1.0 / o_.factor);
}
std::vector<double> ConstantLR::closed_form() {
  return of_base(o_.factor + (last_epoch_ >= o_.total_iters ? 1 - o_.factor : 0.0));
}

LinearLR::LinearLR(Optimizer& optimizer, LinearLROptions o) : LRScheduler(optimizer), o_(o) {
  TS_CHECK_VALUE(o.start_factor <= 1 && o.start_factor > 0,
                 "Starting multiplicative factor expected to be greater than 0 and less or equal "
                 "to 1.");
  TS_CHECK_VALUE(o.end_factor <= 1 && o.end_factor >= 0,
                 "Ending multiplicative factor expected to be between 0 and 1.");
  start();
}
std::vector<double> LinearLR::get_lr() {
  if (last_epoch_ == 0) return scaled(o_.start_factor);
  if (last_epoch_ > o_.total_iters) return rates();
  double span = o_.end_factor - o_.start_factor;
  return scaled(1.0 + span / (static_cast<double>(o_.total_iters) * o_.start_factor +
                              static_cast<double>(last_epoch_ - 1) * span));
}
std::vector<double> LinearLR::closed_form() {
  double done = static_cast<double>(std::min(o_.total_iters, last_epoch_)) /
                static_cast<double>(o_.total_iters);
  return of_base(o_.start_factor + (o_.end_factor - o_.start_factor) * done);
}

PolynomialLR::PolynomialLR(Optimizer& optimizer, PolynomialLROptions o)
    : LRScheduler(optimizer), o_(o) {
  start();
}
std::vector<double> PolynomialLR::get_lr() {
  if (last_epoch_ == 0 || last_epoch_ > o_.total_iters) return rates();
  auto total = static_cast<double>(o_.total_iters);
  return scaled(std::pow((1.0 - static_cast<double>(last_epoch_) / total) /
                             (1.0 - static_cast<double>(last_epoch_ - 1) / total),
                         o_.power));
}
std::vector<double> PolynomialLR::closed_form() {
  double left = 1.0 - static_cast<double>(std::min(o_.total_iters, last_epoch_)) /
                          static_cast<double>(o_.total_iters);
  return of_base(std::pow(left, o_.power));
}

// ---- along a cosine ---------------------------------------------------------------------------

CosineAnnealingLR::CosineAnnealingLR(Optimizer& optimizer, int64_t T_max, CosineAnnealingOptions o)
    : LRScheduler(optimizer), T_max_(T_max), eta_min_(o.eta_min) {
  TS_CHECK_VALUE(T_max > 0, "CosineAnnealingLR: T_max must be positive, got ", T_max);
  start();
}
std::vector<double> CosineAnnealingLR::get_lr() {
  std::vector<double> all = rates();
  if (last_epoch_ == 0) return all;
  if (step_count_ == 1 && last_epoch_ > 0) return closed_form();
  auto T = static_cast<double>(T_max_), epoch = static_cast<double>(last_epoch_);
  bool lowest = (last_epoch_ - 1 - T_max_) % (2 * T_max_) == 0;
  for (size_t i = 0; i < all.size(); ++i)
    // From the lowest point a ratio of distances would divide by 0.
    all[i] = lowest ? all[i] + (base_lrs_[i] - eta_min_) * (1 - std::cos(kPi / T)) / 2
                    : (1 + std::cos(kPi * epoch / T)) / (1 + std::cos(kPi * (epoch - 1) / T)) *
                              (all[i] - eta_min_) +
                          eta_min_;
  return all;
}
std::vector<double> CosineAnnealingLR::closed_form() {
  std::vector<double> all = base_lrs_;
  double angle = kPi * static_cast<double>(last_epoch_) / static_cast<double>(T_max_);
  for (double& lr : all) lr = eta_min_ + (lr - eta_min_) * (1 + std::cos(angle)) / 2;
  return all;
}

CosineAnnealingWarmRestarts::CosineAnnealingWarmRestarts(Optimizer& optimizer, int64_t T_0,
                                                         WarmRestartsOptions o)
    : LRScheduler(optimizer), T_0_(T_0), o_(o), T_i_(static_cast<double>(T_0)) {
  TS_CHECK_VALUE(T_0 > 0, "Expected positive integer T_0, but got ", T_0);
  TS_CHECK_VALUE(o.T_mult >= 1, "Expected integer T_mult >= 1, but got ", o.T_mult);
  start();
}
std::vector<double> CosineAnnealingWarmRestarts::get_lr() {
  std::vector<double> all = base_lrs_;
  for (double& lr : all)
    lr = o_.eta_min + (lr - o_.eta_min) * (1 + std::cos(kPi * T_cur_ / T_i_)) / 2;
  return all;
}
void CosineAnnealingWarmRestarts::step() {
  if (last_epoch_ < 0) {
    last_epoch_ = 0;
    T_cur_ = 0;
    T_i_ = static_cast<double>(T_0_);
  } else {
    ++last_epoch_;
    T_cur_ += 1;
    if (T_cur_ >= T_i_) {
      T_cur_ = std::fmod(T_cur_, T_i_);
      T_i_ *= static_cast<double>(o_.T_mult);
    }
  }
  set(get_lr());
}
std::vector<std::pair<const char*, double*>> CosineAnnealingWarmRestarts::numbers() {
  return {{"T_i", &T_i_}, {"T_cur", &T_cur_}};
}

}  // namespace tessera::optim
