// Modified Bessel functions by their integrals: the trapezoidal rule converges faster than any
// power of the step on them. Airy's function by a modified one of order 1/3, and by its series.
#pragma once
#include "tessera/ops/special/common.h"

namespace tessera::special {

TS_SHARED_MATH(
    bessel,
    // exp(-x) I_n(x) for x >= 0 and n of 0 or 1: (1/pi) times the integral of exp(x (cos t - 1))
    // cos(n t).
    TS_SPECIAL_FN double scaled_i(int n, double x) {
      if (isinf(x)) return 0;
      if (x > 700) {
        // Hankel's series.
        double mu = 4.0 * n * n, term = 1, sum = 1;
        TS_ROLLED for (int k = 1; k < 20; ++k) {
          double odd = 2 * k - 1;
          term *= -(mu - odd * odd) / (k * 8 * x);
          sum += term;
          if (fabs(term) < 1e-17) break;
        }
        return sum / (sqrt(2 * kPi) * sqrt(x));
      }
      int points = 24 + static_cast<int>(10 * sqrt(x));
      double sum = 0.5 * (1 + (n % 2 ? -1 : 1) * exp(-2 * x));
      TS_ROLLED for (int k = 1; k < points; ++k) {
        double t = kPi * k / points;
        // cos t - 1 without cancellation.
        double s = sin(t / 2);
        sum += exp(-2 * x * s * s) * (n ? cos(t) : 1);
      }
      return sum / points;
    }  //

    // exp(x) K_nu(x) for x > 0: the integral of exp(-x (cosh t - 1)) cosh(nu t) over t > 0.
    TS_SPECIAL_FN double scaled_k(double nu, double x) {
      if (x > 40) {
        // Too steep for the steps of the integral: the expansion for large arguments.
        double sum = 1, term = 1;
        TS_ROLLED for (int k = 1; k < 40; ++k) {
          const double odd = 2 * k - 1;
          term *= (4 * nu * nu - odd * odd) / (8 * k * x);
          sum += term;
          if (fabs(term) < 1e-18) break;
        }
        return sqrt(kPi / (2 * x)) * sum;
      }
      constexpr double h = 1.0 / 16;
      double sum = 0.5;
      TS_ROLLED for (int k = 1; k < 4000; ++k) {
        double t = k * h, s = sinh(t / 2);
        double term = exp(-2 * x * s * s) * cosh(nu * t);
        sum += term;
        if (term < 1e-18 * sum) break;
      }
      return sum * h;
    }  //

    TS_SPECIAL_FN double i0e(double x) { return isnan(x) ? x : scaled_i(0, fabs(x)); }        //
    TS_SPECIAL_FN double i0(double x) { return isinf(x) ? fabs(x) : i0e(x) * exp(fabs(x)); }  //
    TS_SPECIAL_FN double i1e(double x) {
      if (isnan(x)) return x;
      double a = fabs(x);
      // Small arguments: the integral's leading parts cancel, the series does not.
      double v;
      if (a < 1) {
        double q = a * a / 4, term = a / 2, sum = term;
        TS_ROLLED for (int k = 1; k < 30; ++k) {
          term *= q / (k * (k + 1.0));
          sum += term;
        }
        v = sum * exp(-a);
      } else {
        v = scaled_i(1, a);
      }
      return copysign(v, x);
    }                                                                                   //
    TS_SPECIAL_FN double i1(double x) { return isinf(x) ? x : i1e(x) * exp(fabs(x)); }  //

    TS_SPECIAL_FN double k0e(double x) {
      if (x == 0) return infinite();
      if (x > 0 && x < 1e-17) return -log(x / 2) - 0.57721566490153286061;  // Euler's constant
      return x < 0 || isnan(x) ? no_number() : scaled_k(0, x);
    }  //
    TS_SPECIAL_FN double k1e(double x) {
      if (x == 0) return infinite();
      if (x > 0 && x < 1e-17) return 1 / x;
      return x < 0 || isnan(x) ? no_number() : scaled_k(1, x);
    }                                                                             //
    TS_SPECIAL_FN double k0(double x) { return k0e(x) * (x > 0 ? exp(-x) : 1); }  //
    TS_SPECIAL_FN double k1(double x) { return k1e(x) * (x > 0 ? exp(-x) : 1); }  //

    TS_SPECIAL_FN double spherical_j0(double x) {
      if (isinf(x)) return 0;
      return fabs(x) < 1e-4 ? 1 - x * x / 6 : sin(x) / x;
    }  //

    TS_SPECIAL_FN double airy_ai(double x) {
      if (isnan(x)) return x;
      if (isinf(x) || x > 103.892) return 0;
      if (x > 2) {
        double z = 2.0 / 3 * x * sqrt(x);
        return sqrt(x / 3) / kPi * scaled_k(1.0 / 3, z) * exp(-z);
      }
      if (x > -9) {
        // c1 f(x) - c2 g(x), both by their power series.
        double f = 1, g = x, term_f = 1, term_g = x, cube = x * x * x;
        TS_ROLLED for (int k = 1; k < 200; ++k) {
          term_f *= cube / ((3.0 * k - 1) * (3.0 * k));
          term_g *= cube / ((3.0 * k) * (3.0 * k + 1));
          f += term_f;
          g += term_g;
          if (fabs(term_f) + fabs(term_g) < 1e-18 * (fabs(f) + fabs(g))) break;
        }
        return 0.35502805388781723926 * f - 0.25881940379280679841 * g;
      }
      // Far to the left: the oscillating expansion.
      double a = -x, z = 2.0 / 3 * a * sqrt(a);
      double u = 1, p = 0, q = 0, power = 1;
      TS_ROLLED for (int k = 0; k < 20; ++k) {
        if (k > 0) u *= (6.0 * k - 5) * (6.0 * k - 3) * (6.0 * k - 1) / ((2.0 * k - 1) * 216 * k);
        double term = u / power;
        if (k > 4 && fabs(term) < 1e-17) break;
        switch (k % 4) {
          case 0:
            p += term;
            break;
          case 1:
            q += term;
            break;
          case 2:
            p -= term;
            break;
          default:
            q -= term;
        }
        power *= z;
      }
      return (cos(z - kPi / 4) * p + sin(z - kPi / 4) * q) / (sqrt(kPi) * sqrt(sqrt(a)));
    })

}  // namespace tessera::special
