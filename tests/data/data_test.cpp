// Datasets, samplers and the loader.
#include <atomic>
#include <thread>

#include "support/tensors.h"

namespace tessera {
namespace {

using namespace test;

// Sample i is (i, i squared); counts how often it was asked, and may fail.
struct Squares : data::Dataset {
  explicit Squares(int64_t n, int64_t bad = -1) : n(n), bad(bad) {}
  data::Sample get(int64_t i) const override {
    TS_CHECK_VALUE(i != bad, "sample ", i, " is bad");
    ++*asked;
    return {tensor({static_cast<double>(i)}), tensor(static_cast<double>(i * i))};
  }
  int64_t size() const override { return n; }
  int64_t n, bad;
  std::shared_ptr<std::atomic<int>> asked = std::make_shared<std::atomic<int>>(0);
};

std::vector<double> all_of(const data::DataLoader& loader, size_t column = 0) {
  std::vector<double> out;
  for (const data::Batch& batch : loader)
    for (double v : values(batch[column])) out.push_back(v);
  return out;
}

TEST(DataTest, BatchesOfTensors) {
  Tensor x = make({5, 2}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
  Tensor y = make({5}, {0, 1, 2, 3, 4});
  data::DataLoader loader(data::TensorDataset(x, y), {.batch_size = 2});
  EXPECT_EQ(loader.size(), 3);
  std::vector<Dims> shapes;
  for (auto [a, b] : loader) {
    shapes.push_back(a.sizes());
    EXPECT_EQ(a.size(0), b.size(0));
  }
  EXPECT_EQ(shapes, (std::vector<Dims>{{2, 2}, {2, 2}, {1, 2}}));
  data::DataLoader whole(data::TensorDataset(x, y), {.batch_size = 2, .drop_last = true});
  EXPECT_EQ(whole.size(), 2);
  EXPECT_EQ(all_of(whole, 1), (std::vector<double>{0, 1, 2, 3}));
  EXPECT_ERROR(data::TensorDataset(x, ones({4})), kValue, "Size mismatch between tensors");
  data::DataLoader single(data::TensorDataset(x), {.batch_size = 5});
  EXPECT_ERROR((*single.begin()).as<2>(), kValue, "a batch of 1 tensors");
}

TEST(DataTest, BatchesOnADevice) {
  Device gpu = test_gpu();
  data::TensorDataset set(make({4}, {0, 1, 2, 3}).to(gpu), make({4}, {5, 6, 7, 8}).to(gpu));
  for (auto [a, b] : data::DataLoader(set, {.batch_size = 2, .shuffle = true})) {
    EXPECT_EQ(a.device(), gpu);
    EXPECT_EQ(values(a + 5.0), values(b));
  }
}

// The orders were recorded with PyTorch for these seeds.
TEST(DataTest, ShufflesAsPyTorchDoes) {
  manual_seed(0);
  data::DataLoader loader(Squares(8), {.batch_size = 3, .shuffle = true});
  std::vector<double> first = all_of(loader), second = all_of(loader);
  EXPECT_EQ(first, (std::vector<double>{2, 0, 5, 3, 1, 4, 7, 6}));
  EXPECT_EQ(second, (std::vector<double>{0, 3, 7, 1, 6, 2, 5, 4}));
  Mt19937Generator generator(3);
  data::DataLoader own(Squares(6), {.batch_size = 6, .shuffle = true, .generator = &generator});
  EXPECT_EQ(all_of(own), (std::vector<double>{1, 3, 2, 0, 4, 5}));
  manual_seed(1);
  std::vector<double> split;
  for (const data::Subset& part : data::random_split(Squares(7), std::vector<int64_t>{4, 3}))
    for (int64_t i : part.indices) split.push_back(static_cast<double>(i));
  EXPECT_EQ(split, (std::vector<double>{0, 6, 1, 3, 5, 2, 4}));
  manual_seed(2);
  EXPECT_EQ(values(data::RandomSampler(5, {.replacement = true, .num_samples = 7}).indices()),
            (std::vector<double>{3, 4, 4, 4, 4, 4, 4}));
  EXPECT_EQ(values(data::WeightedRandomSampler({0.1, 0.7, 0.2}, 6).indices()),
            (std::vector<double>{0, 1, 1, 2, 1, 1}));
  EXPECT_EQ(values(data::SubsetRandomSampler({4, 2, 9}).indices()), (std::vector<double>{4, 9, 2}));
}

TEST(DataTest, WorkersKeepTheOrder) {
  for (int64_t workers : {0, 1, 3}) {
    manual_seed(5);
    Squares set(50);
    data::DataLoader loader(set, {.batch_size = 4, .shuffle = true, .num_workers = workers});
    manual_seed(5);
    data::DataLoader plain(set, {.batch_size = 4, .shuffle = true});
    std::vector<double> got = all_of(loader);
    manual_seed(5);
    EXPECT_EQ(got, all_of(plain)) << workers;
  }
}

TEST(DataTest, ErrorsOfWorkersAreRaisedInTheLoop) {
  for (int64_t workers : {0, 2}) {
    data::DataLoader loader(Squares(20, 9), {.batch_size = 2, .num_workers = workers});
    int batches = 0;
    auto loop = [&] {
      for (const data::Batch& batch : loader) batches += batch.size() == 2;
    };
    EXPECT_ERROR(loop(), kValue, "sample 9 is bad");
    EXPECT_EQ(batches, 4);
  }
}

TEST(DataTest, WorkersStopWithTheLoop) {
  Squares set(1000);
  {
    data::DataLoader loader(set, {.batch_size = 1, .num_workers = 2, .prefetch_factor = 2});
    for (auto [x, y] : loader) {
      (void)x;
      (void)y;
      break;
    }
  }
  EXPECT_LE(*set.asked, 8);
  // A worker knows which it is.
  struct WhoAmI : data::Dataset {
    data::Sample get(int64_t) const override {
      const data::WorkerInfo* info = data::get_worker_info();
      return {tensor(info ? info->id : -1), tensor(info ? info->num_workers : 0)};
    }
    int64_t size() const override { return 4; }
  };
  EXPECT_EQ(all_of(data::DataLoader(WhoAmI())), (std::vector<double>{-1, -1, -1, -1}));
  for (double n : all_of(data::DataLoader(WhoAmI(), {.num_workers = 2}), 1)) EXPECT_EQ(n, 2);
}

// Operators in workers, large enough for several threads each, while the loop computes too.
TEST(DataTest, WorkersComputeWhileTheLoopDoes) {
  struct Products : data::Dataset {
    Tensor m = sample({64, 64});
    data::Sample get(int64_t i) const override {
      Tensor scaled = m * static_cast<double>(i + 1);
      return {scaled.matmul(m) + 1.0, tensor(static_cast<double>(i))};
    }
    int64_t size() const override { return 120; }
  } set;
  Tensor own = sample({200, 200});
  double expected = value(own.matmul(own).sum());
  std::vector<double> first = values(set.get(0)[0]);
  int64_t seen = 0;
  for (auto [x, i] : data::DataLoader(set, {.batch_size = 3, .num_workers = 3})) {
    EXPECT_EQ(value(own.matmul(own).sum()), expected);
    for (int64_t row = 0; row < x.size(0); ++row, ++seen) {
      EXPECT_EQ(i.at({row}), static_cast<double>(seen));
      std::vector<double> got = values(x[row]);
      for (size_t at : {size_t{0}, size_t{777}, got.size() - 1})
        EXPECT_NEAR(got[at], (first[at] - 1) * static_cast<double>(seen + 1) + 1,
                    1e-3 * (std::abs(got[at]) + 1));
    }
  }
  EXPECT_EQ(seen, 120);
}

TEST(DataTest, SubsetsAndConcatenations) {
  data::TensorDataset base(make({5}, {0, 10, 20, 30, 40}));
  data::Subset some(base, {3, 1, 4});
  EXPECT_EQ(all_of(data::DataLoader(some, {.batch_size = 2})), (std::vector<double>{30, 10, 40}));
  EXPECT_EQ(value(some.get(-1)[0]), 40);
  data::Subset nested(some, {2, 0});
  EXPECT_EQ(all_of(data::DataLoader(nested)), (std::vector<double>{40, 30}));
  data::ConcatDataset both({base, some});
  EXPECT_EQ(both.size(), 8);
  EXPECT_EQ(all_of(data::DataLoader(both, {.batch_size = 3})),
            (std::vector<double>{0, 10, 20, 30, 40, 30, 10, 40}));
  EXPECT_EQ(value(both.get(-3)[0]), 30);
  std::vector<data::Subset> parts = data::random_split(base, std::vector<double>{0.5, 0.5});
  EXPECT_EQ(parts[0].size(), 3);
  EXPECT_EQ(parts[1].size(), 2);
  EXPECT_ERROR(data::random_split(base, std::vector<int64_t>{2, 2}), kValue,
               "Sum of input lengths");
}

TEST(DataTest, OwnCollation) {
  data::DataLoader loader(
      Squares(4), {.batch_size = 2, .collate_fn = [](const std::vector<data::Sample>& samples) {
                     double sum = 0;
                     for (const data::Sample& s : samples) sum += s[1].item();
                     return data::Batch{tensor(sum)};
                   }});
  EXPECT_EQ(all_of(loader), (std::vector<double>{1, 13}));
}

TEST(DataTest, RefusesWrongOptions) {
  Squares set(3);
  EXPECT_ERROR(data::DataLoader(set, {.batch_size = 0}), kValue, "batch_size should be a positive");
  EXPECT_ERROR(data::DataLoader(set, {.num_workers = -1}), kValue, "num_workers option");
  EXPECT_ERROR(data::DataLoader(
                   set, {.shuffle = true, .sampler = std::make_shared<data::SequentialSampler>(3)}),
               kValue, "mutually exclusive");
  EXPECT_ERROR(data::DataLoader(Squares(0), {.shuffle = true}), kValue, "num_samples=0");
}

}  // namespace
}  // namespace tessera
