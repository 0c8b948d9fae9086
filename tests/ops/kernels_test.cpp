// Reductions, products, indexing, copies and the optimiser's step against simple loops in double.
#include <gtest/gtest.h>

#include <cmath>

#include "support/samples.h"

namespace tessera {
namespace {

using namespace test;

class KernelsTest : public ::testing::TestWithParam<std::tuple<bool, bool>> {
 protected:
  void SetUp() override {
    if (std::get<0>(GetParam())) device_ = test_gpu();
    fuse::set_mode(std::get<1>(GetParam()) ? fuse::Mode::kOn : fuse::Mode::kOff);
  }
  void TearDown() override {
    fuse::set_mode(fuse::Mode::kOff);
    clear_gpu();
  }
  // A pending value where deferral is on, so that kernels read what has not run yet.
  Tensor input(const Dims& sizes, int seed = 0, DType dtype = DType::kFloat32,
               Layout layout = Layout::kContiguous) {
    return laid_out(sizes, dtype, device_, seed, layout).mul(Value(1));
  }
  Device device_;
};
INSTANTIATE_TEST_SUITE_P(Everywhere, KernelsTest,
                         ::testing::Combine(::testing::Bool(), ::testing::Bool()),
                         [](const auto& i) {
                           return cat(std::get<0>(i.param) ? "gpu" : "cpu",
                                      std::get<1>(i.param) ? "_deferred" : "");
                         });

TEST_P(KernelsTest, Sum) {
  for (Layout layout : {Layout::kContiguous, Layout::kTransposed, Layout::kStepped}) {
    for (DType dtype :
         {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kInt64, DType::kBool}) {
      Tensor x = input({3, 4, 5}, 1, dtype, layout);
      std::vector<double> v = values(x);
      for (int mask = 1; mask < 8; ++mask) {  // which dimensions are summed
        Dims dims, kept;
        for (int d = 0; d < 3; ++d) {
          if (mask >> d & 1) dims.push_back(d - (d == 1 ? 3 : 0));
          kept.push_back(mask >> d & 1 ? 1 : x.sizes()[static_cast<size_t>(d)]);
        }
        std::vector<double> want(static_cast<size_t>(kept[0] * kept[1] * kept[2]));
        for (int64_t i = 0; i < 60; ++i) {
          int64_t a = kept[0] == 1 ? 0 : i / 20, b = kept[1] == 1 ? 0 : i / 5 % 4;
          int64_t c = kept[2] == 1 ? 0 : i % 5;
          want[static_cast<size_t>((a * kept[1] + b) * kept[2] + c)] += v[static_cast<size_t>(i)];
        }
        Tensor s = x.sum(dims.span(), true);
        EXPECT_EQ(s.sizes(), kept);
        EXPECT_EQ(s.dtype(), is_floating(dtype) ? dtype : DType::kInt64);
        EXPECT_TRUE(close(values(s), want, tolerance_of(s.dtype())));
        EXPECT_EQ(values(x.sum(dims.span(), false)), values(s));
      }
    }
  }
}

TEST_P(KernelsTest, SumOfNothingAndOfMuch) {
  EXPECT_EQ(values(input({0, 3}).sum()), std::vector<double>{0});
  Dims first{0};
  EXPECT_EQ(values(input({0, 3}).sum(first.span())), std::vector<double>(3, 0));
  // A naive float sum of a million would be off in the fourth digit.
  Dims million{1000000};
  Tensor x = full(million.span(), Scalar(0.1), DType::kFloat32, device_);
  EXPECT_NEAR(value(x.sum()), 1e6 * double{0.1f}, 0.1);
  Dims twice{0, 0};
  EXPECT_ERROR(input({3}).sum(twice.span()), kRuntime,
               "appears multiple times in the list of dims");
}

TEST_P(KernelsTest, Softmax) {
  for (Layout layout : {Layout::kContiguous, Layout::kTransposed}) {
    Tensor x = input({3, 4, 5}, 2, DType::kFloat32, layout);
    std::vector<double> v = values(x);
    const int64_t steps[] = {20, 5, 1}, sizes[] = {3, 4, 5};
    for (int dim = 0; dim < 3; ++dim) {
      std::vector<double> want(60);
      for (int64_t i = 0; i < 60; ++i) {
        int64_t start = i - i / steps[dim] % sizes[dim] * steps[dim];
        double total = 0;
        for (int64_t k = 0; k < sizes[dim]; ++k)
          total += std::exp(v[static_cast<size_t>(start + k * steps[dim])]);
        want[static_cast<size_t>(i)] = std::exp(v[static_cast<size_t>(i)]) / total;
      }
      EXPECT_TRUE(close(values(x.softmax(dim)), want, 1e-6)) << dim;
    }
  }
  Tensor big = make({3}, {1000, 1001, 999}, DType::kFloat32, device_);  // would overflow unshifted
  std::vector<double> p = values(big.softmax(0));
  EXPECT_NEAR(p[0] + p[1] + p[2], 1, 1e-6);
  EXPECT_NEAR(p[1], 0.66524095577, 1e-6);
  EXPECT_ERROR(input({3}, 0, DType::kInt64).softmax(0), kNotImplemented, "softmax");
}

std::vector<double> product(const std::vector<double>& a, const std::vector<double>& b,
                            int64_t batch, int64_t m, int64_t k, int64_t n) {
  std::vector<double> out(static_cast<size_t>(batch * m * n));
  for (int64_t s = 0; s < batch; ++s)
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j)
        for (int64_t l = 0; l < k; ++l)
          out[static_cast<size_t>((s * m + i) * n + j)] +=
              a[static_cast<size_t>((s * m + i) * k + l)] *
              b[static_cast<size_t>((s * k + l) * n + j)];
  return out;
}

TEST_P(KernelsTest, Products) {
  for (Layout la : {Layout::kContiguous, Layout::kTransposed, Layout::kStepped}) {
    for (Layout lb : {Layout::kContiguous, Layout::kTransposed}) {
      for (DType dtype : {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16}) {
        Tensor a = laid_out({7, 9}, dtype, device_, 1, la),
               b = laid_out({9, 5}, dtype, device_, 2, lb);
        std::vector<double> want = product(values(a), values(b), 1, 7, 9, 5);
        double tolerance = 4 * tolerance_of(dtype);
        EXPECT_TRUE(close(values(a.mm(b)), want, tolerance)) << dtype_name(dtype);
        EXPECT_TRUE(close(values(a.matmul(b)), want, tolerance));
        Tensor x = laid_out({3, 7, 9}, dtype, device_, 3, la),
               y = laid_out({3, 9, 5}, dtype, device_, 4, lb);
        EXPECT_TRUE(close(values(x.bmm(y)), product(values(x), values(y), 3, 7, 9, 5), tolerance));
      }
    }
  }
  EXPECT_EQ(values(input({2, 0}).mm(input({0, 3}))), std::vector<double>(6, 0));
  EXPECT_ERROR(input({2, 3}).mm(input({2, 3})), kRuntime,
               "mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)");
  EXPECT_ERROR(input({2, 3}).mm(input({3, 2}, 0, DType::kFloat64)), kRuntime, "same dtype");
}

TEST_P(KernelsTest, MatmulShapes) {
  Tensor v = input({4}, 1), m = input({4, 5}, 2), b = input({2, 3, 4}, 3);
  EXPECT_TRUE(close(values(v.matmul(m)), product(values(v), values(m), 1, 1, 4, 5), 1e-5));
  EXPECT_EQ(v.matmul(m).sizes(), (Dims{5}));
  EXPECT_EQ(v.matmul(v).sizes(), (Dims{}));
  EXPECT_TRUE(close(values(v.matmul(v)), product(values(v), values(v), 1, 1, 4, 1), 1e-5));
  EXPECT_TRUE(close(values(b.matmul(m)), product(values(b), values(m), 1, 6, 4, 5), 1e-5));
  EXPECT_TRUE(close(values(b.matmul(v)), product(values(b), values(v), 1, 6, 4, 1), 1e-5));
  // Broadcast batches: {2, 1} with {3}.
  Tensor x = input({2, 1, 3, 4}, 4), y = input({3, 4, 2}, 5), z = x.matmul(y);
  EXPECT_EQ(z.sizes(), (Dims{2, 3, 3, 2}));
  for (int64_t i = 0; i < 2; ++i)
    for (int64_t j = 0; j < 3; ++j)
      EXPECT_TRUE(close(values(z.select(0, i).select(0, j)),
                        product(values(x.select(0, i)), values(y.select(0, j)), 1, 3, 4, 2), 1e-5));
}

TEST_P(KernelsTest, LargeProduct) {
  Tensor a = input({65, 130}, 1), b = input({130, 70}, 2);
  EXPECT_TRUE(close(values(a.mm(b)), product(values(a), values(b), 1, 65, 130, 70), 1e-4));
}

}  // namespace
}  // namespace tessera
