// What is recorded, what runs, what is never computed: one test for each rule of the pending
// stream.
#include "support/fuse_fixture.h"

namespace tessera {
namespace {

using namespace test;
using fuse::Reason;

class StreamTest : public FuseTest {};

TEST_F(StreamTest, NothingRunsUntilItIsRead) {
  Tensor x = sample({40}), y = sample({40}, DType::kFloat32, {}, 1);
  Tensor z = (x + Value(y)) * Value(x);
  EXPECT_EQ(pending(), 2u);
  EXPECT_EQ(stats().groups, 0);
  std::vector<double> a = values(x), b = values(y), want;
  for (size_t i = 0; i < 40; ++i) want.push_back((a[i] + b[i]) * a[i]);
  EXPECT_EQ(values(z), want);
  EXPECT_EQ(pending(), 0u);
  EXPECT_EQ(runs(Reason::kHostRead), 1);
  EXPECT_EQ(stats().fused_groups, 1);
  EXPECT_EQ(stats().largest_group, 2);
}

TEST_F(StreamTest, OnlyOwnedValuesAreStored) {
  Tensor x = sample({40});
  Tensor z = (x + Value(1)) * Value(2);
  value(slice(z, 0, 0, 1));
  std::string text = explain();
  EXPECT_EQ(count(text, "group over 40 elements"), 1) << text;
  EXPECT_EQ(count(text, "stored"), 1) << text;
  EXPECT_NE(text.find(", number) : float32  -> stored"), std::string::npos) << text;
  EXPECT_NE(text.find("add(load, number) : float32\n"), std::string::npos) << text;
}

TEST_F(StreamTest, SeveralResultsOfOneGroup) {
  Tensor x = sample({40});
  Tensor a = x + Value(1);
  Tensor b = a * Value(2);
  Tensor c = (a - Value(b)).relu();
  run_all();
  EXPECT_EQ(stats().groups, 1);
  EXPECT_EQ(count(explain(), "stored"), 3) << explain();
  std::vector<double> v = values(x), wa, wb, wc;
  for (double e : v) {
    wa.push_back(e + 1);
    wb.push_back((e + 1) * 2);
    wc.push_back(std::max(0.0, (e + 1) - (e + 1) * 2));
  }
  EXPECT_EQ(values(a), wa);
  EXPECT_EQ(values(b), wb);
  EXPECT_EQ(values(c), wc);
}

TEST_F(StreamTest, AValueNobodyOwnsIsNeverComputed) {
  Tensor x = sample({40});
  {
    Tensor gone = x.exp();
    Tensor chain = gone + Value(1);
    chain = chain * Value(2);
  }
  Tensor kept = x + Value(3);
  EXPECT_EQ(stats().recorded, 4);
  run_all();
  EXPECT_EQ(stats().dropped, 3);
  EXPECT_EQ(count(explain(), "exp"), 0) << explain();
  EXPECT_EQ(pending(), 0u);
  EXPECT_EQ(values(kept).size(), 40u);
}

TEST_F(StreamTest, AnInPlaceWriteOfALiveTensorIsNotDropped) {
  Tensor x = sample({40});
  std::vector<double> v = values(x);
  slice(x, 0, 3, 5).add_(Value(10));  // the view's handle is gone at once
  run_all();
  v[3] += 10;
  v[4] += 10;
  EXPECT_EQ(values(x), v);
  EXPECT_EQ(stats().dropped, 0);
}

TEST_F(StreamTest, AConsumerRunsOnlyWhatItNeeds) {
  Tensor x = sample({4, 8});
  Tensor needed = x + Value(1);
  Tensor other = x * Value(2);
  Tensor total = needed.cumsum(0);  // one that never waits
  EXPECT_EQ(runs(Reason::kConsumer), 1);
  EXPECT_EQ(pending(), 1u);
  EXPECT_EQ(count(explain(), "mul"), 0) << explain();
  run_all();
  EXPECT_EQ(values(other).size(), 32u);
}

TEST_F(StreamTest, ShapesThatDifferGoInGroupsOfTheirOwn) {
  Tensor row = sample({8}), x = sample({4, 8});
  Tensor a = row + Value(1);  // {8}
  Tensor b = x * Value(a);    // {4, 8} reads it broadcast, from memory
  Tensor c = b - Value(a);
  run_all();
  EXPECT_EQ(stats().groups, 2);
  EXPECT_EQ(stats().fused_groups, 1);
  std::vector<double> vx = values(x), vr = values(row), want;
  for (size_t i = 0; i < 32; ++i) want.push_back(vx[i] * (vr[i % 8] + 1) - (vr[i % 8] + 1));
  EXPECT_EQ(values(c), want);
}

TEST_F(StreamTest, ErrorsAtTheCallLeaveTheStreamUnchanged) {
  Tensor x = sample({3, 4}), y = sample({5}), n = sample({3, 4}, DType::kInt64);
  Tensor pending_one = x + Value(1);
  ASSERT_EQ(pending(), 1u);
  Dims wide{2, 3, 4};
  EXPECT_ERROR(x + Value(y), kRuntime, "must match the size of tensor b");
  EXPECT_ERROR(n.add_(Value(x)), kRuntime,
               "result type Float can't be cast to the desired output type Long");
  EXPECT_ERROR(n.add(Value(n), Scalar(0.5)), kRuntime, "must not be a floating point number");
  EXPECT_ERROR(x.add_(Value(x.expand(wide.span()))), kRuntime, "doesn't match the broadcast shape");
  EXPECT_ERROR(x.sum(std::span<const int64_t>(std::array<int64_t, 1>{7})), kIndex, "out of range");
  EXPECT_EQ(pending(), 1u);
  EXPECT_EQ(stats().recorded, 1);
  EXPECT_EQ(values(pending_one)[0], values(x)[0] + 1);
}

TEST_F(StreamTest, TheOperatorCapBoundsALoop) {
  Tensor x = make({3}, {1, 2, 3}), total = make({3}, {0, 0, 0});
  for (int i = 0; i < 10000; ++i) {
    total = total + Value(x);
    ASSERT_LE(pending(), static_cast<size_t>(fuse::kPendingCap));
  }
  EXPECT_EQ(values(total), (std::vector<double>{10000, 20000, 30000}));
  EXPECT_EQ(runs(Reason::kOpCap), 10000 / fuse::kPendingCap);
  EXPECT_EQ(stats().largest_group, fuse::kOpCap);
}

TEST_F(StreamTest, TheByteBudgetBoundsWhatOnlyPendingWorkKeeps) {
  Dims size{int64_t{1} << 24};  // 64 MiB each
  Tensor total = make({1}, {0});
  Tensor kept[8];
  for (Tensor& k : kept) {
    Tensor big = empty(size);
    k = slice(big, 0, 0, 1) * Value(0) + Value(1);  // keeps all of `big` until it runs
  }
  EXPECT_EQ(runs(Reason::kByteBudget), 1);
  EXPECT_LT(pending(), 16u);
}

TEST_F(StreamTest, AGroupsOperandsAreBounded) {
  std::vector<Tensor> inputs;
  for (int i = 0; i < 50; ++i) inputs.push_back(sample({16}, DType::kFloat32, {}, i));
  Tensor total = inputs[0];
  std::vector<double> want = values(inputs[0]);
  for (int i = 1; i < 50; ++i) {
    total = total + Value(inputs[static_cast<size_t>(i)]);
    std::vector<double> v = values(inputs[static_cast<size_t>(i)]);
    for (size_t k = 0; k < 16; ++k) want[k] = rounded(want[k] + v[k], DType::kFloat32);
  }
  run_all();
  EXPECT_EQ(stats().groups, 2);
  EXPECT_EQ(values(total), want);
}

TEST_F(StreamTest, SwitchingOffRunsWhatIsPending) {
  Tensor y = sample({8}) + Value(1);
  ASSERT_EQ(pending(), 1u);
  fuse::set_mode(fuse::Mode::kOff);
  EXPECT_EQ(pending(), 0u);
  Tensor z = y + Value(1);
  EXPECT_EQ(pending(), 0u);
  EXPECT_EQ(values(z)[0], values(sample({8}))[0] + 2);
}

TEST_F(StreamTest, RandomDrawsComeInProgramOrder) {
  auto program = [](bool use_in_between) {
    manual_seed(5);
    Dims size{64};
    Tensor a = rand(size.span()) * Value(2);
    Tensor d = dropout(ones(size.span()), 0.5, true);
    Tensor b = rand(size.span()) + Value(a);
    if (use_in_between) values(b);
    Tensor c = randn(size.span()) + Value(d);
    return std::vector<Tensor>{a, b, c, d};
  };
  EXPECT_TRUE(same_fused(Device{}, [&] { return program(false); }));
  FuseMode on(fuse::Mode::kOn);
  std::vector<Tensor> once = program(false), again = program(true);
  for (size_t i = 0; i < once.size(); ++i) EXPECT_EQ(bytes(once[i]), bytes(again[i])) << i;
}

TEST_F(StreamTest, CheckModeComparesAndAgrees) {
  fuse::set_mode(fuse::Mode::kCheck);
  Tensor x = sample({5, 7}, DType::kFloat16);
  Tensor y = x.t().contiguous().t();
  Tensor a = (gelu(x) * Value(y) + Value(0.3)).relu();
  a.mul_(Value(x));
  Tensor b = a.exp() / Value(x);
  run_all();
  EXPECT_GE(stats().fused_groups, 1);
  fuse::set_mode(fuse::Mode::kOff);
  Tensor c = (gelu(x) * Value(y) + Value(0.3)).relu();
  c.mul_(Value(x));
  EXPECT_EQ(bytes(a), bytes(c));
  EXPECT_EQ(bytes(b), bytes(c.exp() / Value(x)));
}

}  // namespace
}  // namespace tessera
