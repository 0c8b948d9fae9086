// Modified Bessel functions by their integrals: the trapezoidal rule converges faster than any
// power of the step on them. Airy's function by a modified one of order 1/3, and by its series.
#include "tessera/ops/special/functions.h"

namespace tessera::special {

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kPi = 3.14159265358979323846;

// exp(-x) I_n(x) for x >= 0 and n of 0 or 1: (1/pi) times the integral of exp(x (cos t - 1)) cos(n
// t).
double scaled_i(int n, double x) {
  if (std::isinf(x)) return 0;
  if (x > 700) {
    // Hankel's series.
    double mu = 4.0 * n * n, term = 1, sum = 1;
    for (int k = 1; k < 20; ++k) {
      double odd = 2 * k - 1;
      term *= -(mu - odd * odd) / (k * 8 * x);
      sum += term;
      if (std::fabs(term) < 1e-17) break;
    }
    return sum / std::sqrt(2 * kPi * x);
  }
  int points = 24 + static_cast<int>(10 * std::sqrt(x));
  double sum = 0.5 * (1 + (n % 2 ? -1 : 1) * std::exp(-2 * x));
  for (int k = 1; k < points; ++k) {
    double t = kPi * k / points;
    // cos t - 1 without cancellation.
    double s = std::sin(t / 2);
    sum += std::exp(-2 * x * s * s) * (n ? std::cos(t) : 1);
  }
  return sum / points;
}

// exp(x) K_nu(x) for x > 0: the integral of exp(-x (cosh t - 1)) cosh(nu t) over t > 0.
double scaled_k(double nu, double x) {
  if (x > 40) {
    // Too steep for the steps of the integral: the expansion for large arguments.
    double sum = 1, term = 1;
    for (int k = 1; k < 40; ++k) {
      const double odd = 2 * k - 1;
      term *= (4 * nu * nu - odd * odd) / (8 * k * x);
      sum += term;
      if (std::fabs(term) < 1e-18) break;
    }
    return std::sqrt(kPi / (2 * x)) * sum;
  }
  constexpr double h = 1.0 / 16;
  double sum = 0.5;
  for (int k = 1; k < 4000; ++k) {
    double t = k * h, s = std::sinh(t / 2);
    double term = std::exp(-2 * x * s * s) * std::cosh(nu * t);
    sum += term;
    if (term < 1e-18 * sum) break;
  }
  return sum * h;
}

}  // namespace

double i0e(double x) { return std::isnan(x) ? x : scaled_i(0, std::fabs(x)); }
double i0(double x) { return i0e(x) * std::exp(std::fabs(x)); }
double i1e(double x) {
  if (std::isnan(x)) return x;
  double a = std::fabs(x);
  // Small arguments: the integral's leading parts cancel, the series does not.
  double v;
  if (a < 1) {
    double q = a * a / 4, term = a / 2, sum = term;
    for (int k = 1; k < 30; ++k) {
      term *= q / (k * (k + 1.0));
      sum += term;
    }
    v = sum * std::exp(-a);
  } else {
    v = scaled_i(1, a);
  }
  return std::copysign(v, x);
}
double i1(double x) { return i1e(x) * std::exp(std::fabs(x)); }

double k0e(double x) {
  if (x == 0) return kInf;
  if (x > 0 && x < 1e-17) return -std::log(x / 2) - 0.57721566490153286061;  // Euler's constant
  return x < 0 || std::isnan(x) ? kNaN : scaled_k(0, x);
}
double k1e(double x) {
  if (x == 0) return kInf;
  if (x > 0 && x < 1e-17) return 1 / x;
  return x < 0 || std::isnan(x) ? kNaN : scaled_k(1, x);
}
double k0(double x) { return k0e(x) * (x > 0 ? std::exp(-x) : 1); }
double k1(double x) { return k1e(x) * (x > 0 ? std::exp(-x) : 1); }

double spherical_j0(double x) {
  if (std::isinf(x)) return 0;
  return std::fabs(x) < 1e-4 ? 1 - x * x / 6 : std::sin(x) / x;
}

double airy_ai(double x) {
  if (std::isnan(x)) return x;
  if (std::isinf(x) || x > 103.892) return 0;
  if (x > 2) {
    double z = 2.0 / 3 * x * std::sqrt(x);
    return std::sqrt(x / 3) / kPi * scaled_k(1.0 / 3, z) * std::exp(-z);
  }
  if (x > -9) {
    // c1 f(x) - c2 g(x), both by their power series.
    double f = 1, g = x, term_f = 1, term_g = x, cube = x * x * x;
    for (int k = 1; k < 200; ++k) {
      term_f *= cube / ((3.0 * k - 1) * (3.0 * k));
      term_g *= cube / ((3.0 * k) * (3.0 * k + 1));
      f += term_f;
      g += term_g;
      if (std::fabs(term_f) + std::fabs(term_g) < 1e-18 * (std::fabs(f) + std::fabs(g))) break;
    }
    return 0.35502805388781723926 * f - 0.25881940379280679841 * g;
  }
  // Far to the left: the oscillating expansion.
  double a = -x, z = 2.0 / 3 * a * std::sqrt(a);
  double u = 1, p = 0, q = 0, power = 1;
  for (int k = 0; k < 20; ++k) {
    if (k > 0) u *= (6.0 * k - 5) * (6.0 * k - 3) * (6.0 * k - 1) / ((2.0 * k - 1) * 216 * k);
    double term = u / power;
    if (k > 4 && std::fabs(term) < 1e-17) break;
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
  return (std::cos(z - kPi / 4) * p + std::sin(z - kPi / 4) * q) /
         (std::sqrt(kPi) * std::sqrt(std::sqrt(a)));
}

}  // namespace tessera::special
