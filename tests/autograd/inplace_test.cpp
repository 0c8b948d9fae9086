// In-place writes: refused where PyTorch refuses them, found where they spoil a gradient.
#include <gtest/gtest.h>

#include "support/gradcheck.h"

namespace tessera {
namespace {

using namespace test;

Tensor leaf(const Dims& sizes, int seed = 0) {
  Tensor t = sample(sizes, DType::kFloat32, {}, seed);
  t.requires_grad_();
  return t;
}

TEST(InplaceTest, LeavesAreNotWritten) {
  Tensor x = leaf({4});
  const char* text = "a leaf Variable that requires grad is being used in an in-place operation.";
  EXPECT_ERROR(x.add_(Value(1)), kRuntime, text);
  EXPECT_ERROR(x.fill_(Scalar(1)), kRuntime, text);
  EXPECT_ERROR(x.zero_(), kRuntime, text);
  EXPECT_ERROR(x.copy_(sample({4})), kRuntime, text);
  EXPECT_ERROR(x.uniform_(), kRuntime, text);
  EXPECT_ERROR(
      slice(x, 0, 1, 2).add_(Value(1)), kRuntime,
      "a view of a leaf Variable that requires grad is being used in an in-place operation.");
  EXPECT_EQ(values(x), values(sample({4})));
  EXPECT_EQ(x.storage().version.load(), 0u);
  NoGrad off;
  x.add_(Value(1));
  slice(x, 0, 1, 2).mul_(Value(0));
  EXPECT_EQ(values(x)[1], 0);
}

TEST(InplaceTest, AWriteToWhatIsSavedIsFound) {
  Tensor x = leaf({4});
  Tensor y = x.exp(), z = y * Value(2);
  y.add_(Value(1));  // exp saved its result
  EXPECT_ERROR(z.sum().backward(), kRuntime,
               "one of the variables needed for gradient computation has been modified by an "
               "inplace operation: [torch.float32 [4]], which ExpBackward0 saved, is at version 1; "
               "expected version 0 instead.");
  Tensor w = sample({4}), p = x * Value(w);
  slice(w, 0, 0, 1).fill_(Scalar(3));  // through a view of an argument
  EXPECT_ERROR(p.sum().backward(), kRuntime, "modified by an inplace operation");
}

TEST(InplaceTest, AWriteOfATensorByItselfIsFound) {
  Tensor x = leaf({4}), y = x * Value(2);
  y.mul_(Value(y));  // the factor that backward needs is gone
  EXPECT_ERROR(y.sum().backward(), kRuntime, "modified by an inplace operation");
}

// Nothing is kept for a gradient that nobody wants.
TEST(InplaceTest, AFactorIsSavedOnlyForTheOthersGradient) {
  Tensor x = leaf({4}), c = sample({4}, DType::kFloat32, {}, 1);
  Tensor y = x + Value(1), z = y * Value(2), w = y * Value(c), q = y / Value(4);
  y.add_(Value(1));
  (z + Value(w) + Value(q)).sum().backward();
  std::vector<double> want = values(c);
  for (double& v : want) v += 2.25;
  EXPECT_EQ(values(x.grad()), want);
  Tensor a = leaf({2, 3}), m = sample({3, 2}), h = a + Value(1), p = h.mm(m);
  h.zero_();
  p.sum().backward();
  EXPECT_TRUE(a.grad().defined());
}

TEST(InplaceTest, AViewFollowsABaseThatCameToRequireAGradient) {
  Dims size{5};
  Tensor r = leaf({1}), x = ones(size.span()), v = x.select(0, 1);
  EXPECT_FALSE(v.requires_grad());
  x.add_(Value(r));
  EXPECT_TRUE(v.requires_grad());
  EXPECT_FALSE(autograd::is_leaf(v));
  v.mul_(Value(3));
  x.sum().backward();
  EXPECT_EQ(values(r.grad()), std::vector<double>{7});
}

TEST(InplaceTest, SecondDerivativesThroughAWrittenView) {
  auto first = [](const std::vector<Tensor>& in) {
    GradMode on(true);
    Tensor x = in[0].requires_grad() ? in[0] : Tensor(in[0].detach()).requires_grad_();
    Tensor y = x * Value(x);
    y.select(0, 1).mul_(Value(x.select(0, 2)));
    y.select(1, 0).mul_(Value(x.select(1, 3)));
    TensorBase root = y * Value(y), inputs[] = {x};
    TensorBase weight = sample(y.sizes(), DType::kFloat64, {}, 7);
    return Tensor(autograd::run_backward({&root, 1}, {&weight, 1}, true, true, inputs, false)[0]);
  };
  Tensor x = sample({3, 4}, DType::kFloat64) / Value(4);
  EXPECT_TRUE(gradcheck(first, {x}));
}

TEST(InplaceTest, AWriteToWhatIsNotSavedIsFine) {
  Tensor x = leaf({4});
  Tensor y = x + Value(1);
  y.mul_(Value(2));
  y.add_(Value(x));
  y.sum().backward();
  EXPECT_EQ(values(x.grad()), std::vector<double>(4, 3));
}

}  // namespace
}  // namespace tessera
