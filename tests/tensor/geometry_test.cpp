// Sizes, strides, broadcasting and overlap: what holds of a tensor before any operator.
#include <gtest/gtest.h>

#include "support/tensors.h"

namespace tessera {
namespace {

using namespace test;

TEST(GeometryTest, RowMajorStrides) {
  EXPECT_EQ(contiguous_strides({2, 3, 4}), (Dims{12, 4, 1}));
  EXPECT_EQ(contiguous_strides({}), (Dims{}));
  EXPECT_EQ(contiguous_strides({2, 0, 4}), (Dims{4, 4, 1}));  // zeros count as ones
  Tensor t = sample({2, 3, 4});
  EXPECT_EQ(t.strides(), (Dims{12, 4, 1}));
  EXPECT_TRUE(t.is_contiguous());
  EXPECT_FALSE(t.transpose(0, 2).is_contiguous());
  EXPECT_TRUE(sample({3, 1}).transpose(0, 1).is_contiguous());  // strides of ones do not matter
  EXPECT_TRUE(sample({0, 3}).transpose(0, 1).is_contiguous());
}

TEST(GeometryTest, SizesThatDoNotFitIn64Bits) {
  constexpr int64_t big = int64_t{1} << 62;
  EXPECT_ERROR(checked_numel({big, 2}, DType::kInt8), kRuntime, "overflowed");
  EXPECT_ERROR(checked_numel({big}, DType::kFloat64), kRuntime, "overflowed");
  EXPECT_ERROR(checked_numel({0, big, big}, DType::kInt8), kRuntime, "overflowed");
  EXPECT_EQ(checked_numel({big}, DType::kInt8), big);
  EXPECT_EQ(checked_numel({0, big}, DType::kInt8), 0);
  EXPECT_ERROR(checked_numel({2, -1}, DType::kInt8), kRuntime,
               "Trying to create tensor with negative dimension -1: [2, -1]");
  Dims size{big, 4};
  EXPECT_ERROR(zeros(size.span()), kRuntime, "overflowed with sizes=[4611686018427387904, 4]");
}

TEST(GeometryTest, DimensionsWrap) {
  EXPECT_EQ(wrap_dim(-1, 3), 2);
  EXPECT_EQ(wrap_dim(-3, 3), 0);
  EXPECT_EQ(wrap_dim(2, 3), 2);
  EXPECT_EQ(wrap_dim(0, 0), 0);
  EXPECT_EQ(wrap_dim(-1, 0), 0);
  EXPECT_ERROR(wrap_dim(3, 3), kIndex,
               "Dimension out of range (expected to be in range of [-3, 2], but got 3)");
  EXPECT_ERROR(wrap_dim(-4, 3), kIndex,
               "Dimension out of range (expected to be in range of [-3, 2], but got -4)");
  EXPECT_ERROR(wrap_dim(1, 0), kIndex,
               "Dimension out of range (expected to be in range of [-1, 0], but got 1)");
}

TEST(GeometryTest, ShapesBroadcast) {
  EXPECT_EQ(broadcast_shapes({3, 1}, {4}), (Dims{3, 4}));
  EXPECT_EQ(broadcast_shapes({}, {2, 3}), (Dims{2, 3}));
  EXPECT_EQ(broadcast_shapes({0, 3}, {1, 3}), (Dims{0, 3}));
  EXPECT_EQ(broadcast_shapes({5, 1, 4}, {1, 3, 1}), (Dims{5, 3, 4}));
  EXPECT_ERROR(broadcast_shapes({2, 3}, {2, 4}), kRuntime,
               "The size of tensor a (3) must match the size of tensor b (4) at non-singleton "
               "dimension 1");
  EXPECT_ERROR(broadcast_shapes({0}, {2}), kRuntime,
               "The size of tensor a (0) must match the size of tensor b (2) at non-singleton "
               "dimension 0");
  EXPECT_ERROR(sample({3, 2}) + Value(sample({5, 1, 4})), kRuntime,
               "The size of tensor a (2) must match the size of tensor b (4) at non-singleton "
               "dimension 2");
  EXPECT_EQ(broadcast_strides({3, 1}, {1, 1}, {2, 3, 4}), (Dims{0, 1, 0}));
}

TEST(GeometryTest, Overlap) {
  EXPECT_FALSE(has_internal_overlap({3, 4}, {4, 1}));
  EXPECT_FALSE(has_internal_overlap({4, 3}, {1, 4}));
  EXPECT_FALSE(has_internal_overlap({3, 4}, {16, 2}));
  EXPECT_FALSE(has_internal_overlap({}, {}));
  EXPECT_FALSE(has_internal_overlap({0, 4}, {0, 0}));
  EXPECT_FALSE(has_internal_overlap({1, 4}, {0, 1}));
  EXPECT_TRUE(has_internal_overlap({3, 4}, {0, 1}));
  EXPECT_TRUE(has_internal_overlap({3, 3}, {1, 1}));
  EXPECT_TRUE(has_internal_overlap({2, 3}, {2, 1}));
}

TEST(GeometryTest, ElementsThatShareMemoryAreNotWritten) {
  Tensor x = sample({3, 1});
  Dims to{3, 4};
  EXPECT_ERROR(x.expand(to.span()).add_(Value(1)), kRuntime,
               "unsupported operation: more than one element of the written-to tensor refers to a "
               "single memory location.");
  EXPECT_ERROR(x.expand(to.span()).fill_(Scalar(1)), kRuntime, "single memory location");
  EXPECT_EQ(values(x), values(sample({3, 1})));
}

}  // namespace
}  // namespace tessera
