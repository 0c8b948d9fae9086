// In-place writes through views: the gradients of the same program written without them.
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
