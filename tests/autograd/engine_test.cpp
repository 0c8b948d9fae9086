// Running graphs: accumulation, freeing, second derivatives, very long chains.
#include <gtest/gtest.h>

#include <cmath>

#include "support/gradcheck.h"

namespace tessera {
namespace {

using namespace test;

Tensor leaf(const Dims& sizes, int seed = 0, DType dtype = DType::kFloat32) {
  Tensor t = sample(sizes, dtype, {}, seed);
  t.requires_grad_();
  return t;
}

TEST(EngineTest, ANumberFromTheCpuGetsItsGradientThere) {
  Tensor x = tensor({1.0, 2.0, 3.0}).to(test_gpu());
  Tensor w = tensor(2.0);
  w.requires_grad_();
  (x * Value(w)).sum().backward();
  EXPECT_TRUE(w.grad().device().is_cpu());
  EXPECT_EQ(w.grad().item(), 6.0);
}

TEST(EngineTest, GradientsAccumulate) {
  Tensor x = leaf({4});
  (x * Value(2)).sum().backward();
  EXPECT_EQ(values(x.grad()), std::vector<double>(4, 2));
  (x * Value(3)).sum().backward();
  EXPECT_EQ(values(x.grad()), std::vector<double>(4, 5));
}

TEST(EngineTest, ALeafUsedManyTimes) {
  Tensor x = leaf({4});
  Tensor y = x * Value(x) + Value(x);
  (y * Value(y) + Value(x)).sum().backward();
  std::vector<double> want;
  for (double v : values(x)) want.push_back(2 * (v * v + v) * (2 * v + 1) + 1);
  EXPECT_TRUE(close(values(x.grad()), want, 1e-6));
}

TEST(EngineTest, ADiamondDeliversOnce) {
  Tensor x = leaf({3});
  Tensor a = x * Value(2), b = a.exp(), c = a.neg();
  (b * Value(c) + Value(a)).sum().backward();
  std::vector<double> want;
  for (double v : values(x)) {
    double a = 2 * v;
    want.push_back(2 * (-a * std::exp(a) - std::exp(a) + 1));
  }
  EXPECT_TRUE(close(values(x.grad()), want, 1e-5));
}

TEST(EngineTest, TheGraphIsFreedByBackward) {
  Tensor x = leaf({4});
  Tensor y = (x * Value(x)).sum();
  y.backward();
  EXPECT_ERROR(
      y.backward(), kRuntime,
      "Trying to backward through the graph a second time (or directly access saved "
      "tensors after they have already been freed). Saved intermediate values of the graph "
      "are freed when you call .backward() or autograd.grad(). Specify retain_graph=True");
  Tensor z = (x * Value(x)).sum();
  z.backward({}, true);
  z.backward();
  std::vector<double> want = values(x);
  for (double& v : want) v *= 6;
  EXPECT_EQ(values(x.grad()), want);
}

TEST(EngineTest, WhatCannotBeARoot) {
  Tensor x = leaf({4});
  EXPECT_ERROR((x * Value(2)).backward(), kRuntime,
               "grad can be implicitly created only for scalar outputs");
  EXPECT_ERROR(sample({}).backward(), kRuntime,
               "element 0 of tensors does not require grad and does not have a grad_fn");
  EXPECT_ERROR((x * Value(2)).backward(sample({3})), kRuntime, "Mismatch in shape");
}

TEST(EngineTest, GradReturnsAndLeavesTheLeavesAlone) {
  Tensor x = leaf({3}), y = leaf({3}, 1), unused = leaf({3}, 2);
  Tensor m = x * Value(y);
  TensorBase root = m.sum();
  TensorBase inputs[] = {x, m};
  auto g = autograd::run_backward({&root, 1}, {}, true, false, inputs, false);
  EXPECT_EQ(values(g[0]), values(y));
  EXPECT_EQ(values(g[1]), std::vector<double>(3, 1));
  EXPECT_FALSE(x.grad().defined());
  TensorBase wrong[] = {unused};
  EXPECT_ERROR(autograd::run_backward({&root, 1}, {}, true, false, wrong, false), kRuntime,
               "appears to not have been used in the graph");
  EXPECT_FALSE(autograd::run_backward({&root, 1}, {}, true, false, wrong, true)[0].defined());
}

TEST(EngineTest, SecondDerivatives) {
  Tensor x = leaf({4}, 0, DType::kFloat64);
  TensorBase y = ((x * Value(x) * Value(x)) + Value(x.exp())).sum();
  TensorBase in[] = {x};
  auto first = autograd::run_backward({&y, 1}, {}, true, true, in, false);
  ASSERT_TRUE(first[0].requires_grad());
  TensorBase again = Tensor(first[0]).sum();
  auto second = autograd::run_backward({&again, 1}, {}, true, false, in, false);
  std::vector<double> want1, want2;
  for (double v : values(x)) {
    want1.push_back(3 * v * v + std::exp(v));
    want2.push_back(6 * v + std::exp(v));
  }
  EXPECT_TRUE(close(values(first[0]), want1, 1e-12));
  EXPECT_TRUE(close(values(second[0]), want2, 1e-12));
}

// The gradient's own gradient against differences, for operators whose gradient is made of others.
TEST(EngineTest, GradientsOfGradients) {
  auto through = [](const std::function<Tensor(const Tensor&)>& f) {
    return [f](const std::vector<Tensor>& in) {
      GradMode on(true);
      Tensor x = in[0];
      bool leaf_here = !x.requires_grad();
      if (leaf_here) x = Tensor(x.detach()).requires_grad_();
      TensorBase y = f(x), inputs[] = {x}, weight = sample(y.sizes(), DType::kFloat64, {}, 7);
      return Tensor(autograd::run_backward({&y, 1}, {&weight, 1}, true, true, inputs, false)[0]);
    };
  };
  Tensor x = sample({3, 4}, DType::kFloat64), w = sample({4, 2}, DType::kFloat64, {}, 1);
  EXPECT_TRUE(gradcheck(through([](const Tensor& t) { return t.exp(); }), {x}));
  EXPECT_TRUE(gradcheck(through([](const Tensor& t) { return t.softmax(-1); }), {x}));
  EXPECT_TRUE(
      gradcheck(through([](const Tensor& t) { return t * Value(t) / Value(t.exp()); }), {x}));
  EXPECT_TRUE(gradcheck(through([&](const Tensor& t) { return (t * Value(t)).mm(w); }), {x}));
  EXPECT_TRUE(gradcheck(
      through([](const Tensor& t) { return slice(t.t(), 0, 0, 3) * Value(slice(t, 1, 0, 3)); }),
      {x}));
}

TEST(EngineTest, NoGradRecordsNothing) {
  Tensor x = leaf({4});
  {
    NoGrad off;
    Tensor y = x * Value(2);
    EXPECT_FALSE(y.requires_grad());
    EXPECT_FALSE(autograd::grad_fn(y));
    Tensor z = x.clone();
    EXPECT_FALSE(z.requires_grad());
  }
  EXPECT_TRUE((x * Value(2)).requires_grad());
}

TEST(EngineTest, IntegersTakeNoGradient) {
  Tensor x = leaf({4}), n = sample({4}, DType::kInt64);
  EXPECT_ERROR(n.requires_grad_(), kRuntime,
               "only Tensors of floating point and complex dtype can require gradients");
  (x * Value(n)).sum().backward();
  EXPECT_EQ(values(x.grad()), values(n));
  EXPECT_FALSE(x.eq(Value(0)).requires_grad());
  EXPECT_FALSE(n.grad().defined());
}

TEST(EngineTest, BroadcastGradientsAreSummed) {
  Tensor a = leaf({3, 1}), b = leaf({4}, 1), c = leaf({}, 2), d = leaf({1, 1, 1}, 3);
  (a * Value(b) + Value(c) + Value(d)).sum().backward();
  double sum_a = 0, sum_b = 0;
  for (double v : values(a)) sum_a += v;
  for (double v : values(b)) sum_b += v;
  EXPECT_TRUE(close(values(a.grad()), std::vector<double>(3, sum_b), 1e-6));
  EXPECT_TRUE(close(values(b.grad()), std::vector<double>(4, sum_a), 1e-6));
  EXPECT_EQ(values(c.grad()), std::vector<double>{12});
  EXPECT_EQ(d.grad().sizes(), (Dims{1, 1, 1}));
  EXPECT_EQ(values(d.grad()), std::vector<double>{12});
}

TEST(EngineTest, GradientsHaveTheDtypeOfTheirTensor) {
  Tensor half = leaf({4}, 0, DType::kFloat16), single = leaf({4}, 1);
  (half * Value(single)).sum().backward();
  EXPECT_EQ(half.grad().dtype(), DType::kFloat16);
  EXPECT_EQ(single.grad().dtype(), DType::kFloat32);
}

TEST(EngineTest, AMillionNodesRunAndAreFreed) {
  constexpr int kNodes = 1000000;
  Tensor x = leaf({1});
  {
    Tensor y = x;
    for (int i = 0; i < kNodes; ++i) y = y.add(Value(x));
    y.backward();
    EXPECT_EQ(values(x.grad()), std::vector<double>{kNodes + 1.0});
  }  // freed after its backward
  Tensor z = x;
  for (int i = 0; i < kNodes; ++i) z = z.neg();
  z = Tensor();  // freed without one
  EXPECT_EQ(x.ref()->use_count(), 1u);
}

// What a node saves of itself must not keep itself alive.
TEST(EngineTest, SavedResultsDoNotLeak) {
  Tensor x = leaf({4});
  Ref<Storage> storage;
  // Waiting work has its operands too.
  const auto uses = [&] {
    fuse::run_everything(fuse::Reason::kUser);
    return storage->use_count();
  };
  {
    Tensor y = x.exp();
    storage = Ref<Storage>::share(&y.storage());
    Tensor z = y * Value(y);
    EXPECT_GT(storage->use_count(), 2u);
  }
  EXPECT_EQ(uses(), 1u);
  {
    Tensor y = x.exp();
    y.mul_(Value(y));  // written in place by what is downstream of it
    storage = Ref<Storage>::share(&y.storage());
  }
  EXPECT_EQ(uses(), 1u);
  {
    Tensor y = x.softmax(0);
    storage = Ref<Storage>::share(&y.storage());
    y.sum().backward();
    EXPECT_EQ(uses(), 2u);  // backward let go of what was saved
  }
  EXPECT_EQ(uses(), 1u);
  EXPECT_EQ(x.ref()->use_count(), 1u);
}

}  // namespace
}  // namespace tessera
