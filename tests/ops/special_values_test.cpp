// Infinities, NaN, signed zeros and the ends of the range, as PyTorch gives them.
#include <gtest/gtest.h>

#include <cmath>

#include "support/tensors.h"

namespace tessera {
namespace {

using namespace test;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
const std::vector<double> kSpecial = {kInf, -kInf, kNan, -0.0, 0.0};

std::vector<double> of(const std::function<Tensor(const Tensor&)>& f, DType dtype, Device device) {
  return values(f(make({5}, kSpecial, dtype, device)));
}

TEST(SpecialValuesTest, EveryFloatDtypeOnBothDevices) {
  for (Device d : {Device{}, test_gpu()}) {
    for (DType t : {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16}) {
      SCOPED_TRACE(cat(t, " ", d));
      EXPECT_TRUE(
          close(of([](const Tensor& x) { return x.exp(); }, t, d), {kInf, 0, kNan, 1, 1}, 0));
      EXPECT_TRUE(
          close(of([](const Tensor& x) { return x.relu(); }, t, d), {kInf, 0, kNan, 0, 0}, 0));
      EXPECT_TRUE(
          close(of([](const Tensor& x) { return x.neg(); }, t, d), {-kInf, kInf, kNan, 0, 0}, 0));
      EXPECT_TRUE(
          close(of([](const Tensor& x) { return gelu(x); }, t, d), {kInf, kNan, kNan, 0, 0}, 0));
      EXPECT_TRUE(close(of([](const Tensor& x) { return Tensor(op::div(x, Value(0.0))); }, t, d),
                        {kInf, -kInf, kNan, kNan, kNan}, 0));
      EXPECT_TRUE(
          close(of([](const Tensor& x) { return x.eq(Value(x)); }, t, d), {1, 1, 0, 1, 1}, 0));
      std::vector<double> negated = of([](const Tensor& x) { return x.neg(); }, t, d);
      EXPECT_FALSE(std::signbit(negated[3]));
      EXPECT_TRUE(std::signbit(negated[4]));
    }
  }
  clear_gpu();
}

TEST(SpecialValuesTest, IntermediatesAreRoundedToTheirDtype) {
  // 60000 + 60000 is beyond float16: infinity, also when the next operator is fused to it.
  for (fuse::Mode mode : {fuse::Mode::kOff, fuse::Mode::kOn}) {
    FuseMode scope(mode);
    Tensor x = make({2}, {60000, 1}, DType::kFloat16);
    EXPECT_EQ(values((x + Value(x)) * Value(0.25)), (std::vector<double>{kInf, 0.5}));
    Tensor y = make({1}, {1}, DType::kBFloat16);
    EXPECT_EQ(values((y + Value(0.001)) - Value(1)), std::vector<double>{0});
  }
}

TEST(SpecialValuesTest, IntegersAtTheEnds) {
  Tensor x(new_empty({2}, DType::kInt64, {}));
  const int64_t ends[] = {std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()};
  std::memcpy(x.raw(), ends, sizeof ends);
  Tensor n = x.neg(), s = x + Value(1);
  const int64_t* p = n.data_ptr<int64_t>();
  const int64_t* q = s.data_ptr<int64_t>();
  EXPECT_EQ(p[0], ends[0]);
  EXPECT_EQ(p[1], -ends[1]);
  EXPECT_EQ(q[0], ends[0] + 1);
  EXPECT_EQ(q[1], ends[0]);  // wraps
  EXPECT_EQ(values(x.eq(Value(x))), (std::vector<double>{1, 1}));
  EXPECT_EQ(values(s.eq(Value(x))), (std::vector<double>{0, 0}));  // not compared as doubles
}

}  // namespace
}  // namespace tessera
