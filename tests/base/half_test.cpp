// float16 and bfloat16, over every pattern there is.
#include "tessera/base/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tessera {
namespace {

// The value by its definition, in double.
double half_value(uint16_t h) {
  int exp = h >> 10 & 31, man = h & 1023;
  double v = exp == 31 ? (man ? NAN : INFINITY)
             : exp     ? std::ldexp(1024 + man, exp - 25)
                       : std::ldexp(man, -24);
  return h & 0x8000 ? -v : v;
}
double bfloat16_value(uint16_t b) {
  int exp = b >> 7 & 255, man = b & 127;
  double v = exp == 255 ? (man ? NAN : INFINITY)
             : exp      ? std::ldexp(128 + man, exp - 134)
                        : std::ldexp(man, -133);
  return b & 0x8000 ? -v : v;
}

TEST(HalfTest, EveryPatternHasItsValueAndComesBack) {
  for (uint32_t i = 0; i < 65536; ++i) {
    uint16_t h = static_cast<uint16_t>(i);
    float f = half_to_float(h);
    if (std::isnan(half_value(h))) {
      EXPECT_TRUE(std::isnan(f)) << i;
      EXPECT_TRUE(std::isnan(half_value(float_to_half(f)))) << i;
      continue;
    }
    EXPECT_EQ(double{f}, half_value(h)) << i;
    EXPECT_EQ(std::signbit(f), (h & 0x8000) != 0) << i;
    EXPECT_EQ(float_to_half(f), h) << i;
  }
}

TEST(BFloat16Test, EveryPatternHasItsValueAndComesBack) {
  for (uint32_t i = 0; i < 65536; ++i) {
    uint16_t b = static_cast<uint16_t>(i);
    float f = bfloat16_to_float(b);
    if (std::isnan(bfloat16_value(b))) {
      EXPECT_TRUE(std::isnan(f)) << i;
      EXPECT_TRUE(std::isnan(bfloat16_value(float_to_bfloat16(f)))) << i;
      continue;
    }
    EXPECT_EQ(double{f}, bfloat16_value(b)) << i;
    EXPECT_EQ(float_to_bfloat16(f), b) << i;
  }
}

// Between each two neighbours: the midpoint goes to the even one, what is next to it to the nearer.
template <class Down, class Up>
void check_midpoints(uint16_t infinity, Down to_float, Up from_float) {
  for (uint16_t low = 0; low < infinity; ++low) {
    uint16_t high = static_cast<uint16_t>(low + 1);
    // The largest finite one rounds up where the next binade would begin.
    double a = to_float(low);
    double b = high == infinity ? 2 * a - to_float(static_cast<uint16_t>(low - 1)) : to_float(high);
    float middle = static_cast<float>((a + b) / 2);
    ASSERT_EQ(double{middle}, (a + b) / 2);
    uint16_t even = low % 2 ? high : low;
    EXPECT_EQ(from_float(middle), even) << low;
    EXPECT_EQ(from_float(-middle), even | 0x8000) << low;
    EXPECT_EQ(from_float(std::nextafter(middle, 0.0f)), low) << low;
    EXPECT_EQ(from_float(std::nextafter(middle, INFINITY)), high) << low;
  }
}

TEST(HalfTest, MidpointsGoToTheEven) { check_midpoints(0x7c00, half_to_float, float_to_half); }
TEST(BFloat16Test, MidpointsGoToTheEven) {
  check_midpoints(0x7f80, bfloat16_to_float, float_to_bfloat16);
}

TEST(HalfTest, BeyondTheRange) {
  EXPECT_EQ(float_to_half(1e30f), 0x7c00);
  EXPECT_EQ(float_to_half(-INFINITY), 0xfc00);
  EXPECT_EQ(float_to_half(1e-30f), 0);
  EXPECT_EQ(float_to_half(-1e-30f), 0x8000);
  EXPECT_EQ(float_to_bfloat16(std::numeric_limits<float>::max()), 0x7f80);
  EXPECT_EQ(float_to_bfloat16(-0.0f), 0x8000);
}

}  // namespace
}  // namespace tessera
