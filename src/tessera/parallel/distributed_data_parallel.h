// DistributedDataParallel for C++: the same module in every process, gradients averaged while
// backward runs.
//
//   distributed::init_process_group({.backend = "gloo"});
//   nn::parallel::DistributedDataParallel model(Net{});
//   criterion(model(x), y).backward();   // gradients are averages when it returns
#pragma once
#include "tessera/distributed/world.h"
#include "tessera/nn/module.h"
#include "tessera/parallel/reducer.h"

namespace tessera::nn::parallel {

struct DistributedOptions {
  std::shared_ptr<distributed::ProcessGroup> process_group;  // null: the group of all
  double bucket_cap_mb = 25;
  bool broadcast_buffers = true;
  bool find_unused_parameters = false;
  bool gradient_as_bucket_view = false;
  bool static_graph = false;
};

// What does not depend on the module's class.
class DistributedState {
 public:
  DistributedState(const Module& module, DistributedOptions options);
  void before_forward();
  void after_forward(const std::vector<TensorBase>& outputs);
  bool synchronizes = true;
  const DistributedOptions& options() const { return options_; }
  const tessera::parallel::Reducer& reducer() const { return *reducer_; }

 private:
  Module module_;  // another handle of it
  DistributedOptions options_;
  std::shared_ptr<tessera::parallel::Reducer> reducer_;
  bool buffers_changed_ = true;
};

template <std::derived_from<Module> M>
class DistributedDataParallel : public Module {
 public:
  explicit DistributedDataParallel(M module, DistributedOptions options = {})
      : module(register_module("module", std::move(module))),
        state_(std::make_shared<DistributedState>(this->module, std::move(options))) {}

  Tensor forward(const Tensor& input) override {
    state_->before_forward();
    Tensor out = module(input);
    state_->after_forward({out});
    return out;
  }
  std::string name() const override { return "DistributedDataParallel"; }
  const tessera::parallel::Reducer& reducer() const { return state_->reducer(); }

  // While it lives gradients stay this process's own, and add up.
  class NoSync {
   public:
    explicit NoSync(std::shared_ptr<DistributedState> state)
        : state_(std::move(state)), before_(state_->synchronizes) {
      state_->synchronizes = false;
    }
    ~NoSync() { state_->synchronizes = before_; }
    NoSync(const NoSync&) = delete;

   private:
    std::shared_ptr<DistributedState> state_;
    bool before_;
  };
  [[nodiscard]] NoSync no_sync() { return NoSync(state_); }

  M module;

 private:
  std::shared_ptr<DistributedState> state_;
};

}  // namespace tessera::nn::parallel
