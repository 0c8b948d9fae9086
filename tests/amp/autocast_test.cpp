// Mixed precision: which operators run in which dtype, and what comes back.
#include "tessera/amp/autocast.h"

#include <gtest/gtest.h>

#include <thread>

#include "support/tensors.h"
#include "tessera/amp/weight_cache.h"
#include "tessera/face/scopes.h"

namespace tessera {
namespace {

using namespace test;

class AutocastTest : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (GetParam()) device_ = test_gpu();
    amp::set_autocast(device_.type, true, DType::kBFloat16);
  }
  void TearDown() override {
    amp::set_autocast(device_.type, false, DType::kBFloat16);
    clear_gpu();
  }
  Tensor input(const Dims& sizes, DType dtype = DType::kFloat32, int seed = 0) {
    return sample(sizes, dtype, device_, seed);
  }
  Device device_;
};
INSTANTIATE_TEST_SUITE_P(Devices, AutocastTest, ::testing::Bool(),
                         [](const auto& i) { return i.param ? "gpu" : "cpu"; });

TEST_P(AutocastTest, ProductsRunInLowerPrecision) {
  Tensor a = input({3, 4}), b = input({4, 5}, DType::kFloat32, 1);
  EXPECT_EQ(a.mm(b).dtype(), DType::kBFloat16);
  EXPECT_EQ(a.matmul(b).dtype(), DType::kBFloat16);
  EXPECT_EQ(a.unsqueeze(0).bmm(b.unsqueeze(0)).dtype(), DType::kBFloat16);
  EXPECT_EQ(a.mm(b.to(DType::kFloat16)).dtype(), DType::kBFloat16);  // mixed inputs are cast alike
  amp::set_autocast(device_.type, false, DType::kBFloat16);
  Tensor plain = a.to(DType::kBFloat16).mm(b.to(DType::kBFloat16));
  amp::set_autocast(device_.type, true, DType::kBFloat16);
  EXPECT_EQ(bytes(a.mm(b)), bytes(plain));
}

TEST_P(AutocastTest, SumsAndSoftmaxRunInFloat32OnGpus) {
  Tensor x = input({3, 4}, DType::kBFloat16);
  if (device_.is_cpu()) {  // as PyTorch's CPU autocast
    EXPECT_EQ(x.sum().dtype(), DType::kBFloat16);
    return;
  }
  EXPECT_EQ(x.sum().dtype(), DType::kFloat32);
  EXPECT_EQ(x.softmax(-1).dtype(), DType::kFloat32);
  EXPECT_EQ(bytes(x.softmax(-1)), bytes(x.to(DType::kFloat32).softmax(-1)));
}

TEST_P(AutocastTest, OthersFollowTheirInputs) {
  Tensor x = input({3, 4}), h = input({3, 4}, DType::kBFloat16, 1);
  EXPECT_EQ((x + Value(x)).dtype(), DType::kFloat32);
  EXPECT_EQ((h * Value(h)).dtype(), DType::kBFloat16);
  EXPECT_EQ((h * Value(x)).dtype(), DType::kFloat32);
}

TEST_P(AutocastTest, DoublesAndIntegersAreLeftAlone) {
  Tensor d = input({3, 3}, DType::kFloat64), n = input({3, 3}, DType::kInt64);
  EXPECT_EQ(d.mm(d).dtype(), DType::kFloat64);
  EXPECT_EQ(d.sum().dtype(), DType::kFloat64);
  EXPECT_EQ(n.sum().dtype(), DType::kInt64);
}

TEST_P(AutocastTest, GradientsComeBackInTheParametersDtype) {
  Tensor w = input({4, 5}), b = input({5}, DType::kFloat32, 1),
         x = input({3, 4}, DType::kFloat32, 2);
  w.requires_grad_();
  b.requires_grad_();
  Tensor y = x.mm(w) + Value(b);
  Tensor loss = y.softmax(-1).sum();
  EXPECT_EQ(loss.dtype(), DType::kFloat32);
  amp::set_autocast(device_.type, false, DType::kBFloat16);  // backward runs outside
  Tensor squares = y * Value(y);
  squares.to(DType::kFloat32).sum().backward();
  EXPECT_EQ(w.grad().dtype(), DType::kFloat32);
  EXPECT_EQ(b.grad().dtype(), DType::kFloat32);
  // Against the same in float32, within bfloat16's precision.
  Tensor w2 = input({4, 5}), b2 = input({5}, DType::kFloat32, 1);
  w2.requires_grad_();
  b2.requires_grad_();
  Tensor y2 = x.mm(w2) + Value(b2);
  (y2 * Value(y2)).sum().backward();
  EXPECT_TRUE(close(values(w.grad()), values(w2.grad()), 0.03));
  EXPECT_TRUE(close(values(b.grad()), values(b2.grad()), 0.03));
}

TEST_P(AutocastTest, AWeightIsCastOnceUntilItIsWritten) {
  Tensor w = input({4, 4}), x = input({3, 4}, DType::kFloat32, 1);
  w.requires_grad_();
  {
    AutocastMode mode(device_.type, DType::kBFloat16);
    TensorBase cast = amp::lowered(w, DType::kBFloat16);
    EXPECT_TRUE(amp::lowered(w, DType::kBFloat16).is_same(cast));
    {
      NoGrad off;  // a cast without a graph is another one
      EXPECT_FALSE(amp::lowered(w, DType::kBFloat16).is_same(cast));
      w.add_(Value(1.0));
    }
    EXPECT_FALSE(amp::lowered(w, DType::kBFloat16).is_same(cast));
    EXPECT_FALSE(amp::lowered(x, DType::kBFloat16).is_same(amp::lowered(x, DType::kBFloat16)));
    AutocastMode uncached(device_.type, DType::kBFloat16, true, false);
    EXPECT_FALSE(amp::lowered(w, DType::kBFloat16).is_same(amp::lowered(w, DType::kBFloat16)));
  }
  EXPECT_FALSE(amp::lowered(w, DType::kBFloat16).is_same(amp::lowered(w, DType::kBFloat16)));
}

TEST_P(AutocastTest, ItIsOneDevicesAndOneThreads) {
  Device other = device_.is_cpu() ? test_gpu() : Device{};
  Tensor x = sample({3, 3}, DType::kFloat32, other);
  EXPECT_EQ(x.mm(x).dtype(), DType::kFloat32);
  Tensor here = input({3, 3});
  DType there{};
  std::thread([&] { there = here.mm(here).dtype(); }).join();
  EXPECT_EQ(there, DType::kFloat32);
}

TEST(AutocastErrorsTest, NeedsAFloat) {
  EXPECT_ERROR(amp::set_autocast(DeviceType::kCPU, true, DType::kInt64), kRuntime,
               "autocast needs a floating-point dtype");
  EXPECT_FALSE(amp::any_autocast());
}

}  // namespace
}  // namespace tessera
