// In-place writes: refused where PyTorch refuses them, and else with the gradients of the same
// program written without them.
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

// Two programs of one leaf, with and without in-place writes: the same value, the same gradient.
struct Pair {
  const char* name;
  std::function<Tensor(const Tensor&)> inplace, functional;
};

// x with a piece replaced, made of products with masks only.
Tensor blend(const Tensor& x, const Tensor& mask, const Tensor& piece) {
  return x * Value((mask - Value(1)).neg()) + Value(piece * Value(mask));
}

Tensor mask_of(const std::function<Tensor(const Tensor&)>& view) {
  Dims size{3, 4};
  Tensor m = zeros(size.span());
  view(m).fill_(Scalar(1));
  return m;
}
Tensor row(const Tensor& t) { return t.select(0, 1); }
Tensor block(const Tensor& t) { return slice(slice(t, 0, 1, 3), 1, 0, 4, 2); }
Tensor turned(const Tensor& t) { return slice(t.t(), 0, 1, 3); }

const std::vector<Pair>& pairs() {
  static const std::vector<Pair> all = {
      {"whole",
       [](const Tensor& x) {
         Tensor y = x * Value(2);
         y.mul_(Value(x));
         y.exp_();
         return y;
       },
       [](const Tensor& x) { return (x * Value(2) * Value(x)).exp(); }},
      {"fill_a_row",
       [](const Tensor& x) {
         Tensor y = x * Value(x);
         row(y).fill_(Scalar(5));
         return y * Value(x);
       },
       [](const Tensor& x) {
         Tensor m = mask_of(row);
         return blend(x * Value(x), m, m * Value(5)) * Value(x);
       }},
      {"scale_a_block",
       [](const Tensor& x) {
         Tensor y = x * Value(x);
         block(y).mul_(Value(3));
         return y;
       },
       [](const Tensor& x) {
         Tensor y = x * Value(x);
         return blend(y, mask_of(block), y * Value(3));
       }},
      {"two_writes_through_two_views",
       [](const Tensor& x) {
         Tensor y = x * Value(x);
         block(y).mul_(Value(3));
         turned(y).add_(Value(1));
         row(y).mul_(Value(row(x)));
         return y * Value(y);
       },
       [](const Tensor& x) {
         Tensor y = x * Value(x);
         y = blend(y, mask_of(block), y * Value(3));
         y = blend(y, mask_of(turned), y + Value(1));
         y = blend(y, mask_of(row), y * Value(x));
         return y * Value(y);
       }},
      {"the_view_after_the_base_was_written",
       [](const Tensor& x) {
         Tensor y = x * Value(2), v = turned(y);
         y.mul_(Value(x));
         return v * Value(v);
       },
       [](const Tensor& x) {
         Tensor v = turned(x * Value(2) * Value(x));
         return v * Value(v);
       }},
      {"the_view_after_it_was_written",
       [](const Tensor& x) {
         Tensor y = x * Value(2), v = block(y);
         v.mul_(Value(block(x)));
         return v * Value(block(x)) + Value(block(y));
       },
       [](const Tensor& x) {
         Tensor v = block(x * Value(2));
         v = v * Value(block(x));
         return v * Value(block(x)) + Value(v);
       }},
      {"a_view_beside_the_written_one",
       [](const Tensor& x) {
         Tensor y = x * Value(2), a = row(y), b = block(y);
         b.mul_(Value(5));
         return a * Value(row(x));
       },
       [](const Tensor& x) {
         Tensor y = x * Value(2);
         y = blend(y, mask_of(block), y * Value(5));
         return row(y) * Value(row(x));
       }},
      {"copy_into_a_piece_of_a_constant",
       [](const Tensor& x) {
         Dims size{3, 4};
         Tensor y = ones(size.span());
         row(y).copy_(row(x) * Value(row(x)));
         return y * Value(y);
       },
       [](const Tensor& x) {
         Dims size{3, 4};
         Tensor y = blend(ones(size.span()), mask_of(row), x * Value(x));
         return y * Value(y);
       }},
      {"a_view_of_a_view_of_a_constant",
       [](const Tensor& x) {
         Dims size{3, 4};
         Tensor y = ones(size.span()), v = y.t();
         slice(v, 0, 1, 3).mul_(Value(turned(x)));
         return y + Value(v.t());
       },
       [](const Tensor& x) {
         Dims size{3, 4};
         return blend(ones(size.span()), mask_of(turned), x) * Value(2);
       }},
      {"relu_of_a_piece",
       [](const Tensor& x) {
         Tensor y = x * Value(-3);
         block(y).relu_();
         return y * Value(x);
       },
       [](const Tensor& x) {
         Tensor y = x * Value(-3);
         return blend(y, mask_of(block), y.relu()) * Value(x);
       }},
  };
  return all;
}

class InplacePairTest : public ::testing::TestWithParam<size_t> {};
INSTANTIATE_TEST_SUITE_P(Programs, InplacePairTest, ::testing::Range(size_t{0}, pairs().size()),
                         [](const auto& i) { return pairs()[i.param].name; });

TEST_P(InplacePairTest, SameGradientAsWithout) {
  const Pair& p = pairs()[GetParam()];
  for (fuse::Mode mode : {fuse::Mode::kOff, fuse::Mode::kOn}) {
    FuseMode scope(mode);
    Tensor x = leaf({3, 4}), y = leaf({3, 4});
    Tensor a = p.inplace(x), b = p.functional(y);
    ASSERT_TRUE(a.requires_grad());
    EXPECT_EQ(values(a.detach()), values(b.detach()));
    Tensor weight = sample(a.sizes(), DType::kFloat32, {}, 4);
    a.backward(weight);
    b.backward(weight);
    EXPECT_TRUE(close(values(x.grad()), values(y.grad()), 1e-6)) << static_cast<int>(mode);
  }
}

}  // namespace
}  // namespace tessera
