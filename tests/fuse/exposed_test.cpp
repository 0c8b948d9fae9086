// Storage whose address has left us or came from outside.
#include "support/fuse_fixture.h"

namespace tessera {
namespace {

using namespace test;
using fuse::Reason;

class ExposedTest : public FuseTest {};

TEST_F(ExposedTest, ForeignMemoryIsNeverDeferred) {
  std::vector<float> memory(16, 1.0f);
  Tensor x(from_blob(memory.data(), {16}, {1}, DType::kFloat32, Device{}, nullptr, nullptr));
  Tensor y = x + Value(1);
  EXPECT_EQ(pending(), 0u);
  x.mul_(Value(3));
  EXPECT_EQ(memory[7], 3.0f);  // without any read of ours
  memory[0] = 10;
  EXPECT_EQ(values(x + Value(0))[0], 10);
  EXPECT_EQ(values(y), std::vector<double>(16, 2));
}

TEST_F(ExposedTest, ForeignMemoryAsASourceOfPendingWork) {
  std::vector<float> memory(16, 1.0f);
  Tensor x(from_blob(memory.data(), {16}, {1}, DType::kFloat32, Device{}, nullptr, nullptr));
  Tensor p = sample({16}) * Value(2);
  Tensor q = p + Value(x);  // runs now, and p with it
  EXPECT_EQ(pending(), 0u);
  std::vector<double> before = values(q);
  memory.assign(16, 50.0f);
  EXPECT_EQ(values(q), before);
}

TEST_F(ExposedTest, TheOwnerOfForeignMemoryIsToldOnce) {
  static int released;
  released = 0;
  float memory[4] = {1, 2, 3, 4};
  {
    Tensor x(
        from_blob(memory, {4}, {1}, DType::kFloat32, Device{}, memory, [](void*) { ++released; }));
    Tensor v = slice(x, 0, 1, 3);
    x = Tensor();
    EXPECT_EQ(released, 0);
    EXPECT_EQ(values(v), (std::vector<double>{2, 3}));
  }
  EXPECT_EQ(released, 1);
}

TEST_F(ExposedTest, AskingForAnAddressRunsPendingWriters) {
  Tensor y = sample({16}) + Value(1);
  ASSERT_EQ(pending(), 1u);
  float* p = y.data_ptr<float>();
  EXPECT_EQ(pending(), 0u);
  EXPECT_EQ(runs(Reason::kExposed), 1);
  EXPECT_EQ(double{p[3]}, values(sample({16}))[3] + 1);
}

TEST_F(ExposedTest, AskingForAnAddressRunsPendingReaders) {
  Tensor x = make({4}, {1, 2, 3, 4});
  Tensor y = x * Value(2);
  ASSERT_EQ(pending(), 1u);
  float* p = x.data_ptr<float>();
  EXPECT_EQ(pending(), 0u);
  p[0] = 100;  // after y was computed
  EXPECT_EQ(values(y)[0], 2);
}

TEST_F(ExposedTest, ItStaysExposed) {
  Tensor x = make({4}, {1, 2, 3, 4});
  float* p = x.data_ptr<float>();
  x.add_(Value(1));
  EXPECT_EQ(pending(), 0u);
  EXPECT_EQ(p[0], 2.0f);
  p[0] = 50;
  Tensor y = slice(x, 0, 0, 2) * Value(2);  // views too
  EXPECT_EQ(pending(), 0u);
  EXPECT_EQ(values(y)[0], 100);
  Tensor z = y + Value(1);  // its results are not
  EXPECT_EQ(pending(), 1u);
}

TEST_F(ExposedTest, AViewsAddressExposesTheBase) {
  Tensor x = make({4}, {1, 2, 3, 4});
  x.add_(Value(1));
  float* p = slice(x, 0, 2, 4).data_ptr<float>();
  EXPECT_EQ(p[0], 4.0f);
  x.mul_(Value(10));
  EXPECT_EQ(p[0], 40.0f);
}

}  // namespace
}  // namespace tessera
