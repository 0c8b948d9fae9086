// Which parameters share a bucket, and how their gradients lie in it.
#include "tessera/parallel/buckets.h"

#include <gtest/gtest.h>

#include "support/tensors.h"
#include "tessera/autograd/callbacks.h"

namespace tessera {
namespace {

using namespace test;
using parallel::assign_buckets;

std::vector<TensorBase> parameters(std::vector<std::pair<int64_t, DType>> all) {
  std::vector<TensorBase> out;
  for (auto [n, dtype] : all) out.push_back(new_empty({n}, dtype, Device{}));
  return out;
}

TEST(BucketsTest, BySizeInOrder) {
  auto p = parameters({{4, DType::kFloat32},
                       {4, DType::kFloat32},
                       {4, DType::kFloat32},
                       {100, DType::kFloat32},
                       {1, DType::kFloat32}});
  using Lists = std::vector<std::vector<int>>;
  EXPECT_EQ(assign_buckets(p, {4, 3, 2, 1, 0}, 4, 32), (Lists{{4}, {3}, {2, 1}, {0}}));
  EXPECT_EQ(assign_buckets(p, {0, 1, 2, 3, 4}, 1000, 1000), (Lists{{0, 1, 2, 3, 4}}));
}

TEST(BucketsTest, DtypesApartInTheOrderOfTheirFirst) {
  auto p = parameters(
      {{4, DType::kFloat32}, {4, DType::kFloat64}, {4, DType::kFloat32}, {4, DType::kFloat64}});
  using Lists = std::vector<std::vector<int>>;
  EXPECT_EQ(assign_buckets(p, {3, 2, 1, 0}, 1000, 1000), (Lists{{3, 1}, {2, 0}}));
}

TEST(BucketsTest, ViewsAreLaidOutAsTheirParameters) {
  TensorBase a = new_empty({2, 3}, DType::kFloat32, Device{});
  TensorBase b = alias(a, {3, 2}, {1, 3}, 0);  // by columns
  parallel::Bucket bucket = parallel::make_bucket({a, b}, {1, 0});
  EXPECT_EQ(bucket.flat.numel(), 12);
  EXPECT_EQ(bucket.views[0].strides(), (Dims{1, 3}));
  EXPECT_EQ(bucket.views[1].strides(), (Dims{3, 1}));
  EXPECT_EQ(bucket.views[1].storage_offset(), 6);
}

TEST(EndOfBackwardTest, RunsOnceTheOutermostIsThrough) {
  EXPECT_ERROR(autograd::at_end_of_backward([] {}), kRuntime, "no backward under way");
  EXPECT_FALSE(autograd::in_backward());
}

}  // namespace
}  // namespace tessera
