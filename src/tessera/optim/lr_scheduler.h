// Schedules of the learning rate: each sets the rate of every group of its optimizer, which must
// live as long as it does.
#pragma once
#include <memory>

#include "tessera/optim/optimizer.h"

namespace tessera::optim {

class LRScheduler {
 public:
  virtual ~LRScheduler() = default;
  LRScheduler(const LRScheduler&) = delete;
  LRScheduler& operator=(const LRScheduler&) = delete;

  virtual void step();
  // The rates as last set, one for each group.
  const std::vector<double>& get_last_lr() const { return last_lr_; }
  int64_t last_epoch() const { return last_epoch_; }
  Optimizer& optimizer() const { return optimizer_; }

  // Numbers by name; those of SequentialLR have its schedulers' as well.
  virtual StateDict state_dict() const;
  virtual void load_state_dict(const StateDict& state);

 protected:
  // Unless told otherwise, the groups remember their first rates as "initial_lr".
  explicit LRScheduler(Optimizer& optimizer, bool remember = true);
  // The first step; the last thing a constructor does.
  void start();
  // The rates of this step, computed from those of the last one.
  virtual std::vector<double> get_lr() = 0;
  // ... computed from the number of the step alone, where there is a formula.
  virtual std::vector<double> closed_form() { return get_lr(); }
  // Numbers that state_dict holds beside the usual.
  virtual std::vector<std::pair<const char*, double*>> numbers() { return {}; }

  std::vector<ParamGroup>& groups() const { return optimizer_.param_groups(); }
  std::vector<double> rates() const;
  std::vector<double> scaled(double factor) const;   // the rates times a factor
  std::vector<double> of_base(double factor) const;  // the first rates times a factor
  void set(const std::vector<double>& rates);
  friend class ChainedScheduler;
  friend class SequentialLR;
  virtual void go_to(int64_t epoch);  // by closed_form()
  virtual void undo() { --last_epoch_; }

  Optimizer& optimizer_;
  std::vector<double> base_lrs_, last_lr_;
  int64_t last_epoch_ = -1;
  int64_t step_count_ = 0;
};

using Schedule = std::function<double(int64_t)>;

// The first rate times a function of the step.
class LambdaLR : public LRScheduler {
 public:
  LambdaLR(Optimizer& optimizer, Schedule lr_lambda);
  LambdaLR(Optimizer& optimizer, std::vector<Schedule> lr_lambdas);  // one for each group

 private:
  std::vector<double> get_lr() override;
  std::vector<Schedule> lambdas_;
};

// The last rate times a function of the step.
class MultiplicativeLR : public LRScheduler {
 public:
  MultiplicativeLR(Optimizer& optimizer, Schedule lr_lambda);

 private:
  std::vector<double> get_lr() override;
  Schedule lambda_;
};

struct GammaOptions {
  double gamma = 0.1;
};
// Times gamma every step_size steps.
class StepLR : public LRScheduler {
 public:
  StepLR(Optimizer& optimizer, int64_t step_size, GammaOptions options = {});

 private:
  std::vector<double> get_lr() override;
  std::vector<double> closed_form() override;
  int64_t step_size_;
  double gamma_;
};

// Times gamma at the given steps.
class MultiStepLR : public LRScheduler {
 public:
  MultiStepLR(Optimizer& optimizer, std::vector<int64_t> milestones, GammaOptions options = {});

 private:
  std::vector<double> get_lr() override;
  std::vector<double> closed_form() override;
  std::vector<int64_t> milestones_;
  double gamma_;
};

// Times gamma at every step.
class ExponentialLR : public LRScheduler {
 public:
  ExponentialLR(Optimizer& optimizer, double gamma);

 private:
  std::vector<double> get_lr() override;
  std::vector<double> closed_form() override;
  double gamma_;
};

struct ConstantLROptions {
  double factor = 1.0 / 3;
  int64_t total_iters = 5;
};
// A fraction of the rate for so many steps, then the rate.
class ConstantLR : public LRScheduler {
 public:
  explicit ConstantLR(Optimizer& optimizer, ConstantLROptions options = {});

 private:
  std::vector<double> get_lr() override;
  std::vector<double> closed_form() override;
  ConstantLROptions o_;
};

struct LinearLROptions {
  double start_factor = 1.0 / 3;
  double end_factor = 1.0;
  int64_t total_iters = 5;
};
// From one fraction of the rate to another in a line.
class LinearLR : public LRScheduler {
 public:
  explicit LinearLR(Optimizer& optimizer, LinearLROptions options = {});

 private:
  std::vector<double> get_lr() override;
  std::vector<double> closed_form() override;
  LinearLROptions o_;
};

struct PolynomialLROptions {
  int64_t total_iters = 5;
  double power = 1.0;
};
// Down to 0 by a power of what is left.
class PolynomialLR : public LRScheduler {
 public:
  explicit PolynomialLR(Optimizer& optimizer, PolynomialLROptions options = {});

