// Charges, out of memory on the line of the operator, and what the statistics count.
#include "tessera/memory/allocator.h"

#include "support/fuse_fixture.h"

namespace tessera {
namespace {

using namespace test;
using fuse::Reason;

constexpr int64_t kMiB = int64_t{1} << 20;

class FuseMemoryTest : public FuseTest {
 protected:
  FuseMemoryTest() : FuseTest(test_gpu()) {}
  void SetUp() override {
    if (!gpu_is_virtual()) GTEST_SKIP() << "counts the bytes of a device of 64 MiB";
    clear_gpu();
    FuseTest::SetUp();
    start_ = memory::memory_allocated(0);
  }
  void TearDown() override {
    FuseTest::TearDown();
    clear_gpu();
  }
  int64_t used() { return memory::memory_allocated(0) - start_; }
  Tensor megabytes(int64_t n, float value) {
    Dims size{n * kMiB / 4};
    return full(size.span(), Scalar(value), DType::kFloat32, device_);
  }
  int64_t start_ = 0;
};

TEST_F(FuseMemoryTest, APendingResultIsCharged) {
  Tensor x = megabytes(4, 1);
  EXPECT_EQ(used(), 4 * kMiB);  // the fill itself is pending
  Tensor y = x + Value(1);
  EXPECT_EQ(used(), 8 * kMiB);
  EXPECT_EQ(pending(), 2u);
  y = Tensor();
  EXPECT_EQ(used(), 4 * kMiB);
  y = x * Value(3);
  run_all();
  EXPECT_EQ(used(), 8 * kMiB);
  EXPECT_EQ(values(slice(y, 0, 0, 1))[0], 3);
  x = Tensor();
  y = Tensor();
  EXPECT_EQ(used(), 0);
}

TEST_F(FuseMemoryTest, WhatOnlyPendingWorkKeepsIsNotCounted) {
  Tensor x = megabytes(8, 1);
  run_all();
  Tensor y = x + Value(1);
  x = Tensor();
  EXPECT_EQ(pending(), 1u);
  EXPECT_EQ(used(), 8 * kMiB);
  run_all();
  EXPECT_EQ(used(), 8 * kMiB);
  EXPECT_EQ(values(slice(y, 0, 0, 1))[0], 2);
}

// The last step of a model that is let go of would keep its memory until something runs.
TEST_F(FuseMemoryTest, WorkForNobodyGoesWithItsMemory) {
  Tensor weight = megabytes(10, 1), state = megabytes(10, 0);
  run_all();
  state.add_(Value(weight));
  weight.add_(Value(state));
  EXPECT_EQ(pending(), 2u);
  weight = Tensor();
  EXPECT_EQ(pending(), 1u);  // its memory is still read
  state = Tensor();
  EXPECT_EQ(pending(), 0u);
  EXPECT_EQ(stats().dropped, 2);
  memory::reset_peak(0);
  Tensor next = megabytes(10, 1);
  run_all();
  EXPECT_EQ(memory::max_memory_allocated(0) - start_, 10 * kMiB);
}

TEST_F(FuseMemoryTest, AChainOfTemporariesPeaksAtOneResult) {
  Tensor x = megabytes(16, 1);
  run_all();
  memory::reset_peak(0);
  Tensor y = x + Value(1);  // x, y and the next y: stored, a third one would not fit
  y = y * Value(2);
  y = y - Value(3);
  y = y.relu();
  run_all();
  EXPECT_EQ(stats().largest_group, 4);
  EXPECT_LE(memory::max_memory_allocated(0) - start_, 48 * kMiB);
  EXPECT_LE(memory::memory_reserved(0), 32 * kMiB);
  EXPECT_EQ(used(), 32 * kMiB);
  EXPECT_EQ(values(slice(y, 0, 0, 1))[0], 1);
}

TEST_F(FuseMemoryTest, AResultThatDoesNotFitRaisesWhereItIsRead) {
  Tensor x = megabytes(20, 1), y = x + Value(1), z = y * Value(2);
  run_all();
  EXPECT_EQ(used(), 60 * kMiB);
  Tensor w = z + Value(1);
  EXPECT_EQ(used(), 80 * kMiB);
  EXPECT_ERROR(value(w.select(0, 0)), kOutOfMemory,
               "CUDA out of memory. Tried to allocate 20.00 MiB");
  EXPECT_EQ(used(), 80 * kMiB);
  EXPECT_EQ(values(slice(z, 0, 0, 2)), (std::vector<double>{4, 4}));
  y = Tensor();
  EXPECT_EQ(values(slice(w, 0, 0, 2)), (std::vector<double>{5, 5}));
}

TEST_F(FuseMemoryTest, AResultLargerThanTheDeviceRaisesOnItsLine) {
  Tensor x = megabytes(1, 1);
  Dims wide{80, kMiB / 4};
  EXPECT_ERROR(x.expand(wide.span()) + Value(1), kOutOfMemory, "Tried to allocate 80.00 MiB");
}

TEST_F(FuseMemoryTest, AWriteThatDoesNotFitRaisesOnItsLine) {
  Tensor x = megabytes(20, 1), y = megabytes(20, 2);
  run_all();
  Tensor z = x * Value(2), w = y * Value(3);
  EXPECT_ERROR(z.add_(Value(w)), kOutOfMemory, "Tried to allocate 20.00 MiB");
  EXPECT_EQ(values(slice(z, 0, 0, 1))[0], 2);
  EXPECT_ERROR(y.add_(Value(1)), kOutOfMemory, "Tried to allocate");  // w reads y
  EXPECT_EQ(values(slice(y, 0, 0, 1))[0], 2);
  z.add_(Value(x));
  EXPECT_EQ(values(slice(z, 0, 0, 1))[0], 3);
}

TEST_F(FuseMemoryTest, AWriteTakesItsMemoryWhenItIsRecorded) {
  Tensor x = megabytes(8, 1);
  run_all();
  Tensor y = x + Value(1);
  EXPECT_EQ(memory::usage(0).real() - start_, 8 * kMiB);
  y.add_(Value(x));
  EXPECT_EQ(memory::usage(0).real() - start_, 16 * kMiB);
  EXPECT_EQ(pending(), 2u);
  void* behind = nullptr;  // taken behind the allocator's back
  ASSERT_TRUE(accelerator()->allocate(0, 40 * kMiB, &behind).ok());
  EXPECT_EQ(values(slice(y, 0, 0, 1))[0], 3);
  ASSERT_TRUE(accelerator()->deallocate(0, behind).ok());
}

TEST_F(FuseMemoryTest, AFailedRunIsReportedOnce) {
  Tensor x = megabytes(20, 1);
  run_all();
  Tensor y = x + Value(1), z = x + Value(2), w = x + Value(3), u = slice(x, 0, 0, 10) * Value(7);
  EXPECT_ERROR(stream().run_all(Reason::kSynchronize), kOutOfMemory, "Tried to allocate 20.00 MiB");
  EXPECT_EQ(pending(), 1u);
  stream().run_all(Reason::kSynchronize);
  run_all();
  EXPECT_EQ(values(u), std::vector<double>(10, 7));
  EXPECT_EQ(values(slice(y, 0, 0, 1))[0], 2);
  y = Tensor();
  EXPECT_EQ(values(slice(w, 0, 0, 1))[0], 4);
  EXPECT_EQ(values(slice(z, 0, 0, 1))[0], 3);
  EXPECT_EQ(pending(), 0u);
}

TEST_F(FuseMemoryTest, AFullStreamLeavesOutWhatDoesNotFit) {
  Tensor x = megabytes(20, 1);
  run_all();
  std::vector<Tensor> results;
  for (int i = 0; i < 5; ++i) results.push_back(x + Value(i));
  Tensor y = sample({2000}, DType::kFloat32, device_);
  std::vector<double> expected = values(y);
  for (int i = 0; i < 2 * fuse::kPendingCap; ++i) y = y.neg();
  EXPECT_EQ(values(y), expected);
  EXPECT_EQ(used(), 120 * kMiB + 8192);
}

// Memory in use does not exceed the most that eager execution would have held.
TEST_F(FuseMemoryTest, MemoryStaysBelowTheEagerPeak) {
  for (int round = 0; round < 2; ++round) {
    Tensor x = megabytes(8, 1);
    run_all();
    memory::reset_peak(0);
    Tensor y = x + Value(1);
    x = Tensor();  // kept by pending work alone
    Dims size{8 * kMiB / 4};
    Tensor z = empty(size.span(), DType::kFloat32, device_);
    EXPECT_EQ(memory::usage(0).peak - start_, 16 * kMiB);
    EXPECT_LE(memory::max_memory_allocated(0) - start_, 16 * kMiB);
    EXPECT_EQ(runs(Reason::kMemory), round + 1);
    EXPECT_EQ(values(slice(y, 0, 0, 1))[0], 2);
  }
}

// Results that are dropped before anybody looks take no memory, so their promises stop nothing.
TEST_F(FuseMemoryTest, PromisesMayBeMoreThanThereIs) {
  Tensor x = megabytes(20, 1);
  run_all();
  memory::reset_peak(0);
  Tensor y = x + Value(1), z = y * Value(2), w = z - Value(3), v = w + Value(y);
  EXPECT_EQ(used(), 100 * kMiB);
  y = z = w = Tensor();
  EXPECT_EQ(values(slice(v, 0, 0, 2)), (std::vector<double>{3, 3}));
  EXPECT_EQ(used(), 40 * kMiB);
  EXPECT_EQ(memory::max_memory_allocated(0) - start_, 40 * kMiB);
}

TEST_F(FuseMemoryTest, PromisesThatAreKeptMayBeOutOfMemory) {
  Tensor x = megabytes(20, 1);
  Tensor y = x + Value(1);
  Tensor z = y * Value(2);
  Tensor u = z + Value(1);
  EXPECT_EQ(used(), 80 * kMiB);
  EXPECT_ERROR(run_all(), kOutOfMemory, "CUDA out of memory. Tried to allocate 20.00 MiB");
  u = Tensor();
  // Earlier results are intact, and the next step works once there is room.
  EXPECT_EQ(values(slice(z, 0, 0, 2)), (std::vector<double>{4, 4}));
  x = Tensor();
  Tensor w = z + Value(y);
  EXPECT_EQ(values(slice(w, 0, 0, 2)), (std::vector<double>{6, 6}));
  EXPECT_EQ(values(slice(y, 0, 0, 2)), (std::vector<double>{2, 2}));
}

TEST_F(FuseMemoryTest, PendingWorkRunsBeforeMemoryIsOut) {
  Tensor x = megabytes(20, 1);
  run_all();
  Tensor y = x + Value(1);
  x = Tensor();  // y's input goes when y has run
  Tensor z = y + Value(1);
  Tensor w = z * Value(2);  // 20 of x, y, z and w: only fits once x is gone
  EXPECT_EQ(values(slice(w, 0, 0, 1))[0], 6);
  EXPECT_EQ(values(slice(y, 0, 0, 1))[0], 2);
  EXPECT_EQ(values(slice(z, 0, 0, 1))[0], 3);
}

TEST_F(FuseMemoryTest, AFailureInTheMiddleLeavesTheRestPending) {
  Tensor small = sample({100}, DType::kFloat32, device_), x = megabytes(1, 1);
  run_all();
  Tensor first = small + Value(1);
  Dims wide{30, kMiB / 4};
  Tensor second = x.expand(wide.span()) + Value(1);  // 30 MiB, in a group of its own
  void* behind = nullptr;  // taken behind the allocator's back, after the charge
  ASSERT_TRUE(accelerator()->allocate(0, 50 * kMiB, &behind).ok());
  EXPECT_ERROR(run_all(), kOutOfMemory, "out of memory");
  EXPECT_EQ(pending(), 1u);
  EXPECT_EQ(values(first), values(sample({100}) + Value(1)));
  EXPECT_ERROR(values(second), kOutOfMemory, "out of memory");
  EXPECT_EQ(pending(), 1u);
  ASSERT_TRUE(accelerator()->deallocate(0, behind).ok());
  EXPECT_EQ(value(second.select(0, 29).select(0, 5)), 2);
  EXPECT_EQ(pending(), 0u);
}

TEST_F(FuseMemoryTest, AConsumersOutOfMemoryLeavesPendingWork) {
  Tensor x = megabytes(24, 1), y = x + Value(1);
  Dims wide{2, 24 * kMiB / 4};
  Tensor copy = Tensor(op::_contiguous_copy(y.expand(wide.span())));
  EXPECT_ERROR(value(copy.sum()), kOutOfMemory, "out of memory");
  copy = Tensor();
  EXPECT_EQ(values(slice(y, 0, 0, 1))[0], 2);
  Tensor z = slice(y, 0, 0, 100) + Value(1);
  EXPECT_EQ(values(z), std::vector<double>(100, 3));
}

}  // namespace
}  // namespace tessera
