// Optimizers and schedules: groups, state, errors. Their numbers are compared with Python's by
// tests/python/test_cpp_face.py.
#include "support/tensors.h"

namespace tessera {
namespace {

using namespace test;
using namespace optim;

struct Training {
  explicit Training(int seed = 0) { manual_seed(static_cast<uint64_t>(seed)); }
  nn::Sequential net{nn::Linear(3, 4), nn::Tanh(), nn::Linear(4, 1)};
  Tensor x = sample({8, 3}), y = sample({8, 1}, DType::kFloat32, {}, 5);
  Tensor loss() { return mse_loss(net(x), y); }
  double step(Optimizer& optimizer) {
    return optimizer
        .step([&] {
          optimizer.zero_grad();
          Tensor value = loss();
          value.backward();
          return value;
        })
        .item();
  }
  std::vector<double> all() {
    return values(nn::utils::parameters_to_vector(net.parameters()).detach());
  }
};

// Some steps, then the state moves to another optimizer of another network, and both go on alike.
template <class Kind, class Options>
void continues(Options options) {
  Training a(1), b(2);
  Kind first(a.net.parameters(), options), second(b.net.parameters(), options);
  for (int i = 0; i < 3; ++i) a.step(first);
  b.net.load_state_dict(a.net.state_dict());
  second.load_state_dict(first.state_dict());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(a.step(first), b.step(second));
  EXPECT_EQ(a.all(), b.all());
}

TEST(OptimTest, StateMovesToAnotherOptimizer) {
  continues<SGD>(SGDOptions{.lr = 0.1, .momentum = 0.9});
  continues<Adam>(AdamOptions{.lr = 0.1, .amsgrad = true});
  continues<AdamW>(AdamWOptions{.lr = 0.1});
  continues<RMSprop>(RMSpropOptions{.momentum = 0.5, .centered = true});
  continues<Adagrad>(AdagradOptions{});
  continues<Adadelta>(AdadeltaOptions{});
  continues<Adamax>(AdamaxOptions{});
  continues<NAdam>(NAdamOptions{});
  continues<RAdam>(RAdamOptions{});
  continues<Rprop>(RpropOptions{});
  continues<ASGD>(ASGDOptions{.t0 = 2});
  continues<LBFGS>(LBFGSOptions{.lr = 0.1, .max_iter = 3});
}

TEST(OptimTest, SavesToAFile) {
  std::string path = testing::TempDir() + "tessera_optim_test.pt";
  Training t;
  Adam first(t.net.parameters(), {.lr = 0.25});
  t.step(first);
  optim::save(first, path);
  Adam second(t.net.parameters());
  optim::load(second, path);
  EXPECT_EQ(second.param_groups()[0]["lr"], 0.25);
  EXPECT_EQ(value(second.state_dict().at("state.0.step")), 1);
  std::remove(path.c_str());
}

TEST(OptimTest, GroupsHaveTheirOwnOptions) {
  Training t;
  SGD optimizer({{t.net[0].parameters(), {{"lr", 0.0}}}, {t.net[2].parameters()}}, {.lr = 0.5});
  std::vector<double> first = values(t.net.at<nn::Linear>(0).weight());
  std::vector<double> last = values(t.net.at<nn::Linear>(2).weight());
  t.step(optimizer);
  EXPECT_EQ(values(t.net.at<nn::Linear>(0).weight()), first);
  EXPECT_NE(values(t.net.at<nn::Linear>(2).weight()), last);
  optimizer.param_groups()[0]["lr"] = 0.5;
  t.step(optimizer);
  EXPECT_NE(values(t.net.at<nn::Linear>(0).weight()), first);
  Tensor more = ones({2}).requires_grad_();
  optimizer.add_param_group({{more}, {{"momentum", 0.5}}});
  EXPECT_EQ(optimizer.param_groups()[2]["lr"], 0.5);
}

TEST(OptimTest, RefusesWhatIsWrong) {
  Tensor p = ones({2}).requires_grad_();
  EXPECT_ERROR(SGD(std::vector<Tensor>{}), kValue, "optimizer got an empty parameter list");
  EXPECT_ERROR(SGD({p}, {.lr = -1}), kValue, "Invalid learning rate: -1.0");
  EXPECT_ERROR(SGD({p}, {.nesterov = true}), kValue, "Nesterov momentum requires a momentum");
  EXPECT_ERROR(Adam({p}, {.betas = {1.0, 0.9}}), kValue, "Invalid beta parameter at index 0: 1.0");
  EXPECT_ERROR(SGD({p * 2}), kValue, "can't optimize a non-leaf Tensor");
  std::vector<ParamGroup> twice{{{p}}, {{p}}};
  EXPECT_ERROR(SGD(std::move(twice)), kValue, "more than one parameter group");
  std::vector<ParamGroup> unknown{{{p}, {{"beta1", 0.5}}}};
  EXPECT_ERROR(SGD(std::move(unknown)), kValue, "an option 'beta1'");
  SGD one({p}), other({p, ones({1}).requires_grad_()});
  EXPECT_ERROR(other.load_state_dict(one.state_dict()), kValue, "doesn't match the size");
  EXPECT_ERROR(LBFGS({p}).step(), kType, "needs a closure");
  EXPECT_ERROR(ReduceLROnPlateau(one, {.factor = 1.0}), kValue, "Factor should be < 1.0.");
}

TEST(OptimTest, LBFGSTakesAStateOverWholeOrNotAtAll) {
  Training t;
  LBFGS optimizer(t.net.parameters(), {.lr = 0.1, .max_iter = 3});
  t.step(optimizer);
  t.step(optimizer);
  StateDict before = optimizer.state_dict(), broken;
  for (auto& [name, value] : before)
    if (name != "state.0.ro.0") broken.emplace_back(name, value + 1.0);
  EXPECT_ERROR(optimizer.load_state_dict(broken), kValue, "has no 'state.0.ro.0'");
  StateDict after = optimizer.state_dict();
  for (auto& [name, value] : before) EXPECT_EQ(values(after.at(name)), values(value)) << name;
}

TEST(OptimTest, AdamWDecaysApartWithAStateOfAdam) {
  Training t;
  Adam adam(t.net.parameters(), {.weight_decay = 0.5});
  AdamW adamw(t.net.parameters());
  adamw.load_state_dict(adam.state_dict());
  EXPECT_EQ(adamw.param_groups()[0]["weight_decay"], 0.5);
  EXPECT_EQ(adamw.param_groups()[0]["decoupled_weight_decay"], 1);
}

TEST(OptimTest, AChainThatComesSecondStartsAtItsMilestone) {
  SGD optimizer({ones({1}).requires_grad_()}, {.lr = 1.0});
  auto first = std::make_shared<ExponentialLR>(optimizer, 0.5);
  auto constant = std::make_shared<ConstantLR>(optimizer, ConstantLROptions{0.5, 2});
  auto falling = std::make_shared<ExponentialLR>(optimizer, 0.9);
  std::vector<std::shared_ptr<LRScheduler>> parts{constant, falling};
  auto chain = std::make_shared<ChainedScheduler>(parts);
  SequentialLR schedule(optimizer, {first, chain}, {2});
  std::vector<double> seen;
  for (int i = 0; i < 6; ++i, schedule.step()) seen.push_back(schedule.get_last_lr()[0]);
  const double expected[] = {1, 0.5, 0.5, 0.45, 0.81, 0.729};
  for (size_t i = 0; i < seen.size(); ++i) EXPECT_NEAR(seen[i], expected[i], 1e-12) << i;
}

TEST(OptimTest, RefusesTheStateOfAnotherOptimizer) {
  Training t;
  Adam adam(t.net.parameters());
  t.step(adam);
  NAdam other(t.net.parameters());
  other.load_state_dict(adam.state_dict());
  EXPECT_NE(error_of([&] { t.step(other); }).find("has no 'mu_product'"), std::string::npos);
  adam.param_groups()[0]["amsgrad"] = 1;
  EXPECT_NE(error_of([&] { t.step(adam); }).find("max_exp_avg_sq"), std::string::npos);
}

TEST(OptimTest, RefusesSchedulesThatDivideByNothing) {
  Training t;
  SGD sgd(t.net.parameters(), {.lr = 0.1, .momentum = 0.9});
  EXPECT_NE(error_of([&] { CosineAnnealingLR(sgd, 0); }), "");
  EXPECT_NE(error_of([&] { CyclicLR(sgd, 0.1, 0.2, {.step_size_up = 0}); }), "");
  ConstantLR zero(sgd, {.factor = 0, .total_iters = 1});
  EXPECT_NE(error_of([&] { zero.step(); }), "");
}

TEST(OptimTest, OnlyParametersWithAGradientStep) {
  Tensor a = ones({1}).requires_grad_(), b = ones({1}).requires_grad_();
  SGD optimizer({a, b}, {.lr = 1.0});
  (a * 2.0).sum().backward();
  optimizer.step();
  EXPECT_EQ(value(a), -1);
  EXPECT_EQ(value(b), 1);
  optimizer.zero_grad();
  EXPECT_FALSE(a.grad().defined());
}

TEST(OptimTest, StepsOnADevice) {
  Training host, device;
  device.net.load_state_dict(host.net.state_dict());
  device.net.to(test_gpu());
  device.x = device.x.to(test_gpu());
  device.y = device.y.to(test_gpu());
  AdamW a(host.net.parameters(), {.lr = 0.1}), b(device.net.parameters(), {.lr = 0.1});
  for (int i = 0; i < 4; ++i) {
    host.step(a);
    device.step(b);
  }
  std::vector<double> moved =
      values(nn::utils::parameters_to_vector(device.net.parameters()).detach().cpu());
  EXPECT_TRUE(close(moved, host.all(), 1e-5));
}

TEST(OptimTest, SchedulesGoOnFromTheirState) {
  Tensor p = ones({1}).requires_grad_();
  SGD optimizer({p}, {.lr = 1.0}), other({p}, {.lr = 1.0});
  CosineAnnealingWarmRestarts first(optimizer, 3, {.T_mult = 2});
  for (int i = 0; i < 5; ++i) first.step();
  CosineAnnealingWarmRestarts second(other, 3, {.T_mult = 2});
  other.load_state_dict(optimizer.state_dict());
  second.load_state_dict(first.state_dict());
  for (int i = 0; i < 8; ++i) {
    first.step();
    second.step();
    EXPECT_EQ(optimizer.param_groups()[0]["lr"], other.param_groups()[0]["lr"]);
  }
}

}  // namespace
}  // namespace tessera
