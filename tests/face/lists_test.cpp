// Lists of tensors as arguments.
#include "support/tensors.h"

namespace tessera {
namespace {

using namespace test;

TEST(ListsTest, InBracesAndAsVariables) {
  Tensor a = make({2}, {1, 2}), b = make({2}, {3, 4});
  EXPECT_EQ(values(stack({a, b})), (std::vector<double>{1, 2, 3, 4}));
  EXPECT_EQ(values(stack({a, b}, 1)), (std::vector<double>{1, 3, 2, 4}));
  EXPECT_EQ(values(cat({a, b})), (std::vector<double>{1, 2, 3, 4}));
  EXPECT_EQ(values(cat({a, b, a}, -1)), (std::vector<double>{1, 2, 3, 4, 1, 2}));
  std::vector<Tensor> list{b, a};
  EXPECT_EQ(values(cat(list)), (std::vector<double>{3, 4, 1, 2}));
  EXPECT_EQ(values(cat(list, 0)), (std::vector<double>{3, 4, 1, 2}));
  EXPECT_EQ(values(stack(list)), (std::vector<double>{3, 4, 1, 2}));
  EXPECT_EQ(values(cat(std::vector<TensorBase>{a, b}, int64_t{0})),
            (std::vector<double>{1, 2, 3, 4}));
  EXPECT_EQ(value(einsum("i,i->", {a, b})), 11);
  EXPECT_EQ(meshgrid({a, b}, "ij").size(), 2u);
  EXPECT_EQ(cat("text of ", 2, " parts"), "text of 2 parts");
  // Gradients reach every one of them.
  Tensor c = make({2}, {5, 6}).requires_grad_();
  (cat({a, c}) * cat({b, b})).sum().backward();
  EXPECT_EQ(values(c.grad()), (std::vector<double>{3, 4}));
}

}  // namespace
}  // namespace tessera
