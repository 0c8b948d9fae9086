// More functions that libm has one element at a time, as scalar code that loops are made of: see
// Note [Same bits from every loop] in math.h. Most of float compute in double, of which they need
// half the digits: rounding is then the only error, and no part can overflow.
#pragma once
#include "tessera/ops/math.h"

namespace tessera::math {

namespace detail {
// Zero with the sign of the product.
TS_MATH_FN float zero_with_sign(float a, float b) {
  return std::bit_cast<float>((std::bit_cast<uint32_t>(a) ^ std::bit_cast<uint32_t>(b)) &
                              0x80000000u);
}
TS_MATH_FN double zero_with_sign(double a, double b) {
  return std::bit_cast<double>((std::bit_cast<uint64_t>(a) ^ std::bit_cast<uint64_t>(b)) &
                               0x8000000000000000u);
}
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

// Scaled by a power of two, so that nothing overflows or loses digits on the way.
TS_MATH_FN double hypot(double x, double y) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  double a = abs(x), b = abs(y), most = a > b ? a : b;
  bool large = most > 0x1p500, small = most < 0x1p-500;
  double down = large ? 0x1p-600 : 1.0, up = large ? 0x1p600 : 1.0;
  down = small ? 0x1p600 : down;
  up = small ? 0x1p-600 : up;
  double r = sqrt((a * down) * (a * down) + (b * down) * (b * down)) * up;
  return (a == kInf) | (b == kInf) ? kInf : r;
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

TS_MATH_FN double atan2(double y, double x) {
  double a = abs(y), b = abs(x);
  bool steep = a > b, back = (std::bit_cast<uint64_t>(x) >> 63) != 0;
  double most = steep ? a : b, least = steep ? b : a;
  double scale = most > 1e300 ? 0x1p-60 : 1.0;
  double high = most * scale, low = least * scale;
  bool mid = (low > 0.4142135623730950 * high) | (least == std::numeric_limits<double>::infinity());
  double over = mid ? low - high : low, under = mid ? low + high : high;
  double t = most == least ? 0.0 : over / under;
  double turn = steep != back ? -1.0 : 1.0;
  t *= turn;
  double eighths = back ? 4.0 : 0.0;
  eighths = steep ? 2.0 : eighths;
  eighths += mid ? turn : 0.0;
  double rest = eighths * 3.0616169978683830e-17;
  double r = eighths * 0.78539816339744828 + ((detail::atan_tail(t * t) * t + rest) + t);
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
// Of half turns.
TS_MATH_FN bool is_near_turn(float x) { return abs(x) < 0.3f * detail::kNearAngle; }
TS_MATH_FN float sinc_near(float a) {
  float x = a * 3.14159274f;
  return select(a == 0.0f, 1.0f, sin_near(x) / x);
}

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
// In double the nearest quotient, whose products with the two halves of b are exact; what is then
// missing to a whole b is added.
TS_MATH_FN bool is_near_quotient(double a, double b) {
  bool large = (abs(a) >= 0x1p1022) | (abs(b) == std::numeric_limits<double>::infinity());
  return (abs(a) < abs(b) * 0x1p26) & !large;  // the product may be above a
}
TS_MATH_FN double fmod_near(double a, double b) {
  double x = abs(a), y = abs(b);
  double n = (x / y + 6755399441055744.0) - 6755399441055744.0;
  n = x < y ? 0.0 : n;
  double high = std::bit_cast<double>(std::bit_cast<uint64_t>(y) & 0xfffffffffc000000u);
  double rest = (x - n * high) - n * (y - high);
  return copysign(rest < 0.0 ? rest + y : rest, a);
}
// As modulo and div_floor of shared_math.h.
template <class T>
TS_MATH_FN T modulo_near(T a, T b) {
  T mod = fmod_near(a, b);
  return (mod != T(0)) & ((b < T(0)) != (mod < T(0))) ? mod + b : mod;
}
template <class T>
TS_MATH_FN T div_floor_near(T a, T b) {
  T mod = fmod_near(a, b), exact = (a - mod) / b;
  T div = (mod != T(0)) & ((b < T(0)) != (mod < T(0))) ? exact - T(1) : exact;
  T down = floor(div + T(0));  // never -0
  T near = div - down > T(0.5) ? down + T(1) : down;
  T zero = detail::zero_with_sign(a, b);
  return div == T(0) ? zero : near;
}

}  // namespace tessera::math
