// The gradient check itself: what it must not let pass.
#include "support/gradcheck.h"

namespace tessera {
namespace {

using namespace test;

TEST(GradcheckTest, FindsWrongGradients) {
  std::vector<Tensor> x = {sample({3, 2}, DType::kFloat64)};
  auto half = [](const std::vector<Tensor>& in) { return in[0].detach() * Value(in[0]); };
  auto none = [](const std::vector<Tensor>& in) { return in[0].detach() * Value(2); };
  auto right = [](const std::vector<Tensor>& in) { return in[0] * Value(in[0]); };
  EXPECT_FALSE(gradcheck(half, x));
  EXPECT_FALSE(gradcheck(none, x));
  EXPECT_TRUE(gradcheck(right, x));
  std::vector<Tensor> two = {x[0], sample({3, 2}, DType::kFloat64, {}, 1)};
  auto one_of_two = [](const std::vector<Tensor>& in) { return in[0] * Value(in[1].detach()); };
  EXPECT_FALSE(gradcheck(one_of_two, two));
}

TEST(GradcheckTest, CloseIsNotLenient) {
  EXPECT_FALSE(close({1, 2}, {1}, 1));
  EXPECT_FALSE(close({1.1}, {1}, 0.05));
  EXPECT_FALSE(close({std::numeric_limits<double>::quiet_NaN()}, {1}, 10));
  EXPECT_FALSE(close({std::numeric_limits<double>::infinity()}, {1}, 10));
  EXPECT_TRUE(close({1000.5}, {1000}, 0.001));
}

}  // namespace
}  // namespace tessera
