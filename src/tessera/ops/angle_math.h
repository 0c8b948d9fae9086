// Functions of angles and their inverses. See math.h.
#pragma once
#include "tessera/ops/basic_math.h"

namespace tessera::math {

// By the tangent of the angle to 0, 45 or 90 degrees, whichever is near.
TS_MATH_FN float atan(float x) {
  float a = abs(x);
  bool far = a > 2.414213562f, mid = a > 0.414213562f;
  float over = mid ? a - 1.0f : a, under = mid ? a + 1.0f : 1.0f;
  over = far ? -1.0f : over;
  under = far ? a : under;
  float t = over / under, z = t * t, z2 = z * z;
  float p = (0.199995595f * z - 0.3333333186f) +
            ((0.1074885809f * z - 0.1426450711f) * z2 - 0.06466834135f * (z2 * z2));
  float high = mid ? 0.78539816f : 0.0f, low = mid ? -2.1855695e-8f : 0.0f;
  high = far ? 1.57079637f : high;
  low = far ? -4.371139e-8f : low;
  float y = high + ((p * z * t + low) + t);
  return x != x ? x : copysign(y, x);
}
namespace detail {
// atan(t) / t - 1 for z = t^2, |t| up to tan(22.5 degrees).
TS_MATH_FN double atan_tail(double z) {
  double z2 = z * z, z4 = z2 * z2;
  double p = ((0.199999999999998043 * z - 0.333333333333333332) +
              (0.111111111051505879 * z - 0.142857142856597778) * z2) +
             ((0.0769229636804229712 * z - 0.0909090875325911294) +
              (0.0587892755447380676 * z - 0.0666642476020052014) * z2) *
                 z4 +
             ((0.0455154473402216165 * z - 0.0523044364068694771) +
              (0.0162843750500433944 * z - 0.0345693150633260898) * z2) *
                 (z4 * z4);
  return p * z;
}
}  // namespace detail
TS_MATH_FN double atan(double x) {
  double a = abs(x);
  bool far = a > 2.414213562373095, mid = a > 0.4142135623730950;
  double over = mid ? a - 1.0 : a, under = mid ? a + 1.0 : 1.0;
  over = far ? -1.0 : over;
  under = far ? a : under;
  double t = over / under;
  double high = mid ? 0.78539816339744828 : 0.0, low = mid ? 3.0616169978683830e-17 : 0.0;
  high = far ? 1.5707963267948966 : high;
  low = far ? 6.123233995736766e-17 : low;
  double y = high + ((detail::atan_tail(t * t) * t + low) + t);
  return x != x ? x : copysign(y, x);
}
namespace detail {
// asin(s) for s up to 0.5, and s from the square root above that.
TS_MATH_FN float asin_part(float a, bool far) {
  float z = far ? 0.5f * (1.0f - a) : a * a;
  float s = far ? sqrt(z) : a, z2 = z * z;
  float p = (0.07498761609f * z + 0.1666667314f) +
            ((0.0264333491f * z + 0.04502021749f) * z2 + 0.03832833076f * (z2 * z2));
  return p * z * s + s;
}
}  // namespace detail
TS_MATH_FN float asin(float x) {
  float a = abs(x);
  bool far = a > 0.5f;
  float p = detail::asin_part(a, far);
  return copysign(far ? 1.57079637f - (p + p) : p, x);
}
TS_MATH_FN float acos(float x) {
  float a = abs(x);
  bool far = a > 0.5f;
  float p = detail::asin_part(a, far), twice = p + p;
  float outer = x < 0.0f ? 3.14159274f - (twice + 8.7422777e-8f) : twice;
  float inner = 1.57079637f - (copysign(p, x) + 4.371139e-8f);
  return far ? outer : inner;
}

namespace detail {
// The angle from the nearest multiple of 90 degrees, and which one that is.
struct Angle {
  uint32_t quadrant;
  float r;  // of |x|
};
// Note [Angles of any size]
// |x| = m * 2^(e - 23) with an integer m. Of 2 / pi only 96 bits count in the product: those above
// give multiples of 360 degrees, those below nothing that float can show. They begin at bit e + 39,
// counted from 64 zeros before the point. The product's two highest bits are the quadrant, the
// others the fraction of 90 degrees.
TS_MATH_FN Angle far_angle(float x) {
  uint32_t bits = std::bit_cast<uint32_t>(x) & 0x7fffffffu;
  uint32_t e = bits >> 23;
  uint64_t m = (bits & 0x007fffffu) | 0x00800000u;
  uint32_t start = e < 126u ? 38u : e - 88u;  // e + 39 - 127; small angles are not asked for
  uint64_t shift = start & 63u;
  bool second = start >= 64u, third = start >= 128u;
  uint64_t w0 = second ? 0xa2f9836e4e441529u : 0u;
  uint64_t w1 = second ? 0xfc2757d1f534ddc0u : 0xa2f9836e4e441529u;
  uint64_t w2 = second ? 0xdb6295993c439041u : 0xfc2757d1f534ddc0u;
  w0 = third ? 0xfc2757d1f534ddc0u : w0;
  w1 = third ? 0xdb6295993c439041u : w1;
  w2 = third ? 0xfe5163abdebbc561u : w2;
  uint64_t high = (w0 << shift) | ((w1 >> 1) >> (63u - shift));
  uint64_t low = (w1 << shift) | ((w2 >> 1) >> (63u - shift));
  uint64_t p = m * high + ((m * (low >> 32)) >> 32);
  uint64_t q = (p + 0x2000000000000000u) >> 62;
  uint64_t fraction = p - (q << 62);
  int32_t head = static_cast<int32_t>(static_cast<uint32_t>(fraction >> 32));
  int32_t tail = static_cast<int32_t>(static_cast<uint32_t>(fraction) >> 8);
  // In units of 2^-22 of 90 degrees: what float holds of it, and the rest.
  float whole = static_cast<float>(head >> 8);
  float rest = static_cast<float>(head & 255) * 0x1p-8f + static_cast<float>(tail) * 0x1p-32f;
  float a = std::bit_cast<float>(std::bit_cast<uint32_t>(whole + rest) & 0xfffff000u);
  float b = (whole - a) + rest;
  float r = a * 0x1.92p-22f + (a * 1.15353296e-10f + b * 3.74507039e-07f);
  return {static_cast<uint32_t>(q), r};
}
// Up to here the multiple of 90 degrees has so few bits that its product with the first 33 of
// pi / 2 is exact in double, and so is the difference.
inline constexpr float kNearAngle = 1048576.0f;
TS_MATH_FN Angle near_angle(float x) {
  double a = static_cast<double>(abs(x));
  double n = (a * 0.63661977236758134 + 6755399441055744.0) - 6755399441055744.0;
  double r = (a - n * 0x1.921fb544p+0) - n * 0x1.0b4611a626331p-34;
  return {static_cast<uint32_t>(static_cast<int32_t>(n)), static_cast<float>(r)};
}
TS_MATH_FN float sin_poly(float r) {
  float z = r * r;
  float p =
      (0.008333331872f * z - 0.1666666666f) + (2.724969594e-6f * z - 0.0001984008508f) * (z * z);
  return p * z * r + r;
}
TS_MATH_FN float cos_poly(float r) {
  float z = r * r, h = 0.5f * z, w = 1.0f - h;
  float p = (-0.001388830247f * z + 0.04166666466f) + 2.454778802e-5f * (z * z);
  return w + (((1.0f - w) - h) + p * (z * z));
}
TS_MATH_FN float with_sign_of(float y, uint32_t bit) {
  return std::bit_cast<float>(std::bit_cast<uint32_t>(y) ^ (bit << 31));
}
TS_MATH_FN Angle any_angle(float x) {
  bool near = abs(x) < kNearAngle;
  Angle n = near_angle(near ? x : 0.0f), f = far_angle(near ? 1.0f : x);
  Angle t{near ? n.quadrant : f.quadrant, near ? n.r : f.r};
  t.r = isfinite(x) ? t.r : std::numeric_limits<float>::quiet_NaN();
  return t;
}
TS_MATH_FN float sin_of(Angle t, float x) {
  float s = sin_poly(t.r), c = cos_poly(t.r);
  float y = with_sign_of((t.quadrant & 1u) != 0 ? c : s, (t.quadrant >> 1) & 1u);
  return with_sign_of(y, std::bit_cast<uint32_t>(x) >> 31);
}
TS_MATH_FN float cos_of(Angle t) {
  float s = sin_poly(t.r), c = cos_poly(t.r);
  float y = (t.quadrant & 1u) != 0 ? s : c;
  return with_sign_of(y, ((t.quadrant + 1u) >> 1) & 1u);
}
TS_MATH_FN float tan_of(Angle t, float x) {
  float s = sin_poly(t.r), c = cos_poly(t.r);
  bool odd = (t.quadrant & 1u) != 0;
  float y = (odd ? c : s) / (odd ? s : c);
  return with_sign_of(y, (t.quadrant & 1u) ^ (std::bit_cast<uint32_t>(x) >> 31));
}

// Of double the angle in two parts, up to the same size: pi / 2 in pieces of 33 bits.
struct LongAngle {
  double n, r, rest;
};
TS_MATH_FN LongAngle near_angle(double x) {
  double a = abs(x);
  double n = (a * 0.63661977236758134 + 6755399441055744.0) - 6755399441055744.0;
  double t = a - n * 0x1.921fb544p+0, w = n * 0x1.0b4611a6p-34;
  double first = t - w, back = first - t;
  double tail = ((t - (first - back)) - (w + back)) - n * 0x1.3198a2e037073p-69;
  double r = first + tail;
  return {n, r, (first - r) + tail};
}
TS_MATH_FN double sin_part(const LongAngle& t) {
  double z = t.r * t.r, z2 = z * z, cube = z * t.r;
  double p =
      (0.008333333333330946103 + z * -0.0001984126983675497001) +
      ((2.755731610068302914e-6 + z * -2.505113145542794739e-8) + 1.591810123027412035e-10 * z2) *
          z2;
  return t.r - ((z * (0.5 * t.rest - cube * p) - t.rest) - cube * -0.1666666666666666462);
}
TS_MATH_FN double cos_part(const LongAngle& t) {
  double z = t.r * t.r, z2 = z * z, half = 0.5 * z, w = 1.0 - half;
  double p = ((0.04166666666666666539 + z * -0.001388888888888739575) +
              (0.00002480158729876343316 + z * -2.755731727056032407e-7) * z2) +
             (2.08761460246897466e-9 + z * -1.138261486855632458e-11) * (z2 * z2);
  return w + (((1.0 - w) - half) + (z2 * p - t.r * t.rest));
}
// The quadrant's bits are the last of n + 2^52.
TS_MATH_FN uint64_t quadrant_of(double n) {
  return std::bit_cast<uint64_t>(n + 4503599627370496.0) & 3u;
}
TS_MATH_FN double with_sign_of(double y, uint64_t bit) {
  return std::bit_cast<double>(std::bit_cast<uint64_t>(y) ^ (bit << 63));
}
}  // namespace detail
TS_MATH_FN float sin(float x) { return detail::sin_of(detail::any_angle(x), x); }
TS_MATH_FN float cos(float x) { return detail::cos_of(detail::any_angle(x)); }
TS_MATH_FN float tan(float x) { return detail::tan_of(detail::any_angle(x), x); }
TS_MATH_FN double sin_near(double x) {
  detail::LongAngle t = detail::near_angle(x);
  uint64_t q = detail::quadrant_of(t.n);
  double s = detail::sin_part(t), c = detail::cos_part(t);
  double y = detail::with_sign_of((q & 1u) != 0 ? c : s, q >> 1);
  return detail::with_sign_of(y, std::bit_cast<uint64_t>(x) >> 63);
}
TS_MATH_FN double cos_near(double x) {
  detail::LongAngle t = detail::near_angle(x);
  uint64_t q = detail::quadrant_of(t.n);
  double s = detail::sin_part(t), c = detail::cos_part(t);
  return detail::with_sign_of((q & 1u) != 0 ? s : c, ((q + 1u) >> 1) & 1u);
}
TS_MATH_FN bool is_near_angle(double x) { return abs(x) < 1048576.0; }
// Larger ones by libm, one at a time: Note [Near and far] in float_math.h.
TS_MATH_FN double sin(double x) { return is_near_angle(x) ? sin_near(x) : std::sin(x); }
TS_MATH_FN double cos(double x) { return is_near_angle(x) ? cos_near(x) : std::cos(x); }

}  // namespace tessera::math
