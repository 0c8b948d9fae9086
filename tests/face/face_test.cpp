// What C++ programs have beside the operators: building, reading, printing, scopes, tessera::cuda.
#include <sstream>

#include "support/tensors.h"

namespace tessera {
namespace {

using namespace test;

std::string text(const TensorBase& t) {
  std::ostringstream out;
  out << t;
  return out.str();
}

TEST(FaceTest, TensorsFromValues) {
  Tensor x = tensor({1.0, 2.5});
  EXPECT_EQ(x.dtype(), DType::kFloat32);
  EXPECT_EQ(values(x), (std::vector<double>{1, 2.5}));
  Tensor m = tensor({{1, 2, 3}, {4, 5, 6}});
  EXPECT_EQ(m.dtype(), DType::kInt64);
  EXPECT_EQ(m.sizes(), (Dims{2, 3}));
  EXPECT_EQ(values(m), (std::vector<double>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(tensor({true, false}).dtype(), DType::kBool);
  EXPECT_EQ(tensor({true, 2}).dtype(), DType::kInt64);
  EXPECT_EQ(values(tensor({1, 2.5})), (std::vector<double>{1, 2.5}));
  EXPECT_EQ(tensor(3.5).dim(), 0);
  EXPECT_EQ(tensor({{1.0}}).sizes(), (Dims{1, 1}));
  EXPECT_EQ(tensor({{{1}, {2}}}).sizes(), (Dims{1, 2, 1}));
  EXPECT_EQ(tensor(std::vector<float>{1, 2}).dtype(), DType::kFloat32);
  EXPECT_EQ(tensor(std::vector<int64_t>{7}).item<int64_t>(), 7);
  EXPECT_EQ(values(tensor({1.5, 0.0}, DType::kBool)), (std::vector<double>{1, 0}));
  EXPECT_EQ(tensor({0.1}, DType::kFloat64).item(), 0.1);
  int64_t large = (int64_t{1} << 60) + 1;
  EXPECT_EQ(tensor({large}).item<int64_t>(), large);
  EXPECT_TRUE(tensor({1.0}, {}, {}, true).requires_grad());
}

TEST(FaceTest, RaggedValuesAreRefused) {
  EXPECT_ERROR(tensor({{1, 2}, {3}}), kValue, "expected sequence of length 2 at dim 1 (got 1)");
  EXPECT_ERROR(tensor({{1, 2}, 3}), kType, "not a sequence");
  EXPECT_ERROR(tensor({1, {2, 3}}), kValue, "too many dimensions");
}

TEST(FaceTest, ElementsAndViews) {
  Tensor m = tensor({{1, 2, 3}, {4, 5, 6}});
  EXPECT_EQ(m.at({1, -1}), 6);
  EXPECT_EQ(m.at<int64_t>({0, 1}), 2);
  EXPECT_EQ(values(m[1]), (std::vector<double>{4, 5, 6}));
  EXPECT_EQ(values(m.slice(1, 1)), (std::vector<double>{2, 3, 5, 6}));
  EXPECT_EQ(values(m.slice(1, {}, {}, 2)), (std::vector<double>{1, 3, 4, 6}));
  EXPECT_EQ(m.t().at({2, 0}), 3);
  EXPECT_ERROR(m.at({0}), kIndex, "1 indices for a tensor of dimension 2");
  EXPECT_ERROR(m.at({0, 3}), kIndex, "index 3 is out of bounds for dimension 1 with size 3");
  m[0].fill_(9);
  EXPECT_EQ(m.at({0, 2}), 9);
}

TEST(FaceTest, Operators) {
  Tensor x = tensor({7, -7}), y = tensor({2.0, 4.0});
  auto are = [](const Tensor& t, std::vector<double> expected) { return values(t) == expected; };
  EXPECT_TRUE(are(1 - y, {-1, -3}));
  EXPECT_TRUE(are(1 / y, {0.5, 0.25}));
  EXPECT_TRUE(are(x % 3, {1, 2}));
  EXPECT_TRUE(are((x & 3) | 8, {11, 9}));
  EXPECT_TRUE(are(1 << tensor({2, 3}), {4, 8}));
  EXPECT_TRUE(are(~x ^ x, {-1, -1}));
  EXPECT_TRUE(are(x < y, {0, 1}));
  EXPECT_TRUE(are(3 >= y, {1, 0}));
  EXPECT_TRUE(are(y == 2, {1, 0}));
  EXPECT_EQ((2 * x).dtype(), DType::kInt64);
  EXPECT_EQ((2.0 * x).dtype(), DType::kFloat32);
  x %= 4;
  x <<= 1;
  EXPECT_TRUE(are(x, {6, 2}));
}

TEST(FaceTest, Indexing) {
  Tensor x = tensor({{1.0, 2.0, 3.0}, {4.0, 5.0, 6.0}, {7.0, 8.0, 9.0}});
  Tensor rows = tensor({2, 0});
  EXPECT_EQ(values(x.index({rows})), (std::vector<double>{7, 8, 9, 1, 2, 3}));
  EXPECT_EQ(values(x.index({rows, tensor({-1, 1})})), (std::vector<double>{9, 2}));
  EXPECT_EQ(x.index({Slice(0, 2), None, rows}).sizes(), (Dims{2, 1, 2}));
  EXPECT_EQ(values(x.index({Slice(0, 2), None, rows})), (std::vector<double>{3, 1, 6, 4}));
  EXPECT_EQ(values(x.index({Ellipsis, 1})), (std::vector<double>{2, 5, 8}));
  EXPECT_EQ(values(x.index({"...", Slice(1, None)})), (std::vector<double>{2, 3, 5, 6, 8, 9}));
  EXPECT_EQ(values(x.index({Slice(None, None, 2), 0})), (std::vector<double>{1, 7}));
  EXPECT_EQ(values(x.index({x.eq(5.0)})), std::vector<double>{5});
  EXPECT_EQ(x.index({false}).sizes(), (Dims{0, 3, 3}));
  x.index_put_({Slice(1), 0}, -1.0);
  EXPECT_EQ(values(x), (std::vector<double>{1, 2, 3, -1, 5, 6, -1, 8, 9}));
  x.index_put_({rows}, tensor({10.0, 20.0, 30.0}));
  EXPECT_EQ(values(x), (std::vector<double>{10, 20, 30, -1, 5, 6, 10, 20, 30}));
  x.index_put_({x.eq(20.0)}, 0.0);
  EXPECT_EQ(values(x), (std::vector<double>{10, 0, 30, -1, 5, 6, 10, 0, 30}));
  EXPECT_THROW(x.index({3}), Error);
  EXPECT_THROW(x.index({tensor({3})}), Error);
  EXPECT_THROW(x.index_put_({tensor({3})}, 0.0), Error);
}

TEST(FaceTest, SizesAsLists) {
  EXPECT_EQ(zeros({2, 3}).sizes(), (Dims{2, 3}));
  EXPECT_EQ(zeros({2, 3}).view({3, -1}).sizes(), (Dims{3, 2}));
  EXPECT_EQ(zeros(ones({4}).sizes()).sizes(), (Dims{4}));
  EXPECT_EQ(ones({2, 3}).sum(0).sizes(), (Dims{3}));
  EXPECT_EQ(ones({2, 3}).sum(Ints{0, 1}).item(), 6);
  EXPECT_EQ(ones({2, 3}).sum().item(), 6);
  EXPECT_EQ(zeros({}).dim(), 0);
}

TEST(FaceTest, Arithmetic) {
  Tensor x = tensor({1.0, 2.0});
  EXPECT_EQ(values(1.0 - x), (std::vector<double>{0, -1}));
  EXPECT_EQ(values(2.0 * x + 1.0), (std::vector<double>{3, 5}));
  Tensor y = x.clone();
  y += x;
  y *= 2.0;
  y -= 1.0;
  y /= x;
  EXPECT_EQ(values(y), (std::vector<double>{3, 3.5}));
}

TEST(FaceTest, Printing) {
  EXPECT_EQ(text(tensor(3)), "tensor(3)");
  EXPECT_EQ(text(tensor(2.5)), "tensor(2.5000)");
  EXPECT_EQ(text(tensor({1.0, 2.0})), "tensor([1., 2.])");
  EXPECT_EQ(text(tensor({1, -20})), "tensor([  1, -20])");
  EXPECT_EQ(text(tensor({true, false})), "tensor([ True, False])");
  EXPECT_EQ(text(tensor({{1.0, 2.0}, {3.0, 4.5}})),
            "tensor([[1.0000, 2.0000],\n        [3.0000, 4.5000]])");
  EXPECT_EQ(text(ones({2, 1, 1})), "tensor([[[1.]],\n\n        [[1.]]])");
  EXPECT_EQ(text(ones({2000})), "tensor([1., 1., 1.,  ..., 1., 1., 1.])");
  EXPECT_EQ(text(zeros({0, 3})), "tensor([], size=(0, 3))");
  EXPECT_EQ(text(ones({2}, DType::kFloat16)), "tensor([1., 1.], dtype=torch.float16)");
  EXPECT_EQ(text(tensor({1e-5, 1.0})), "tensor([1.0000e-05, 1.0000e+00])");
  Tensor x = tensor({1.0}, {}, {}, true);
  EXPECT_EQ(text(x), "tensor([1.], requires_grad=True)");
  EXPECT_EQ(text(x * 2.0), "tensor([2.], grad_fn=<MulBackward0>)");
  EXPECT_EQ(text(Tensor()), "tensor(undefined)");
  EXPECT_EQ(text(ones({2}, {}, test_gpu())), "tensor([1., 1.], device='cuda:0')");
}

TEST(FaceTest, Scopes) {
  Tensor w = tensor({{1.0, 2.0}, {3.0, 4.0}}, {}, {}, true);
  {
    NoGrad guard;
    EXPECT_FALSE((w * 2.0).requires_grad());
  }
  EXPECT_TRUE((w * 2.0).requires_grad());
  {
    AutocastMode guard(DeviceType::kCPU);
    EXPECT_EQ(matmul(w, w).dtype(), DType::kBFloat16);
    {
      AutocastMode off(DeviceType::kCPU, DType::kBFloat16, false);
      EXPECT_EQ(matmul(w, w).dtype(), DType::kFloat32);
    }
    EXPECT_EQ(matmul(w, w).dtype(), DType::kBFloat16);
  }
  EXPECT_EQ(matmul(w, w).dtype(), DType::kFloat32);
}

TEST(FaceTest, Gradients) {
  Tensor x = tensor({1.0, 2.0}, {}, {}, true);
  EXPECT_FALSE(x.grad().defined());
  sum(x * x).backward();
  EXPECT_EQ(values(x.grad()), (std::vector<double>{2, 4}));
  EXPECT_TRUE(x.is_leaf());
  EXPECT_FALSE((x * 1.0).is_leaf());
  x.zero_grad();
  EXPECT_FALSE(x.grad().defined());
}

TEST(FaceTest, Seeds) {
  manual_seed(7);
  Tensor a = rand({4});
  manual_seed(7);
  EXPECT_EQ(bytes(rand({4})), bytes(a));
}

TEST(FaceTest, Cuda) {
  Device gpu = test_gpu();
  ASSERT_TRUE(cuda::is_available());
  EXPECT_GE(cuda::device_count(), 1);
  EXPECT_EQ(cuda::current_device(), 0);
  EXPECT_EQ(cuda::why_unavailable(), "");
  EXPECT_FALSE(cuda::device_name().empty());
  EXPECT_EQ(cuda::is_virtual(), gpu_is_virtual());
  EXPECT_EQ(best_device(), gpu);
  cuda::empty_cache();
  cuda::reset_peak_memory_stats();
  int64_t before = cuda::memory_allocated();
  {
    Tensor x = zeros({1 << 18}, {}, gpu);
    EXPECT_EQ(cuda::memory_allocated() - before, 1 << 20);
    EXPECT_EQ(x.cpu().device(), Device{});
    EXPECT_EQ(ones({3}).cuda().device(), gpu);
  }
  cuda::synchronize();
  EXPECT_EQ(cuda::memory_allocated(), before);
  EXPECT_GE(cuda::max_memory_allocated() - before, 1 << 20);
  EXPECT_GE(cuda::max_memory_reserved(), cuda::memory_reserved());
  FuseMode on(fuse::Mode::kOn);
  Tensor y = ones({3}, {}, gpu) + 1.0;
  cuda::synchronize();
  EXPECT_EQ(fuse::stream_of(gpu).pending_ops(), 0u);
  EXPECT_ERROR(cuda::synchronize(99), kRuntime, "invalid device ordinal");
}

}  // namespace
}  // namespace tessera
