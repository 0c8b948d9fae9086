// Schedules that look at more than the last rate: OneCycleLR, CyclicLR, ReduceLROnPlateau, and
// those made of others.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "tessera/nn/text.h"
#include "tessera/optim/lr_scheduler.h"
#include "tessera/optim/put.h"

namespace tessera::optim {

namespace {

int64_t total_of(const OneCycleLROptions& o) {
  auto checked = [](const char* name, int64_t value) {
    TS_CHECK_VALUE(value > 0, "Expected positive integer ", name, ", but got ", value);
    return value;
  };
  if (o.total_steps) return checked("total_steps", *o.total_steps);
  TS_CHECK_VALUE(o.epochs && o.steps_per_epoch,
                 "You must define either total_steps OR (epochs AND steps_per_epoch)");
  return checked("epochs", *o.epochs) * checked("steps_per_epoch", *o.steps_per_epoch);
}

const char* momentum_name(const ParamGroup& group) {
  return group.has("beta1") ? "beta1" : "momentum";
}

// The momentum that goes down as the rate goes up, where it does.
template <class Options>
void start_momentum(ParamGroup& group, const Options& o) {
  if (!o.cycle_momentum) return;
  TS_CHECK_VALUE(group.has(momentum_name(group)),
                 "optimizer must support momentum or beta1 with `cycle_momentum` option enabled");
  group[momentum_name(group)] = o.max_momentum;
  put(group, "max_momentum", o.max_momentum);
  put(group, "base_momentum", o.base_momentum);
}

}  // namespace

OneCycleLR::OneCycleLR(Optimizer& optimizer, double max_lr, OneCycleLROptions o)
    : LRScheduler(optimizer), o_(std::move(o)), total_steps_(total_of(o_)) {
  TS_CHECK_VALUE(o_.pct_start >= 0 && o_.pct_start <= 1,
                 "Expected float between 0 and 1 pct_start, but got ", nn::py(o_.pct_start));
  TS_CHECK_VALUE(o_.anneal_strategy == "cos" || o_.anneal_strategy == "linear",
                 "anneal_strategy must be one of 'cos' or 'linear', instead got ",
                 o_.anneal_strategy);
  auto total = static_cast<double>(total_steps_);
  double up = o_.pct_start * total - 1, down = 2 * o_.pct_start * total - 2, last = total - 1;
  phases_ = {{up, "initial_lr", "max_lr", "max_momentum", "base_momentum"}};
  if (o_.three_phase) {
    phases_.push_back({down, "max_lr", "initial_lr", "base_momentum", "max_momentum"});
    phases_.push_back({last, "initial_lr", "min_lr", "max_momentum", "max_momentum"});
  } else {
    phases_.push_back({last, "max_lr", "min_lr", "base_momentum", "max_momentum"});
  }
  base_lrs_.clear();
  for (ParamGroup& group : groups()) {
    put(group, "initial_lr", max_lr / o_.div_factor);
    put(group, "max_lr", max_lr);
    put(group, "min_lr", group["initial_lr"] / o_.final_div_factor);
    base_lrs_.push_back(group["initial_lr"]);
    start_momentum(group, o_);
  }
  start();
}

double OneCycleLR::anneal(double start, double end, double pct) const {
  if (o_.anneal_strategy == "cos")
    return end + (start - end) / 2.0 * (std::cos(std::numbers::pi * pct) + 1);
  return (end - start) * pct + start;
}

std::vector<double> OneCycleLR::get_lr() {
  TS_CHECK_VALUE(last_epoch_ <= total_steps_, "Tried to step ", last_epoch_,
                 " times. The specified number of total steps is ", total_steps_);
  auto step = static_cast<double>(last_epoch_);
  std::vector<double> all;
  for (ParamGroup& group : groups()) {
    double start = 0.0;
    for (size_t i = 0; i < phases_.size(); ++i) {
      const Phase& phase = phases_[i];
      if (step <= phase.end || i + 1 == phases_.size()) {
        double pct = (step - start) / (phase.end - start);
        all.push_back(anneal(group[phase.start_lr], group[phase.end_lr], pct));
        if (o_.cycle_momentum)
          group[momentum_name(group)] =
              anneal(group[phase.start_momentum], group[phase.end_momentum], pct);
        break;
      }
      start = phase.end;
    }
  }
  return all;
}

CyclicLR::CyclicLR(Optimizer& optimizer, double base_lr, double max_lr, CyclicLROptions o)
    : LRScheduler(optimizer, false), o_(std::move(o)), max_lr_(max_lr) {
  TS_CHECK_VALUE(o_.step_size_up > 0 && o_.step_size_down.value_or(1) >= 0,
                 "CyclicLR: step_size_up must be positive, got ", o_.step_size_up);
  auto up = static_cast<double>(o_.step_size_up);
  total_size_ = up + static_cast<double>(o_.step_size_down.value_or(o_.step_size_up));
  step_ratio_ = up / total_size_;
  TS_CHECK_VALUE(
      o_.scale_fn || o_.mode == "triangular" || o_.mode == "triangular2" || o_.mode == "exp_range",
      "mode is invalid and scale_fn is None");
  base_lrs_.assign(groups().size(), base_lr);
  for (ParamGroup& group : groups()) {
    group["lr"] = base_lr;
    if (!group.has("initial_lr")) put(group, "initial_lr", base_lr);
    start_momentum(group, o_);
  }
  start();
}

double CyclicLR::scale(double cycle) const {
  auto epoch = static_cast<double>(last_epoch_);
  if (o_.scale_fn) return o_.scale_fn(o_.scale_mode == "cycle" ? cycle : epoch);
  if (o_.mode == "triangular") return 1.0;
  return o_.mode == "triangular2" ? 1 / std::pow(2.0, cycle - 1) : std::pow(o_.gamma, epoch);
}

std::vector<double> CyclicLR::get_lr() {
  double turns = static_cast<double>(last_epoch_) / total_size_;
  double cycle = std::floor(1 + turns), x = 1.0 + turns - cycle;
  double height = x <= step_ratio_ ? x / step_ratio_ : (x - 1) / (step_ratio_ - 1);
  double factor = scale(cycle);
  if (o_.cycle_momentum)
    for (ParamGroup& group : groups())
      group[momentum_name(group)] =
          o_.max_momentum - (o_.max_momentum - o_.base_momentum) * height * factor;
  std::vector<double> all = base_lrs_;
  for (double& lr : all) lr += (max_lr_ - lr) * height * factor;
  return all;
}

// ---- when a number stops getting better -------------------------------------------------------

ReduceLROnPlateau::ReduceLROnPlateau(Optimizer& optimizer, ReduceLROnPlateauOptions o)
    : LRScheduler(optimizer, false), o_(std::move(o)) {
  TS_CHECK_VALUE(o_.factor < 1.0, "Factor should be < 1.0.");
  TS_CHECK_VALUE(o_.mode == "min" || o_.mode == "max", "mode ", o_.mode, " is unknown!");
  TS_CHECK_VALUE(o_.threshold_mode == "rel" || o_.threshold_mode == "abs", "threshold mode ",
                 o_.threshold_mode, " is unknown!");
  best_ = std::numeric_limits<double>::infinity() * (o_.mode == "min" ? 1 : -1);
  last_epoch_ = 0;
  last_lr_ = rates();
}

void ReduceLROnPlateau::step() {
  raise(ErrorKind::kType, "ReduceLROnPlateau.step() needs a metric");
}

bool ReduceLROnPlateau::is_better(double a) const {
  bool relative = o_.threshold_mode == "rel";
  if (o_.mode == "min") return a < (relative ? best_ * (1.0 - o_.threshold) : best_ - o_.threshold);
  return a > (relative ? best_ * (o_.threshold + 1.0) : best_ + o_.threshold);
}

void ReduceLROnPlateau::step(double metric) {
  ++last_epoch_;
  if (is_better(metric)) {
    best_ = metric;
    num_bad_epochs_ = 0;
  } else {
    num_bad_epochs_ += 1;
  }
  if (cooldown_counter_ > 0) {
    cooldown_counter_ -= 1;
    num_bad_epochs_ = 0;
  }
  if (num_bad_epochs_ > static_cast<double>(o_.patience)) {
    for (ParamGroup& group : groups()) {
      double lr = std::max(group["lr"] * o_.factor, o_.min_lr);
      if (group["lr"] - lr > o_.eps) group["lr"] = lr;
    }
    cooldown_counter_ = static_cast<double>(o_.cooldown);
    num_bad_epochs_ = 0;
  }
  last_lr_ = rates();
}

std::vector<std::pair<const char*, double*>> ReduceLROnPlateau::numbers() {
  return {{"best", &best_},
          {"cooldown_counter", &cooldown_counter_},
          {"num_bad_epochs", &num_bad_epochs_}};
}

// ---- one after another ------------------------------------------------------------------------

namespace {

using Schedulers = std::vector<std::shared_ptr<LRScheduler>>;

Optimizer& checked(const Schedulers& schedulers, const char* owner, Optimizer* optimizer) {
  TS_CHECK_VALUE(!schedulers.empty(), owner,
                 " expects at least one scheduler to be chained, but got no scheduler.");
  if (!optimizer) optimizer = &schedulers[0]->optimizer();
  for (size_t i = 0; i < schedulers.size(); ++i) {
    TS_CHECK_VALUE(!dynamic_cast<ReduceLROnPlateau*>(schedulers[i].get()), owner,
                   " does not support `ReduceLROnPlateau` scheduler as it requires additional "
                   "kwargs to be specified when calling `step`, but got one at index ",
                   i, " in the given schedulers sequence.");
    TS_CHECK_VALUE(&schedulers[i]->optimizer() == optimizer, owner,
                   " expects all schedulers to belong to the same optimizer, but got another "
                   "one's at index ",
                   i, ".");
  }
  return *optimizer;
}

void add_states(const Schedulers& schedulers, StateDict& out) {
  for (size_t i = 0; i < schedulers.size(); ++i)
    for (auto& [name, value] : schedulers[i]->state_dict())
      out.emplace_back(cat("_schedulers.", i, ".", name), value);
}

void load_states(const Schedulers& schedulers, const StateDict& given) {
  for (size_t i = 0; i < schedulers.size(); ++i) {
    std::string prefix = cat("_schedulers.", i, ".");
    StateDict own;
    for (auto& [name, value] : given)
      if (name.starts_with(prefix)) own.emplace_back(name.substr(prefix.size()), value);
    schedulers[i]->load_state_dict(own);
  }
}

}  // namespace

ChainedScheduler::ChainedScheduler(Schedulers schedulers)
    : LRScheduler(checked(schedulers, "ChainedScheduler", nullptr), false),
      schedulers_(std::move(schedulers)) {
  last_lr_ = rates();
}
void ChainedScheduler::step() {
  for (const auto& scheduler : schedulers_) scheduler->step();
  last_lr_ = rates();
}
// What the parts do multiplies, and has no formula: from the first rates on, their steps.
void ChainedScheduler::go_to(int64_t epoch) {
  for (ParamGroup& group : groups())
    if (group.has("initial_lr")) group["lr"] = group["initial_lr"];
  for (int64_t i = 0; i <= epoch; ++i) step();
}
void ChainedScheduler::undo() {
  for (const auto& scheduler : schedulers_) scheduler->undo();
}
StateDict ChainedScheduler::state_dict() const {
  StateDict out = LRScheduler::state_dict();
  add_states(schedulers_, out);
  return out;
}
void ChainedScheduler::load_state_dict(const StateDict& given) {
  LRScheduler::load_state_dict(given);
  load_states(schedulers_, given);
}

SequentialLR::SequentialLR(Optimizer& optimizer, Schedulers schedulers,
                           std::vector<int64_t> milestones)
    : LRScheduler(checked(schedulers, "SequentialLR", &optimizer)),
      schedulers_(std::move(schedulers)),
      milestones_(std::move(milestones)) {
  TS_CHECK_VALUE(milestones_.size() + 1 == schedulers_.size(),
                 "Sequential Schedulers expects number of schedulers provided to be one more than "
                 "the number of milestone points, but got number of schedulers ",
                 schedulers_.size(), " and the number of milestones to be equal to ",
                 milestones_.size());
  last_epoch_ = 0;
  // All of them made their first step when they were made: undone, but for the first one's.
  for (ParamGroup& group : groups()) group["lr"] = group["initial_lr"];
  undo();
  schedulers_[0]->start();
  last_lr_ = schedulers_[0]->get_last_lr();
}

void SequentialLR::undo() {
  for (const auto& scheduler : schedulers_) scheduler->undo();
}

void SequentialLR::step() {
  ++last_epoch_;
  auto at = static_cast<size_t>(
      std::upper_bound(milestones_.begin(), milestones_.end(), last_epoch_) - milestones_.begin());
  LRScheduler& scheduler = *schedulers_[at];
  if (at > 0 && milestones_[at - 1] == last_epoch_)
    scheduler.go_to(0);
  else
    scheduler.step();
  last_lr_ = scheduler.get_last_lr();
}

StateDict SequentialLR::state_dict() const {
  StateDict out = LRScheduler::state_dict();
  add_states(schedulers_, out);
  return out;
}

void SequentialLR::load_state_dict(const StateDict& given) {
  LRScheduler::load_state_dict(given);
  load_states(schedulers_, given);
}

}  // namespace tessera::optim
