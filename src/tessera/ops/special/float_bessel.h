// Modified Bessel functions of float, for the CPU's loops: see Note [Same bits from every loop] in
// math.h. In double, by polynomials fitted to ten digits.
#pragma once
#include "tessera/ops/float_math.h"

namespace tessera::math {

namespace detail {
// I0 or I1 / x in z = x^2 up to 64.
TS_MATH_FN double i0_near(double z) {
  double z2 = z * z, z4 = z2 * z2;
  return poly(z, 0.99999999974312994, 0.25000000115556306, 0.015624999140668473,
              0.00043402802769973268, 6.781646537440732e-6, 6.7820151766668828e-8,
              4.7076534453422448e-10, 2.4095807854096086e-12) +
         ((3.1582716592600752e-17 * z + 9.221437658211749e-15) +
          (2.8886773392558601e-22 * z + 4.6607544536723803e-20) * z2) *
             (z4 * z4);
}
TS_MATH_FN double i1_near(double z) {
  double z2 = z * z, z4 = z2 * z2;
  return poly(z, 0.49999999999050081, 0.062500000042734177, 0.0026041666348843475,
              5.425348146727897e-5, 6.781670155494767e-7, 5.6515259391106224e-9,
              3.3632455960175413e-11, 1.5042654553973719e-13) +
         ((1.5456262162831017e-18 * z + 5.153365891203708e-16) +
          (1.1460832451640964e-23 * z + 2.3291947609270932e-21) * z2) *
             (z4 * z4);
}
// Times sqrt(x) exp(-x), in v = 1 / x up to 1/8.
TS_MATH_FN double i0_far(double v) {
  return poly(v, 0.39894228034863223, 0.04986783906945196, 0.028041596739860195,
              0.029790933179536974, 0.027236240209719094, 0.3728431763593113, -2.1197724894034525,
              9.029041910927785);
}
TS_MATH_FN double i1_far(double v) {
  return poly(v, 0.39894228046200522, -0.14960341710369245, -0.04674070440219407,
              -0.041560030160674087, -0.037598744660338553, -0.43064060214783899,
              2.3791430575102674, -10.161899277741166);
}
// K0 and x K1 less their logarithmic parts in z = x^2 up to 4; times sqrt(x) exp(x) in 1 / x.
TS_MATH_FN double k0_near(double z) {
  double z2 = z * z;
  return ((0.1056960835231719 * z - 0.57721566489126809) +
          (0.00054518845545294947 * z + 0.014418506240831186) * z2) +
         ((1.1531271120823152e-7 * z + 1.0215085768805825e-5) + 9.5223688952939047e-10 * z2) *
             (z2 * z2);
}
TS_MATH_FN double k1_near(double z) {
  double z2 = z * z;
  return ((0.038607835875706732 * z + 0.9999999998601797) +
          (-0.0028370914945111015 * z - 0.042049034629948402) * z2) +
         ((-1.0839038118661922e-6 * z - 7.4945013839620301e-5) - 1.1066604808588919e-8 * z2) *
             (z2 * z2);
}
TS_MATH_FN double k0_far(double v) {
  double v2 = v * v, v4 = v2 * v2;
  return poly(v, 1.25331413674936268, -0.156664038911281219, 0.0881079785902191391,
              -0.0913627921225468991, 0.134193143612208323, -0.226656068654189924,
              0.354190741533089364, -0.421435827901182052) +
         (-0.108579431889658725 * v + 0.316072243806005082) * (v4 * v4);
}
TS_MATH_FN double k1_far(double v) {
  double v2 = v * v, v4 = v2 * v2;
  return poly(v, 1.25331413797527764, 0.469992535520020502, -0.14685450015777118,
              0.128010378205017479, -0.173328864233032421, 0.280789010194077659,
              -0.429588989740524963, 0.505606672383332388) +
         (0.129041393370960747 * v - 0.376951006217267757) * (v4 * v4);
}

constexpr double kLog2E = 1.4426950408889634;
// I_n of |x|, as it is or times exp(-|x|).
template <int kOrder, bool kScaled>
TS_MATH_FN double i_of_size(float x) {
  double a = static_cast<double>(abs(x));
  if constexpr (!kScaled) a = a > 100.0 ? 100.0 : a;  // too large for float from 92 on
  bool far = a > 8.0;
  double z = far ? 0.0 : a * a, b = far ? a : 8.0;
  double near = kOrder == 0 ? i0_near(z) : i1_near(z) * a;
  double beyond = (kOrder == 0 ? i0_far(1.0 / b) : i1_far(1.0 / b)) / sqrt(b);
  if constexpr (kScaled)
    near *= exp2_to_float(far ? 0.0 : a * -kLog2E);
  else
    beyond *= exp2_to_float(b * kLog2E);
  return far ? beyond : near;
}
// K_n, as it is or times exp(x).
template <int kOrder, bool kScaled>
TS_MATH_FN float k_of(float x) {
  double a = static_cast<double>(x);
  bool far = a > 2.0;
  double c = far ? 1.0 : a, b = far ? a : 2.0, z = c * c, l = log(0.5 * c);
  double near = kOrder == 0 ? k0_near(z) - l * i0_near(z) : k1_near(z) / c + l * (i1_near(z) * c);
  double beyond = (kOrder == 0 ? k0_far(1.0 / b) : k1_far(1.0 / b)) / sqrt(b);
  if constexpr (kScaled)
    near *= exp2_to_float(c * kLog2E);
  else
    beyond *= exp2_to_float(b * -kLog2E);
  float y = static_cast<float>(far ? beyond : near);
  y = x == 0.0f ? std::numeric_limits<float>::infinity() : y;
  return x >= 0.0f ? y : std::numeric_limits<float>::quiet_NaN();
}
}  // namespace detail

TS_MATH_FN float i0(float x) {
  float y = static_cast<float>(detail::i_of_size<0, false>(x));
  return x != x ? x : y;
}
TS_MATH_FN float i0e(float x) {
  float y = static_cast<float>(detail::i_of_size<0, true>(x));
  return x != x ? x : y;
}
TS_MATH_FN float i1(float x) {
  float y = copysign(static_cast<float>(detail::i_of_size<1, false>(x)), x);
  return x != x ? x : y;
}
TS_MATH_FN float i1e(float x) {
  float y = copysign(static_cast<float>(detail::i_of_size<1, true>(x)), x);
  return x != x ? x : y;
}
TS_MATH_FN float k0(float x) { return detail::k_of<0, false>(x); }
TS_MATH_FN float k0e(float x) { return detail::k_of<0, true>(x); }
TS_MATH_FN float k1(float x) { return detail::k_of<1, false>(x); }
TS_MATH_FN float k1e(float x) { return detail::k_of<1, true>(x); }

}  // namespace tessera::math
