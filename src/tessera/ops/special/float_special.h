// Special functions of float, for the CPU's loops: see Note [Same bits from every loop] in math.h.
#pragma once
#include "tessera/ops/float_math.h"

namespace tessera::math {

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

// The same of 1 - 2 p in double, whose logarithm is that of 4 p (1 - p) however small p is.
TS_MATH_FN float ndtri(float p) {
  double a = static_cast<double>(p), x = 2.0 * a - 1.0, w = -log(4.0 * (a * (1.0 - a)));
  bool far = w > 6.25;
  double c = far ? 0.0 : w, c2 = c * c, c4 = c2 * c2;
  double near = detail::poly(c, 0.88622692603687121, 0.2320136351377587, 0.01154961467899298,
                             -0.0023360041204652895, -0.00012655586206886681, 4.5251158659606084e-5,
                             2.7139718212882322e-6, -1.1691352011907988e-6) +
                (((5.0314094879598974e-8 * c - 6.191529986375088e-8) +
                  (4.7709375702375536e-10 * c - 7.2614269354355028e-9) * c2) -
                 1.2570814414523687e-11 * c4) *
                    (c4 * c4);
  double s = sqrt(far ? w : 6.25), u = (s - 4.0) / (s + 4.0), u2 = u * u, u4 = u2 * u2;
  double beyond = detail::poly(u, 0.959945926326744788, 0.09909517354844616, -0.0789165566823460405,
                               -0.0122936028938346678, 0.135514016431533998, -0.415329432476377672,
                               1.92351807107895413, -8.37689754333765834) +
                  (((-4.72441800751500825 * u + 19.6165423820957509) +
                    (164.393541987528961 * u - 80.8959629067497592) * u2) -
                   103.409634600131526 * u4) *
                      (u4 * u4);
  double y = x * (far ? beyond * s : near) * 1.41421356237309505;
  float r = static_cast<float>(y);
  constexpr float kInf = std::numeric_limits<float>::infinity();
  r = p == 0.0f ? -kInf : r;
  r = p == 1.0f ? kInf : r;
  return (p >= 0.0f) & (p <= 1.0f) ? r : std::numeric_limits<float>::quiet_NaN();
}

// The asymptotic series at |x|, or at |x| + 4 less the reciprocals between, and the reflection of
// negative ones.
TS_MATH_FN float digamma(float x) {
  double a = static_cast<double>(abs(x));
  bool low = a < 4.0, negative = x < 0.0f;
  // a (a + 1) (a + 2) (a + 3) and its derivative.
  double u = a * (a + 3.0), product = u * (u + 2.0), slope = (2.0 * a + 3.0) * (2.0 * u + 2.0);
  double b = low ? a + 4.0 : a, v = 1.0 / b, z = v * v;
  double d = detail::poly(z, 0.08333333333333296, -0.0083333333323621953, 0.0039682535477335885,
                          -0.0041665955972568641, 0.0075696288064027833, -0.020787300608348223,
                          0.073928215752619156, -0.25668496075487654);
  double z2 = z * z, z4 = z2 * z2;
  d += 0.53653199537122066 * (z4 * z4);
  double y = (log(b) - 0.5 * v) - z * d;
  y -= low ? slope / product : 0.0;
  // psi(-a) = psi(a) + 1 / a + pi / tan(pi a); floats of 2^23 and more are integers.
  float whole = abs(x) < 8388608.0f ? (abs(x) + 8388608.0f) - 8388608.0f : abs(x);
  double f = a - static_cast<double>(whole), f2 = f * f;
  double sine =
      f * detail::poly(f2, 3.14159265358979288, -5.16771278004978582, 2.55016403986186763,
                       -0.599264528825224005, 0.0821458788163104269, -0.00737036432653041568,
                       0.000465987015804337793, -0.0000211336273520529704);
  double f4 = f2 * f2, f8 = f4 * f4;
  double cosine = (1.0 - 4.0 * f2) * (detail::poly(f2, 1.0, -0.93480220054467929,
                                                   0.31950332423804922, -0.057249471902313244,
                                                   0.0063327427478622031, -0.00047592037539358491,
                                                   2.5892621943842232e-5, -1.0666850970497326e-6) +
                                      3.3478866930384306e-8 * (f8 * f8));
  y += negative ? 1.0 / a + 3.14159265358979324 * (cosine / sine) : 0.0;
  float r = static_cast<float>(y);
  constexpr float kInf = std::numeric_limits<float>::infinity();
  r = negative & (f == 0.0) ? std::numeric_limits<float>::quiet_NaN() : r;
  r = x == 0.0f ? copysign(kInf, negate(x)) : r;
  return x == kInf ? x : r;
}

}  // namespace tessera::math
