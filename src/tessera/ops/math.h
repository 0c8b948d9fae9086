// The elementary functions that operator bodies call, under the names CUDA's device math has.
//
// Note [Same bits from every loop]
// Each function is scalar code without branches or calls, so GCC turns a loop over it into vector
// code for every instruction set, and vector body, scalar tail and baseline give the same bits (the
// build contracts nothing into FMA; where `fused` asks for one, a machine without it has libm's,
// which is as exact and not vectorised). Functions at the end of the file that forward to libm are
// the same bits too, as they are never vectorised. Largest errors found against long double, in ulp
// of float: hypot, lgamma, digamma, pow, erfc and modified Bessel functions 0.6, exp, the
// logarithms and ndtri 1.0, tanh 1.3, exp2, cosh and acos 1.4, sin, cos (of any size), expm1 and
// asinh 1.6, atan 1.9, acosh, atanh, atan2 2.0, sinh 2.1, asin 2.6, tan 3.1, erfinv 4.6, erf 4.8;
// of double: sin, cos, log1p 0.8, exp2 1.0, hypot, exp, log, tanh 1.3, atan, atan2 1.9, expm1 2.0,
// erf 2.8.
//
// Float to integer and back is made a call of trunc by the compiler: where it could be moved under
// a condition, the loop is not vectorised.
#pragma once
#include "tessera/ops/angle_math.h"
#include "tessera/ops/basic_math.h"

namespace tessera::math {

namespace detail {
// 2^t in double, to more digits than float has.
TS_MATH_FN double exp2_to_float(double t) {
  t = t > 300.0 ? 300.0 : t;
  t = t < -300.0 ? -300.0 : t;
  double n = t + 6755399441055744.0;
  uint64_t power = (std::bit_cast<uint64_t>(n) - 0x4338000000000000u + 1023u) << 52;
  double r = t - (n - 6755399441055744.0), r2 = r * r;
  double p =
      (0.240226509223351793 * r + 0.693147180553717089) +
      ((0.00961805667059936867 * r + 0.0555041092874841918) * r2 +
       ((0.000154614473189492973 * r + 0.00133334545500945913) + 0.0000153100818762439144 * r2) *
           (r2 * r2));
  return (p * r + 1.0) * std::bit_cast<double>(power);
}
}  // namespace detail
// In double, of which float needs half the digits.
TS_MATH_FN float pow(float x, float y) {
  double a = static_cast<double>(abs(x)), e = static_cast<double>(y);
  uint64_t bits = std::bit_cast<uint64_t>(a) + (0x3ff0000000000000u - 0x3fe6a09e667f3bcdu);
  double k =
      std::bit_cast<double>((bits >> 52) | 0x4330000000000000u) - (4503599627370496.0 + 1023.0);
  double f = std::bit_cast<double>((bits & 0x000fffffffffffffu) + 0x3fe6a09e667f3bcdu) - 1.0;
  double s = f / (2.0 + f), z = s * s, z2 = z * z;
  double l =
      (0.961796693924317602 * z + 2.88539008177792731) +
      ((0.412198401056320529 * z + 0.577078017253111739) * z2 +
       ((0.261442253942959178 * z + 0.320616453674450013) + 0.242938861574754454 * z2) * (z2 * z2));
  double log = k + s * l;
  constexpr double kInf = std::numeric_limits<double>::infinity();
  log = a == 0.0 ? -kInf : log;
  log = a == kInf ? kInf : log;
  double t = e * log;
  double v = detail::exp2_to_float(t);
  v = (t != t) | (x != x) ? std::numeric_limits<double>::quiet_NaN() : v;
  // Adding 2^52 rounds to an integer; floats of that size are even ones.
  double size = abs(e), half = 0.5 * size;
  bool integer = (size + 4503599627370496.0) - 4503599627370496.0 == size;
  bool even = (half + 4503599627370496.0) - 4503599627370496.0 == half;
  double base = static_cast<double>(x), with_sign = copysign(v, base);
  v = integer & !even ? with_sign : v;
  v = (base < 0.0) & !integer & (a != kInf) ? std::numeric_limits<double>::quiet_NaN() : v;
  bool one = (e == 0.0) | (base == 1.0) | ((a == 1.0) & (size == kInf));
  return static_cast<float>(one ? 1.0 : v);
}

// One element at a time through libm.
#define TS_MATH_LIBM1(name)                               \
  TS_MATH_FN float name(float x) { return std::name(x); } \
  TS_MATH_FN double name(double x) { return std::name(x); }
#define TS_MATH_LIBM_DOUBLE(name) \
  TS_MATH_FN double name(double x) { return std::name(x); }
TS_MATH_LIBM_DOUBLE(tan)
TS_MATH_LIBM_DOUBLE(asin)
TS_MATH_LIBM_DOUBLE(acos)
TS_MATH_LIBM_DOUBLE(sinh)
TS_MATH_LIBM_DOUBLE(cosh)
TS_MATH_LIBM_DOUBLE(asinh)
TS_MATH_LIBM_DOUBLE(acosh)
TS_MATH_LIBM_DOUBLE(atanh)
TS_MATH_LIBM_DOUBLE(log2)
TS_MATH_LIBM_DOUBLE(log10)
TS_MATH_LIBM_DOUBLE(erfc)
TS_MATH_LIBM_DOUBLE(lgamma)
TS_MATH_LIBM1(cbrt)
TS_MATH_FN double pow(double x, double y) { return std::pow(x, y); }
TS_MATH_FN float fmod(float x, float y) { return std::fmod(x, y); }
TS_MATH_FN double fmod(double x, double y) { return std::fmod(x, y); }
#undef TS_MATH_LIBM_DOUBLE
#undef TS_MATH_LIBM1

// By repeated squaring, wrapping; PyTorch's convention for negative exponents of integers.
TS_MATH_FN int64_t pow(int64_t x, int64_t y) {
  if (y < 0) return x == 1 ? 1 : x == -1 ? (y % 2 != 0 ? -1 : 1) : 0;
  uint64_t base = static_cast<uint64_t>(x), r = 1;
  for (uint64_t e = static_cast<uint64_t>(y); e; e >>= 1, base *= base)
    if (e & 1) r *= base;
  return static_cast<int64_t>(r);
}

}  // namespace tessera::math
