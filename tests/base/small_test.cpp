// Dims, devices by name, text.
#include <gtest/gtest.h>

#include "support/tensors.h"
#include "tessera/base/device.h"
#include "tessera/base/dims.h"

namespace tessera {
namespace {

Dims counted(size_t n) {
  Dims d;
  for (size_t i = 0; i < n; ++i) d.push_back(static_cast<int64_t>(i));
  return d;
}

// Six are inline: one less, that many, one more, many.
class DimsTest : public ::testing::TestWithParam<size_t> {};
INSTANTIATE_TEST_SUITE_P(Sizes, DimsTest, ::testing::Values(0, 1, 5, 6, 7, 20));

TEST_P(DimsTest, CopiesAndMoves) {
  Dims a = counted(GetParam());
  Dims b = a;
  EXPECT_EQ(a, b);
  if (!b.empty()) {
    b[0] = 100;
    EXPECT_FALSE(a == b);
  }
  Dims c = std::move(a);
  EXPECT_EQ(c, counted(GetParam()));
  EXPECT_TRUE(a.empty());
  a = counted(9);  // a moved-from one is as good as new
  EXPECT_EQ(a.size(), 9u);
  a = std::move(c);
  EXPECT_EQ(a, counted(GetParam()));
  Dims& self = a;
  a = self;
  EXPECT_EQ(a, counted(GetParam()));
  a = counted(3);
  EXPECT_EQ(a, counted(3));
}

TEST_P(DimsTest, InsertAndEraseAtEveryPlace) {
  size_t n = GetParam();
  for (size_t at = 0; at <= n; ++at) {
    Dims d = counted(n);
    d.insert(at, -7);
    ASSERT_EQ(d.size(), n + 1);
    for (size_t i = 0; i <= n; ++i)
      EXPECT_EQ(d[i], i < at    ? static_cast<int64_t>(i)
                      : i == at ? -7
                                : static_cast<int64_t>(i) - 1);
    d.erase(at);
    EXPECT_EQ(d, counted(n));
  }
}

TEST_P(DimsTest, GrowsWithZeros) {
  Dims d = counted(GetParam());
  d.resize(GetParam() + 4);
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(d[GetParam() + i], 0);
  d.resize(GetParam());
  EXPECT_EQ(d, counted(GetParam()));
}

TEST(TextTest, OurTypesJoin) {
  EXPECT_EQ(cat("x", 1, ' ', -2L, ' ', 3u, ' ', true, ' ', 0.5, ' ', Dims{2, -1}),
            "x1 -2 3 True 0.5 [2, -1]");
  EXPECT_EQ(cat(Dims{}), "[]");
  EXPECT_EQ(cat(Device{}, " ", Device{DeviceType::kCUDA, 1}, " ", Device{DeviceType::kCUDA, -1}),
            "cpu cuda:1 cuda");
  EXPECT_EQ(cat(std::numeric_limits<int64_t>::min()), "-9223372036854775808");
  EXPECT_EQ(cat(std::numeric_limits<uint64_t>::max()), "18446744073709551615");
}

TEST(DeviceTest, ByName) {
  EXPECT_EQ(parse_device("cpu"), (Device{}));
  EXPECT_EQ(parse_device("cpu:0"), (Device{}));
  EXPECT_EQ(parse_device("cuda"), (Device{DeviceType::kCUDA, -1}));
  EXPECT_EQ(parse_device("cuda:13"), (Device{DeviceType::kCUDA, 13}));
}

TEST(DeviceTest, WrongNames) {
  for (const char* text :
       {"cuda:", "cuda:x", "cuda:1x", "cuda:-1", "cuda: 1", "cuda:99999", "cuda:1:2"})
    EXPECT_ERROR(parse_device(text), kRuntime, cat("Invalid device string: '", text, "'"));
  EXPECT_ERROR(parse_device("cpu:1"), kRuntime, "Invalid device string");
  for (const char* text : {"", "gpu", "CUDA", "cudaa:0", ":0"})
    EXPECT_ERROR(parse_device(text), kRuntime, "Expected one of cpu, cuda, meta device type");
}

TEST(DeviceTest, ADeviceThatIsNotThere) {
  EXPECT_ERROR(resolve_device(Device{DeviceType::kCUDA, 500}), kRuntime, "invalid device ordinal");
}

}  // namespace
}  // namespace tessera
