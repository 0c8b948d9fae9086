// The gamma function's derivatives, its incomplete forms, and zeta.
#pragma once
#include "tessera/ops/special/common.h"

namespace tessera::special {

TS_SHARED_MATH(
    gamma, constexpr double kTiny = 1e-300;
    // B(2k) / (2k)!
    constexpr double kBernoulli[] = {1.0 / 12, -1.0 / 720, 1.0 / 30240, -1.0 / 1209600,
                                     1.0 / 47900160, -691.0 / 1307674368000, 1.0 / 74724249600,
                                     -3617.0 / 10670622842880000, 43867.0 / 5109094217170944000,
                                     -174611.0 / 802857662698291200000.0};

    TS_SPECIAL_FN double digamma(double x) {
      if (x == 0) return copysign(infinite(), -x);
      if (isinf(x)) return x > 0 ? x : no_number();
      double shift = 0;
      if (x < 0) {
        if (x == floor(x)) return no_number();
        // Reflection; the fraction keeps the tangent exact for large arguments.
        double fraction = x - trunc(x);
        shift = -kPi / tan(kPi * fraction);
        x = 1 - x;
      }
      TS_ROLLED while (x < 12) {
        shift -= 1 / x;
        x += 1;
      }
      // The asymptotic series, B(2k) / (2k x^2k).
      double y = 1 / (x * x), series = 0, power = y;
      constexpr double b[] = {1.0 / 12,  -1.0 / 120,     1.0 / 252, -1.0 / 240,
                              1.0 / 132, -691.0 / 32760, 1.0 / 12,  -3617.0 / 8160};
      TS_ROLLED for (double c : b) {
        series += c * power;
        power *= y;
      }
      return log(x) - 0.5 / x - series + shift;
    }  //

    TS_SPECIAL_FN double zeta_summed(double s, double q) {
      if (s == 1) return infinite();
      if (s < 1 || isnan(s) || isnan(q)) return no_number();
      if (q <= 0) {
        if (q == floor(q)) return infinite();
        if (s != floor(s)) return no_number();
      }
      // Euler and Maclaurin: terms up to a point, then the integral and corrections.
      double sum = 0;
      double at = q;
      int direct = 0;
      TS_ROLLED while (direct < 12 || at < 10) {
        double term = pow(at, -s);
        sum += term;
        at += 1;
        if (++direct > 12 && fabs(term) < 1e-17 * fabs(sum) && at > 0) return sum;
        if (direct > 100000) break;
      }
      if (isinf(s)) return sum;
      double tail = pow(at, -s);
      sum += pow(at, 1 - s) / (s - 1) + 0.5 * tail;
      double factor = s * tail / at;
      TS_ROLLED for (int k = 0; k < 10; ++k) {
        double term = kBernoulli[k] * factor;
        sum += term;
        if (fabs(term) < 1e-17 * fabs(sum)) break;
        factor *= (s + 2 * k + 1) * (s + 2 * k + 2) / (at * at);
      }
      return sum;
    }  //

    TS_SPECIAL_FN double zeta(double s, double q) {
      if (!(q < -1000) || isinf(q) || q == floor(q) || s != floor(s) || s <= 1)
        return zeta_summed(s, q);
      // Too many terms left of zero: those are the mirrored sum from the nearest to the farthest.
      double fraction = q - floor(q);
      double left = zeta_summed(s, 1 - fraction) - zeta_summed(s, 1 - q);
      return zeta_summed(s, fraction) + (fmod(s, 2) == 1 ? -left : left);
    }  //

    TS_SPECIAL_FN double trigamma(double x) {
      if (x < 0.5) {
        double s = sin(kPi * x);
        return kPi * kPi / (s * s) - zeta(2, 1 - x);
      }
      return zeta(2, x);
    }  //

    TS_SPECIAL_FN double polygamma(int64_t n, double x) {
      if (n == 0) return digamma(x);
      if (n == 1) return trigamma(x);
      double sign = n % 2 ? 1 : -1;
      return sign * exp(lgamma(static_cast<double>(n) + 1)) * zeta(static_cast<double>(n) + 1, x);
    }  //

    // x^a e^-x / Gamma(a + 1), without overflow.
    TS_SPECIAL_FN double front(double a, double x) {
      if (a < 20) return exp(a * log(x) - x - lgamma(a + 1));
      // Near x = a the exponent is a small difference of large numbers.
      double d = (x - a) / a;
      double exponent = a * (log1p(d) - d);
      // Stirling's correction of Gamma(a + 1).
      double y = 1 / a, correction = y / 12 - y * y * y / 360 + y * y * y * y * y / 1260;
      return exp(exponent - correction) / sqrt(2 * kPi * a);
    }  //

    TS_SPECIAL_FN double lower_series(double a, double x) {
      double term = 1, sum = 1;
      TS_ROLLED for (int n = 1; n < 100000; ++n) {
        term *= x / (a + n);
        sum += term;
        if (term < 1e-17 * sum) break;
      }
      return front(a, x) * sum;
    }  //

    TS_SPECIAL_FN double upper_fraction(double a, double x) {
      // Far beyond a nothing is left, and the fraction would not settle.
      double scale = front(a, x) * a;
      if (scale == 0) return 0;
      // Lentz's method on 1 / (x + 1 - a - 1 (1 - a) / (x + 3 - a - ...)).
      double b = x + 1 - a, c = 1 / kTiny, d = 1 / b, h = d;
      TS_ROLLED for (int n = 1; n < 100000; ++n) {
        double an = -n * (n - a);
        b += 2;
        d = an * d + b;
        if (fabs(d) < kTiny) d = kTiny;
        c = b + an / c;
        if (fabs(c) < kTiny) c = kTiny;
        d = 1 / d;
        double step = d * c;
        h *= step;
        if (fabs(step - 1) < 1e-16) break;
      }
      return scale * h;
    }  //

    // From where on series and fraction would take too many steps: Temme's uniform expansion, whose
    // next term is below the rounding of doubles there.
    TS_SPECIAL_FN bool is_large(double a) { return a > 1e8; }  //

    TS_SPECIAL_FN double large_gammainc(double a, double x, bool upper) {
      double m = (x - a) / a;
      double half_square = m - log1p(m), correction;
      if (fabs(m) < 1e-3) {
        half_square =
            m * m * (0.5 - m * (1.0 / 3 - m * (0.25 - m * (0.2 - m * (1.0 / 6 - m / 7)))));
        correction = m * (1.0 / 12) - 1.0 / 3;
      } else {
        correction = 1 / m - 1 / copysign(sqrt(2 * half_square), m);
      }
      double at = copysign(sqrt(half_square), m) * sqrt(a);
      double rest = exp(-a * half_square) / (sqrt(2 * kPi) * sqrt(a)) * correction;
      return upper ? erfc(at) / 2 + rest : erfc(-at) / 2 - rest;
    }  //

    TS_SPECIAL_FN double gammainc(double a, double x) {
      if (isnan(a) || isnan(x) || x < 0 || a < 0) return no_number();
      if (a == 0) return x > 0 ? 1 : no_number();
      if (x == 0) return 0;
      if (isinf(a)) return isinf(x) ? no_number() : 0;
      if (isinf(x)) return 1;
      if (is_large(a)) return large_gammainc(a, x, false);
      return x <= 1 || x <= a ? lower_series(a, x) : 1 - upper_fraction(a, x);
    }  //

    TS_SPECIAL_FN double gammaincc(double a, double x) {
      if (isnan(a) || isnan(x) || x < 0 || a < 0) return no_number();
      if (a == 0) return x > 0 ? 0 : no_number();
      if (x == 0) return 1;
      if (isinf(a)) return isinf(x) ? no_number() : 1;
      if (isinf(x)) return 0;
      if (is_large(a)) return large_gammainc(a, x, true);
      return x <= 1 || x <= a ? 1 - lower_series(a, x) : upper_fraction(a, x);
    })

}  // namespace tessera::special
