// Assignment to a temporary writes into the memory it views; assignment to a name rebinds it.
#include <complex>
#include <tuple>

#include "support/tensors.h"

namespace tessera {
namespace {

using namespace test;
using List = std::vector<double>;

// A half-precision number of a user's.
struct Half {
  float v;
  operator float() const { return v; }
};

TEST(AssignTest, TemporariesWriteThrough) {
  Tensor x = zeros({3, 2}), y = make({2}, {1, 2});
  x[0] = y;
  x.select(0, 2) = make({2}, {5, 6});
  x.index({1}) = y * 10;
  EXPECT_EQ(values(x), (List{1, 2, 10, 20, 5, 6}));
  x.slice(0, 1) = y;  // broadcast
  EXPECT_EQ(values(x), (List{1, 2, 1, 2, 1, 2}));
  x.t()[1] = make({1}, {7});
  EXPECT_EQ(values(x), (List{1, 7, 1, 7, 1, 7}));
  x.index({Slice(), 0}) = 3;
  EXPECT_EQ(values(x), (List{3, 7, 3, 7, 3, 7}));
  const Tensor fixed = x;
  std::move(x) = y;
  EXPECT_EQ(values(fixed), (List{1, 2, 1, 2, 1, 2}));
  fixed[0] = 9;
  EXPECT_EQ(values(x), (List{9, 9, 1, 2, 1, 2}));
}

TEST(AssignTest, NamesRebind) {
  Tensor x = make({2}, {1, 2}), y = make({2}, {3, 4});
  Tensor was = x;
  x = y;
  EXPECT_TRUE(x.is_same(y));
  EXPECT_EQ(values(was), (List{1, 2}));
  x = std::move(was);
  EXPECT_FALSE(was.defined());
  EXPECT_EQ(values(x), (List{1, 2}));
  Tensor& same = x;
  x = same;
  EXPECT_EQ(values(x), (List{1, 2}));
  Tensor undefined;
  x = undefined;
  EXPECT_FALSE(x.defined());
  x = Tensor();
  x = y[0];
  EXPECT_EQ(value(x), 3);
  Tensor view = y[1];
  view = make({2}, {8, 8});
  EXPECT_EQ(values(y), (List{3, 4}));
}

TEST(AssignTest, SwapsContainersAndTuples) {
  Tensor a = make({1}, {1}), b = make({1}, {2});
  Tensor was = a;
  std::swap(a, b);
  EXPECT_EQ(value(a), 2);
  EXPECT_TRUE(b.is_same(was));
  std::vector<Tensor> list{a, b};
  list[0] = b;
  EXPECT_TRUE(list[0].is_same(b));
  EXPECT_EQ(value(a), 2);
  list.insert(list.begin(), a);
  list.erase(list.begin() + 1);
  EXPECT_TRUE(list[0].is_same(a) && list[1].is_same(b));
  std::reverse(list.begin(), list.end());
  EXPECT_TRUE(list[0].is_same(b));
  std::tie(a, b) = std::make_tuple(b, a);
  EXPECT_TRUE(a.is_same(was));
  std::tie(a, b) = make({2, 2}, {1, 5, 7, 2}).max(1);
  EXPECT_EQ(values(a), (List{5, 7}));
  std::optional<Tensor> maybe;
  maybe = a;
  maybe = b;
  EXPECT_TRUE(maybe->is_same(b));
  *maybe = a;
  EXPECT_TRUE(maybe->is_same(a));
  std::pair<Tensor, int> pair{a, 1};
  pair = {b, 2};
  EXPECT_TRUE(pair.first.is_same(b));
  static_assert(std::is_nothrow_move_assignable_v<Tensor> && std::movable<Tensor>);
  static_assert(!std::is_assignable_v<TensorBase, TensorBase>, "a TensorBase has no elements");
  static_assert(!std::is_assignable_v<Tensor, const char*>);
  static_assert(!std::is_assignable_v<Tensor, std::nullptr_t>);
  static_assert(!std::is_assignable_v<Tensor&, double>, "a name is no place for a number");
}

TEST(AssignTest, ScalarsOfEveryType) {
  Tensor x = zeros({1}), n = zeros({1}, DType::kInt64), c = zeros({1}, DType::kComplex64);
  auto written = [&](auto v) {
    x[0] = v;
    return value(x);
  };
  EXPECT_EQ(written(1), 1);
  EXPECT_EQ(written(size_t{2}), 2);
  EXPECT_EQ(written(3LL), 3);
  EXPECT_EQ(written(4ULL), 4);
  EXPECT_EQ(written(5U), 5);
  EXPECT_EQ(written(short{6}), 6);
  EXPECT_EQ(written(uint8_t{7}), 7);
  EXPECT_EQ(written(int8_t{-8}), -8);
  EXPECT_EQ(written(true), 1);
  EXPECT_EQ(written(1.5), 1.5);
  EXPECT_EQ(written(2.5f), 2.5);
  EXPECT_EQ(written(3.5L), 3.5);
  EXPECT_EQ(written(Scalar(9)), 9);
  EXPECT_EQ(written(Half{0.5f}), 0.5);
  n[0] = int64_t{1} << 62;
  EXPECT_EQ(n.item<int64_t>(), int64_t{1} << 62);
  EXPECT_THROW(n[0] = UINT64_MAX, Error);
  c[0] = std::complex<float>(1, 2);
  EXPECT_EQ(value(real(c)), 1);
  EXPECT_EQ(value(imag(c)), 2);
  c[0] = std::complex<double>(3, 4);
  EXPECT_EQ(value(imag(c)), 4);
  c[0] = c64(5, 6);
  c.index({Slice()}) = c128(7, 8);
  EXPECT_EQ(value(real(c)), 7);
  EXPECT_THROW(x[0] = c128(1, 1), Error);
  // The same types in operators.
  EXPECT_EQ(value(make({1}, {3}) * size_t{2} + 1ULL - 2U), 5);
  EXPECT_EQ(value(make({1}, {3}).add(5LL)), 8);
}

TEST(AssignTest, Chains) {
  Tensor x = zeros({3}), y = zeros({3}), z = make({3}, {1, 2, 3});
  x[0] = y[1] = z[2];
  EXPECT_EQ(values(x), (List{3, 0, 0}));
  EXPECT_EQ(values(y), (List{0, 3, 0}));
  x[1] = x[2] = 4.0;
  EXPECT_EQ(values(x), (List{3, 4, 4}));
  Tensor name = x[0] = 6;
  EXPECT_EQ(value(name), 6);
  name.fill_(8);
  EXPECT_EQ(values(x), (List{8, 4, 4}));
  x[0] += 1;
  x[1] *= z[2];
  x.slice(0, 2) -= 10;
  EXPECT_EQ(values(x), (List{9, 12, -6}));
  x[0] = x[0];
  x.slice(0, 0, 2) = x.slice(0, 0, 2);
  EXPECT_EQ(values(x), (List{9, 12, -6}));
}

TEST(AssignTest, ConvertsAndChecks) {
  Tensor n = zeros({2}, DType::kInt64);
  n[0] = make({1}, {2.75})[0];
  EXPECT_EQ(values(n), (List{2, 0}));
  Tensor x = zeros({2});
  x[1] = full({}, 7, DType::kInt64);
  EXPECT_EQ(values(x), (List{0, 7}));
  EXPECT_THROW(x[0] = make({2}, {1, 2}), Error);
  EXPECT_THROW(x.slice(0, 0, 2) = make({3}, {1, 2, 3}), Error);
  EXPECT_THROW(x[0] = Tensor(), Error);
  EXPECT_THROW(Tensor() = x, Error);
  EXPECT_THROW(zeros({1}, DType::kUInt8)[0] = 300, Error);
  EXPECT_EQ(values(x), (List{0, 7}));
}

TEST(AssignTest, AutogradSeesTheCopy) {
  Tensor y = make({2}, {3, 4}).requires_grad_();
  Tensor leaf = make({2, 2}, {1, 1, 1, 1}).requires_grad_();
  Tensor x = leaf * 2;
  x[0] = y * 5;
  x[1][1] = 0.0;
  EXPECT_EQ(values(x), (List{15, 20, 2, 0}));
  (x * make({2, 2}, {1, 2, 3, 4})).sum().backward();
  EXPECT_EQ(values(y.grad()), (List{5, 10}));
  EXPECT_EQ(values(leaf.grad()), (List{0, 0, 6, 0}));
  EXPECT_THROW(leaf[0] = y, Error);  // a view of a leaf that requires a gradient
  leaf.grad() = 1;
  EXPECT_EQ(values(leaf.grad()), (List{1, 1, 1, 1}));
}

TEST(AssignTest, WritesThatWouldBeLostRaise) {
  Tensor x = make({3}, {1, 2, 3}), mask = x > 1;
  auto lost = [](auto assign) {
    try {
      assign();
    } catch (const Error& e) {
      return std::string(e.what()).find("index_put_") != std::string::npos;
    }
    return false;
  };
  EXPECT_TRUE(lost([&] { x.index({mask}) = 0; }));  // a copy
  EXPECT_TRUE(lost([&] { x + 1 = 0; }));
  EXPECT_TRUE(lost([&] { x.clone() = x; }));
  EXPECT_TRUE(lost([&] { zeros({2}) = 1; }));
  x.index_put_({mask}, 0);
  EXPECT_EQ(values(x), (List{1, 0, 0}));
  zeros({2})[0] = 1;   // a view of a temporary that lives until the end of the line
  x.contiguous() = 5;  // x itself
  x.detach() = 6;
  EXPECT_EQ(values(x), (List{6, 6, 6}));
}

TEST(AssignTest, DeferredValues) {
  Tensor big = ones({5000});
  Tensor x = big * 2;  // pending
  x.slice(0, 0, 10) = big.slice(0, 0, 10) * 7;
  x[4999] = 3;
  Tensor y = x + 1;
  EXPECT_EQ(y.at({0}), 8);
  EXPECT_EQ(y.at({10}), 3);
  EXPECT_EQ(y.at({4999}), 4);
  EXPECT_EQ(value(big.sum()), 5000);
}

}  // namespace
}  // namespace tessera
