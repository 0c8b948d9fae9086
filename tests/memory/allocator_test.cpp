// The caching allocator against a device of fake addresses and a shadow model.
#include "tessera/memory/allocator.h"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <random>
#include <thread>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/memory/device_allocator.h"

namespace tessera::memory {
namespace {

// A device that only counts. Streams are small numbers; events stay unfinished until `done` says
// otherwise.
struct FakeDevice {
  int64_t total = 0;
  int64_t used = 0;
  uintptr_t next = uintptr_t{1} << 32;
  std::map<uintptr_t, size_t> segments;
  int refused = 0;
  int live_events = 0;
  uint64_t records = 0;
  uint64_t done = 0;  // recordings up to this one are finished
  bool finish_on_query = false;
};
FakeDevice fake;
// Threads call the backend under the allocator's lock, except for memory_info in an error's text.
std::mutex fake_mutex;

struct FakeEvent {
  uint64_t recorded = 0;
};

Status memory_info(int, int64_t* free, int64_t* total) {
  std::lock_guard lock(fake_mutex);
  *total = fake.total;
  *free = fake.total - fake.used;
  return {};
}
Status allocate_raw(int, size_t bytes, void** out) {
  std::lock_guard lock(fake_mutex);
  if (fake.used + static_cast<int64_t>(bytes) > fake.total) {
    ++fake.refused;
    return {Code::kOutOfMemory, "full"};
  }
  fake.used += static_cast<int64_t>(bytes);
  fake.segments[fake.next] = bytes;
  *out = reinterpret_cast<void*>(fake.next);
  fake.next += bytes + (size_t{4} << 20);  // a gap, so that a wrong merge would leave the segment
  return {};
}
Status deallocate_raw(int, void* p) {
  std::lock_guard lock(fake_mutex);
  auto it = fake.segments.find(reinterpret_cast<uintptr_t>(p));
  EXPECT_NE(it, fake.segments.end());
  fake.used -= static_cast<int64_t>(it->second);
  fake.segments.erase(it);
  return {};
}
Status event_create(int, bool, EventHandle* out) {
  ++fake.live_events;
  *out = new FakeEvent;
  return {};
}
Status event_destroy(int, EventHandle e) {
  --fake.live_events;
  delete static_cast<FakeEvent*>(e);
  return {};
}
Status event_record(int, EventHandle e, StreamHandle) {
  static_cast<FakeEvent*>(e)->recorded = ++fake.records;
  return {};
}
Status event_query(int, EventHandle e) {
  const uint64_t at = static_cast<FakeEvent*>(e)->recorded;
  if (at <= fake.done) return {};
  if (fake.finish_on_query) fake.done = at;  // from the next query on
  return {Code::kNotReady, nullptr};
}

const Backend* fake_backend() {
  static const Backend table = [] {
    Backend b{};
    b.abi = kBackendAbi;
    b.name = "fake";
    b.memory_info = memory_info;
    b.allocate = allocate_raw;
    b.deallocate = deallocate_raw;
    b.event_create = event_create;
    b.event_destroy = event_destroy;
    b.event_record = event_record;
    b.event_query = event_query;
    return b;
  }();
  return &table;
}

constexpr int64_t kMiB = 1 << 20;

StreamHandle stream(int i) { return reinterpret_cast<StreamHandle>(static_cast<uintptr_t>(i)); }

class AllocatorTest : public ::testing::Test {
 protected:
  void SetUp() override { fake = FakeDevice{.total = 256 * kMiB}; }
  void TearDown() override { set_pressure_hook(nullptr); }
};

// Structure that must hold after every operation: segments tiled by their blocks, no two free
// neighbours of one segment left unmerged, and sums that agree with the counters.
void check_structure(DeviceAllocator& a, int64_t charged) {
  int64_t in_use = 0, covered = 0;
  const Block* before = nullptr;
  for (const Block* b : a.all_blocks()) {
    ASSERT_GT(b->size, 0u);
    ASSERT_EQ(b->size % 512, 0u);
    if (b->prev) {
      ASSERT_EQ(b->prev, before);
      ASSERT_EQ(before->ptr + before->size, b->ptr);
      const bool free = !b->in_use && !b->waiting,
                 free_before = !before->in_use && !before->waiting;
      ASSERT_FALSE(free && free_before) << "free neighbours were not merged";
    } else {
      ASSERT_TRUE(fake.segments.count(reinterpret_cast<uintptr_t>(b->ptr)));
      ASSERT_TRUE(!before || !before->next);
    }
    covered += static_cast<int64_t>(b->size);
    if (b->in_use) in_use += static_cast<int64_t>(b->size);
    before = b;
  }
  ASSERT_EQ(covered, fake.used);
  ASSERT_EQ(a.reserved().now(), fake.used);
  ASSERT_EQ(a.used().now(), in_use + charged);
}

struct Held {
  Block* block;
  size_t bytes;
};

class Model {
 public:
  explicit Model(DeviceAllocator& a) : a_(a) {}

