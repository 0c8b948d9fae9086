// The error function's relatives.
#include "tessera/ops/special/functions.h"

namespace tessera::special {

namespace {
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kRootPi = 1.7724538509055160273;
constexpr double kRoot2 = 1.41421356237309504880;
constexpr double kPi = 3.14159265358979323846;
}  // namespace

double erfcx(double x) {
  if (x < -26.7) return kInf;
  if (x < 12) return std::exp(x * x) * std::erfc(x);
  if (x > 1e8) return 1 / (kRootPi * x);
  // The continued fraction of Laplace, from its end.
  double f = x;
  for (int k = 60; k > 0; --k) f = x + 0.5 * k / f;
  return 1 / (kRootPi * f);
}

namespace {

// The y with erfc(y) = p, for p in (0, 1].
double erfc_inverse(double p) {
  // A start that is good to a few percent, then Halley's steps on log erfc, which is nearly a
  // parabola however small p is.
  double l = std::log(p * (2 - p));
  double c = 2 / (kPi * 0.147) + 0.5 * l;
  double y = std::sqrt(std::sqrt(c * c - l / 0.147) - c);
  double target = std::log(p);
  for (int i = 0; i < 4; ++i) {
    // log erfc(y) = log erfcx(y) - y^2, and its derivative is -2 / (sqrt(pi) erfcx(y)).
    double e = y < 5 ? std::log(std::erfc(y)) : std::log(erfcx(y)) - y * y;
    double slope = -2 / (kRootPi * erfcx(y));
    double step = (e - target) / slope;
    // Second derivative over first: -2 y - slope.
    double bend = -2 * y - slope;
    y -= step / (1 - 0.5 * step * bend);
  }
  return y;
}

}  // namespace

double erfinv(double x) {
  if (std::isnan(x) || x < -1 || x > 1) return kNaN;
  if (x == 1 || x == -1) return x * kInf;
  if (x == 0) return x;
  double a = std::fabs(x), y;
  if (a > 0.5) {
    y = erfc_inverse(1 - a);
  } else {
    // Near zero erf itself is well scaled.
    y = a * kRootPi / 2;
    for (int i = 0; i < 6; ++i) {
      double error = std::erf(y) - a;
      double step = error / (2 / kRootPi * std::exp(-y * y));
      y -= step / (1 + y * step);
    }
  }
  return std::copysign(y, x);
}

double ndtri(double p) {
  if (std::isnan(p) || p < 0 || p > 1) return kNaN;
  if (p == 0) return -kInf;
  if (p == 1) return kInf;
  if (p < 0.25) return -kRoot2 * erfc_inverse(2 * p);
  return kRoot2 * erfinv(2 * p - 1);
}

double log_ndtr(double x) {
  double t = x / kRoot2;
  if (x < -1) return std::log(erfcx(-t) / 2) - t * t;
  return std::log1p(-std::erfc(t) / 2);
}

}  // namespace tessera::special
