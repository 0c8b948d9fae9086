// Signs, choices, rounding; exponentials, logarithms, hyperbolic functions and erf. See math.h.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#define TS_MATH_FN inline __attribute__((always_inline))

namespace tessera::math {

TS_MATH_FN float fused(float x, float y, float add) { return __builtin_fmaf(x, y, add); }
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
// NaN wins, as in PyTorch's minimum and maximum. One comparison for each choice: loops with two of
// them in one are not vectorised.
template <class T>
TS_MATH_FN T min_nan(T a, T b) {
  T least = a < b ? a : b;
  return a != a ? a : least;
}
template <class T>
TS_MATH_FN T max_nan(T a, T b) {
  T most = a > b ? a : b;
  return a != a ? a : most;
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

// Polynomials are evaluated by pairs, not one coefficient after the other: the chain of dependent
// operations is what a vector loop waits for.
namespace detail {
// x = n * ln 2 + r with n the nearest integer, which is left in the low bits of `bits` too.
struct ExpParts {
  uint32_t bits;
  float n, r;
};
TS_MATH_FN ExpParts exp_parts(float x) {
  // Adding 1.5 * 2^23 leaves the nearest integer in the low mantissa bits.
  float t = x * 1.44269504f + 12582912.0f;
  uint32_t bits = std::bit_cast<uint32_t>(t);
  t -= 12582912.0f;
  return {bits, t, (x - t * 0.693359375f) + t * 2.12194440e-4f};
}
// exp(r) - 1 for |r| up to ln 2 / 2.
TS_MATH_FN float expm1_poly(float r) {
  float r2 = r * r;
  float p = (1.6666665459e-1f * r + 5.0000001201e-1f) +
            ((8.3334519073e-3f * r + 4.1665795894e-2f) * r2 +
             (1.9875691500e-4f * r + 1.3981999507e-3f) * (r2 * r2));
  return p * r2 + r;
}
// 2^(n + shift), both from the low bits of exp_parts; normal numbers only.
TS_MATH_FN float power_of_two(uint32_t bits, int shift) {
  return std::bit_cast<float>((bits + static_cast<uint32_t>(127 + shift)) << 23);
}
// exp where neither x nor the result is near the ends: |x| up to 87.
TS_MATH_FN float exp_mid(float x) {
  ExpParts e = exp_parts(x);
  return (expm1_poly(e.r) + 1.0f) * power_of_two(e.bits, 0);
}
}  // namespace detail

TS_MATH_FN float exp(float x) {
  x = x > 89.0f ? 89.0f : x;
  x = x < -104.0f ? -104.0f : x;
  detail::ExpParts e = detail::exp_parts(x);
  int32_t n = static_cast<int32_t>(e.bits - 0x4b400000u);
  n = n > 130 ? 130 : n;  // garbage from a NaN must not reach the exponents below
  n = n < -152 ? -152 : n;
  return detail::scale2(detail::expm1_poly(e.r) + 1.0f, n);
}

namespace detail {
// exp(r) - 1 for |r| up to ln 2 / 2.
TS_MATH_FN double expm1_poly(double r) {
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
  return p * r * r + r;
}
// p * 2^n, for n = t - 1.5 * 2^52 in the low bits of t.
TS_MATH_FN double scale_by(double p, double t) {
  // Halving in floating point: 64-bit arithmetic shifts do not vectorise on AVX2.
  uint64_t n = std::bit_cast<uint64_t>(t) - 0x4338000000000000u;
  double h = (t - 6755399441055744.0) * 0.5 + 6755399441055744.0;
  uint64_t n1 = std::bit_cast<uint64_t>(h) - 0x4338000000000000u;
  return scale2(p, static_cast<int64_t>(n1), static_cast<int64_t>(n - n1));
}
}  // namespace detail
TS_MATH_FN double exp(double x) {
  x = x > 710.0 ? 710.0 : x;
  x = x < -746.0 ? -746.0 : x;
  double bits = x * 1.4426950408889634 + 6755399441055744.0, t = bits - 6755399441055744.0;
  double r = (x - t * 6.93145751953125e-1) - t * 1.42860682030941723212e-6;
  return detail::scale_by(detail::expm1_poly(r) + 1.0, bits);
}
TS_MATH_FN double exp2(double x) {
  x = x > 1025.0 ? 1025.0 : x;
  x = x < -1080.0 ? -1080.0 : x;
  double bits = x + 6755399441055744.0, r = (x - (bits - 6755399441055744.0)) * 0.69314718055994531;
  return detail::scale_by(detail::expm1_poly(r) + 1.0, bits);
}
TS_MATH_FN double expm1(double x) {
  double c = x > 710.0 ? 710.0 : x;
  c = c < -40.0 ? -40.0 : c;
  double bits = c * 1.4426950408889634 + 6755399441055744.0, t = bits - 6755399441055744.0;
  double p = detail::expm1_poly((c - t * 6.93145751953125e-1) - t * 1.42860682030941723212e-6);
  // 2^(n - 1), a normal number.
  double h =
      std::bit_cast<double>((std::bit_cast<uint64_t>(bits) - 0x4338000000000000u + 1022u) << 52);
  double y = 2.0 * (h * p + (h - 0.5));
  y = t == 0.0 ? p : y;
  return (x != x) | (x == 0.0) ? x : y;
}

namespace detail {
// log x = k * ln 2 + (f - half + q), for x above zero and finite.
struct LogParts {
  float k, f, half, q;
};
TS_MATH_FN LogParts log_parts(float x) {
  bool tiny = x < 1.17549435e-38f;
  float xs = tiny ? x * 8388608.0f : x;
  uint32_t bits = std::bit_cast<uint32_t>(xs) + (0x3f800000u - 0x3f3504f3u);
  float k = static_cast<float>(static_cast<int32_t>(bits >> 23) - 127) - (tiny ? 23.0f : 0.0f);
  float f = std::bit_cast<float>((bits & 0x007fffffu) + 0x3f3504f3u) - 1.0f;
  float s = f / (2.0f + f);
  float z = s * s, w = z * z;
  float r = w * (0.40000972152f + w * 0.24279078841f) + z * (0.66666662693f + w * 0.28498786688f);
  float half = 0.5f * f * f;
  return {k, f, half, s * (half + r)};
}
// What a logarithm is at the ends of its domain.
TS_MATH_FN float log_ends(float x, float y) {
  y = x == std::numeric_limits<float>::infinity() ? x : y;
  y = x == 0.0f ? -std::numeric_limits<float>::infinity() : y;
  return x >= 0.0f ? y : std::numeric_limits<float>::quiet_NaN();
}
// To another base: the logarithm in two parts times the factor in two parts.
TS_MATH_FN float log_scaled(const LogParts& l, float high, float low) {
  float head = std::bit_cast<float>(std::bit_cast<uint32_t>(l.f - l.half) & 0xfffff000u);
  float tail = (l.f - head) - l.half + l.q;
  return (tail * low + (head * low + tail * high)) + head * high;
}
}  // namespace detail

TS_MATH_FN float log(float x) {
  detail::LogParts l = detail::log_parts(x);
  return detail::log_ends(x, l.q + l.k * 9.0580006145e-6f - l.half + l.f + l.k * 6.9313812256e-1f);
}
TS_MATH_FN float log2(float x) {
  detail::LogParts l = detail::log_parts(x);
  return detail::log_ends(x, detail::log_scaled(l, 0x1.714p+0f, 3.12228396e-4f) + l.k);
}
TS_MATH_FN float log10(float x) {
  detail::LogParts l = detail::log_parts(x);
  float y = detail::log_scaled(l, 0x1.bcap-2f, 9.03803375e-5f) + l.k * 7.9034151668e-07f;
  return detail::log_ends(x, y + l.k * 3.0102920532e-01f);
}
TS_MATH_FN float log1p(float x) {
  float u = 1.0f + x;
  float c = (x - (u - 1.0f)) / u;  // what rounding took from u, as it counts in the logarithm
  detail::LogParts l = detail::log_parts(u);
  float y = (l.q + (c + l.k * 9.0580006145e-6f)) - l.half + l.f + l.k * 6.9313812256e-1f;
  y = abs(x) < 1e-7f ? x : y;
  y = x == std::numeric_limits<float>::infinity() ? x : y;
  y = x == -1.0f ? -std::numeric_limits<float>::infinity() : y;
  return x >= -1.0f ? y : std::numeric_limits<float>::quiet_NaN();
}

namespace detail {
// log x + c = k * ln 2 + (f - half + q), for x normal or after scaling by 2^-less.
TS_MATH_FN double log_of(double x, double less, double c) {
  uint64_t bits = std::bit_cast<uint64_t>(x) + (0x3ff0000000000000u - 0x3fe6a09e667f3bcdu);
  // The exponent as a double by way of mantissa bits: AVX2 has no 64-bit conversion.
  double k = std::bit_cast<double>((bits >> 52) | 0x4330000000000000u) -
             (4503599627370496.0 + 1023.0) - less;
  double f = std::bit_cast<double>((bits & 0x000fffffffffffffu) + 0x3fe6a09e667f3bcdu) - 1.0;
  double s = f / (2.0 + f);
  double z = s * s, w = z * z;
  double t1 = w * (3.999999999940941908e-01 +
                   w * (2.222219843214978396e-01 + w * 1.531383769920937332e-01));
  double t2 = z * (6.666666666666735130e-01 +
                   w * (2.857142874366239149e-01 +
                        w * (1.818357216161805012e-01 + w * 1.479819860511658591e-01)));
  double half = 0.5 * f * f;
  return s * (half + (t1 + t2)) + (k * 1.90821492927058770002e-10 + c) - half + f +
         k * 6.93147180369123816490e-01;
}
}  // namespace detail
TS_MATH_FN double log(double x) {
  bool tiny = x < 2.2250738585072014e-308;
  double y = detail::log_of(tiny ? x * 18014398509481984.0 : x, tiny ? 54.0 : 0.0, 0.0);
  y = x == std::numeric_limits<double>::infinity() ? x : y;
  y = x == 0.0 ? -std::numeric_limits<double>::infinity() : y;
  return x >= 0.0 ? y : std::numeric_limits<double>::quiet_NaN();
}
TS_MATH_FN double log1p(double x) {
  double u = 1.0 + x;
  double c = (x - (u - 1.0)) / u;  // what rounding took from u, as it counts in the logarithm
  c = u > 0x1p60 ? 0.0 : c;
  double y = detail::log_of(u, 0.0, c);
  y = abs(x) < 1e-16 ? x : y;
  y = x == std::numeric_limits<double>::infinity() ? x : y;
  y = x == -1.0 ? -std::numeric_limits<double>::infinity() : y;
  return x >= -1.0 ? y : std::numeric_limits<double>::quiet_NaN();
}

TS_MATH_FN float tanh(float x) {
  float a = abs(x), z = x * x, z2 = z * z;
  float p = (1.33314422036e-1f * z - 3.33332819422e-1f) +
            ((2.06390887954e-2f * z - 5.37397155531e-2f) * z2 - 5.70498872745e-3f * (z2 * z2));
  float small = p * z * a + a;
  float e = detail::exp_mid(a < 10.0f ? a + a : 20.0f);
  float big = 1.0f - 2.0f / (e + 1.0f);
  float y = copysign(a < 0.625f ? small : big, x);
  return x != x ? x : y;
}

TS_MATH_FN double tanh(double x) {
  double a = abs(x), z = x * x;
  double p =
      (-9.64399179425052238628e-1 * z - 9.92877231001918586564e1) * z - 1.61468768441708447952e3;
  double q = ((z + 1.12811678491632931402e2) * z + 2.23548839060100448583e3) * z +
             4.84406305325125486048e3;
  double small = a * z * (p / q) + a;
  double big = 1.0 - 2.0 / (exp(a + a) + 1.0);
  return copysign(a < 0.625 ? small : big, x);
}

// x * P(x^2) / Q(x^2), fitted where the result is not yet 1 in every bit; a little further it is
// more.
TS_MATH_FN float erf(float x) {
  float t = abs(x);
  float c = t > 4.1f ? 4.1f : t;
  float z = c * c;
  float p = fused(fused(fused(2.066470758e-6f, z, 2.850629000e-4f), z, 3.738370767e-3f), z,
                  5.266815843e-2f);
  p = fused(fused(p, z, 1.896673811e-1f), z, 1.128379148f);
  float q = fused(fused(fused(3.827003189e-5f, z, 1.157382450e-3f), z, 1.491432602e-2f), z,
                  1.138191902e-1f);
  q = fused(fused(q, z, 5.014211215e-1f), z, 1.0f);
  float y = c * p / q;
  return copysign(y > 1.0f ? 1.0f : y, x);
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

TS_MATH_FN float exp2(float x) {
  x = x > 129.0f ? 129.0f : x;
  x = x < -151.0f ? -151.0f : x;
  float t = x + 12582912.0f;
  int32_t n = static_cast<int32_t>(std::bit_cast<uint32_t>(t) - 0x4b400000u);
  n = n > 130 ? 130 : n;
  n = n < -152 ? -152 : n;
  float r = x - (t - 12582912.0f), r2 = r * r;
  float p = (0.2402265092f * r + 0.6931471806f) +
            ((0.009618056671f * r + 0.05550410929f) * r2 +
             ((0.0001546144732f * r + 0.001333345455f) + 1.531008188e-5f * r2) * (r2 * r2));
  return detail::scale2(p * r + 1.0f, n);
}
TS_MATH_FN float expm1(float x) {
  float c = x > 89.0f ? 89.0f : x;
  c = c < -25.0f ? -25.0f : c;
  detail::ExpParts e = detail::exp_parts(c);
  float p = detail::expm1_poly(e.r), h = detail::power_of_two(e.bits, -1);
  float y = 2.0f * (h * p + (h - 0.5f));
  y = e.n == 0.0f ? p : y;
  return (x != x) | (x == 0.0f) ? x : y;
}
TS_MATH_FN float sinh(float x) {
  float a = abs(x), c = a < 90.0f ? a : 90.0f;
  detail::ExpParts e = detail::exp_parts(c);
  float p = detail::expm1_poly(e.r), h = detail::power_of_two(e.bits, -1);
  float m = e.n == 0.0f ? 0.5f * p : h * p + (h - 0.5f);  // expm1(a) / 2
  float y = a > 40.0f ? h * p + h : m + m / (m + m + 1.0f);
  y = a > 89.42f ? std::numeric_limits<float>::infinity() : y;
  return x != x ? x : copysign(y, x);
}
TS_MATH_FN float cosh(float x) {
  float a = abs(x), c = a < 90.0f ? a : 90.0f;
  detail::ExpParts e = detail::exp_parts(c);
  float half = (detail::expm1_poly(e.r) + 1.0f) * detail::power_of_two(e.bits, -1);
  float y = half + 0.25f / half;
  y = a > 89.42f ? std::numeric_limits<float>::infinity() : y;
  return x != x ? x : y;
}
TS_MATH_FN float asinh(float x) {
  float a = abs(x);
  bool big = a > 1e4f;
  float c = big ? 1.0f : a;
  float near = log1p(c + c * c / (1.0f + sqrt(1.0f + c * c)));
  float y = big ? log(a) + 0.69314718f : near;
  return x != x ? x : copysign(y, x);
}
TS_MATH_FN float acosh(float x) {
  bool big = x > 1e4f;
  float t = (big ? 1.0f : x) - 1.0f;
  float near = log1p(t + sqrt(t + t + t * t));
  near = x < 1.0f ? std::numeric_limits<float>::quiet_NaN() : near;  // t * t may be inf
  return big ? log(x) + 0.69314718f : near;
}
TS_MATH_FN float atanh(float x) {
  float a = abs(x), y = copysign(0.5f * log1p((a + a) / (1.0f - a)), x);
  y = a == 1.0f ? copysign(std::numeric_limits<float>::infinity(), x) : y;
  return a <= 1.0f ? y : std::numeric_limits<float>::quiet_NaN();
}

}  // namespace tessera::math
