// Edges through storages: reads after writes, writes after reads, writes after writes, each program
// fused against unfused, bit for bit.
#include "support/fuse_fixture.h"

namespace tessera {
namespace {

using namespace test;

struct Program {
  const char* name;
  std::function<std::vector<Tensor>(Device)> run;
};

Tensor input(Device d, int seed = 0) { return sample({6, 8}, DType::kFloat32, d, seed); }

const std::vector<Program>& programs() {
  static const Dims flat{48};
  static const std::vector<Program> all = {
      {"read_after_write",
       [](Device d) {
         Tensor x = input(d), y = x + Value(1);
         x.mul_(Value(3));
         return std::vector{x + Value(y), y, x};
       }},
      {"write_after_read",
       [](Device d) {
         Tensor x = input(d), old = x * Value(2);
         x.fill_(Scalar(7));
         return std::vector{old, x, old + Value(x)};
       }},
      {"write_after_read_elsewhere",
       [](Device d) {  // the reader sees the tensor transposed: not in the writer's place
         Tensor x = sample({6, 6}, DType::kFloat32, d), y = x.t() + Value(1);
         x.add_(Value(10));
         return std::vector{y, x, x.t() * Value(y)};
       }},
      {"write_after_write",
       [](Device d) {
         Tensor x = input(d);
         x.add_(Value(1));
         x.mul_(Value(2));
         x.sub_(Value(3));
         return std::vector{x};
       }},
      {"write_after_write_of_a_part",
       [](Device d) {
         Tensor x = input(d);
         x.add_(Value(1));
         slice(x, 0, 1, 3).fill_(Scalar(9));
         x.mul_(Value(2));
         slice(x, 1, 0, std::nullopt, 2).add_(Value(5));
         return std::vector{x};
       }},
      {"write_through_a_view_read_through_the_base",
       [](Device d) {
         Tensor x = input(d), v = slice(x, 0, 2, 5), before = x + Value(1);
         v.mul_(Value(-1));
         Tensor after = x + Value(1);
         return std::vector{before, after, v};
       }},
      {"write_through_the_base_read_through_a_view",
       [](Device d) {
         Tensor x = input(d), v = x.select(1, 3), a = v + Value(1);
         x.add_(Value(100));
         Tensor b = v + Value(1);
         return std::vector{a, b};
       }},
      {"overlapping_views",
       [](Device d) {
         Tensor x = input(d).reshape(flat.span());
         Tensor a = slice(x, 0, 0, 30), b = slice(x, 0, 10, 40);
         a.add_(Value(1));
         b.mul_(Value(2));
         a.sub_(Value(3));
         return std::vector{x, a + Value(b)};
       }},
      {"same_memory_in_another_shape",
       [](Device d) {
         Tensor x = input(d), line = x.view(flat.span());
         x.add_(Value(1));
         Tensor a = line * Value(2);
         line.sub_(Value(4));
         return std::vector{a, x + Value(0), line};
       }},
      {"a_pending_value_rewritten",
       [](Device d) {
         Tensor x = input(d), y = x + Value(1), z = y * Value(2);
         y.add_(Value(z));
         z.mul_(Value(y));
         y.relu_();
         return std::vector{y, z};
       }},
      {"a_view_of_a_pending_value",
       [](Device d) {
         Tensor y = input(d) + Value(1);
         Tensor v = y.transpose(0, 1);
         Tensor z = v * Value(v);
         y.neg_();
         return std::vector{y, z, v + Value(z)};
       }},
      {"copy_within_one_storage",
       [](Device d) {
         Tensor x = input(d).reshape(flat.span());
         slice(x, 0, 1, 41).copy_(slice(x, 0, 0, 40));
         return std::vector{x, x + Value(1)};
       }},
      {"copy_of_a_pending_value",
       [](Device d) {
         Tensor x = input(d), y = input(d, 1);
         y.copy_(x + Value(1));
         x.fill_(Scalar(0));
         return std::vector{x, y, y * Value(x)};
       }},
      {"out_of_other_dtype",
       [](Device d) {
         Tensor x = input(d), half = sample({6, 8}, DType::kFloat16, d, 3);
         half.add_(Value(x));
         x.mul_(Value(half));
         return std::vector{x, half, half.to(DType::kFloat32) - Value(x)};
       }},
      {"reduction_in_between",
       [](Device d) {
         Tensor x = input(d), y = x * Value(2), s = y.sum();
         y.add_(Value(s));
         x.sub_(Value(y));
         return std::vector{x, y, s, x.softmax(-1) * Value(y)};
       }},
      {"source_and_target_overlap",
       [](Device d) {
         Tensor x = sample({7, 7}, DType::kFloat32, d);
         slice(x, 0, 0, std::nullopt, 2).add_(Value(slice(x, 0, 0, 4)));
         return std::vector{x};
       }},
  };
  return all;
}

class OrderTest : public ::testing::TestWithParam<size_t> {};
INSTANTIATE_TEST_SUITE_P(Programs, OrderTest, ::testing::Range(size_t{0}, programs().size()),
                         [](const auto& i) { return programs()[i.param].name; });

TEST_P(OrderTest, FusedEqualsUnfusedOnTheCpu) {
  same_fused(Device{}, [] { return programs()[GetParam()].run(Device{}); });
}

TEST_P(OrderTest, FusedEqualsUnfusedOnTheGpu) {
  Device d = test_gpu();
  same_fused(d, [d] { return programs()[GetParam()].run(d); });
  clear_gpu();
}

TEST_P(OrderTest, CheckModeFindsNothing) {
  FuseMode mode(fuse::Mode::kCheck);
  for (const Tensor& t : programs()[GetParam()].run(Device{})) values(t);
}

// The comparison above would be empty if nothing were ever fused.
TEST(OrderProgramsTest, ManyOfThemFuse) {
  int fused = 0;
  for (const Program& p : programs())
    fused += same_fused(Device{}, [&] { return p.run(Device{}); });
  EXPECT_GE(fused, 7);
}

}  // namespace
}  // namespace tessera
