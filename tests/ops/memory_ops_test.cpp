// Indexing, copies, creation, draws and the optimiser's step.
#include <gtest/gtest.h>

#include <cmath>

#include "support/samples.h"

namespace tessera {
namespace {

using namespace test;

Tensor index_of(const std::vector<double>& at, DType dtype = DType::kInt64) {
  return make({static_cast<int64_t>(at.size())}, at, dtype);
}

TEST(IndexTest, SelectsAndAdds) {
  for (Layout layout : {Layout::kContiguous, Layout::kTransposed, Layout::kStepped}) {
    for (DType type : {DType::kInt64, DType::kInt32}) {
      Tensor x = laid_out({3, 4}, DType::kFloat32, {}, 1, layout);
      std::vector<double> v = values(x);
      Tensor rows = x.index_select(0, index_of({2, 0, 2}, type));
      Tensor columns = x.index_select(-1, index_of({3, 1}, type));
      std::vector<double> want_rows, want_columns;
      for (size_t r : {2, 0, 2})
        for (size_t c = 0; c < 4; ++c) want_rows.push_back(v[r * 4 + c]);
      for (size_t r = 0; r < 3; ++r)
        for (size_t c : {3, 1}) want_columns.push_back(v[r * 4 + c]);
      EXPECT_EQ(values(rows), want_rows);
      EXPECT_EQ(values(columns), want_columns);
      Tensor sum = x.index_add(0, index_of({2, 0, 2}, type), rows, Scalar(2));
      for (size_t i = 0; i < 12; ++i) {
        size_t r = i / 4;
        double times = r == 2 ? 4 : r == 0 ? 2 : 0;
        EXPECT_EQ(values(sum)[i], v[i] + times * v[i]);
      }
      EXPECT_EQ(values(x), v);
      x.index_add_(0, index_of({2, 0, 2}, type), rows, Scalar(2));
      EXPECT_EQ(values(x), values(sum));
    }
  }
}

TEST(IndexTest, Errors) {
  Tensor x = sample({3, 4});
  EXPECT_ERROR(x.index_select(0, index_of({3})), kIndex, "out of range");
  EXPECT_ERROR(x.index_select(0, index_of({-1})), kIndex, "out of range");
  EXPECT_ERROR(x.index_select(0, sample({2})), kRuntime, "Expected dtype int32 or int64 for index");
  EXPECT_ERROR(x.index_select(0, sample({2, 2}, DType::kInt64)), kIndex, "supposed to be a vector");
  EXPECT_ERROR(x.index_add(0, index_of({0}), sample({2, 4})), kRuntime,
               "should be equal to source.size(dim)");
}

TEST(CopyTest, ConvertsBroadcastsAndReordersBetweenDevices) {
  for (Device to : {Device{}, test_gpu()}) {
    for (Device from : {Device{}, test_gpu()}) {
      for (DType a :
           {DType::kFloat32, DType::kFloat16, DType::kInt64, DType::kUInt8, DType::kBool}) {
        for (DType b : {DType::kFloat32, DType::kBFloat16, DType::kInt32, DType::kBool}) {
          for (Layout layout : {Layout::kContiguous, Layout::kTransposed, Layout::kStepped}) {
            Tensor src = laid_out({3, 4}, a, from, 1, layout);
            Tensor dst = laid_out({2, 3, 4}, b, to, 2, layout);
            dst.copy_(src);
            std::vector<double> want;
            for (int k = 0; k < 2; ++k)
              for (double v : values(src)) want.push_back(rounded(v, b));
            EXPECT_EQ(values(dst), want) << dtype_name(a) << " to " << dtype_name(b);
          }
        }
      }
    }
  }
  clear_gpu();
  EXPECT_ERROR(sample({3}).copy_(sample({2, 3})), kRuntime,
               "output with shape [3] doesn't match the broadcast shape [2, 3]");
}

TEST(CopyTest, OverlappingPieces) {
  Tensor x = make({6}, {0, 1, 2, 3, 4, 5});
  slice(x, 0, 1, 6).copy_(slice(x, 0, 0, 5));
  EXPECT_EQ(values(x), (std::vector<double>{0, 0, 1, 2, 3, 4}));
  slice(x, 0, 0, 5).copy_(slice(x, 0, 1, 6));
  EXPECT_EQ(values(x), (std::vector<double>{0, 1, 2, 3, 4, 4}));
}

TEST(CopyTest, KeepsEveryBit) {
  std::vector<uint32_t> patterns = {0x7fc00001, 0xff800001, 0x7f800001, 0x80000000, 1, 0x80000001};
  Tensor x(new_empty({6}, DType::kFloat32, {}));
  std::memcpy(x.raw(), patterns.data(), 24);
  EXPECT_EQ(bytes(x.clone()), bytes(x));
  EXPECT_EQ(bytes(x.to(test_gpu()).clone().cpu()), bytes(x));
  clear_gpu();
}

TEST(CreationTest, ShapesDtypesAndValues) {
  Dims size{2, 3}, none{};
  for (Device d : {Device{}, test_gpu()}) {
    EXPECT_EQ(values(zeros(size.span(), DType::kInt64, d)), std::vector<double>(6, 0));
    EXPECT_EQ(values(ones(none.span(), DType::kBool, d)), std::vector<double>{1});
    EXPECT_EQ(values(full(size.span(), Scalar(2.5), DType::kFloat16, d)),
              std::vector<double>(6, 2.5));
    Tensor x = sample({3, 4}, DType::kFloat64, d).t();
    EXPECT_EQ(zeros_like(x).dtype(), DType::kFloat64);
    EXPECT_EQ(ones_like(x, DType::kInt8).sizes(), (Dims{4, 3}));
    EXPECT_EQ(ones_like(x).strides(), x.strides());
    EXPECT_EQ(x.new_zeros(size.span()).device(), d);
  }
  EXPECT_EQ(full(size.span(), Scalar(7)).dtype(), DType::kInt64);
  EXPECT_EQ(full(size.span(), Scalar(true)).dtype(), DType::kBool);
  EXPECT_EQ(zeros(size.span()).storage().version.load(), 0u);
  EXPECT_TRUE(ones(size.span(), std::nullopt, std::nullopt, true).requires_grad());
  EXPECT_ERROR(ones(size.span(), DType::kInt64, std::nullopt, true), kRuntime, "require gradients");
  clear_gpu();
}

TEST(DropoutTest, NothingAllOrAFraction) {
  Dims size{100000};
  for (Device d : {Device{}, test_gpu()}) {
    Tensor x = ones(size.span(), DType::kFloat32, d);
    x.requires_grad_();
    EXPECT_EQ(bytes(dropout(x, 0, true)), bytes(x));
    EXPECT_EQ(bytes(dropout(x, 0.5, false)), bytes(x));
    EXPECT_EQ(values(dropout(x, 1, true)), std::vector<double>(100000, 0));
    Tensor y = dropout(x, 0.25, true);
    int64_t kept = 0;
    for (double v : values(y.detach())) {
      kept += v != 0;
      ASSERT_TRUE(v == 0 || std::abs(v - 4.0 / 3) < 1e-6) << v;
    }
    EXPECT_NEAR(static_cast<double>(kept), 75000, 6 * std::sqrt(100000 * 0.25 * 0.75));
    y.sum().backward();
    EXPECT_EQ(values(x.grad()), values(y.detach()));  // the mask itself
    Tensor again = dropout(x, 0.25, true);
    EXPECT_NE(bytes(again), bytes(y));
  }
  EXPECT_ERROR(dropout(sample({3}), 1.5, true), kValue, "between 0 and 1");
  clear_gpu();
}

TEST(RandomTest, ASeedGivesTheSameNumbersAgain) {
  Dims size{1000};
  for (Device d : {Device{}, test_gpu()}) {
    manual_seed(11);
    Tensor a = rand(size.span(), DType::kFloat32, d), b = randn(size.span(), DType::kFloat32, d);
    manual_seed(11);
    EXPECT_EQ(bytes(rand(size.span(), DType::kFloat32, d)), bytes(a));
    EXPECT_EQ(bytes(randn(size.span(), DType::kFloat32, d)), bytes(b));
    EXPECT_NE(bytes(rand(size.span(), DType::kFloat32, d)), bytes(a));
    double mean = 0, square = 0;
    for (double v : values(b)) mean += v / 1000, square += v * v / 1000;
    EXPECT_NEAR(mean, 0, 0.2);
    EXPECT_NEAR(square, 1, 0.3);
    for (double v : values(a)) ASSERT_TRUE(v >= 0 && v < 1);
  }
  clear_gpu();
}

// PyTorch's SGD, one number at a time.
TEST(SgdTest, StepsAsPyTorch) {
  struct Options {
    double lr, momentum, dampening, decay;
    bool nesterov, maximize;
  };
  const Options options[] = {{0.1, 0, 0, 0, false, false},
                             {0.1, 0.9, 0, 0, false, false},
                             {0.1, 0.9, 0.3, 0.01, false, false},
                             {0.1, 0.9, 0, 0.01, true, true}};
  for (const Options& o : options) {
    for (fuse::Mode mode : {fuse::Mode::kOff, fuse::Mode::kOn}) {
      FuseMode scope(mode);
      Tensor p = sample({6}, DType::kFloat64, {}, 1);
      std::vector<double> want = values(p), buffer(6);
      std::vector<TensorBase> params{p}, momenta;
      Dims size{6};
      if (o.momentum != 0) momenta.push_back(zeros(size.span(), DType::kFloat64));
      for (int step = 0; step < 3; ++step) {
        Tensor g = sample({6}, DType::kFloat64, {}, 10 + step);
        std::vector<TensorBase> grads{g};
        op::_sgd_step_(params, grads, momenta, o.lr, o.momentum, o.dampening, o.decay, o.nesterov,
                       o.maximize, step == 0);
        std::vector<double> gv = values(g);
        for (size_t i = 0; i < 6; ++i) {
          double d = (o.maximize ? -gv[i] : gv[i]) + o.decay * want[i];
          if (o.momentum != 0) {
            buffer[i] = step == 0 ? d : o.momentum * buffer[i] + (1 - o.dampening) * d;
            d = o.nesterov ? d + o.momentum * buffer[i] : buffer[i];
          }
          want[i] -= o.lr * d;
        }
      }
      EXPECT_TRUE(close(values(p), want, 1e-14));
      EXPECT_TRUE(momenta.empty() || close(values(momenta[0]), buffer, 1e-14));
    }
  }
}

}  // namespace
}  // namespace tessera
