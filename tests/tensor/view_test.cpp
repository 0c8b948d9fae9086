// Views: the right elements, the same memory, versions counted.
#include <gtest/gtest.h>

#include "support/tensors.h"

namespace tessera {
namespace {

using namespace test;

// 0 .. n-1 in the given shape, so that an element is its own position.
Tensor counted(const Dims& sizes) {
  std::vector<double> v(static_cast<size_t>(checked_numel(sizes, DType::kFloat32)));
  for (size_t i = 0; i < v.size(); ++i) v[i] = static_cast<double>(i);
  return make(sizes, v);
}

struct Case {
  const char* name;
  std::function<Tensor(const Tensor&)> view;  // of a {3, 4} tensor
  Dims sizes;
  std::vector<double> expected;
};

const std::vector<Case>& cases() {
  static const Dims swapped{1, 0}, flat{12}, half{2, 6}, more{2, 3, 4}, split{3, -1, 2};
  static const std::vector<Case> all = {
      {"transpose",
       [](const Tensor& x) { return x.transpose(0, -1); },
       {4, 3},
       {0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11}},
      {"t", [](const Tensor& x) { return x.t(); }, {4, 3}, {0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11}},
      {"permute",
       [](const Tensor& x) { return x.permute(swapped.span()); },
       {4, 3},
       {0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11}},
      {"slice", [](const Tensor& x) { return slice(x, 1, 1, 3); }, {3, 2}, {1, 2, 5, 6, 9, 10}},
      {"stepped",
       [](const Tensor& x) { return slice(x, 1, 1, std::nullopt, 2); },
       {3, 2},
       {1, 3, 5, 7, 9, 11}},
      {"negative", [](const Tensor& x) { return slice(x, 0, -2, -1); }, {1, 4}, {4, 5, 6, 7}},
      {"beyond", [](const Tensor& x) { return slice(x, 0, 2, 100); }, {1, 4}, {8, 9, 10, 11}},
      {"nothing", [](const Tensor& x) { return slice(x, 0, 2, 1); }, {0, 4}, {}},
      {"select", [](const Tensor& x) { return x.select(0, 1); }, {4}, {4, 5, 6, 7}},
      {"select_last", [](const Tensor& x) { return x.select(1, -1); }, {3}, {3, 7, 11}},
      {"unsqueeze",
       [](const Tensor& x) { return slice(x, 0, 0, 1).unsqueeze(1); },
       {1, 1, 4},
       {0, 1, 2, 3}},
      {"squeeze", [](const Tensor& x) { return slice(x, 0, 1, 2).squeeze(0); }, {4}, {4, 5, 6, 7}},
      {"squeeze_none",
       [](const Tensor& x) { return slice(x, 0, 1, 3).squeeze(0); },
       {2, 4},
       {4, 5, 6, 7, 8, 9, 10, 11}},
      {"view",
       [](const Tensor& x) { return x.view(half.span()); },
       {2, 6},
       {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}},
      {"view_of_slice",
       [](const Tensor& x) { return slice(x, 1, 0, 2).view(split.span()); },
       {3, 1, 2},
       {0, 1, 4, 5, 8, 9}},
      {"reshape",
       [](const Tensor& x) { return x.reshape(flat.span()); },
       {12},
       {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}},
      {"expand",
       [](const Tensor& x) { return x.expand(more.span()); },
       {2, 3, 4},
       {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}},
  };
  return all;
}

TEST(ViewTest, ShowsTheRightElementsOfTheSameMemory) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    Tensor x = counted({3, 4});
    Tensor v = c.view(x);
    EXPECT_EQ(v.sizes(), c.sizes);
    EXPECT_EQ(values(v), c.expected);
    EXPECT_EQ(&v.storage(), &x.storage());
    x.add_(Value(100));
    std::vector<double> moved = c.expected;
    for (double& e : moved) e += 100;
    EXPECT_EQ(values(v), moved);
  }
}

TEST(ViewTest, AWriteThroughAViewIsSeenByTheBaseAndCounted) {
  for (const Case& c : cases()) {
    if (std::string(c.name) == "expand" || c.expected.empty()) continue;
    SCOPED_TRACE(c.name);
    Tensor x = counted({3, 4});
    uint32_t version = x.storage().version.load();
    c.view(x).add_(Value(100));
    EXPECT_EQ(x.storage().version.load(), version + 1);
    std::vector<double> want = values(counted({3, 4}));
    for (double e : c.expected) want[static_cast<size_t>(e)] += 100;
    EXPECT_EQ(values(x), want);
  }
}

TEST(ViewTest, WhatNeedsACopyIsNoView) {
  Tensor x = counted({3, 4}).t();
  Dims flat{12};
  EXPECT_ERROR(x.view(flat.span()), kRuntime,
               "view size is not compatible with input tensor's size and stride");
  Tensor copy = x.reshape(flat.span());
  EXPECT_NE(&copy.storage(), &x.storage());
  EXPECT_EQ(values(copy), values(x));
}

TEST(ViewTest, Errors) {
  Tensor x = counted({3, 4});
  Dims wrong{5, -1}, two{-1, -1}, twice{0, 0}, few{12}, grown{3, 5};
  EXPECT_ERROR(x.view(wrong.span()), kRuntime, "shape '[5, -1]' is invalid for input of size 12");
  EXPECT_ERROR(x.view(two.span()), kRuntime, "only one dimension can be inferred");
  EXPECT_ERROR(x.permute(twice.span()), kRuntime, "duplicate dims are not allowed");
  EXPECT_ERROR(x.permute(few.span()), kRuntime, "not equal to len(dims) = 1");
  EXPECT_ERROR(x.expand(grown.span()), kRuntime,
               "The expanded size of the tensor (5) must match the existing size (4) at "
               "non-singleton dimension 1.  Target sizes: [3, 5].  Tensor sizes: [3, 4]");
  EXPECT_ERROR(x.select(0, 3), kIndex,
               "select(): index 3 out of range for tensor of size [3, 4] at dimension 0");
  EXPECT_ERROR(x.select(2, 0), kIndex, "Dimension out of range");
  EXPECT_ERROR(slice(x, 0, 0, 3, 0), kValue, "step must be greater than zero");
  EXPECT_ERROR(slice(make({}, {1})), kIndex, "slice() cannot be applied to a 0-dim tensor.");
  EXPECT_ERROR(counted({2, 3, 4}).t(), kRuntime, "t() expects a tensor with <= 2 dimensions");
}

TEST(ViewTest, DetachAndAliasKeepNoHistory) {
  Tensor x = counted({3, 4});
  x.requires_grad_();
  Tensor d = x.detach();
  EXPECT_FALSE(d.requires_grad());
  EXPECT_EQ(&d.storage(), &x.storage());
}

}  // namespace
}  // namespace tessera
