// Devices, streams, events, transfers and the count of memory, as C++ programs write them.
#include "support/tensors.h"
#include "tessera/call/mismatch.h"
#include "tessera/driver/stream_pool.h"

namespace tessera {
namespace {

using namespace test;

TEST(CudaFaceTest, StreamsAreWhatTheyAre) {
  cuda::Stream a(0), b(0);
  EXPECT_EQ(a, a);
  EXPECT_FALSE(a == b);
  EXPECT_EQ(cuda::current_stream(0), cuda::default_stream(0));
  EXPECT_EQ(cuda::Stream::external(a.handle(), 0), a);
  EXPECT_EQ(a.device(), test_gpu(0));
  cuda::PriorityRange range = cuda::priority_range(0);
  EXPECT_EQ(range.least, 0);
  EXPECT_EQ(cuda::Stream(0, -1000).priority(), range.greatest);
  EXPECT_THROW(cuda::Stream(0, 1), Error);
}

TEST(CudaFaceTest, StreamsComeFromAPool) {
  std::vector<StreamHandle> seen;
  for (int i = 0; i < 4 * kPooledStreams; ++i) {
    StreamHandle s = cuda::Stream(0).handle();
    if (std::find(seen.begin(), seen.end(), s) == seen.end()) seen.push_back(s);
  }
  EXPECT_EQ(seen.size(), static_cast<size_t>(kPooledStreams));
}

TEST(CudaFaceTest, GuardsPutBackWhatWas) {
  cuda::Stream s(0);
  {
    cuda::StreamGuard guard(s);
    EXPECT_EQ(cuda::current_stream(), s);
  }
  EXPECT_EQ(cuda::current_stream(), cuda::default_stream());
  if (cuda::device_count() < 2) return;
  {
    cuda::DeviceGuard guard(1);
    EXPECT_EQ(cuda::current_device(), 1);
    EXPECT_EQ(Tensor(ones({2}).cuda()).get_device(), 1);
  }
  EXPECT_EQ(cuda::current_device(), 0);
}

TEST(CudaFaceTest, EventsOrderAndMeasure) {
  cuda::Stream side(0);
  cuda::Event begin({.enable_timing = true}), end({.enable_timing = true}), plain;
  EXPECT_TRUE(plain.query());
  EXPECT_THROW(begin.elapsed_time(end), Error);
  Tensor x = ones({1 << 16}, DType::kFloat32, test_gpu(0)), y;
  for (int i = 0; i < 5; ++i) {
    x.add_(1);
    side.wait_stream(cuda::current_stream(0));
    {
      cuda::StreamGuard guard(side);
      begin.record();
      y = x * 2;
      end.record();
    }
    x.record_stream(side);
    end.wait(cuda::current_stream(0));
    EXPECT_EQ(y.max().item(), 2.0 * (i + 2));
  }
  end.synchronize();
  EXPECT_TRUE(end.query() && side.query());
  EXPECT_GE(begin.elapsed_time(end), 0);
  EXPECT_THROW(plain.elapsed_time(end), Error);
}

TEST(CudaFaceTest, PinnedMemory) {
  Tensor x = randn({100, 50});
  Tensor p = x.pin_memory();
  EXPECT_TRUE(p.is_pinned() && !x.is_pinned());
  EXPECT_TRUE(p.pin_memory().is_same(p));
  Tensor y = p.to(test_gpu(0), /*non_blocking=*/true);
  p = Tensor();
  EXPECT_EQ(values(y.cpu()), values(x));
  EXPECT_THROW(y.pin_memory(), Error);
  EXPECT_THROW(x.record_stream(cuda::current_stream(0)), Error);
}

TEST(CudaFaceTest, LoadersPin) {
  data::DataLoader loader(data::TensorDataset(randn({8, 2}), randn({8})),
                          {.batch_size = 4, .num_workers = 1, .pin_memory = true});
  for (auto [x, y] : loader) EXPECT_TRUE(x.is_pinned() && y.is_pinned());
}

TEST(CudaFaceTest, TrackerCountsMemory) {
  FuseMode off(fuse::Mode::kOff);  // what is dropped before it is looked at takes no memory
  cuda::MemoryTracker tracker(0);
  Tensor kept = zeros({1 << 18}, DType::kFloat32, test_gpu(0));
  { Tensor gone = zeros({1 << 19}, DType::kFloat32, test_gpu(0)); }
  tracker.stop();
  EXPECT_EQ(tracker.memory_delta(), 1 << 20);
  EXPECT_GE(tracker.peak_memory(), 3 << 20);
  kept = Tensor();
  EXPECT_EQ(tracker.memory_delta_mb(), (1 << 20) / 1e6);
}

TEST(CudaFaceTest, DevicesSayWhatTheyAre) {
  DeviceProps props = cuda::device_properties(0);
  cuda::MemoryInfo memory = cuda::mem_get_info(0);
  EXPECT_GT(props.total_memory, 0);
  EXPECT_LE(memory.free, memory.total);
  EXPECT_EQ(cuda::device_uuid(0).size(), std::string("GPU-").size() + 36);
  EXPECT_FALSE(cuda::can_device_access_peer(0, 0));
  if (gpu_is_virtual()) {
    EXPECT_LE(cuda::device_monitor(0).busy_percent, 100);
    EXPECT_EQ(cuda::device_monitor(0).temperature, -1);
  }
}

TEST(CudaFaceTest, TwoDevicesAreNamed) {
  try {
    op::matmul(ones({2, 3}), ones({3, 4}, DType::kFloat32, test_gpu(0)));
    FAIL();
  } catch (const DeviceMismatch& e) {
    EXPECT_EQ(e.op_name(), "matmul");
    EXPECT_EQ(e.first().name, "self");
    EXPECT_EQ(e.second().name, "other");
    EXPECT_EQ(std::string(e.what()).find("Expected all tensors to be on the same device"), 0u);
  }
}

}  // namespace
}  // namespace tessera
