// The way of a call: promotion with numbers, devices, out= and overlapping memory.
#include <gtest/gtest.h>

#include "support/tensors.h"

namespace tessera {
namespace {

using namespace test;

Tensor out_of(const char* op, std::vector<Value> args, const Tensor& out) {
  return Tensor(dispatch_out(get_op(op), args, out));
}

TEST(CallTest, NumbersAndZeroDimTensorsPromoteWithinTheirKind) {
  Tensor i = sample({3}, DType::kInt32), h = sample({3}, DType::kFloat16),
         b = sample({3}, DType::kBool);
  Tensor f0 = make({}, {2.5}, DType::kFloat64), i0 = make({}, {2}, DType::kInt64);
  EXPECT_EQ(i.add(Value(1)).dtype(), DType::kInt32);
  EXPECT_EQ(i.add(Value(1.5)).dtype(), DType::kFloat32);
  EXPECT_EQ(h.add(Value(1.5)).dtype(), DType::kFloat16);
  EXPECT_EQ(h.add(Value(f0)).dtype(), DType::kFloat16);
  EXPECT_EQ(i.add(Value(f0)).dtype(), DType::kFloat64);
  EXPECT_EQ(i.add(Value(i0)).dtype(), DType::kInt32);
  EXPECT_EQ(b.add(Value(true)).dtype(), DType::kBool);
  EXPECT_EQ(b.add(Value(1)).dtype(), DType::kInt64);
  EXPECT_EQ(b.add(Value(i0)).dtype(), DType::kInt64);
  EXPECT_EQ(f0.add(Value(1)).dtype(), DType::kFloat64);
  EXPECT_EQ(i0.add(Value(1.5)).dtype(), DType::kFloat32);
  EXPECT_EQ(i0.add(Value(f0)).dtype(), DType::kFloat64);
  EXPECT_EQ(i.div(Value(i)).dtype(), DType::kFloat32);
  EXPECT_EQ(h.add(Value(sample({3}, DType::kBFloat16))).dtype(), DType::kFloat32);
  EXPECT_EQ(i.eq(Value(h)).dtype(), DType::kBool);
}

TEST(CallTest, TheDefaultDtypeIsThatOfFloatNumbers) {
  set_default_dtype(DType::kFloat64);
  Tensor x = sample({3}, DType::kInt64).add(Value(0.5)), y = sample({3}, DType::kInt64).exp();
  set_default_dtype(DType::kFloat32);
  EXPECT_EQ(x.dtype(), DType::kFloat64);
  EXPECT_EQ(y.dtype(), DType::kFloat64);
}

TEST(CallTest, SmallIntegersWrap) {
  EXPECT_EQ(values(make({2}, {250, 3}, DType::kUInt8).add(Value(10))),
            (std::vector<double>{4, 13}));
  EXPECT_EQ(values(make({2}, {100, -100}, DType::kInt8).mul(Value(2))),
            (std::vector<double>{-56, 56}));
  EXPECT_EQ(values(make({1}, {30000}, DType::kInt16).add(Value(30000))),
            (std::vector<double>{-5536}));
}

TEST(CallTest, AlphaHasToFitTheDtype) {
  Tensor i = sample({3}, DType::kInt64), b = sample({3}, DType::kBool), f = sample({3});
  EXPECT_ERROR(i.add(Value(i), Scalar(1.5)), kRuntime,
               "For integral input tensors, argument alpha must not be a floating point number.");
  EXPECT_ERROR(f.add(Value(f), Scalar(true)), kRuntime,
               "Boolean alpha only supported for Boolean results.");
  EXPECT_EQ(b.add(Value(b), Scalar(true)).dtype(), DType::kBool);
}

TEST(CallTest, InPlaceKeepsShapeAndKind) {
  Tensor i = sample({3}, DType::kInt64), f = sample({3});
  EXPECT_ERROR(i.mul_(Value(0.5)), kRuntime,
               "result type Float can't be cast to the desired output type Long");
  EXPECT_ERROR(i.div_(Value(2)), kRuntime,
               "result type Float can't be cast to the desired output type Long");
  EXPECT_ERROR(f.add_(Value(sample({2, 3}))), kRuntime,
               "output with shape [3] doesn't match the broadcast shape [2, 3]");
  EXPECT_EQ(values(i), values(sample({3}, DType::kInt64)));
  EXPECT_EQ(i.storage().version.load(), 0u);
}

TEST(CallTest, TensorsOnTwoDevices) {
  Tensor x = sample({3}), y = sample({3}, DType::kFloat32, test_gpu());
  EXPECT_ERROR(
      x + Value(y), kRuntime,
      "Expected all tensors to be on the same device, but found at least two devices, cpu and "
      "cuda:0! In add(): 'self' of shape [3] is on cpu, 'other' of shape [3] is on cuda:0. "
      "Move 'self' first: self = self.to('cuda:0')");
  EXPECT_ERROR(sample({3, 3}).mm(y), kRuntime, "In mm(): 'self' of shape [3, 3] is on cpu");
  EXPECT_ERROR(x.add_(Value(y)), kRuntime, "same device");
  Tensor zero_dim = make({}, {2});
  EXPECT_EQ((zero_dim + Value(y)).device(), test_gpu());
  EXPECT_ERROR(zero_dim.add_(Value(make({}, {1}, DType::kFloat32, test_gpu()))), kRuntime, "");
  EXPECT_EQ(value(zero_dim), 2);
  clear_gpu();
}

TEST(CallTest, OutIsResizedAndChecked) {
  Tensor x = sample({2, 3}), y = sample({3}, DType::kFloat32, {}, 1);
  Tensor out = sample({7}), wide = sample({4, 6}), n = sample({2, 3}, DType::kInt64);
  EXPECT_EQ(bytes(out_of("mul", {x, y}, out)), bytes(x * Value(y)));
  EXPECT_EQ(out.sizes(), (Dims{2, 3}));
  Tensor piece = slice(wide, 1, 0, 6, 2);  // {4, 3}: stays where it is
  out_of("add", {sample({4, 3}), Value(1), Value(1)}, piece);
  EXPECT_EQ(values(piece), values(sample({4, 3}) + Value(1)));
  EXPECT_EQ(&piece.storage(), &wide.storage());
  EXPECT_ERROR(out_of("mul", {x, y}, n), kRuntime, "can't be cast to the desired output type Long");
  Tensor d = sample({2, 3}, DType::kFloat64);
  EXPECT_EQ(values(out_of("mul", {x, y}, d)), values((x * Value(y)).to(DType::kFloat64)));
  EXPECT_EQ(bytes(out_of("mm", {x, x.t()}, out)), bytes(x.mm(x.t())));
  x.requires_grad_();
  EXPECT_ERROR(out_of("mul", {x, y}, out), kRuntime,
               "functions with out=... arguments don't support automatic differentiation");
}

TEST(CallTest, OutThatIsAlsoAnInput) {
  for (fuse::Mode mode : {fuse::Mode::kOff, fuse::Mode::kOn}) {
    FuseMode scope(mode);
    Tensor x = sample({4, 4});
    std::vector<double> v = values(x), want;
    for (size_t i = 0; i < 16; ++i) want.push_back(v[i] + v[i / 4 + i % 4 * 4]);
    EXPECT_EQ(values(x + Value(x.t())), want);
    EXPECT_EQ(values(out_of("mul", {x, Value(2)}, x)), values(sample({4, 4}) * Value(2)));
    // Resized, it would be read in a shape its values never had.
    Tensor one = sample({1});
    EXPECT_ERROR(out_of("mul", {one, sample({3})}, one), kRuntime,
                 "output with shape [1] doesn't match the broadcast shape [3]");
    EXPECT_EQ(values(one), values(sample({1})));
    // The same memory in another order: refused, as PyTorch does.
    EXPECT_ERROR(x.add_(Value(x.t())), kRuntime,
                 "some elements of the input tensor and the written-to tensor refer to a single "
                 "memory location.");
    Tensor y = make({6}, {0, 1, 2, 3, 4, 5});
    EXPECT_ERROR(slice(y, 0, 1, 6).add_(Value(slice(y, 0, 0, 5))), kRuntime,
                 "single memory location");
    EXPECT_EQ(values(y), (std::vector<double>{0, 1, 2, 3, 4, 5}));
  }
}

TEST(CallTest, ItemNeedsOneElement) {
  EXPECT_EQ(make({1, 1}, {2.5}, DType::kFloat16).item(), 2.5);
  EXPECT_EQ(make({}, {7}, DType::kInt64, test_gpu()).item(), 7);
  EXPECT_ERROR(sample({2}).item(), kRuntime,
               "a Tensor with 2 elements cannot be converted to Scalar");
  clear_gpu();
}

}  // namespace
}  // namespace tessera
