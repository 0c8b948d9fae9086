// What all optimizers share: groups of parameters with options, state by parameter.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tessera/face/tensor.h"
#include "tessera/save/state_dict.h"

namespace tessera::optim {

using tessera::StateDict;
// Numbers by name; a bool is 0 or 1, Python's betas are beta1 and beta2.
using Options = std::vector<std::pair<std::string, double>>;

// Parameters with options of their own; those that are not named are the optimizer's:
//   optim::SGD({{net.base.parameters(), {{"lr", 1e-4}}}, {net.head.parameters()}}, {.lr = 1e-2})
class ParamGroup {
 public:
  ParamGroup(std::vector<Tensor> params, Options options = {})
      : params(std::move(params)), options(std::move(options)) {}

  double& operator[](std::string_view name);  // raises where there is none
  double operator[](std::string_view name) const;
  bool has(std::string_view name) const;

  std::vector<Tensor> params;
  Options options;
};

class Optimizer {
 public:
  using Closure = std::function<Tensor()>;

  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  virtual void step();
  // The closure computes the loss anew; its value is returned.
  virtual Tensor step(const Closure& closure);
  void zero_grad(bool set_to_none = true);

  virtual void add_param_group(ParamGroup group);
  std::vector<ParamGroup>& param_groups() { return groups_; }
  const std::vector<ParamGroup>& param_groups() const { return groups_; }

  // Everything as tensors by name: "param_groups.0.lr", "state.3.exp_avg" (of the fourth
  // parameter). Options are numbers in float64.
  virtual StateDict state_dict() const;
  virtual void load_state_dict(const StateDict& state);

 protected:
  // The state of a parameter: a tensor for each name that the optimizer gave, undefined at first.
  using State = std::vector<Tensor>;
  // What a group's step works on: those of its parameters that have a gradient.
  struct Work {
    std::vector<TensorBase> params, grads;
    std::vector<State*> states;
    const std::vector<const char*>* names = nullptr;  // of the tensors of a state
    // One tensor of each state; raises where a state that was loaded, or begun with other options,
    // lacks it.
    std::vector<TensorBase> at(size_t slot) const;
    size_t size() const { return params.size(); }
  };

  Optimizer(std::vector<ParamGroup> groups, Options defaults, std::vector<const char*> state_names);
  virtual void step_group(const ParamGroup& group, Work& work) = 0;
  // The state of a parameter when it takes its first step: counts at 0, tensors of zeros.
  virtual void start(const ParamGroup& group, const Tensor& p, State& state) const;
  State& state_of(size_t parameter) { return states_[parameter]; }

 private:
  std::vector<ParamGroup> groups_;
  Options defaults_;
  std::vector<const char*> names_;
  std::vector<State> states_;  // of all groups' parameters, in order
};

// The state in a file, laid out as Python's optimizers lay it out: they read it, and what
// torch.save(optimizer.state_dict(), ...) wrote is read here. (Of LBFGS, between C++ programs
// only.)
void save(const Optimizer& optimizer, const std::string& path);
void load(Optimizer& optimizer, const std::string& path);

// ---- for optimizers ---------------------------------------------------------------------------

// A count of steps, as PyTorch keeps it: a number on the CPU.
Tensor new_step(double value = 0.0);
// Refuses an option out of range, as PyTorch words it.
void check_option(double value, const char* name);
void check_betas(double beta1, double beta2);
// A tensor of zeros like a parameter.
Tensor zeros_as(const Tensor& p);
// A number kept as a tensor, and back.
Tensor number_tensor(double value);
double number_of(const StateDict& state, const std::string& name);

}  // namespace tessera::optim
