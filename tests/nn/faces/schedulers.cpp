#include <cmath>

#include "nn/faces/faces.h"

namespace tessera::faces {

namespace {

using optim::Optimizer;

// The rates and the momentum of 24 steps; in Python `python` makes the scheduler of `opt`.
template <class Make, class Step>
void scheduled(const char* python, Make make, Step step) {
  nn::Linear net(2, 2);
  optim::SGD opt({{{net.weight()}, {{"lr", 0.5}}}, {{net.bias()}}}, {.lr = 0.2, .momentum = 0.9});
  auto scheduler = make(opt);
  std::vector<double> seen;
  for (int i = 0; i < 24; ++i) {
    for (const optim::ParamGroup& group : opt.param_groups()) seen.push_back(group["lr"]);
    seen.push_back(opt.param_groups()[0]["momentum"]);
    opt.step();
    step(*scheduler, i);
  }
  for (double lr : scheduler->get_last_lr()) seen.push_back(lr);
  line("scheduler", python, "\"value\": " + numbers(tensor(seen, DType::kFloat64)));
}

template <class Make>
void scheduled(const char* python, Make make) {
  scheduled(python, make, [](auto& scheduler, int) { scheduler.step(); });
}

}  // namespace

void schedulers() {
  using namespace optim;
  scheduled("LambdaLR(opt, lambda e: 0.9 ** e)", [](Optimizer& opt) {
    return std::make_shared<LambdaLR>(opt, [](int64_t e) { return std::pow(0.9, e); });
  });
  scheduled("LambdaLR(opt, [lambda e: 1 / (1 + e), lambda e: e / 2])", [](Optimizer& opt) {
    return std::make_shared<LambdaLR>(
        opt, std::vector<Schedule>{[](int64_t e) { return 1.0 / static_cast<double>(1 + e); },
                                   [](int64_t e) { return static_cast<double>(e) / 2; }});
  });
  scheduled("MultiplicativeLR(opt, lambda e: 0.9)", [](Optimizer& opt) {
    return std::make_shared<MultiplicativeLR>(opt, [](int64_t) { return 0.9; });
  });
  scheduled("StepLR(opt, 3)", [](Optimizer& opt) { return std::make_shared<StepLR>(opt, 3); });
  scheduled("StepLR(opt, 4, gamma=0.5)", [](Optimizer& opt) {
    return std::make_shared<StepLR>(opt, 4, GammaOptions{.gamma = 0.5});
  });
  scheduled("MultiStepLR(opt, [5, 2, 2, 20], gamma=0.5)", [](Optimizer& opt) {
    return std::make_shared<MultiStepLR>(opt, std::vector<int64_t>{5, 2, 2, 20},
                                         GammaOptions{.gamma = 0.5});
  });
  scheduled("ExponentialLR(opt, 0.8)",
            [](Optimizer& opt) { return std::make_shared<ExponentialLR>(opt, 0.8); });
  scheduled("ConstantLR(opt)", [](Optimizer& opt) { return std::make_shared<ConstantLR>(opt); });
  scheduled("LinearLR(opt)", [](Optimizer& opt) { return std::make_shared<LinearLR>(opt); });
  scheduled("LinearLR(opt, start_factor=0.2, end_factor=0.7, total_iters=9)", [](Optimizer& opt) {
    return std::make_shared<LinearLR>(
        opt, LinearLROptions{.start_factor = 0.2, .end_factor = 0.7, .total_iters = 9});
  });
  scheduled("PolynomialLR(opt, total_iters=10, power=2.0)", [](Optimizer& opt) {
    return std::make_shared<PolynomialLR>(opt,
                                          PolynomialLROptions{.total_iters = 10, .power = 2.0});
  });
  scheduled("CosineAnnealingLR(opt, 7, eta_min=0.01)", [](Optimizer& opt) {
    return std::make_shared<CosineAnnealingLR>(opt, 7, CosineAnnealingOptions{.eta_min = 0.01});
  });
  scheduled("CosineAnnealingWarmRestarts(opt, 4, T_mult=2, eta_min=0.01)", [](Optimizer& opt) {
    return std::make_shared<CosineAnnealingWarmRestarts>(
        opt, 4, WarmRestartsOptions{.T_mult = 2, .eta_min = 0.01});
  });
  scheduled("OneCycleLR(opt, 1.0, total_steps=24)", [](Optimizer& opt) {
    return std::make_shared<OneCycleLR>(opt, 1.0, OneCycleLROptions{.total_steps = 24});
  });
  scheduled(
      "OneCycleLR(opt, 1.0, epochs=5, steps_per_epoch=5, anneal_strategy='linear', "
      "three_phase=True, cycle_momentum=False)",
      [](Optimizer& opt) {
        return std::make_shared<OneCycleLR>(opt, 1.0,
                                            OneCycleLROptions{.epochs = 5,
                                                              .steps_per_epoch = 5,
                                                              .anneal_strategy = "linear",
                                                              .cycle_momentum = false,
                                                              .three_phase = true});
      });
  scheduled(
      "SequentialLR(opt, [ConstantLR(opt, 0.1, 4), StepLR(opt, 3), "
      "CosineAnnealingLR(opt, 10)], [4, 12])",
      [](Optimizer& opt) {
        std::vector<std::shared_ptr<LRScheduler>> parts{
            std::make_shared<ConstantLR>(opt, ConstantLROptions{0.1, 4}),
            std::make_shared<StepLR>(opt, 3), std::make_shared<CosineAnnealingLR>(opt, 10)};
        return std::make_shared<SequentialLR>(opt, parts, std::vector<int64_t>{4, 12});
      });
  scheduled("CyclicLR(opt, 0.1, 0.9, step_size_up=3, step_size_down=5)", [](Optimizer& opt) {
    return std::make_shared<CyclicLR>(opt, 0.1, 0.9,
                                      CyclicLROptions{.step_size_up = 3, .step_size_down = 5});
  });
  scheduled(
      "CyclicLR(opt, 0.1, 0.9, 4, mode='exp_range', gamma=0.9, cycle_momentum=False)",
      [](Optimizer& opt) {
        return std::make_shared<CyclicLR>(
            opt, 0.1, 0.9,
            CyclicLROptions{
                .step_size_up = 4, .mode = "exp_range", .gamma = 0.9, .cycle_momentum = false});
      });
  scheduled("CyclicLR(opt, 0.1, 0.9, 4, mode='triangular2')", [](Optimizer& opt) {
    return std::make_shared<CyclicLR>(opt, 0.1, 0.9,
                                      CyclicLROptions{.step_size_up = 4, .mode = "triangular2"});
  });
  scheduled("ChainedScheduler([ConstantLR(opt, 0.1, 4), ExponentialLR(opt, 0.9)])",
            [](Optimizer& opt) {
              return std::make_shared<ChainedScheduler>(std::vector<std::shared_ptr<LRScheduler>>{
                  std::make_shared<ConstantLR>(opt, ConstantLROptions{0.1, 4}),
                  std::make_shared<ExponentialLR>(opt, 0.9)});
            });
  scheduled(
      "ReduceLROnPlateau(opt, factor=0.5, patience=2, cooldown=1, min_lr=0.03)",
      [](Optimizer& opt) {
        return std::make_shared<ReduceLROnPlateau>(
            opt,
            ReduceLROnPlateauOptions{.factor = 0.5, .patience = 2, .cooldown = 1, .min_lr = 0.03});
      },
      [](ReduceLROnPlateau& scheduler, int i) {
        scheduler.step(i % 7 == 0 ? 1.0 / (i + 1) : 2.0);
      });
}

}  // namespace tessera::faces
