// The gamma function's derivatives, its incomplete forms, and zeta.
#include "tessera/ops/special/functions.h"

namespace tessera::special {

namespace {
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kPi = 3.14159265358979323846;
constexpr double kTiny = 1e-300;
// B(2k) / (2k)!
constexpr double kBernoulli[] = {1.0 / 12,
                                 -1.0 / 720,
                                 1.0 / 30240,
                                 -1.0 / 1209600,
                                 1.0 / 47900160,
                                 -691.0 / 1307674368000,
                                 1.0 / 74724249600,
                                 -3617.0 / 10670622842880000,
                                 43867.0 / 5109094217170944000,
                                 -174611.0 / 802857662698291200000.0};
}  // namespace

double digamma(double x) {
  if (x == 0) return std::copysign(kInf, -x);
  if (std::isinf(x)) return x > 0 ? x : kNaN;
  double shift = 0;
  if (x < 0) {
    if (x == std::floor(x)) return kNaN;
    // Reflection; the fraction keeps the tangent exact for large arguments.
    double fraction = x - std::trunc(x);
    shift = -kPi / std::tan(kPi * fraction);
    x = 1 - x;
  }
  while (x < 12) {
    shift -= 1 / x;
    x += 1;
  }
  // The asymptotic series, B(2k) / (2k x^2k).
  double y = 1 / (x * x), series = 0, power = y;
  constexpr double b[] = {1.0 / 12,  -1.0 / 120,     1.0 / 252, -1.0 / 240,
                          1.0 / 132, -691.0 / 32760, 1.0 / 12,  -3617.0 / 8160};
  for (double c : b) {
    series += c * power;
    power *= y;
  }
  return std::log(x) - 0.5 / x - series + shift;
}

double zeta(double s, double q) {
  if (s == 1) return kInf;
  if (s < 1 || std::isnan(s) || std::isnan(q)) return kNaN;
  if (q <= 0) {
    if (q == std::floor(q)) return kInf;
    if (s != std::floor(s)) return kNaN;
  }
  // Euler and Maclaurin: terms up to a point, then the integral and corrections.
  double sum = 0;
  double at = q;
  int direct = 0;
  while (direct < 12 || at < 10) {
    double term = std::pow(at, -s);
    sum += term;
    at += 1;
    if (++direct > 12 && std::fabs(term) < 1e-17 * std::fabs(sum) && at > 0) return sum;
    if (direct > 100000) break;
  }
  if (std::isinf(s)) return sum;
  double tail = std::pow(at, -s);
  sum += std::pow(at, 1 - s) / (s - 1) + 0.5 * tail;
  double factor = s * tail / at;
  for (int k = 0; k < 10; ++k) {
    double term = kBernoulli[k] * factor;
    sum += term;
    if (std::fabs(term) < 1e-17 * std::fabs(sum)) break;
    factor *= (s + 2 * k + 1) * (s + 2 * k + 2) / (at * at);
  }
  return sum;
}

double trigamma(double x) {
  if (x < 0.5) {
    double s = std::sin(kPi * x);
    return kPi * kPi / (s * s) - trigamma(1 - x);
  }
  return zeta(2, x);
}

double polygamma(int64_t n, double x) {
  if (n == 0) return digamma(x);
  if (n == 1) return trigamma(x);
  double sign = n % 2 ? 1 : -1;
  return sign * std::exp(std::lgamma(static_cast<double>(n) + 1)) *
         zeta(static_cast<double>(n) + 1, x);
}

namespace {

// x^a e^-x / Gamma(a + 1), without overflow.
double front(double a, double x) {
  if (a < 20) return std::exp(a * std::log(x) - x - std::lgamma(a + 1));
  // Near x = a the exponent is a small difference of large numbers.
  double d = (x - a) / a;
  double exponent = a * (std::log1p(d) - d);
  // Stirling's correction of Gamma(a + 1).
  double y = 1 / a, correction = y / 12 - y * y * y / 360 + y * y * y * y * y / 1260;
  return std::exp(exponent - correction) / std::sqrt(2 * kPi * a);
}

double lower_series(double a, double x) {
  double term = 1, sum = 1;
  for (int n = 1; n < 100000; ++n) {
    term *= x / (a + n);
    sum += term;
    if (term < 1e-17 * sum) break;
  }
  return front(a, x) * sum;
}

double upper_fraction(double a, double x) {
  // Lentz's method on 1 / (x + 1 - a - 1 (1 - a) / (x + 3 - a - ...)).
  double b = x + 1 - a, c = 1 / kTiny, d = 1 / b, h = d;
  for (int n = 1; n < 100000; ++n) {
    double an = -n * (n - a);
    b += 2;
    d = an * d + b;
    if (std::fabs(d) < kTiny) d = kTiny;
    c = b + an / c;
    if (std::fabs(c) < kTiny) c = kTiny;
    d = 1 / d;
    double step = d * c;
    h *= step;
    if (std::fabs(step - 1) < 1e-16) break;
  }
  return front(a, x) * a * h;
}

}  // namespace

double gammainc(double a, double x) {
  if (std::isnan(a) || std::isnan(x) || x < 0 || a < 0) return kNaN;
  if (a == 0) return x > 0 ? 1 : kNaN;
  if (x == 0) return 0;
  if (std::isinf(a)) return std::isinf(x) ? kNaN : 0;
  if (std::isinf(x)) return 1;
  return x <= 1 || x <= a ? lower_series(a, x) : 1 - upper_fraction(a, x);
}

double gammaincc(double a, double x) {
  if (std::isnan(a) || std::isnan(x) || x < 0 || a < 0) return kNaN;
  if (a == 0) return x > 0 ? 0 : kNaN;
  if (x == 0) return 1;
  if (std::isinf(a)) return std::isinf(x) ? kNaN : 1;
  if (std::isinf(x)) return 0;
  return x <= 1 || x <= a ? 1 - lower_series(a, x) : upper_fraction(a, x);
}

}  // namespace tessera::special