  void add(Block* b, size_t bytes) {
    const auto begin = reinterpret_cast<uintptr_t>(b->ptr), end = begin + b->size;
    ASSERT_GE(b->size, bytes);
    auto next = held_.lower_bound(begin);
    ASSERT_TRUE(next == held_.end() || end <= next->first) << "overlaps a block in use";
    if (next != held_.begin()) {
      auto before = std::prev(next);
      ASSERT_LE(before->first + before->second.bytes, begin) << "overlaps a block in use";
    }
    auto seg = std::prev(fake.segments.upper_bound(begin));
    ASSERT_LE(end, seg->first + seg->second) << "leaves its segment";
    held_[begin] = {b, b->size};
  }
  size_t size() const { return held_.size(); }
  Block* pick(std::mt19937& rng) {
    return std::next(held_.begin(), static_cast<long>(rng() % held_.size()))->second.block;
  }
  void drop(Block* b) {
    held_.erase(reinterpret_cast<uintptr_t>(b->ptr));
    a_.deallocate(b);
  }
  void drop_all() {
    while (!held_.empty()) drop(held_.begin()->second.block);
  }

 private:
  DeviceAllocator& a_;
  std::map<uintptr_t, Held> held_;  // by address; `bytes` is the block's size
};

size_t random_size(std::mt19937& rng) {
  switch (rng() % 4) {
    case 0:
      return 1 + rng() % 4096;
    case 1:
      return 1 + rng() % static_cast<size_t>(kMiB);
    case 2:
      return 1 + rng() % static_cast<size_t>(10 * kMiB);
    default:
      return rng() % 8 ? 1 + rng() % 65536 : 1 + rng() % static_cast<size_t>(40 * kMiB);
  }
}

TEST_F(AllocatorTest, RandomOperationsKeepTheModel) {
  int64_t operations = 0, ooms = 0;
  for (unsigned seed = 0; seed < 16; ++seed) {
    fake = FakeDevice{.total = (seed % 2 ? 64 : 512) * kMiB, .finish_on_query = true};
    DeviceAllocator a(fake_backend(), 0);
    Model model(a);
    std::mt19937 rng(seed);
    int64_t charged = 0, peak = 0;
    std::vector<size_t> charges;
    for (int i = 0; i < 12500; ++i, ++operations) {
      const unsigned what = rng() % 100;
      if (what < 48) {
        const size_t bytes = random_size(rng);
        const int64_t ooms_before = a.num_ooms();
        try {
          Block* b = a.allocate(bytes, stream(static_cast<int>(rng() % 3)));
          ASSERT_NO_FATAL_FAILURE(model.add(b, bytes));
        } catch (const Error& e) {
          ASSERT_EQ(e.kind(), ErrorKind::kOutOfMemory);
          ASSERT_EQ(a.num_ooms(), ooms_before + 1);
          ++ooms;
        }
      } else if (what < 86) {
        if (model.size()) model.drop(model.pick(rng));
      } else if (what < 91) {
        if (model.size()) a.record_stream(model.pick(rng), stream(static_cast<int>(rng() % 4)));
      } else if (what < 94) {
        fake.done += rng() % 3;
      } else if (what < 97) {
        const size_t bytes = random_size(rng);
        const bool fits = static_cast<int64_t>(bytes) <= fake.total;
        ASSERT_EQ(a.charge(bytes), fits ? Charge::kMade : Charge::kTooLarge);
        if (fits) {
          charges.push_back(bytes);
          charged += static_cast<int64_t>(round_charge(bytes));
        }
      } else if (what < 99) {
        if (!charges.empty()) {
          a.uncharge(charges.back());
          charged -= static_cast<int64_t>(round_charge(charges.back()));
          charges.pop_back();
        }
      } else {
        a.empty_cache();
      }
      peak = std::max(peak, a.used().now());
      ASSERT_EQ(a.used().peak(), peak);
      ASSERT_GE(a.reserved().peak(), a.reserved().now());
      ASSERT_NO_FATAL_FAILURE(check_structure(a, charged));
    }
    model.drop_all();
    for (size_t bytes : charges) a.uncharge(bytes);
    a.empty_cache();
    EXPECT_EQ(a.used().now(), 0);
    EXPECT_EQ(a.reserved().now(), 0) << "everything freed, yet segments stayed";
    EXPECT_TRUE(fake.segments.empty());
  }
  EXPECT_EQ(fake.live_events, 0);
  EXPECT_GT(ooms, 0) << "the small device should have been full at times";
  RecordProperty("operations", std::to_string(operations));
}

TEST_F(AllocatorTest, SegmentsHavePyTorchsSizes) {
  DeviceAllocator a(fake_backend(), 0);
  Block* small = a.allocate(100, nullptr);
  EXPECT_EQ(small->size, 512u);
  EXPECT_EQ(a.reserved().now(), 2 * kMiB);
  Block* middle = a.allocate(3 * kMiB, nullptr);
  EXPECT_EQ(a.reserved().now(), 22 * kMiB);
  Block* large = a.allocate(static_cast<size_t>(11 * kMiB + 1), stream(1));
  EXPECT_EQ(a.reserved().now(), 34 * kMiB);
  EXPECT_EQ(large->size, static_cast<size_t>(12 * kMiB));
  for (Block* b : {small, middle, large}) a.deallocate(b);
  EXPECT_EQ(a.used().now(), 0);
  EXPECT_EQ(a.reserved().now(), 34 * kMiB);
}

TEST_F(AllocatorTest, BestFitTakesTheSmallestThatFits) {
  DeviceAllocator a(fake_backend(), 0);
  std::vector<Block*> gaps, fences;
  for (size_t kib : {64, 8, 32, 16}) {
    gaps.push_back(a.allocate(kib << 10, nullptr));
    fences.push_back(a.allocate(512, nullptr));
  }
  char* want = gaps[3]->ptr;
  for (Block* b : gaps) a.deallocate(b);
  Block* got = a.allocate(12 << 10, nullptr);
  EXPECT_EQ(got->ptr, want);
  a.deallocate(got);
  for (Block* b : fences) a.deallocate(b);
}

TEST_F(AllocatorTest, StreamsDoNotShareFreeBlocks) {
  DeviceAllocator a(fake_backend(), 0);
  Block* b = a.allocate(1024, stream(1));
  char* p = b->ptr;
  a.deallocate(b);
  Block* other = a.allocate(1024, stream(2));
  EXPECT_NE(other->ptr, p);
  Block* same = a.allocate(1024, stream(1));
  EXPECT_EQ(same->ptr, p);
  a.deallocate(other);
  a.deallocate(same);
}

TEST_F(AllocatorTest, AnotherStreamsUseDelaysReuse) {
  DeviceAllocator a(fake_backend(), 0);
  Block* b = a.allocate(1024, nullptr);
  char* p = b->ptr;
  a.record_stream(b, stream(5));
  a.record_stream(b, nullptr);  // its own stream: nothing to wait for
  a.deallocate(b);
  EXPECT_EQ(fake.records, 1u);
  EXPECT_EQ(a.used().now(), 0);
  Block* meanwhile = a.allocate(1024, nullptr);
  EXPECT_NE(meanwhile->ptr, p);
  fake.done = 1;
  Block* after = a.allocate(1024, nullptr);
  EXPECT_EQ(after->ptr, p);
  a.deallocate(meanwhile);
  a.deallocate(after);
}

TEST_F(AllocatorTest, OutOfMemorySaysWhatAUserNeeds) {
  DeviceAllocator a(fake_backend(), 0);
  Block* most = a.allocate(static_cast<size_t>(200 * kMiB), nullptr);
  ASSERT_EQ(Charge::kMade, a.charge(512));
  try {
    a.allocate(static_cast<size_t>(100 * kMiB), nullptr);
    FAIL() << "it did not fit";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kOutOfMemory);
    const std::string text = e.what();
    EXPECT_EQ(text.find("CUDA out of memory. Tried to allocate 100.00 MiB. GPU 0 has a total "
                        "capacity of 256.00 MiB of which 56.00 MiB is free. Of the allocated "
                        "memory 200.00 MiB is allocated by Tessera, and 0 bytes is reserved by "
                        "Tessera but unallocated."),
              0u)
        << text;
    for (const char* row : {"asked", "largest free block", "free in pieces", "deferred"})
      EXPECT_NE(text.find(row), std::string::npos) << row;
  }
  EXPECT_THROW(a.allocate(SIZE_MAX, nullptr), Error);
  a.deallocate(most);
  Block* again = a.allocate(static_cast<size_t>(100 * kMiB), nullptr);
  EXPECT_EQ(a.num_ooms(), 2);
  EXPECT_EQ(a.num_alloc_retries(), 1);
  a.deallocate(again);
  a.uncharge(512);
}

TEST_F(AllocatorTest, FreeSegmentsOfOtherSizesAreGivenUpBeforeFailing) {
  DeviceAllocator a(fake_backend(), 0);
  a.deallocate(a.allocate(static_cast<size_t>(150 * kMiB), stream(1)));
  Block* b = a.allocate(static_cast<size_t>(200 * kMiB), stream(2));
  EXPECT_EQ(a.num_alloc_retries(), 1);
  EXPECT_EQ(a.num_ooms(), 0);
  a.deallocate(b);
}

TEST_F(AllocatorTest, TheEndOfMemoryIsUsed) {
  fake.total = 6 * kMiB;
  DeviceAllocator a(fake_backend(), 0);
  Block* b = a.allocate(static_cast<size_t>(5 * kMiB), nullptr);  // a 20 MiB segment does not fit
  EXPECT_EQ(a.reserved().now(), 6 * kMiB);
  a.deallocate(b);
}

TEST_F(AllocatorTest, PressureHookMayFree) {
  static DeviceAllocator* allocator;
  static Block* kept;
  DeviceAllocator a(fake_backend(), 0);
  allocator = &a;
  kept = a.allocate(static_cast<size_t>(200 * kMiB), nullptr);
  set_pressure_hook([](int) {
    if (kept) allocator->deallocate(kept);  // would deadlock if the lock were held
    kept = nullptr;
  });
  Block* b = a.allocate(static_cast<size_t>(200 * kMiB), nullptr);
  EXPECT_EQ(kept, nullptr);
  a.deallocate(b);
}

TEST_F(AllocatorTest, PressureHookIsNotCalledFromItself) {
  static DeviceAllocator* allocator;
  static int calls;
  calls = 0;
  DeviceAllocator a(fake_backend(), 0);
  allocator = &a;
  set_pressure_hook([](int) {
    ++calls;
    EXPECT_THROW(allocator->allocate(static_cast<size_t>(300 * kMiB), nullptr), Error);
  });
  for (int i = 1; i <= 2; ++i) {
    EXPECT_THROW(a.allocate(static_cast<size_t>(300 * kMiB), nullptr), Error);
    EXPECT_EQ(calls, i);
  }
}

TEST_F(AllocatorTest, ChargesCountAlsoBeyondMemory) {
  DeviceAllocator a(fake_backend(), 0);
  EXPECT_EQ(Charge::kMade, a.charge(1000));
  EXPECT_EQ(a.used().now(), 1024);
  EXPECT_EQ(Charge::kMade, a.charge(static_cast<size_t>(256 * kMiB)));
  EXPECT_EQ(a.used().now(), 1024 + 256 * kMiB);
  a.uncharge(static_cast<size_t>(256 * kMiB));
  a.reset_peak();
  EXPECT_EQ(Charge::kTooLarge,
            a.charge(static_cast<size_t>(256 * kMiB + 1)));  // larger than the device
  EXPECT_EQ(Charge::kTooLarge, a.charge(SIZE_MAX));
  EXPECT_EQ(a.used().now(), 1024);
  a.uncharge(1000);
  EXPECT_EQ(a.used().now(), 0);
  EXPECT_EQ(a.used().peak(), 1024);
  a.reset_peak();
  EXPECT_EQ(a.used().peak(), 0);
}

TEST_F(AllocatorTest, FiguresOfDeferredWorkAddUp) {
  DeviceAllocator a(fake_backend(), 0);
  const int storage = 0;
  Block* b = a.allocate(1000, nullptr, &storage);
  EXPECT_EQ(Charge::kMade, a.charge(5000));
  EXPECT_EQ(a.usage().used, 1024 + 5120);
  EXPECT_EQ(a.usage().real(), 1024);
  a.set_unstored(5000);
  EXPECT_EQ(a.usage().used, 1024);
  EXPECT_EQ(a.usage().most(), 1024 + 5120);
  a.clear_unstored(5000);
  a.hide(1000);
  EXPECT_EQ(a.usage().used, 0);
  EXPECT_EQ(a.usage().real(), 1024);
  // Memory of deferred work does not raise the peak of eager execution.
  Block* c = a.allocate(9000, nullptr, &storage, Owner::kDeferredWork);
  EXPECT_EQ(a.usage().used, 0);
  EXPECT_EQ(a.usage().real(), 1024 + 9216);
  EXPECT_EQ(a.usage().peak, 1024 + 5120);
  a.reset_peak();
  EXPECT_EQ(a.usage().peak, 1024 + 9216);
  a.unhide(9000);
  a.unhide(1000);
  a.deallocate(b);
  a.deallocate(c);
  EXPECT_EQ(a.usage().most(), 0);
}

TEST_F(AllocatorTest, RoomHasAMarginAndFollowsTheLimit) {
  DeviceAllocator a(fake_backend(), 0);
  EXPECT_TRUE(a.surely_fits(240 * kMiB));
  EXPECT_FALSE(a.surely_fits(252 * kMiB));
  Block* b = a.allocate(static_cast<size_t>(100 * kMiB), nullptr);
  EXPECT_TRUE(a.surely_fits(140 * kMiB));
  EXPECT_FALSE(a.surely_fits(150 * kMiB));
  a.set_fraction(0.5);
  EXPECT_FALSE(a.surely_fits(40 * kMiB));
  a.deallocate(b);
}

TEST_F(AllocatorTest, FractionLimitsWhatIsReserved) {
  DeviceAllocator a(fake_backend(), 0);
  a.set_fraction(0.5);
  EXPECT_THROW(a.allocate(static_cast<size_t>(130 * kMiB), nullptr), Error);
  EXPECT_EQ(fake.refused, 0) << "the driver need not be asked";
  EXPECT_EQ(Charge::kTooLarge, a.charge(static_cast<size_t>(130 * kMiB)));
  EXPECT_THROW(a.set_fraction(1.5), Error);
}

TEST_F(AllocatorTest, ThreadsShareADevice) {
  fake.finish_on_query = true;
  DeviceAllocator a(fake_backend(), 0);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 rng(static_cast<unsigned>(t));
      std::vector<Block*> mine;
      for (int i = 0; i < 5000; ++i) {
        if (rng() % 2 || mine.empty()) {
          try {
            mine.push_back(a.allocate(1 + rng() % 300000, stream(t / 2)));
          } catch (const Error&) {
          }
          if (rng() % 8 == 0 && !mine.empty()) a.record_stream(mine.back(), stream(7));
        } else {
          std::swap(mine[rng() % mine.size()], mine.back());
          a.deallocate(mine.back());
          mine.pop_back();
        }
        a.charge(4096);
        a.uncharge(4096);
      }
      for (Block* b : mine) a.deallocate(b);
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(a.used().now(), 0);
  a.empty_cache();
  EXPECT_EQ(a.reserved().now(), 0);
}

}  // namespace
}  // namespace tessera::memory
