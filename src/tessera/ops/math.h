// The elementary functions that operator bodies call, under the names CUDA's device math has.
//
// Note [Same bits from every loop]
// Each function is scalar code without branches or calls, so GCC turns a loop over it into vector
// code for every instruction set, and vector body, scalar tail and baseline give the same bits (the
// build contracts nothing into FMA). Functions at the end of the file that forward to libm are the
// same bits too, as they are never vectorised. Largest errors found against long double, in ulp:
// exp and log 1.0, tanh 1.3, erf 1.2 for float and 2.8 for double.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#define TS_MATH_FN inline __attribute__((always_inline))

namespace tessera::math {

template <class T>
TS_MATH_FN T select(bool c, T a, T b) {
  return c ? a : b;
}
// Changes the sign bit and nothing else, of a NaN too; integers wrap.
TS_MATH_FN float negate(float x) {
  return std::bit_cast<float>(std::bit_cast<uint32_t>(x) ^ 0x80000000u);
}
TS_MATH_FN double negate(double x) {
  return std::bit_cast<double>(std::bit_cast<uint64_t>(x) ^ 0x8000000000000000u);
}
TS_MATH_FN int64_t negate(int64_t x) { return static_cast<int64_t>(0u - static_cast<uint64_t>(x)); }
template <class T>
TS_MATH_FN bool is_nan(T x) {
  return x != x;
}
template <class T>
TS_MATH_FN bool isnan(T x) {
  return x != x;
}
template <class T>
TS_MATH_FN bool isinf(T x) {
  if constexpr (std::is_floating_point_v<T>)
    return x == std::numeric_limits<T>::infinity() || x == -std::numeric_limits<T>::infinity();
  else
    return false;
}
template <class T>
TS_MATH_FN bool isfinite(T x) {
  if constexpr (std::is_floating_point_v<T>)
    return x - x == T(0);
  else
    return true;
}

TS_MATH_FN float abs(float x) { return __builtin_fabsf(x); }
TS_MATH_FN double abs(double x) { return __builtin_fabs(x); }
// Wraps for the smallest integer, as two's complement does.
TS_MATH_FN int64_t abs(int64_t x) {
  uint64_t s = static_cast<uint64_t>(x >> 63);
  return static_cast<int64_t>((static_cast<uint64_t>(x) ^ s) - s);
}
TS_MATH_FN bool abs(bool x) { return x; }
TS_MATH_FN float fabs(float x) { return __builtin_fabsf(x); }
TS_MATH_FN double fabs(double x) { return __builtin_fabs(x); }
TS_MATH_FN float sqrt(float x) { return __builtin_sqrtf(x); }
TS_MATH_FN double sqrt(double x) { return __builtin_sqrt(x); }
TS_MATH_FN float copysign(float x, float s) { return __builtin_copysignf(x, s); }
TS_MATH_FN double copysign(double x, double s) { return __builtin_copysign(x, s); }

// The smaller / larger of two; the second where either is NaN (what minps and maxps give).
template <class T>
TS_MATH_FN T min(T a, T b) {
  return a < b ? a : b;
}
template <class T>
TS_MATH_FN T max(T a, T b) {
  return a > b ? a : b;
}
// NaN wins, as in PyTorch's minimum and maximum.
template <class T>
TS_MATH_FN T min_nan(T a, T b) {
  return (a < b) | (a != a) ? a : b;
}
template <class T>
TS_MATH_FN T max_nan(T a, T b) {
  return (a > b) | (a != a) ? a : b;
}

namespace detail {
TS_MATH_FN float scale2(float p, int32_t n) {
  // Two factors, so that results below the smallest normal number are rounded once.
  int32_t n1 = n >> 1, n2 = n - n1;
  return p * std::bit_cast<float>(static_cast<uint32_t>(n1 + 127) << 23) *
         std::bit_cast<float>(static_cast<uint32_t>(n2 + 127) << 23);
}
TS_MATH_FN double scale2(double p, int64_t n1, int64_t n2) {
  return p * std::bit_cast<double>(static_cast<uint64_t>(n1 + 1023) << 52) *
         std::bit_cast<double>(static_cast<uint64_t>(n2 + 1023) << 52);
}
}  // namespace detail

TS_MATH_FN float exp(float x) {
  x = x > 89.0f ? 89.0f : x;
  x = x < -104.0f ? -104.0f : x;
  // Adding 1.5 * 2^23 leaves the nearest integer in the low mantissa bits.
  float t = x * 1.44269504f + 12582912.0f;
  int32_t n = static_cast<int32_t>(std::bit_cast<uint32_t>(t) - 0x4b400000u);
  n = n > 130 ? 130 : n;  // garbage from a NaN must not reach the exponents below
  n = n < -152 ? -152 : n;
  t -= 12582912.0f;
  float r = (x - t * 0.693359375f) + t * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = (p * r * r + r) + 1.0f;
  return detail::scale2(p, n);
}

TS_MATH_FN double exp(double x) {
  x = x > 710.0 ? 710.0 : x;
  x = x < -746.0 ? -746.0 : x;
  double t = x * 1.4426950408889634 + 6755399441055744.0;
  // Halving in floating point: 64-bit arithmetic shifts do not vectorise on AVX2.
  uint64_t n = std::bit_cast<uint64_t>(t) - 0x4338000000000000u;
  t -= 6755399441055744.0;
  double h = t * 0.5 + 6755399441055744.0;
  uint64_t n1 = std::bit_cast<uint64_t>(h) - 0x4338000000000000u;
  double r = (x - t * 6.93145751953125e-1) - t * 1.42860682030941723212e-6;
  double p = 1.6059043836821613e-10;
  p = p * r + 2.0876756987868100e-9;
  p = p * r + 2.5052108385441720e-8;
  p = p * r + 2.7557319223985888e-7;
  p = p * r + 2.7557319223985893e-6;
  p = p * r + 2.4801587301587302e-5;
  p = p * r + 1.9841269841269841e-4;
  p = p * r + 1.3888888888888889e-3;
  p = p * r + 8.3333333333333332e-3;
  p = p * r + 4.1666666666666664e-2;
  p = p * r + 1.6666666666666666e-1;
  p = p * r + 0.5;
  p = (p * r * r + r) + 1.0;
  return detail::scale2(p, static_cast<int64_t>(n1), static_cast<int64_t>(n - n1));
}

TS_MATH_FN float log(float x) {
  bool tiny = x < 1.17549435e-38f;
  float xs = tiny ? x * 8388608.0f : x;
  uint32_t bits = std::bit_cast<uint32_t>(xs) + (0x3f800000u - 0x3f3504f3u);
  float k = static_cast<float>(static_cast<int32_t>(bits >> 23) - 127) - (tiny ? 23.0f : 0.0f);
  float f = std::bit_cast<float>((bits & 0x007fffffu) + 0x3f3504f3u) - 1.0f;
  float s = f / (2.0f + f);
  float z = s * s, w = z * z;
  float r = w * (0.40000972152f + w * 0.24279078841f) + z * (0.66666662693f + w * 0.28498786688f);
  float half = 0.5f * f * f;
  float y = s * (half + r) + k * 9.0580006145e-6f - half + f + k * 6.9313812256e-1f;
  y = x == std::numeric_limits<float>::infinity() ? x : y;
  y = x == 0.0f ? -std::numeric_limits<float>::infinity() : y;
  return x >= 0.0f ? y : std::numeric_limits<float>::quiet_NaN();
}

TS_MATH_FN double log(double x) {
  bool tiny = x < 2.2250738585072014e-308;
  double xs = tiny ? x * 18014398509481984.0 : x;
  uint64_t bits = std::bit_cast<uint64_t>(xs) + (0x3ff0000000000000u - 0x3fe6a09e667f3bcdu);
  // The exponent as a double by way of mantissa bits: AVX2 has no 64-bit conversion.
  double k = std::bit_cast<double>((bits >> 52) | 0x4330000000000000u) -
             (4503599627370496.0 + 1023.0) - (tiny ? 54.0 : 0.0);
  double f = std::bit_cast<double>((bits & 0x000fffffffffffffu) + 0x3fe6a09e667f3bcdu) - 1.0;
  double s = f / (2.0 + f);
  double z = s * s, w = z * z;
  double t1 = w * (3.999999999940941908e-01 +
                   w * (2.222219843214978396e-01 + w * 1.531383769920937332e-01));
  double t2 = z * (6.666666666666735130e-01 +
                   w * (2.857142874366239149e-01 +
                        w * (1.818357216161805012e-01 + w * 1.479819860511658591e-01)));
  double half = 0.5 * f * f;
  double y = s * (half + (t1 + t2)) + k * 1.90821492927058770002e-10 - half + f +
             k * 6.93147180369123816490e-01;
  y = x == std::numeric_limits<double>::infinity() ? x : y;
  y = x == 0.0 ? -std::numeric_limits<double>::infinity() : y;
  return x >= 0.0 ? y : std::numeric_limits<double>::quiet_NaN();
}

TS_MATH_FN float tanh(float x) {
  float a = abs(x), z = x * x;
  float p = -5.70498872745e-3f;
  p = p * z + 2.06390887954e-2f;
  p = p * z - 5.37397155531e-2f;
  p = p * z + 1.33314422036e-1f;
  p = p * z - 3.33332819422e-1f;
  float small = p * z * x + x;
  float big = 1.0f - 2.0f / (exp(a + a) + 1.0f);
  return a < 0.625f ? small : copysign(big, x);
}

TS_MATH_FN double tanh(double x) {
  double a = abs(x), z = x * x;
  double p =
      (-9.64399179425052238628e-1 * z - 9.92877231001918586564e1) * z - 1.61468768441708447952e3;
  double q = ((z + 1.12811678491632931402e2) * z + 2.23548839060100448583e3) * z +
             4.84406305325125486048e3;
  double small = x * z * (p / q) + x;
  double big = 1.0 - 2.0 / (exp(a + a) + 1.0);
  return a < 0.625 ? small : copysign(big, x);
}

TS_MATH_FN float erf(float x) {
  float t = abs(x), s = x * x;
  float b = (-1.72853470e-5f * t + 3.83197126e-4f) * s + (-3.88396438e-3f * t + 2.42546219e-2f);
  b = b * t - 1.06777877e-1f;
  b = b * t - 6.34846687e-1f;
  b = b * t - 1.28717512e-1f;
  b = b * t - t;
  // Past 4 the fit is not one, and the result is 1.
  b = t > 4.0f ? -20.0f : b;
  float big = copysign(1.0f - exp(b), x);
  float p = -5.96761703e-4f;
  p = p * s + 4.99119423e-3f;
  p = p * s - 2.67681349e-2f;
  p = p * s + 1.12819925e-1f;
  p = p * s - 3.76125336e-1f;
  p = p * s + 1.28379166e-1f;
  float small = p * x + x;
  float y = t > 0.927734375f ? big : small;
  return x != x ? x : y;
}

TS_MATH_FN double erf(double x) {
  double a = abs(x), z = x * x;
  double n = 9.60497373987051638749e0;
  n = n * z + 9.00260197203842689217e1;
  n = n * z + 2.23200534594684319226e3;
  n = n * z + 7.00332514112805075473e3;
  n = n * z + 5.55923013010394962768e4;
  double d = z + 3.35617141647503099647e1;
  d = d * z + 5.21357949780152679795e2;
  d = d * z + 4.59432382970980127987e3;
  d = d * z + 2.26290000613890934246e4;
  d = d * z + 4.92673942608635921086e4;
  double small = x * n / d;
  a = a > 6.5 ? 6.5 : a;
  double p = 2.46196981473530512524e-10;
  p = p * a + 5.64189564831068821977e-1;
  p = p * a + 7.46321056442269912687e0;
  p = p * a + 4.86371970985681366614e1;
  p = p * a + 1.96520832956077098242e2;
  p = p * a + 5.26445194995477358631e2;
  p = p * a + 9.34528527171957607540e2;
  p = p * a + 1.02755188689515710272e3;
  p = p * a + 5.57535335369399327526e2;
  double q = a + 1.32281951154744992508e1;
  q = q * a + 8.67072140885989742329e1;
  q = q * a + 3.54937778887819891062e2;
  q = q * a + 9.75708501743205489753e2;
  q = q * a + 1.82390916687909736289e3;
  q = q * a + 2.24633760818710981792e3;
  q = q * a + 1.65666309194161350182e3;
  q = q * a + 5.57535340817727675546e2;
  double big = copysign(1.0 - exp(-a * a) * p / q, x);
  double y = abs(x) > 1.0 ? big : small;
  return x != x ? x : y;
}

// Rounding and division.
TS_MATH_FN float floor(float x) { return __builtin_floorf(x); }
TS_MATH_FN double floor(double x) { return __builtin_floor(x); }
TS_MATH_FN int64_t floor(int64_t x) { return x; }
TS_MATH_FN float ceil(float x) { return __builtin_ceilf(x); }
TS_MATH_FN double ceil(double x) { return __builtin_ceil(x); }
TS_MATH_FN int64_t ceil(int64_t x) { return x; }
TS_MATH_FN float trunc(float x) { return __builtin_truncf(x); }
TS_MATH_FN double trunc(double x) { return __builtin_trunc(x); }
TS_MATH_FN int64_t trunc(int64_t x) { return x; }
TS_MATH_FN float rint(float x) { return __builtin_rintf(x); }
TS_MATH_FN double rint(double x) { return __builtin_rint(x); }
TS_MATH_FN int64_t rint(int64_t x) { return x; }

// One element at a time through libm.
#define TS_MATH_LIBM1(name)                               \
  TS_MATH_FN float name(float x) { return std::name(x); } \
  TS_MATH_FN double name(double x) { return std::name(x); }
#define TS_MATH_LIBM2(name)                                           \
  TS_MATH_FN float name(float x, float y) { return std::name(x, y); } \
  TS_MATH_FN double name(double x, double y) { return std::name(x, y); }
TS_MATH_LIBM1(sin)
TS_MATH_LIBM1(cos)
TS_MATH_LIBM1(tan)
TS_MATH_LIBM1(asin)
TS_MATH_LIBM1(acos)
TS_MATH_LIBM1(atan)
TS_MATH_LIBM1(sinh)
TS_MATH_LIBM1(cosh)
TS_MATH_LIBM1(asinh)
TS_MATH_LIBM1(acosh)
TS_MATH_LIBM1(atanh)
TS_MATH_LIBM1(exp2)
TS_MATH_LIBM1(expm1)
TS_MATH_LIBM1(log2)
TS_MATH_LIBM1(log10)
TS_MATH_LIBM1(log1p)
TS_MATH_LIBM1(erfc)
TS_MATH_LIBM1(lgamma)
TS_MATH_LIBM1(cbrt)
TS_MATH_LIBM2(pow)
TS_MATH_LIBM2(fmod)
TS_MATH_LIBM2(atan2)
TS_MATH_LIBM2(hypot)
#undef TS_MATH_LIBM1
#undef TS_MATH_LIBM2

// By repeated squaring, wrapping; PyTorch's convention for negative exponents of integers.
TS_MATH_FN int64_t pow(int64_t x, int64_t y) {
  if (y < 0) return x == 1 ? 1 : x == -1 ? (y % 2 != 0 ? -1 : 1) : 0;
  uint64_t base = static_cast<uint64_t>(x), r = 1;
  for (uint64_t e = static_cast<uint64_t>(y); e; e >>= 1, base *= base)
    if (e & 1) r *= base;
  return static_cast<int64_t>(r);
}

}  // namespace tessera::math
