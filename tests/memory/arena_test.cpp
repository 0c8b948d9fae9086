// Segments that grow page by page, against a device of fake addresses and a shadow model.
#include <gtest/gtest.h>

#include "paged_device.h"

namespace tessera::memory {
namespace {

constexpr int64_t kMiB = 1 << 20;
constexpr size_t MiB(size_t n) { return n << 20; }

class ArenaTest : public ::testing::Test {
 protected:
  void SetUp() override {
    paged = PagedDevice{};
    paged.total = 256 * kMiB;
  }
  void TearDown() override { EXPECT_EQ(paged.violation, ""); }
};

TEST_F(ArenaTest, RandomOperationsKeepTheModel) {
  int64_t ooms = 0;
  for (unsigned seed = 0; seed < 10; ++seed) {
    paged = PagedDevice{};
    paged.total = (seed % 2 ? 96 : 1024) * kMiB;
    {
      DeviceAllocator a(paged_backend(), 0, Config{});
      PagedModel model(a, seed);
      for (int i = 0; i < 20000; ++i) ASSERT_EQ(model.step(), "") << "seed " << seed << ", " << i;
      model.release_all();
      a.empty_cache();
      EXPECT_EQ(a.reserved().now(), 0);
      EXPECT_EQ(paged.used, 0) << "everything freed, yet pages stayed";
      ooms += model.ooms();
    }
    EXPECT_TRUE(paged.reservations.empty());
    EXPECT_EQ(paged.live_events, 0);
  }
  EXPECT_GT(ooms, 0) << "the small device should have been full at times";
}

TEST_F(ArenaTest, GrowsByPagesAndLeavesTheRest) {
  DeviceAllocator a(paged_backend(), 0, Config{});
  Block* first = a.allocate(MiB(3), nullptr);
  EXPECT_EQ(a.reserved().now(), 4 * kMiB);
  Block* second = a.allocate(MiB(3), nullptr);
  EXPECT_EQ(second->ptr, first->ptr + MiB(3)) << "it begins in the rest of the first one's pages";
  EXPECT_EQ(a.reserved().now(), 6 * kMiB);
  a.deallocate(first);
  a.deallocate(second);
}

TEST_F(ArenaTest, PagesMoveBeforeTheDriverIsAsked) {
  DeviceAllocator a(paged_backend(), 0, Config{});
  std::vector<Block*> blocks;
  for (int i = 0; i < 16; ++i) blocks.push_back(a.allocate(MiB(4), nullptr));
  for (int i = 0; i < 16; i += 2) a.deallocate(blocks[static_cast<size_t>(i)]);
  EXPECT_EQ(a.reserved().now(), 64 * kMiB);
  Block* large = a.allocate(MiB(32), nullptr);  // no free piece is longer than 4 MiB
  EXPECT_EQ(a.reserved().now(), 64 * kMiB);
  a.deallocate(large);
  for (int i = 1; i < 16; i += 2) a.deallocate(blocks[static_cast<size_t>(i)]);
}

// What is nearly the same at every step has few pages moved once memory has grown a little. A step
// frees what the last one left while it makes its own, in another order.
TEST_F(ArenaTest, StepsSettle) {
  paged.total = 8192 * kMiB;
  DeviceAllocator a(paged_backend(), 0, Config{});
  constexpr size_t kSizes[] = {50, 7, 24, 98, 3, 50, 33, 12, 75, 9, 24, 61};
  std::vector<Block*> left;
  for (size_t i = 0; i < 40; ++i) a.allocate(MiB(50), nullptr);
  auto step = [&](size_t turn) {
    std::vector<Block*> made;
    for (size_t i = 0; i < std::size(kSizes); ++i) {
      made.push_back(a.allocate(MiB(kSizes[i]), nullptr));
      Block* passing = a.allocate(MiB(kSizes[(i * 5 + turn) % std::size(kSizes)]), nullptr);
      if (!left.empty()) {
        const size_t which = (i * 7 + turn) % left.size();
        a.deallocate(left[which]);
        left.erase(left.begin() + static_cast<ptrdiff_t>(which));
      }
      a.deallocate(passing);
    }
    left = made;
  };
  for (size_t i = 0; i < 24; ++i) step(i % 3);
  const int64_t unmapped = paged.unmapped;
  for (size_t i = 0; i < 240; ++i) step(i % 3);
  EXPECT_LE(paged.unmapped - unmapped, 240 * 4);  // where everything moves first, 28 a step
  EXPECT_LE(a.reserved().now(), 2900 * kMiB);     // 2674 are in use at a time
}

TEST_F(ArenaTest, PagesOfOtherStreamsMoveToo) {
  DeviceAllocator a(paged_backend(), 0, Config{});
  auto stream = [](uintptr_t i) { return reinterpret_cast<StreamHandle>(i); };
  a.deallocate(a.allocate(MiB(200), stream(1)));
  Block* b = a.allocate(MiB(200), stream(2));
  EXPECT_EQ(a.num_ooms(), 0);
  EXPECT_LE(a.reserved().now(), paged.total);
  a.deallocate(b);
}

// A program may read a tensor on another stream and let go of it without record_stream.
TEST_F(ArenaTest, PagesStayWhileAnyStreamWorks) {
  DeviceAllocator a(paged_backend(), 0, Config{});
  auto stream = [](uintptr_t i) { return reinterpret_cast<StreamHandle>(i); };
  a.deallocate(a.allocate(MiB(1), stream(2)));
  Block* read = a.allocate(MiB(200), stream(1));
  const auto at = reinterpret_cast<uintptr_t>(read->ptr);
  paged.queued[stream(2)] = 1;
  for (uintptr_t page = at; page < at + MiB(200); page += PagedDevice::kPage)
    paged.last_use[page] = {stream(2), 1};
  a.deallocate(read);
  Block* b = a.allocate(MiB(200), stream(3));  // the model says whether a page went too early
  a.deallocate(b);
}

// Another library's stream: nobody tells of its end, and the driver may end the process if asked
// for it.
TEST_F(ArenaTest, AStreamThatIsGoneIsNotNamed) {
  auto stream = [](uintptr_t i) { return reinterpret_cast<StreamHandle>(i); };
  for (const bool knows_all : {true, false}) {
    paged.knows_all = knows_all;
    paged.total = 500 * kMiB;
    DeviceAllocator a(paged_backend(), 0, Config{});
    a.deallocate(a.allocate(MiB(200), stream(1)));
    paged.destroyed = {stream(1)};
    a.deallocate(a.allocate(MiB(240), nullptr));
    a.empty_cache();
    // What was taken on it stays if nobody can say that its work is done.
    EXPECT_EQ(a.reserved().now(), knows_all ? 0 : 200 * kMiB);
    Block* b = a.allocate(MiB(200), stream(2));
    EXPECT_EQ(a.reserved().now(), knows_all ? 200 * kMiB : 400 * kMiB);
    a.deallocate(b);
  }
}

// A stream that waits for another process must not hold up the thread that would send to it.
TEST_F(ArenaTest, NobodyWaitsForAStreamThatStands) {
  paged.total = 1024 * kMiB;
  DeviceAllocator a(paged_backend(), 0, Config{});
  auto stream = [](uintptr_t i) { return reinterpret_cast<StreamHandle>(i); };
  a.deallocate(a.allocate(MiB(200), stream(1)));
  a.deallocate(a.allocate(MiB(1), stream(2)));
  paged.stuck = {stream(2)};
  Block* b = a.allocate(MiB(210), stream(3));
  EXPECT_EQ(a.reserved().now(), 200 * kMiB + 2 * kMiB + 210 * kMiB) << "memory grows meanwhile";
  paged.stuck.clear();
  a.deallocate(b);
  a.empty_cache();
}

TEST_F(ArenaTest, SegmentsAreUsedWhereAsked) {
  DeviceAllocator a(paged_backend(), 0, parse_config("expandable_segments:False"));
  Block* b = a.allocate(MiB(3), nullptr);
  EXPECT_EQ(a.reserved().now(), 20 * kMiB);
  EXPECT_EQ(paged.plain.size(), 1u);
  a.deallocate(b);
}

TEST_F(ArenaTest, WithoutACacheEveryBlockIsTheDrivers) {
  Config config;
  config.caching = false;
  DeviceAllocator a(paged_backend(), 0, config);
  Block* b = a.allocate(1000, nullptr);
  EXPECT_EQ(paged.plain.begin()->second, 1000u);
  a.deallocate(b);
  EXPECT_TRUE(paged.plain.empty());
  EXPECT_EQ(a.reserved().now(), 0);
}

TEST_F(ArenaTest, FragmentationOfATrace) {
  // Sizes as a training run with varying sequence lengths draws them.
  paged.total = int64_t{141} << 30;
  DeviceAllocator a(paged_backend(), 0, Config{});
  std::mt19937 rng(0);
  std::lognormal_distribution<double> draw(14, 2);
  std::vector<Block*> live;
  for (int i = 0; i < 3000; ++i) {
    live.push_back(a.allocate((static_cast<size_t>(draw(rng)) + 1) * 4, nullptr));
    if (live.size() > 200) {
      std::swap(live[rng() % live.size()], live.back());
      a.deallocate(live.back());
      live.pop_back();
    }
  }
  const double ratio =
      static_cast<double>(a.reserved().peak()) / static_cast<double>(a.used().peak());
  EXPECT_LE(ratio, 1.08);
  RecordProperty("reserved_over_allocated", std::to_string(ratio));
  for (Block* b : live) a.deallocate(b);
}

TEST_F(ArenaTest, AFailureOfTheDriverLosesNothing) {
  for (int64_t fails = 0; fails < 40; ++fails) {
    paged = PagedDevice{};
    paged.total = 256 * kMiB;
    DeviceAllocator a(paged_backend(), 0, Config{});
    PagedModel model(a, static_cast<unsigned>(fails));
    paged.fail_in = fails;
    for (int i = 0; i < 300; ++i) ASSERT_EQ(model.step(), "") << "failing call " << fails;
    paged.fail_in = -1;
    for (int i = 0; i < 300; ++i) ASSERT_EQ(model.step(), "") << "after failing call " << fails;
    model.release_all();
    a.empty_cache();
    ASSERT_EQ(paged.used, 0);
  }
}

TEST(AllocatorConfig, ReadsPyTorchsOptions) {
  Config c = parse_config("max_split_size_mb:128,garbage_collection_threshold:0.8");
  EXPECT_EQ(c.max_split, MiB(128));
  EXPECT_DOUBLE_EQ(c.gc_threshold, 0.8);
  EXPECT_TRUE(c.expandable);
  EXPECT_FALSE(parse_config("expandable_segments:False").expandable);
  EXPECT_EQ(parse_config("roundup_power2_divisions:[256:1,512:2,>:4]").roundup_divisions, 4u);
  EXPECT_EQ(round_up_divisions(1200 * 512, 4), 1280u * 512u);
  EXPECT_THROW(parse_config("no_such_option:1"), Error);
  EXPECT_THROW(parse_config("expandable_segments:maybe"), Error);
  EXPECT_THROW(parse_config("max_split_size_mb:3"), Error);
}

}  // namespace
}  // namespace tessera::memory
