// Orthogonal polynomials by their recurrences; PyTorch's values outside their natural range.
#pragma once
#include "tessera/ops/special/common.h"

namespace tessera::special {

TS_SHARED_MATH(
    polynomials,
    // p(k+1) = next(k, p(k), p(k-1)), from p(0) and p(1) up to p(n).
    template <class F> TS_SPECIAL_FN double recur(double p0, double p1, int64_t n, F next) {
      if (n == 0) return p0;
      TS_ROLLED for (int64_t k = 1; k < n; ++k) {
        double p = next(static_cast<double>(k), p1, p0);
        p0 = p1;
        p1 = p;
        if (isnan(p1)) break;
      }
      return p1;
    }  //

    TS_SPECIAL_FN int64_t degree(double n) {
      return fabs(n) < 9e18 ? static_cast<int64_t>(n) : -1;
    }  //

    TS_SPECIAL_FN double chebyshev_t(double x, double order) {
      int64_t n = degree(order);
      if (n < 0) return 0;
      if (fabs(x) == 1) return x > 0 || n % 2 == 0 ? 1 : -1;
      if (n > 6 && fabs(x) < 1) return cos(static_cast<double>(n) * acos(x));
      return recur(1, x, n, [x](double, double p, double q) { return 2 * x * p - q; });
    }  //

    TS_SPECIAL_FN double chebyshev_u(double x, double order) {
      int64_t n = degree(order);
      if (n < 0) return 0;
      if (fabs(x) == 1) return x > 0 || n % 2 == 0 ? n + 1.0 : -(n + 1.0);
      if (n > 8 && fabs(x) < 1) {
        double t = acos(x);
        if (sin(t) != 0) return sin((static_cast<double>(n) + 1) * t) / sin(t);
        return (static_cast<double>(n) + 1) * cos((static_cast<double>(n) + 1) * t) / x;
      }
      return recur(1, 2 * x, n, [x](double, double p, double q) { return 2 * x * p - q; });
    }  //

    TS_SPECIAL_FN double chebyshev_v(double x, double order) {
      int64_t n = degree(order);
      if (n < 0) return 0;
      if (x == 1) return 1;
      if (x == -1) return n % 2 == 0 ? n + n + 1.0 : -(n + n + 1.0);
      if (n > 8 && fabs(x) < 1) {
        double t = acos(x);
        if (sin(t / 2) != 1) return cos((static_cast<double>(n) + 0.5) * t) / cos(t / 2);
        return n % 2 == 0 ? n + n + 1.0 : -(n + n + 1.0);
      }
      return recur(1, x + x - 1, n, [x](double, double p, double q) { return 2 * x * p - q; });
    }  //

    TS_SPECIAL_FN double chebyshev_w(double x, double order) {
      int64_t n = degree(order);
      if (n < 0) return 0;
      if (x == 1) return n + n + 1.0;
      if (x == -1) return n % 2 == 0 ? 1 : -1;
      if (n > 8 && fabs(x) < 1) {
        double t = acos(x);
        if (cos(t / 2) != 1) return sin((static_cast<double>(n) + 0.5) * t) / sin(t / 2);
        return x > 0 ? n + n + 1.0 : n % 2 == 0 ? 1 : -1;
      }
      return recur(1, x + x + 1, n, [x](double, double p, double q) { return 2 * x * p - q; });
    }  //

    TS_SPECIAL_FN double hermite_h(double x, double order) {
      int64_t n = degree(order);
      if (n < 0) return 0;
      if (n > 512) return no_number();
      return recur(1, 2 * x, n,
                   [x](double k, double p, double q) { return 2 * x * p - 2 * k * q; });
    }  //

    TS_SPECIAL_FN double hermite_he(double x, double order) {
      int64_t n = degree(order);
      if (n < 0) return 0;
      if (n > 512) return no_number();
      return recur(1, x, n, [x](double k, double p, double q) { return x * p - k * q; });
    }  //

    TS_SPECIAL_FN double laguerre_l(double x, double order) {
      int64_t n = degree(order);
      if (n < 0) return 0;
      if (fabs(x) == 0) return 1;
      return recur(1, 1 - x, n, [x](double k, double p, double q) {
        return ((2 * k + 1 - x) * p - k * q) / (k + 1);
      });
    }  //

    TS_SPECIAL_FN double legendre_p(double x, double order) {
      int64_t n = degree(order);
      if (n < 0) return 0;
      if (fabs(x) == 1) return x > 0 || n % 2 == 0 ? 1 : -1;
      return recur(1, x, n, [x](double k, double p, double q) {
        return ((2 * k + 1) * x * p - k * q) / (k + 1);
      });
    })

}  // namespace tessera::special
