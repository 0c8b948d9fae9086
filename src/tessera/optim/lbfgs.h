// L-BFGS: Newton's method with the inverse Hessian approximated from the last gradients.
#pragma once
#include "tessera/optim/optimizer.h"

namespace tessera::optim {

struct LBFGSOptions {
  double lr = 1;
  int64_t max_iter = 20;
  std::optional<int64_t> max_eval = std::nullopt;  // max_iter * 5 / 4
  double tolerance_grad = 1e-7;
  double tolerance_change = 1e-9;
  int64_t history_size = 100;
  std::string line_search_fn = "";  // or "strong_wolfe"
};

class LBFGS : public Optimizer {
 public:
  explicit LBFGS(std::vector<Tensor> params, LBFGSOptions options = {});
  // Up to max_iter iterations, each with one or more calls of the closure; the loss before them.
  Tensor step(const Closure& closure) override;
  void step() override;  // raises: it needs a closure
  void add_param_group(ParamGroup group) override;
  StateDict state_dict() const override;
  void load_state_dict(const StateDict& state) override;

 protected:
  void step_group(const ParamGroup&, Work&) override {}

 private:
  struct Found {
    double loss;
    Tensor grad;
    double t;
    int64_t evaluations;
  };
  Tensor flat_grad() const;
  void move(double t, const Tensor& direction);
  void next_direction(const Tensor& grad);
  Found strong_wolfe(const Closure& closure, double t, double loss, const Tensor& grad, double gtd);
  double evaluate(const Closure& closure, double t, Tensor& grad);

  const std::vector<Tensor>& params() const { return param_groups()[0].params; }

  LBFGSOptions options_;
  // What one step leaves to the next.
  struct Memory {
    int64_t func_evals = 0, n_iter = 0;
    double t = 0, prev_loss = 0;
    Tensor d, prev_flat_grad, h_diag;
    std::vector<Tensor> old_dirs, old_stps, ro;
  };
  Memory memory_;
};

}  // namespace tessera::optim
