#include "nn/faces/faces.h"

namespace tessera::faces {

namespace {

// A network trained for some steps; in Python `python` makes the optimizer of `net`.
template <class Make>
void trained(const char* python, Make make) {
  manual_seed(0);
  nn::Sequential net{nn::Linear(4, 5), nn::Tanh(), nn::Linear(5, 2)};
  Tensor x = randn({6, 4}), y = randn({6, 2});
  auto optimizer = make(net);
  std::string losses = "[";
  for (int i = 0; i < 6; ++i) {
    Tensor loss = optimizer->step([&] {
      optimizer->zero_grad();
      Tensor value = tessera::mse_loss(net(x), y);
      value.backward();
      return value;
    });
    losses += (i ? ", " : "") + numbers(loss);
  }
  line("optimizer", python, "\"losses\": " + losses + "], \"params\": " + named(net.state_dict()));
}

template <class Optimizer, class Options>
void case_of(const char* python, const Options& options) {
  trained(python,
          [&](nn::Module& net) { return std::make_unique<Optimizer>(net.parameters(), options); });
}

}  // namespace

void optimizers() {
  using namespace optim;
  case_of<SGD>("SGD(net.parameters(), lr=0.1)", SGDOptions{.lr = 0.1});
  case_of<SGD>("SGD(net.parameters())", SGDOptions{});
  case_of<SGD>("SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=0.01, nesterov=True)",
               SGDOptions{.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01, .nesterov = true});
  case_of<SGD>("SGD(net.parameters(), lr=0.1, momentum=0.9, dampening=0.5, maximize=True)",
               SGDOptions{.lr = 0.1, .momentum = 0.9, .dampening = 0.5, .maximize = true});
  case_of<Adam>("Adam(net.parameters())", AdamOptions{});
  case_of<Adam>(
      "Adam(net.parameters(), lr=0.1, betas=(0.8, 0.9), eps=1e-4, weight_decay=0.1, "
      "amsgrad=True)",
      AdamOptions{
          .lr = 0.1, .betas = {0.8, 0.9}, .eps = 1e-4, .weight_decay = 0.1, .amsgrad = true});
  case_of<AdamW>("AdamW(net.parameters())", AdamWOptions{});
  case_of<AdamW>("AdamW(net.parameters(), lr=0.1, amsgrad=True, maximize=True)",
                 AdamWOptions{.lr = 0.1, .amsgrad = true, .maximize = true});
  case_of<RMSprop>("RMSprop(net.parameters())", RMSpropOptions{});
  case_of<RMSprop>(
      "RMSprop(net.parameters(), alpha=0.9, momentum=0.5, centered=True, "
      "weight_decay=0.1)",
      RMSpropOptions{.alpha = 0.9, .weight_decay = 0.1, .momentum = 0.5, .centered = true});
  case_of<Adagrad>("Adagrad(net.parameters())", AdagradOptions{});
  case_of<Adagrad>("Adagrad(net.parameters(), lr=0.1, lr_decay=0.1, initial_accumulator_value=0.5)",
                   AdagradOptions{.lr = 0.1, .lr_decay = 0.1, .initial_accumulator_value = 0.5});
  case_of<Adadelta>("Adadelta(net.parameters())", AdadeltaOptions{});
  case_of<Adadelta>("Adadelta(net.parameters(), lr=0.5, rho=0.8, weight_decay=0.1)",
                    AdadeltaOptions{.lr = 0.5, .rho = 0.8, .weight_decay = 0.1});
  case_of<Adamax>("Adamax(net.parameters())", AdamaxOptions{});
  case_of<Adamax>("Adamax(net.parameters(), lr=0.1, weight_decay=0.1)",
                  AdamaxOptions{.lr = 0.1, .weight_decay = 0.1});
  case_of<NAdam>("NAdam(net.parameters())", NAdamOptions{});
  case_of<NAdam>("NAdam(net.parameters(), lr=0.1, weight_decay=0.1, decoupled_weight_decay=True)",
                 NAdamOptions{.lr = 0.1, .weight_decay = 0.1, .decoupled_weight_decay = true});
  case_of<RAdam>("RAdam(net.parameters())", RAdamOptions{});
  case_of<RAdam>("RAdam(net.parameters(), lr=0.1, betas=(0.5, 0.6), weight_decay=0.1)",
                 RAdamOptions{.lr = 0.1, .betas = {0.5, 0.6}, .weight_decay = 0.1});
  case_of<Rprop>("Rprop(net.parameters())", RpropOptions{});
  case_of<Rprop>("Rprop(net.parameters(), lr=0.1, etas=(0.4, 1.5), step_sizes=(1e-3, 1.0))",
                 RpropOptions{.lr = 0.1, .etas = {0.4, 1.5}, .step_sizes = {1e-3, 1.0}});
  case_of<ASGD>("ASGD(net.parameters())", ASGDOptions{});
  case_of<ASGD>("ASGD(net.parameters(), lr=0.1, lambd=0.01, t0=2, weight_decay=0.1)",
                ASGDOptions{.lr = 0.1, .lambd = 0.01, .t0 = 2, .weight_decay = 0.1});
  case_of<LBFGS>("LBFGS(net.parameters(), lr=0.1, max_iter=4, history_size=3)",
                 LBFGSOptions{.lr = 0.1, .max_iter = 4, .history_size = 3});
  case_of<LBFGS>("LBFGS(net.parameters(), max_iter=4, line_search_fn='strong_wolfe')",
                 LBFGSOptions{.max_iter = 4, .line_search_fn = "strong_wolfe"});
  trained(
      "SGD([{'params': net[0].parameters(), 'lr': 0.5}, {'params': net[2].parameters()}], "
      "lr=0.1, momentum=0.5)",
      [](nn::Sequential& net) {
        std::vector<ParamGroup> groups{{net[0].parameters(), {{"lr", 0.5}}}, {net[2].parameters()}};
        return std::make_unique<SGD>(std::move(groups), SGDOptions{.lr = 0.1, .momentum = 0.5});
      });
}

}  // namespace tessera::faces