 private:
  std::vector<double> get_lr() override;
  std::vector<double> closed_form() override;
  PolynomialLROptions o_;
};

struct CosineAnnealingOptions {
  double eta_min = 0.0;
};
// Down to eta_min, and up again, along a cosine.
class CosineAnnealingLR : public LRScheduler {
 public:
  CosineAnnealingLR(Optimizer& optimizer, int64_t T_max, CosineAnnealingOptions options = {});

 private:
  std::vector<double> get_lr() override;
  std::vector<double> closed_form() override;
  int64_t T_max_;
  double eta_min_;
};

struct WarmRestartsOptions {
  int64_t T_mult = 1;
  double eta_min = 0.0;
};
// Down along a cosine, then from the start again; periods may grow.
class CosineAnnealingWarmRestarts : public LRScheduler {
 public:
  CosineAnnealingWarmRestarts(Optimizer& optimizer, int64_t T_0, WarmRestartsOptions options = {});
  void step() override;

 private:
  std::vector<double> get_lr() override;
  std::vector<std::pair<const char*, double*>> numbers() override;
  int64_t T_0_;
  WarmRestartsOptions o_;
  double T_i_, T_cur_ = -1;
};

struct OneCycleLROptions {
  std::optional<int64_t> total_steps = std::nullopt;  // or both of the next two
  std::optional<int64_t> epochs = std::nullopt;
  std::optional<int64_t> steps_per_epoch = std::nullopt;
  double pct_start = 0.3;
  std::string anneal_strategy = "cos";  // or "linear"
  bool cycle_momentum = true;
  double base_momentum = 0.85;
  double max_momentum = 0.95;
  double div_factor = 25.0;
  double final_div_factor = 1e4;
  bool three_phase = false;
};
// Up to max_lr once, then far down: one pass of a training run.
class OneCycleLR : public LRScheduler {
 public:
  OneCycleLR(Optimizer& optimizer, double max_lr, OneCycleLROptions options);

 private:
  struct Phase {
    double end;
    const char *start_lr, *end_lr, *start_momentum, *end_momentum;
  };
  std::vector<double> get_lr() override;
  double anneal(double start, double end, double pct) const;
  OneCycleLROptions o_;
  int64_t total_steps_;
  std::vector<Phase> phases_;
};

struct CyclicLROptions {
  int64_t step_size_up = 2000;
  std::optional<int64_t> step_size_down = std::nullopt;
  std::string mode = "triangular";  // "triangular2", "exp_range"
  double gamma = 1.0;
  std::function<double(double)> scale_fn = {};  // in the place of the mode
  std::string scale_mode = "cycle";             // of scale_fn; or "iterations"
  bool cycle_momentum = true;
  double base_momentum = 0.8;
  double max_momentum = 0.9;
};
// Up from base_lr to max_lr and down again.
class CyclicLR : public LRScheduler {
 public:
  CyclicLR(Optimizer& optimizer, double base_lr, double max_lr, CyclicLROptions options = {});

 private:
  std::vector<double> get_lr() override;
  double scale(double cycle) const;
  CyclicLROptions o_;
  double max_lr_, total_size_, step_ratio_;
};

struct ReduceLROnPlateauOptions {
  std::string mode = "min";  // or "max"
  double factor = 0.1;
  int64_t patience = 10;
  double threshold = 1e-4;
  std::string threshold_mode = "rel";  // or "abs"
  int64_t cooldown = 0;
  double min_lr = 0;
  double eps = 1e-8;
};
// Times factor after more than `patience` steps without a better metric.
class ReduceLROnPlateau : public LRScheduler {
 public:
  explicit ReduceLROnPlateau(Optimizer& optimizer, ReduceLROnPlateauOptions options = {});
  void step(double metric);
  void step() override;  // raises: it needs a metric

 private:
  std::vector<double> get_lr() override { return rates(); }
  bool is_better(double metric) const;
  std::vector<std::pair<const char*, double*>> numbers() override;
  ReduceLROnPlateauOptions o_;
  double best_, cooldown_counter_ = 0, num_bad_epochs_ = 0;
};

// Several schedules at once.
class ChainedScheduler : public LRScheduler {
 public:
  explicit ChainedScheduler(std::vector<std::shared_ptr<LRScheduler>> schedulers);
  void step() override;
  StateDict state_dict() const override;
  void load_state_dict(const StateDict& state) override;

 private:
  std::vector<double> get_lr() override { return rates(); }
  void go_to(int64_t epoch) override;
  void undo() override;
  std::vector<std::shared_ptr<LRScheduler>> schedulers_;
};

// One schedule after another, changing at the milestones.
class SequentialLR : public LRScheduler {
 public:
  SequentialLR(Optimizer& optimizer, std::vector<std::shared_ptr<LRScheduler>> schedulers,
               std::vector<int64_t> milestones);
  void step() override;
  StateDict state_dict() const override;
  void load_state_dict(const StateDict& state) override;

 private:
  std::vector<double> get_lr() override { return rates(); }
  void undo() override;
  std::vector<std::shared_ptr<LRScheduler>> schedulers_;
  std::vector<int64_t> milestones_;
};

}  // namespace tessera::optim
