// The scale of a loss, and the steps that a scaler skips.
#include "tessera/optim/grad_scaler.h"

#include <gtest/gtest.h>

#include <limits>

#include "support/tensors.h"
#include "tessera/optim/optimizers.h"

namespace tessera {
namespace {

using namespace test;

class GradScalerTest : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (GetParam()) device_ = test_gpu();
    w_ = ones({2}).to(device_);
    w_.requires_grad_();
  }
  void TearDown() override {
    w_ = Tensor();
    clear_gpu();
  }
  void backward(amp::GradScaler& scaler, double factor = 1) {
    w_.zero_grad();
    scaler.scale((w_ * Value(factor)).sum()).backward();
  }
  Device device_;
  Tensor w_;
};
INSTANTIATE_TEST_SUITE_P(Devices, GradScalerTest, ::testing::Bool(),
                         [](const auto& i) { return i.param ? "gpu" : "cpu"; });

TEST_P(GradScalerTest, StepsAreThoseWithoutAScaler) {
  amp::GradScaler scaler;
  optim::SGD sgd({w_}, {.lr = 0.5});
  backward(scaler, 3);
  EXPECT_EQ(values(w_.grad()), (std::vector<double>{3 * 65536, 3 * 65536}));
  EXPECT_TRUE(scaler.step(sgd));
  scaler.update();
  EXPECT_EQ(values(w_), (std::vector<double>{-0.5, -0.5}));
  EXPECT_EQ(scaler.get_scale(), 65536);
}

TEST_P(GradScalerTest, TellsThatItDidNotStep) {
  amp::GradScaler scaler({.init_scale = 8, .growth_interval = 2});
  optim::SGD sgd({w_}, {.lr = 0.5});
  backward(scaler, std::numeric_limits<double>::infinity());
  EXPECT_FALSE(scaler.step(sgd));
  scaler.update();
  EXPECT_EQ(values(w_), (std::vector<double>{1, 1}));
  for (double scale : {4, 8, 8, 16}) {
    backward(scaler);
    EXPECT_TRUE(scaler.step(sgd));
    scaler.update();
    EXPECT_EQ(scaler.get_scale(), scale);
  }
}

TEST_P(GradScalerTest, OrderOfCalls) {
  amp::GradScaler scaler;
  optim::SGD sgd({w_}, {.lr = 0.5});
  EXPECT_ERROR(scaler.step(sgd), kRuntime, "scaler.scale(loss) comes first");
  backward(scaler);
  scaler.unscale_(sgd);
  EXPECT_EQ(values(w_.grad()), (std::vector<double>{1, 1}));
  EXPECT_ERROR(scaler.unscale_(sgd), kRuntime, "already been called");
  scaler.step(sgd);
  EXPECT_ERROR(scaler.step(sgd), kRuntime, "already been called");
  EXPECT_ERROR(scaler.unscale_(sgd), kRuntime, "after step");
}

TEST_P(GradScalerTest, StateGoesOn) {
  amp::GradScaler scaler({.init_scale = 4, .growth_interval = 5});
  optim::SGD sgd({w_}, {.lr = 0.5});
  backward(scaler);
  scaler.step(sgd);
  scaler.update();
  amp::GradScaler other;
  other.load_state_dict(scaler.state_dict());
  EXPECT_EQ(other.get_scale(), 4);
  EXPECT_EQ(other.state_dict().at("_growth_tracker").item(), 1);
  amp::GradScaler off({.enabled = false});
  EXPECT_TRUE(off.state_dict().empty());
  EXPECT_EQ(off.get_scale(), 1);
  Tensor loss = w_.sum();
  EXPECT_TRUE(off.scale(loss).is_same(loss));
}

}  // namespace
}  // namespace tessera
