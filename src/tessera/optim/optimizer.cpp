#include "tessera/optim/optimizer.h"

#include "tessera/nn/text.h"
#include "tessera/ops/reserve.h"

namespace tessera::optim {

using autograd::GradMode;

double& ParamGroup::operator[](std::string_view name) {
  for (auto& [key, value] : options)
    if (key == name) return value;
  raise(ErrorKind::kValue, cat("a parameter group has no option '", name, "'"));
}
double ParamGroup::operator[](std::string_view name) const {
  return const_cast<ParamGroup&>(*this)[name];
}
bool ParamGroup::has(std::string_view name) const {
  for (auto& [key, value] : options)
    if (key == name) return true;
  return false;
}

std::vector<TensorBase> Optimizer::Work::at(size_t slot) const {
  std::vector<TensorBase> all;
  all.reserve(states.size());
  for (State* state : states) {
    TS_CHECK_VALUE((*state)[slot].defined(), "the state of a parameter has no '", (*names)[slot],
                   "': it is another optimizer's, or was begun with other options");
    all.push_back((*state)[slot]);
  }
  return all;
}

Optimizer::Optimizer(std::vector<ParamGroup> groups, Options defaults,
                     std::vector<const char*> state_names)
    : defaults_(std::move(defaults)), names_(std::move(state_names)) {
  TS_CHECK_VALUE(!groups.empty() && !(groups.size() == 1 && groups[0].params.empty()),
                 "optimizer got an empty parameter list");
  for (ParamGroup& group : groups) Optimizer::add_param_group(std::move(group));
}

void Optimizer::add_param_group(ParamGroup group) {
  for (const Tensor& p : group.params) {
    TS_CHECK_TYPE(p.defined(),
                  "optimizer can only optimize Tensors, but one of the params is "
                  "undefined");
    TS_CHECK_VALUE(p.is_leaf(), "can't optimize a non-leaf Tensor");
    for (const ParamGroup& known : groups_)
      for (const Tensor& other : known.params)
        TS_CHECK_VALUE(!p.is_same(other),
                       "some parameters appear in more than one parameter group");
  }
  for (auto& [name, value] : group.options) {
    bool known = false;
    for (auto& one : defaults_) known = known || one.first == name;
    TS_CHECK_VALUE(known, "a parameter group has an option '", name,
                   "', which this optimizer does not have");
  }
  Options all = defaults_;
  for (auto& [name, value] : all)
    if (group.has(name)) value = group[name];
  group.options = std::move(all);
  states_.resize(states_.size() + group.params.size());
  groups_.push_back(std::move(group));
}

void Optimizer::zero_grad(bool set_to_none) {
  GradMode off(false);
  for (const ParamGroup& group : groups_)
    for (const Tensor& p : group.params) {
      if (set_to_none)
        p.zero_grad();
      else if (Tensor grad = p.grad(); grad.defined())
        op::zero_(grad);
    }
}

void Optimizer::step() {
  GradMode off(false);
  size_t at = 0;
  for (const ParamGroup& group : groups_) {
    Work work;
    work.names = &names_;
    for (const Tensor& p : group.params) {
      State& state = states_[at++];
      Tensor grad = p.grad();
      if (!grad.defined()) continue;
      if (state.empty()) {
        State begun(names_.size());
        start(group, p, begun);
        reserve_for_writes(std::vector<TensorBase>(begun.begin(), begun.end()), {});
        state = std::move(begun);  // as a whole, or not at all where memory is out
      }
      work.params.push_back(p);
      work.grads.push_back(std::move(grad));
      work.states.push_back(&state);
    }
    if (work.size()) step_group(group, work);
  }
}

namespace {
// Counts and factors are numbers on the CPU; the rest is as the parameter is.
bool is_number(std::string_view name) {
  return name == "step" || name == "eta" || name == "mu" || name == "mu_product";
}
}  // namespace

void Optimizer::start(const ParamGroup&, const Tensor& p, State& state) const {
  for (size_t slot = 0; slot < names_.size(); ++slot)
    state[slot] = is_number(names_[slot]) ? new_step() : zeros_as(p);
}

Tensor Optimizer::step(const Closure& closure) {
  Tensor loss;
  {
    GradMode on(true);
    loss = closure();
  }
  step();
  return loss;
}

// ---- state ------------------------------------------------------------------------------------

StateDict Optimizer::state_dict() const {
  StateDict out;
  for (size_t i = 0; i < states_.size(); ++i)
    for (size_t slot = 0; slot < states_[i].size(); ++slot)
      if (states_[i][slot].defined())
        out.emplace_back(cat("state.", i, ".", names_[slot]), states_[i][slot].detach());
  for (size_t g = 0; g < groups_.size(); ++g) {
    for (auto& [name, value] : groups_[g].options)
      out.emplace_back(cat("param_groups.", g, ".", name), number_tensor(value));
    out.emplace_back(
        cat("param_groups.", g, ".params"),
        Tensor(op::full({}, static_cast<int64_t>(groups_[g].params.size()), DType::kInt64)));
  }
  return out;
}

void Optimizer::load_state_dict(const StateDict& given) {
  GradMode off(false);
  std::vector<ParamGroup> groups = groups_;
  TS_CHECK_VALUE(!given.find(cat("param_groups.", groups.size(), ".params")),
                 "loaded state dict has a different number of parameter groups");
  for (size_t g = 0; g < groups.size(); ++g) {
    std::string prefix = cat("param_groups.", g, ".");
    const Tensor* count = given.find(prefix + "params");
    TS_CHECK_VALUE(count, "loaded state dict has a different number of parameter groups");
    TS_CHECK_VALUE(count->item<int64_t>() == static_cast<int64_t>(groups[g].params.size()),
                   "loaded state dict contains a parameter group that doesn't match the size of "
                   "optimizer's group");
    for (auto& [name, value] : groups[g].options)
      if (given.find(prefix + name)) value = number_of(given, prefix + name);
    // What schedulers have put there.
    for (const auto& [key, value] : given)
      if (key.starts_with(prefix) && key != prefix + "params" &&
          !groups[g].has(key.substr(prefix.size())))
        groups[g].options.emplace_back(key.substr(prefix.size()), value.item());
  }
  std::vector<State> states(states_.size());
  size_t at = 0;
  for (const ParamGroup& group : groups)
    for (const Tensor& p : group.params) {
      for (size_t slot = 0; slot < names_.size(); ++slot) {
        const Tensor* found = given.find(cat("state.", at, ".", names_[slot]));
        if (!found) continue;
        states[at].resize(names_.size());
        Tensor value = is_number(names_[slot]) ? found->cpu() : found->to(p.device(), p.dtype());
        states[at][slot] = value.clone();
      }
      ++at;
    }
  groups_ = std::move(groups);
  states_ = std::move(states);
}

// ---- for optimizers ---------------------------------------------------------------------------

Tensor new_step(double value) {
  DType dtype = default_dtype() == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
  return Tensor(op::full({}, value, dtype));
}

void check_option(double value, const char* name) {
  TS_CHECK_VALUE(value >= 0, "Invalid ", name, ": ", nn::py(value));
}

void check_betas(double beta1, double beta2) {
  for (int i : {0, 1}) {
    double beta = i == 0 ? beta1 : beta2;
    TS_CHECK_VALUE(beta >= 0 && beta < 1, "Invalid beta parameter at index ", i, ": ",
                   nn::py(beta));
  }
}

Tensor zeros_as(const Tensor& p) { return Tensor(op::zeros_like(p)); }

Tensor number_tensor(double value) { return Tensor(op::full({}, value, DType::kFloat64)); }

double number_of(const StateDict& state, const std::string& name) {
  const Tensor* found = state.find(name);
  TS_CHECK_VALUE(found, "loaded state dict has no '", name, "'");
  return found->item();
}

}  // namespace tessera::optim
