// Functions of float that libm has one element at a time, as scalar code that loops are made of;
// see Note [Same bits from every loop] in math.h, which this belongs to. Most compute in double,
// of which float needs half the digits: rounding is then the only error, and no part can overflow.
#pragma once
#include "tessera/ops/math.h"

namespace tessera::math {

namespace detail {
// c[0] + c[1] * x + ..., by pairs.
template <class T>
TS_MATH_FN T poly(T x, T c0, T c1, T c2, T c3, T c4, T c5, T c6, T c7) {
  T x2 = x * x, x4 = x2 * x2;
  return ((c1 * x + c0) + (c3 * x + c2) * x2) + ((c5 * x + c4) + (c7 * x + c6) * x2) * x4;
}
}  // namespace detail

// exp(-x^2) times a polynomial in (|x| - 3) / (|x| + 3).
TS_MATH_FN float erfc(float x) {
  double a = static_cast<double>(abs(x));
  a = a > 10.25 ? 10.25 : a;
  double u = (a - 3.0) / (a + 3.0), u2 = u * u, u4 = u2 * u2;
  double p = detail::poly(u, 0.17900115112770066, -0.32623356630697552, 0.24560381240467311,
                          -0.15011570750366393, 0.071665650513632416, -0.024394920741319744,
                          0.0042697199247296682, 0.00071840041571517401) +
             ((2.5168167677095042e-5 * u - 0.00059496869789896963) + 5.4009507642547989e-5 * u2) *
                 (u4 * u4);
  double y = detail::exp2_to_float(a * a * -1.4426950408889634) * p;
  float v = static_cast<float>(x < 0.0f ? 2.0 - y : y);
  return x != x ? x : v;
}

// x times a function of log(1 - x^2), which is nearly its square root where that is large.
TS_MATH_FN float erfinv(float x) {
  float w = -log((1.0f - x) * (1.0f + x));
  bool far = w >= 5.0f;
  float s = sqrt(far ? w : 0.0f), t = far ? s - 3.0f : w - 2.5f, t2 = t * t, t4 = t2 * t2;
  auto of = [far](float near, float other) { return far ? other : near; };
  float p =
      detail::poly(t, of(1.501409360f, 2.832976794f), of(0.2466402791f, 1.001675066f),
                   of(-0.004177392875f, 0.009445743821f), of(-0.001252726392f, -0.007639139034f),
                   of(0.0002183493862f, 0.005682678522f), of(-4.972419689e-6f, -0.00358781577f),
                   of(-3.463985268e-6f, 0.001497222509f), of(4.681313481e-7f, -7.604790171e-5f));
  p += (of(-8.93192597e-9f, 0.0001292417547f) * t + of(2.33359672e-8f, -0.0003199266729f)) *
       (t4 * t4);
  float y = p * x;
  y = abs(x) == 1.0f ? copysign(std::numeric_limits<float>::infinity(), x) : y;
  return abs(x) <= 1.0f ? y : std::numeric_limits<float>::quiet_NaN();
}

// A polynomial in x^2 up to 8; beyond, exp(x) / sqrt(x) times one in 1 / x.
TS_MATH_FN float i0(float x) {
  double a = static_cast<double>(abs(x));
  a = a > 100.0 ? 100.0 : a;
  bool far = a > 8.0;
  double z = far ? 0.0 : a * a, z2 = z * z, z4 = z2 * z2;
  double near = detail::poly(z, 0.99999999974312994, 0.25000000115556306, 0.015624999140668473,
                             0.00043402802769973268, 6.781646537440732e-6, 6.7820151766668828e-8,
                             4.7076534453422448e-10, 2.4095807854096086e-12) +
                ((3.1582716592600752e-17 * z + 9.221437658211749e-15) +
                 (2.8886773392558601e-22 * z + 4.6607544536723803e-20) * z2) *
                    (z4 * z4);
  double b = far ? a : 8.0, v = 1.0 / b, v2 = v * v;
  double p =
      ((0.049866223426257816 * v + 0.39894228844560655) +
       (0.025639450693229427 * v + 0.028159435679781876) * v2) +
      ((-0.43063477107656169 * v + 0.10539949489928557) + 2.1278691198914877 * v2) * (v2 * v2);
  double y = far ? detail::exp2_to_float(b * 1.4426950408889634) * p / sqrt(b) : near;
  return x != x ? x : static_cast<float>(y);
}

// Stirling's formula at |x|, or at |x| + 4 less the logarithm of the factors between, and the
// reflection of negative ones: two logarithms in all.
TS_MATH_FN float lgamma(float x) {
  double a = static_cast<double>(abs(x));
  bool low = a < 4.0;
  double factors = low ? (a * (a + 3.0)) * ((a + 1.0) * (a + 2.0)) : 1.0;
  double b = low ? a + 4.0 : a, v = 1.0 / b;
  double m = detail::poly(v * v, 0.083333333333333027, -0.0027777777771488099,
                          0.00079365057924751663, -0.00059520986628973887, 0.00083988904527013491,
                          -0.0018485657084907699, 0.0048974002229728091, -0.0092705379617236764);
  double stirling = ((b - 0.5) * log(b) - b) + (0.91893853320467274 + m * v);
  // |sin(pi x)|; floats of 2^23 and more are integers.
  float whole = abs(x) < 8388608.0f ? (abs(x) + 8388608.0f) - 8388608.0f : abs(x);
  double f = a - static_cast<double>(whole);
  double s =
      abs(f) * detail::poly(f * f, 3.14159265358979288, -5.16771278004978582, 2.55016403986186763,
                            -0.599264528825224005, 0.0821458788163104269, -0.00737036432653041568,
                            0.000465987015804337793, -0.0000211336273520529704);
  bool negative = x < 0.0f;
  double reflected = factors * 3.14159265358979324 / (negative ? a * s : 1.0);
  double y = stirling - log(negative ? reflected : factors);
  y = negative ? -y : y;
  constexpr float kInf = std::numeric_limits<float>::infinity();
  float r = (x == 0.0f) | (a == static_cast<double>(kInf)) ? kInf : static_cast<float>(y);
  r = (x == 1.0f) | (x == 2.0f) ? 0.0f : r;
  return x != x ? x : r;
}

TS_MATH_FN float hypot(float x, float y) {
  double a = static_cast<double>(x), b = static_cast<double>(y);
  float r = static_cast<float>(sqrt(a * a + b * b));
  constexpr float kInf = std::numeric_limits<float>::infinity();
  return (abs(x) == kInf) | (abs(y) == kInf) ? kInf : r;
}

// By the tangent of the angle to the nearest of 8 directions, as in atan.
TS_MATH_FN float atan2(float y, float x) {
  float a = abs(y), b = abs(x);
  bool steep = a > b, back = (std::bit_cast<uint32_t>(x) >> 31) != 0;
  float most = steep ? a : b, least = steep ? b : a;
  float scale = most > 1e30f ? 0x1p-30f : 1.0f;  // or the sum below could overflow
  float high = most * scale, low = least * scale;
  bool mid = (low > 0.414213562f * high) | (least == std::numeric_limits<float>::infinity());
  float over = mid ? low - high : low, under = mid ? low + high : high;
  float t = most == least ? 0.0f : over / under;  // both may be zero, or infinite
  t = detail::with_sign_of(t, steep != back ? 1u : 0u);
  float z = t * t, z2 = z * z;
  float p = (0.199995595f * z - 0.3333333186f) +
            ((0.1074885809f * z - 0.1426450711f) * z2 - 0.06466834135f * (z2 * z2));
  // Multiples of 45 degrees, in two parts; of the third the first part is rounded.
  float eighths = back ? 4.0f : 0.0f;
  eighths = steep ? 2.0f : eighths;
  float turn = steep != back ? -1.0f : 1.0f;
  eighths += mid ? turn : 0.0f;
  float rest = eighths * -2.1855695e-8f + (eighths == 3.0f ? 0x1p-24f : 0.0f);
  float r = eighths * 0.78539816f + ((p * z * t + rest) + t);
  return (x != x) | (y != y) ? x + y : copysign(r, y);
}

// Note [Near and far]
// Where arguments of any size need another algorithm, but nearly all need only a short one, the
// short one is a function of its own. TS_BODY_NEAR of loops.h runs it on tiles of which every
// element is near. The function of any size gives the same bits for near elements, so an element's
// result does not depend on its neighbours.
TS_MATH_FN bool is_near_always() { return true; }  // float's own way is good for all of it
TS_MATH_FN bool is_near_angle(float x) { return abs(x) < detail::kNearAngle; }
TS_MATH_FN float sin_near(float x) { return detail::sin_of(detail::near_angle(x), x); }
TS_MATH_FN float cos_near(float x) { return detail::cos_of(detail::near_angle(x)); }
TS_MATH_FN float tan_near(float x) { return detail::tan_of(detail::near_angle(x), x); }

// The quotient and its product with b are exact in double up to 2^28, and the quotient is not
// rounded up to an integer it does not reach.
TS_MATH_FN bool is_near_quotient(float a, float b) {
  return (abs(a) < abs(b) * 0x1p27f) & (abs(b) < std::numeric_limits<float>::infinity());
}
TS_MATH_FN float fmod_near(float a, float b) {
  double x = static_cast<double>(abs(a)), y = static_cast<double>(abs(b));
  double rest = x - static_cast<double>(static_cast<int32_t>(x / y)) * y;
  return copysign(static_cast<float>(rest), a);
}
// As modulo and div_floor of shared_math.h.
TS_MATH_FN float modulo_near(float a, float b) {
  float mod = fmod_near(a, b);
  return (mod != 0.0f) & ((b < 0.0f) != (mod < 0.0f)) ? mod + b : mod;
}
TS_MATH_FN float div_floor_near(float a, float b) {
  float mod = fmod_near(a, b), exact = (a - mod) / b;
  float div = (mod != 0.0f) & ((b < 0.0f) != (mod < 0.0f)) ? exact - 1.0f : exact;
  float down = floor(div + 0.0f);  // never -0
  float near = div - down > 0.5f ? down + 1.0f : down;
  uint32_t sign = (std::bit_cast<uint32_t>(a) ^ std::bit_cast<uint32_t>(b)) & 0x80000000u;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(near) | (div == 0.0f ? sign : 0u));
}

}  // namespace tessera::math
