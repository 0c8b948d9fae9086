// The error function's relatives.
#pragma once
#include "tessera/ops/special/common.h"

namespace tessera::special {

TS_SHARED_MATH(
    error,
    TS_SPECIAL_FN double erfcx(double x) {
      if (x < -26.7) return infinite();
      if (x < 12) return exp(x * x) * erfc(x);
      if (x > 1e8) return 1 / (kRootPi * x);
      // The continued fraction of Laplace, from its end.
      double f = x;
      TS_ROLLED for (int k = 60; k > 0; --k) f = x + 0.5 * k / f;
      return 1 / (kRootPi * f);
    }  //

    // The y with erfc(y) = p, for p in (0, 1].
    TS_SPECIAL_FN double erfc_inverse(double p) {
      // A start that is good to a few percent, then Halley's steps on log erfc, which is nearly a
      // parabola however small p is.
      double l = log(p * (2 - p));
      double c = 2 / (kPi * 0.147) + 0.5 * l;
      double y = sqrt(sqrt(c * c - l / 0.147) - c);
      double target = log(p);
      TS_ROLLED for (int i = 0; i < 4; ++i) {
        // log erfc(y) = log erfcx(y) - y^2, and its derivative is -2 / (sqrt(pi) erfcx(y)).
        double e = y < 5 ? log(erfc(y)) : log(erfcx(y)) - y * y;
        double slope = -2 / (kRootPi * erfcx(y));
        double step = (e - target) / slope;
        // Second derivative over first: -2 y - slope.
        double bend = -2 * y - slope;
        y -= step / (1 - 0.5 * step * bend);
      }
      return y;
    }  //

    TS_SPECIAL_FN double erfinv(double x) {
      if (isnan(x) || x < -1 || x > 1) return no_number();
      if (x == 1 || x == -1) return x * infinite();
      if (x == 0) return x;
      double a = fabs(x), y;
      if (a > 0.5) {
        y = erfc_inverse(1 - a);
      } else {
        // Near zero erf itself is well scaled.
        y = a * kRootPi / 2;
        TS_ROLLED for (int i = 0; i < 6; ++i) {
          double error = erf(y) - a;
          double step = error / (2 / kRootPi * exp(-y * y));
          y -= step / (1 + y * step);
        }
      }
      return copysign(y, x);
    }  //

    TS_SPECIAL_FN double ndtri(double p) {
      if (isnan(p) || p < 0 || p > 1) return no_number();
      if (p == 0) return -infinite();
      if (p == 1) return infinite();
      if (p < 0.25) return -kRoot2 * erfc_inverse(2 * p);
      return kRoot2 * erfinv(2 * p - 1);
    }  //

    TS_SPECIAL_FN double log_ndtr(double x) {
      double t = x / kRoot2;
      if (x < -1) return log(erfcx(-t) / 2) - t * t;
      return log1p(-erfc(t) / 2);
    })

}  // namespace tessera::special
