// What a thread leaves pending runs when it ends.
#include <thread>

#include "support/fuse_fixture.h"

namespace tessera {
namespace {

using namespace test;
using fuse::Reason;

class FuseThreadExitTest : public FuseTest {};

TEST_F(FuseThreadExitTest, PendingWorkRuns) {
  Tensor x = sample({64}), y;
  std::thread([&] { y = (x + Value(1)) * Value(2); }).join();
  EXPECT_EQ(pending(), 0u);
  EXPECT_EQ(runs(Reason::kThreadExit), 1);
  std::vector<double> want = values(x);
  for (double& v : want) v = rounded((v + 1) * 2, DType::kFloat32);
  EXPECT_EQ(values(y), want);
}

// The allocator's lists of the thread come into being after its watch, and end before it.
TEST_F(FuseThreadExitTest, AfterRunsOfItsOwn) {
  Tensor x = sample({4096}), y, z;
  std::thread([&] {
    y = x + Value(1);
    values(y);
    Tensor gone = y * Value(3);
    z = gone + Value(y);
  }).join();
  EXPECT_EQ(pending(), 0u);
  EXPECT_EQ(runs(Reason::kThreadExit), 1);
  EXPECT_EQ(values(z)[7], rounded(values(y)[7] * 4, DType::kFloat32));
}

TEST_F(FuseThreadExitTest, WorkOfOthersStaysPending) {
  Tensor x = sample({64}), kept = x + Value(1);
  std::thread([&] { values(x); }).join();
  EXPECT_EQ(pending(), 1u);
  EXPECT_EQ(runs(Reason::kThreadExit), 0);
}

// Thread ids are given out again: the second thread is watched as the first was.
TEST_F(FuseThreadExitTest, OneThreadAfterAnother) {
  Tensor x = sample({64});
  for (int i = 0; i < 20; ++i) {
    Tensor y;
    std::thread([&] {
      if (i % 2)
        values(x + Value(1));
      else
        y = x + Value(1);
    }).join();
    EXPECT_EQ(pending(), 0u);
  }
  EXPECT_EQ(runs(Reason::kThreadExit), 10);
}

class FuseThreadExitGpuTest : public FuseTest {
 protected:
  FuseThreadExitGpuTest() : FuseTest(test_gpu()) {}
};

TEST_F(FuseThreadExitGpuTest, PendingWorkRuns) {
  Tensor x = sample({64}, DType::kFloat32, device_), y;
  std::thread([&] { y = x + Value(1); }).join();
  EXPECT_EQ(pending(), 0u);
  EXPECT_EQ(runs(Reason::kThreadExit), 1);
  EXPECT_EQ(values(y)[3], rounded(values(x)[3] + 1, DType::kFloat32));
}

}  // namespace
}  // namespace tessera
