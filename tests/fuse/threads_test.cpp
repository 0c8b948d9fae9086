// Other threads, other streams, forked children.
#include <sys/wait.h>
#include <unistd.h>

#include <barrier>
#include <thread>

#include "support/fuse_fixture.h"

namespace tessera {
namespace {

using namespace test;
using fuse::Reason;

class FuseThreadTest : public FuseTest {};

TEST_F(FuseThreadTest, UseFromAnotherThreadSeesTheValue) {
  Tensor x = sample({64}), y = x + Value(1);
  std::vector<double> there;
  std::thread([&] { there = values(y * Value(2)); }).join();
  std::vector<double> want = values(x);
  for (double& v : want) v = (v + 1) * 2;
  EXPECT_EQ(there, want);
  EXPECT_EQ(runs(Reason::kThread), 1);
}

TEST_F(FuseThreadTest, WorkOfAThreadThatEndedIsThere) {
  Tensor x = sample({64}), y;
  std::thread([&] { y = (x + Value(1)) * Value(2); }).join();
  EXPECT_EQ(runs(Reason::kThreadExit), 1);
  EXPECT_EQ(pending(), 0u);
  Tensor z = y - Value(x);
  std::vector<double> want = values(x);
  for (double& v : want) v = rounded((v + 1) * 2 - v, DType::kFloat32);
  EXPECT_EQ(values(z), want);
}

TEST_F(FuseThreadTest, TwoThreadsRecordAtOnce) {
  Tensor shared = sample({64});
  std::vector<double> base = values(shared);
  constexpr int kThreads = 4, kSteps = 300;
  std::vector<std::vector<double>> got(kThreads);
  std::barrier start(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      start.arrive_and_wait();
      Tensor mine = shared * Value(0);
      for (int i = 0; i < kSteps; ++i) {
        mine = mine + Value(t + 1);
        Tensor forgotten = mine.exp();
        if (i % 50 == 49) values(mine);
      }
      got[static_cast<size_t>(t)] = values(mine + Value(shared));
    });
  }
  for (std::thread& t : threads) t.join();
  for (int t = 0; t < kThreads; ++t) {
    std::vector<double> want = base;
    for (double& v : want) v += kSteps * (t + 1);
    EXPECT_TRUE(close(got[static_cast<size_t>(t)], want, 1e-6)) << t;
  }
}

TEST_F(FuseThreadTest, ManyThreadsReadOnePendingValue) {
  for (int round = 0; round < 50; ++round) {
    Tensor y = sample({64}) + Value(round), z = y * Value(2);
    std::vector<std::thread> threads;
    std::vector<double> got[3];
    for (auto& g : got) threads.emplace_back([&] { g = values(z); });
    for (std::thread& t : threads) t.join();
    double want = rounded((values(sample({64}))[7] + round) * 2, DType::kFloat32);
    for (auto& g : got) ASSERT_EQ(g.at(7), want);
  }
}

TEST_F(FuseThreadTest, AHandleFreedOnAnotherThread) {
  for (int i = 0; i < 200; ++i) {
    Tensor y = sample({8}) + Value(i);
    Tensor z = y * Value(2);
    std::thread other([moved = std::move(y)]() mutable { moved = Tensor(); });
    std::vector<double> got = values(z);
    other.join();
    ASSERT_EQ(got[0], rounded((values(sample({8}))[0] + i) * 2, DType::kFloat32));
  }
}

TEST_F(FuseThreadTest, AForkedChildFindsTheResults) {
  Tensor x = sample({64}), y = x + Value(1);
  ASSERT_EQ(pending(), 1u);
  double want = values(x)[5] + 1;
  pid_t pid = fork();
  if (pid == 0) {
    // No expectations here: only the exit code is seen.
    bool ready =
        pending() == 0 && values(y)[5] == want && value(slice(y * Value(2), 0, 5, 6)) == 2 * want;
    _exit(ready ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(runs(Reason::kFork), 1);
  EXPECT_EQ(values(y)[5], want);
}

class FuseStreamTest : public FuseTest {
 protected:
  FuseStreamTest() : FuseTest(test_gpu()) {}
  void TearDown() override {
    FuseTest::TearDown();
    clear_gpu();
  }
};

TEST_F(FuseStreamTest, ASwitchOfStreamsRunsTheOldOnesWork) {
  const Backend* b = accelerator();
  StreamHandle side = nullptr;
  ASSERT_TRUE(b->stream_create(0, 0, &side).ok());
  {
    Tensor x = sample({64}, DType::kFloat32, device_), y = x + Value(1);
    ASSERT_EQ(pending(), 1u);
    set_current_stream(0, side);
    Tensor z = sample({64}, DType::kFloat32, device_, 1) * Value(2);
    EXPECT_EQ(runs(Reason::kStream), 1);
    EXPECT_EQ(pending(), 1u);
    EXPECT_EQ(values(z)[0], values(sample({64}, DType::kFloat32, {}, 1))[0] * 2);
    set_current_stream(0, nullptr);
    EXPECT_EQ(values(y)[0], values(sample({64}))[0] + 1);
  }
  ASSERT_TRUE(b->stream_synchronize(0, side).ok());
  ASSERT_TRUE(b->stream_destroy(0, side).ok());
}

// Each thread's device is nearly full all the time, so that recording has to let go of memory while
// the other records.
TEST_F(FuseStreamTest, ThreadsShortOfMemory) {
  if (!gpu_is_virtual()) GTEST_SKIP() << "needs a small device";
  Dims size{(8 << 20) / 4};
  std::vector<std::thread> threads;
  for (int t = 1; t <= 2; ++t) {
    threads.emplace_back([&, t] {
      Tensor x = full(size.span(), Scalar(double(t)), DType::kFloat32, device_);
      for (int i = 0; i < 40; ++i) {
        try {
          Tensor y = x + Value(1), z = y * Value(2);
          ASSERT_EQ(value(slice(z, 0, 5, 6)), 2.0 * (t + 1));
        } catch (const Error& e) {
          ASSERT_EQ(e.kind(), ErrorKind::kOutOfMemory) << e.what();
        }
      }
    });
  }
  for (std::thread& t : threads) t.join();
}

TEST_F(FuseStreamTest, DevicesHaveStreamsOfTheirOwn) {
  if (device_count() < 2) GTEST_SKIP() << "one device";
  Device other = test_gpu(1);
  Tensor x = sample({64}, DType::kFloat32, device_) + Value(1);
  Tensor y = sample({64}, DType::kFloat32, other) + Value(2);
  EXPECT_EQ(pending(), 1u);
  EXPECT_EQ(fuse::stream_of(other).pending_ops(), 1u);
  Tensor z = x.to(other) + Value(y);
  EXPECT_EQ(pending(), 0u);
  EXPECT_EQ(values(z)[0], rounded(2 * values(sample({64}))[0] + 3, DType::kFloat32));
}

TEST_F(FuseStreamTest, ANumberOnTheCpuJoins) {
  Tensor x = sample({64}, DType::kFloat32, device_), n = make({}, {2.5});
  Tensor y = x * Value(n + Value(1));
  EXPECT_EQ(values(y)[0], rounded(values(sample({64}))[0] * 3.5, DType::kFloat32));
  EXPECT_ERROR(x * Value(make({1}, {2.5})), kRuntime,
               "Expected all tensors to be on the same device");
}

}  // namespace
}  // namespace tessera
