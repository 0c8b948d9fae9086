// Sums and tables of traces that are made by hand: times and parents are known.
#include <gtest/gtest.h>

#include <thread>

#include "tessera/base/error.h"
#include "tessera/profile/averages.h"
#include "tessera/profile/chrome.h"

namespace tessera::profile {
namespace {

constexpr int64_t kLength = 1000;  // microseconds

struct Made {
  std::shared_ptr<Buffer> buffer = std::make_shared<Buffer>(7, 1);
  std::vector<Activity> activities;
  int64_t at = steady_ns() - 2'000'000;  // when it all began
  int64_t ticks_at;
  double per_ns;

  Made() {
    // The counter's rate is known the better the longer the library is loaded.
    static const bool waited = [] {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      return true;
    }();
    (void)waited;
    // Ticks of two moments tell how many a nanosecond has.
    const TickScale scale;
    const int64_t now = ticks();
    const int64_t span = 1'000'000'000;
    per_ns = static_cast<double>(span) / static_cast<double>(scale.ns(now + span) - scale.ns(now));
    ticks_at = now - static_cast<int64_t>(static_cast<double>(scale.ns(now) - at) * per_ns);
  }
  int64_t tick(int64_t us) const {
    return ticks_at + static_cast<int64_t>(static_cast<double>(us) * 1000 * per_ns);
  }
  uint64_t add(Kind kind, const char* name, int64_t start_us, int64_t end_us, int64_t amount = 0) {
    Event* e = buffer->begin_event();
    const uint64_t id = buffer->next_id();
    *e = {kind, -1, 0, tick(start_us), tick(end_us), name, id, -1, amount, nullptr, nullptr, 0};
    buffer->publish();
    return id;
  }
  void activity(Activity::Kind kind, const char* name, int64_t start_us, int64_t end_us,
                uint64_t correlation) {
    activities.push_back({kind,
                          name,
                          at + start_us * 1000,
                          at + end_us * 1000,
                          correlation,
                          7,
                          0,
                          7,
                          0,
                          {1, 1, 1},
                          {32, 1, 1},
                          0,
                          0});
  }
  // A microsecond longer at both ends: it measures the counter's rate once more.
  std::unique_ptr<Trace> trace(uint32_t what = kScopes | kBytes) {
    return std::make_unique<Trace>(std::vector<std::shared_ptr<const Buffer>>{buffer}, activities,
                                   at - 1000, at + (kLength + 1) * 1000, what);
  }
};

Row row(const std::vector<Row>& rows, const std::string& key) {
  for (const Row& r : rows)
    if (r.key == key) return r;
  ADD_FAILURE() << "no " << key;
  return {};
}

void near_us(int64_t ns, double us) { EXPECT_NEAR(static_cast<double>(ns) / 1000, us, 0.2); }

TEST(ProfileTrace, SelfTimeIsWhatNothingInsideTook) {
  Made m;
  m.add(Kind::kOperator, "mm", 20, 30);  // written when they end: inner ones first
  m.add(Kind::kOperatorInplace, "add", 40, 45);
  m.add(Kind::kOperator, "linear", 10, 50);
  m.add(Kind::kUser, "step", 0, 100);
  auto rows = key_averages(*m.trace());
  ASSERT_EQ(rows.size(), 4u);
  near_us(row(rows, "step").cpu_ns, 100);
  near_us(row(rows, "step").self_cpu_ns, 60);
  near_us(row(rows, "aten::linear").self_cpu_ns, 25);
  near_us(row(rows, "aten::mm").self_cpu_ns, 10);
  near_us(row(rows, "aten::add_").cpu_ns, 5);
  EXPECT_TRUE(row(rows, "step").top_level);
  EXPECT_FALSE(row(rows, "aten::mm").top_level);
}

TEST(ProfileTrace, AnOperatorThatOnlyCallsItsOwnNameIsOne) {
  Made m;
  m.add(Kind::kOperator, "mm", 22, 24);
  m.add(Kind::kOperator, "addmm", 20, 30);
  m.add(Kind::kOperator, "addmm", 10, 40);
  auto rows = key_averages(*m.trace());
  EXPECT_EQ(row(rows, "aten::addmm").count, 1);
  near_us(row(rows, "aten::addmm").cpu_ns, 30);
  near_us(row(rows, "aten::addmm").self_cpu_ns, 28);
}

TEST(ProfileTrace, WhatBeganBeforeOrEndedAfterIsNotOfIt) {
  Made m;
  m.add(Kind::kOperator, "early", -10, 5);
  m.add(Kind::kOperator, "late", kLength - 5, kLength + 5);
  m.add(Kind::kOperator, "inside", 1, 2);
  EXPECT_EQ(key_averages(*m.trace()).size(), 1u);
}

TEST(ProfileTrace, KernelsCountForTheOperatorThatLaunchedThem) {
  Made m;
  Member members[] = {{0, "mul", nullptr}, {0, "add", nullptr}};
  Event* group = m.buffer->begin_event();
  *group = {Kind::kGroup, 0, 2, m.tick(12), m.tick(20), "", 99, -1, 0, members, nullptr, 0};
  m.buffer->publish();
  m.add(Kind::kOperator, "item", 10, 90);
  m.activity(Activity::Kind::kCall, "cuLaunchKernel", 13, 15, 1);
  m.activity(Activity::Kind::kKernel, "group", 40, 70, 1);
  m.activity(Activity::Kind::kCall, "cuMemcpyAsync", 80, 82, 2);
  m.activity(Activity::Kind::kCopy, "Memcpy DtoH", 83, 85, 2);
  // Queued before the profile began.
  m.activity(Activity::Kind::kCall, "cuLaunchKernel", -5, -4, 3);
  m.activity(Activity::Kind::kKernel, "old", 5, 9, 3);
  auto trace = m.trace();
  auto rows = key_averages(*trace);
  near_us(row(rows, "group::mul_add").self_device_ns, 30);
  near_us(row(rows, "group_mul_add").self_device_ns, 30);
  EXPECT_EQ(row(rows, "group_mul_add").device, 0);
  near_us(row(rows, "aten::item").self_device_ns, 2);
  near_us(row(rows, "aten::item").device_ns, 32);
  near_us(row(rows, "cuLaunchKernel").cpu_ns, 2);
  EXPECT_EQ(row(rows, "cuLaunchKernel").count, 1);
  for (const Row& r : rows) EXPECT_NE(r.key, "old");
  int launches = 0;
  for (const Arrow& a : trace->arrows()) launches += a.kind == Arrow::Kind::kLaunch;
  EXPECT_EQ(launches, 2);
}

TEST(ProfileTrace, MemoryCountsWhereItWasTaken) {
  Made m;
  auto memory = [&](int64_t us, int64_t bytes) {
    Event* e = m.buffer->begin_event();
    *e = {Kind::kMemory, -1,      0,       m.tick(us), m.tick(us), "[memory]", 64, 0,
          bytes,         nullptr, nullptr, 0};
    m.buffer->publish();
  };
  memory(15, 1000);
  m.add(Kind::kOperator, "empty", 10, 20);
  memory(25, -400);
  m.add(Kind::kOperator, "mm", 5, 30);
  memory(50, -600);
  auto rows = key_averages(*m.trace());
  EXPECT_EQ(row(rows, "aten::empty").self_host_bytes, 1000);
  EXPECT_EQ(row(rows, "aten::mm").self_host_bytes, -400);
  EXPECT_EQ(row(rows, "aten::mm").host_bytes, 600);
  EXPECT_EQ(row(rows, "[memory]").host_bytes, -600);
  EXPECT_EQ(key_averages(*m.trace(kScopes)).size(), 2u);
}

TEST(ProfileTrace, GroupsPointAtTheirCalls) {
  Made m;
  const uint64_t call = m.add(Kind::kOperator, "relu", 1, 2);
  auto* members = static_cast<Member*>(m.buffer->room(2 * sizeof(Member)));
  members[0] = {call, "relu", nullptr};
  members[1] = {0, "add", nullptr};
  Event* e = m.buffer->begin_event();
  *e = {Kind::kGroup, 0, 2, m.tick(10), m.tick(20), "", 99, -1, 0, members, nullptr, 0};
  m.buffer->publish();
  auto trace = m.trace();
  ASSERT_EQ(trace->arrows().size(), 1u);
  EXPECT_EQ(trace->arrows()[0].kind, Arrow::Kind::kDeferred);
  auto shown = trace->members(trace->events()[1]);
  ASSERT_EQ(shown.size(), 2u);
  EXPECT_EQ(shown[1].first, "add");
}

TEST(ProfileTable, Texts) {
  EXPECT_EQ(time_text(12.3456), "12.346us");
  EXPECT_EQ(time_text(12345.6), "12.346ms");
  EXPECT_EQ(time_text(12345600), "12.346s");
  EXPECT_EQ(memory_text(-512), "-512 B");
  EXPECT_EQ(memory_text(17664), "17.25 KB");
  EXPECT_EQ(memory_text(int64_t{3} << 30), "3.00 GB");
  std::string json;
  append_json(json, std::string_view("a\"\\\n\x01\xff\xE2\x98\x83", 9));
  EXPECT_EQ(json, "\"a\\\"\\\\\\u000a\\u0001\xEF\xBF\xBD\xE2\x98\x83\"");
}

TEST(ProfileTable, ColumnsFollowWhatThereIs) {
  Row a;
  a.key = "aten::mm";
  a.count = 2;
  a.cpu_ns = a.self_cpu_ns = 30'000;
  a.flops = 2'000'000;
  Row b = a;
  b.key = "aten::add";
  b.self_cpu_ns = b.cpu_ns = 10'000;
  b.flops = 0;
  TableOptions o;
  o.sort_by = "count";
  o.flops = true;
  const std::string text = table({b, a}, o);
  EXPECT_NE(text.find("Total MFLOPs"), std::string::npos);
  EXPECT_NE(text.find("75.00%"), std::string::npos);
  EXPECT_EQ(text.find("CUDA"), std::string::npos);
  EXPECT_LT(text.find("aten::add"), text.find("aten::mm"));  // equal counts stay in order
  o.sort_by = "nonsense";
  EXPECT_THROW(table({a}, o), Error);
  EXPECT_EQ(table({}, o), "");
}

}  // namespace
}  // namespace tessera::profile
