// Memory of captured graphs, on a device of fake addresses.
#include <gtest/gtest.h>

#include "memory/paged_device.h"

namespace tessera::memory {
namespace {

constexpr size_t kMiB = size_t{1} << 20;
StreamHandle stream(int i) { return reinterpret_cast<StreamHandle>(static_cast<uintptr_t>(i)); }

uint64_t captured_as = 0;  // what stream 1 belongs to

const Backend* capturing_backend() {
  static const Backend table = [] {
    Backend b = *paged_backend();
    b.capture_state = [](int, StreamHandle s, CaptureState* state, uint64_t* id) -> Status {
      *id = s == stream(1) ? captured_as : 0;
      *state = *id ? CaptureState::kActive : CaptureState::kNone;
      return {};
    };
    return b;
  }();
  return &table;
}

class PrivatePoolTest : public ::testing::Test {
 protected:
  void SetUp() override {
    paged = PagedDevice{};
    paged.total = 64 * kMiB;
    captured_as = 0;
  }
  void TearDown() override { EXPECT_EQ(paged.violation, ""); }

  void begin(DeviceAllocator& a, PoolId pool) {
    a.use_pool(pool, stream(1));
    captured_as = 7;
    a.begin_capture(pool, 7);
  }
  void end(DeviceAllocator& a) {
    captured_as = 0;
    a.end_capture(7);
  }
};

TEST_F(PrivatePoolTest, NobodyElseIsGivenItsMemory) {
  DeviceAllocator a(capturing_backend(), 0, Config{});
  Block* before = a.allocate(4 * kMiB, stream(1));
  a.deallocate(before);
  begin(a, {1, 0});
  Block* inside = a.allocate(4 * kMiB, stream(1));
  char* at = inside->ptr;
  EXPECT_NE(inside->pool, before->pool);
  a.deallocate(inside);
  inside = a.allocate(4 * kMiB, stream(1));  // within the capture it is used again
  EXPECT_EQ(inside->ptr, at);
  a.deallocate(inside);
  end(a);
  a.empty_cache();
  EXPECT_EQ(a.reserved().now(), static_cast<int64_t>(4 * kMiB));
  // All that is left, twice: pages of the graph are not taken for it.
  for (int i = 0; i < 2; ++i) {
    Block* rest = a.allocate(60 * kMiB, stream(i));
    EXPECT_THROW(a.allocate(4 * kMiB, stream(2)), Error);
    EXPECT_TRUE(rest->ptr + rest->size <= at || at + 4 * kMiB <= rest->ptr);
    a.deallocate(rest);
  }
  a.leave_pool({1, 0});
  Block* all = a.allocate(64 * kMiB, stream(0));
  a.deallocate(all);
  a.empty_cache();
  EXPECT_EQ(a.reserved().now(), 0);
}

TEST_F(PrivatePoolTest, GraphsThatShareItUseItAgain) {
  DeviceAllocator a(capturing_backend(), 0, Config{});
  begin(a, {0, 1});
  Block* first = a.allocate(8 * kMiB, stream(1));
  char* at = first->ptr;
  a.deallocate(first);
  end(a);
  begin(a, {0, 1});
  Block* second = a.allocate(8 * kMiB, stream(1));
  EXPECT_EQ(second->ptr, at);
  end(a);
  a.leave_pool({0, 1});
  a.empty_cache();
  EXPECT_EQ(a.reserved().now(), static_cast<int64_t>(8 * kMiB));  // the other graph lives
  a.leave_pool({0, 1});
  a.empty_cache();
  EXPECT_EQ(a.reserved().now(), static_cast<int64_t>(8 * kMiB));  // so does its result
  a.deallocate(second);
  a.empty_cache();
  EXPECT_EQ(a.reserved().now(), 0);
}

TEST_F(PrivatePoolTest, AddressesAreUsedAgain) {
  DeviceAllocator a(capturing_backend(), 0, Config{});
  size_t reservations = 0;
  for (uint64_t i = 1; i <= 20; ++i) {
    begin(a, {i, 0});
    a.deallocate(a.allocate(4 * kMiB, stream(1)));
    end(a);
    a.leave_pool({i, 0});
    if (i == 1) reservations = paged.reservations.size();
  }
  EXPECT_EQ(paged.reservations.size(), reservations);
  EXPECT_EQ(a.reserved().now(), static_cast<int64_t>(4 * kMiB));
}

TEST_F(PrivatePoolTest, EventsAreNotAskedDuringACapture) {
  DeviceAllocator a(capturing_backend(), 0, Config{});
  Block* shared = a.allocate(4 * kMiB, stream(0));
  begin(a, {1, 0});
  a.record_stream(shared, stream(1));
  const int events = paged.live_events;
  a.deallocate(shared);
  EXPECT_EQ(paged.live_events, events);  // an event recorded now would be captured
  EXPECT_NE(a.allocate(4 * kMiB, stream(0))->ptr, shared->ptr);
  end(a);
  EXPECT_GT(paged.live_events, events);
}

}  // namespace
}  // namespace tessera::memory
