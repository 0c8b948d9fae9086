// Complex numbers in kernels: the struct of base/complex.h and the functions of
// ops/complex_math.h, by real ones.
#include "prelude.h"

namespace tessera::cuda {

// The inverse functions are Kahan's formulas, by square roots of 1 + z and 1 - z: right on both
// sides of their cuts.
const char* complex_prelude_text() {
  return R"(template <class R> struct __align__(2 * sizeof(R)) Complex {
  typedef R Real;
  R re, im;
  Complex() = default;
  TS_MEMBER Complex(R r, R i) : re(r), im(i) {}
  template <class N> TS_MEMBER Complex(N r) : re((R)r), im(0) {}
  template <class O> TS_MEMBER explicit Complex(const Complex<O>& o) : re((R)o.re), im((R)o.im) {}
};
template <class R> inline constexpr bool is_complex_v<Complex<R>> = true;
#define TS_C template <class R> TS_FN Complex<R>
TS_C operator+(Complex<R> a, Complex<R> b) { return {a.re + b.re, a.im + b.im}; }
TS_C operator-(Complex<R> a, Complex<R> b) { return {a.re - b.re, a.im - b.im}; }
TS_C operator-(Complex<R> a) { return {-a.re, -a.im}; }
TS_C operator*(Complex<R> a, Complex<R> b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
TS_C operator/(Complex<R> a, Complex<R> b) {
  R x = b.re < 0 ? -b.re : b.re, y = b.im < 0 ? -b.im : b.im;
  if (x >= y) {
    if (x == 0 && y == 0) return {a.re / x, a.im / y};
    R ratio = b.im / b.re, scale = R(1) / (b.re + b.im * ratio);
    return {(a.re + a.im * ratio) * scale, (a.im - a.re * ratio) * scale};
  }
  R ratio = b.re / b.im, scale = R(1) / (b.re * ratio + b.im);
  return {(a.re * ratio + a.im) * scale, (a.im * ratio - a.re) * scale};
}
template <class R> TS_FN bool operator==(Complex<R> a, Complex<R> b) { return a.re == b.re && a.im == b.im; }
template <class R> TS_FN bool operator!=(Complex<R> a, Complex<R> b) { return !(a == b); }
TS_C negate(Complex<R> x) { return {negate(x.re), negate(x.im)}; }
TS_C conj(Complex<R> x) { return {x.re, negate(x.im)}; }
template <class R> TS_FN bool isnan(Complex<R> x) { return isnan(x.re) || isnan(x.im); }
template <class R> TS_FN bool is_nan(Complex<R> x) { return isnan(x); }
template <class R> TS_FN bool isinf(Complex<R> x) { return isinf(x.re) || isinf(x.im); }
template <class R> TS_FN bool isfinite(Complex<R> x) { return isfinite(x.re) && isfinite(x.im); }
template <class R> TS_FN R abs(Complex<R> x) { return hypot(x.re, x.im); }
template <class R> TS_FN R arg(Complex<R> x) { return atan2(x.im, x.re); }
TS_C scaled(Complex<R> x, R by) { return {x.re * by, x.im * by}; }
TS_C exp(Complex<R> x) {
  R size = exp(x.re);
  if (x.im == 0) return {size, x.im};
  if (size == 0) return {R(0), R(0)};
  return {size * cos(x.im), size * sin(x.im)};
}
TS_C expm1(Complex<R> x) {
  R half = sin(x.im / 2);
  return {expm1(x.re) * cos(x.im) - 2 * half * half, exp(x.re) * sin(x.im)};
}
TS_C exp2(Complex<R> x) { return exp(scaled(x, R(0.693147180559945309417))); }
// Near size 1 the logarithm is that of what is left of it.
TS_C log(Complex<R> x) {
  R a = abs(x.re), b = abs(x.im), angle = atan2(x.im, x.re);
  R high = a > b ? a : b, low = a > b ? b : a;
  bool near = high > R(0.5) && high < R(2);
  return {near ? R(0.5) * log1p((high - 1) * (high + 1) + low * low) : log(hypot(a, b)), angle};
}
TS_C log1p(Complex<R> x) {
  R angle = atan2(x.im, x.re + 1), size = hypot(x.re, x.im);
  if (size < R(0.5) && size > R(1e-15)) return {R(0.5) * log1p(x.re * (x.re + 2) + x.im * x.im), angle};
  return {size <= R(1e-15) ? x.re : log(hypot(x.re + 1, x.im)), angle};
}
TS_C log2(Complex<R> x) { return scaled(log(x), R(1.44269504088896340736)); }
TS_C log10(Complex<R> x) { return scaled(log(x), R(0.434294481903251827651)); }
TS_C sqrt(Complex<R> x) {
  R a = abs(x.re), b = abs(x.im);
  if (a == 0 && b == 0) return {R(0), x.im};
  if (isinf(x.im)) return {b, x.im};
  // Scaled so that the sum neither overflows nor vanishes.
  bool large = (a > b ? a : b) > R(1e30), tiny = (a > b ? a : b) < R(1e-30);
  R by = large ? R(0.0625) : tiny ? R(68719476736.0) : R(1), back = large ? R(4) : tiny ? R(3.814697265625e-6) : R(1);
  R root = sqrt((a * by + hypot(a * by, b * by)) * R(0.5)) * back, other = b / (2 * root);
  return x.re >= 0 ? Complex<R>(root, x.im / (2 * root)) : Complex<R>(other, copysign(root, x.im));
}
TS_C sinh(Complex<R> x) { return {sinh(x.re) * cos(x.im), cosh(x.re) * sin(x.im)}; }
TS_C cosh(Complex<R> x) { return {cosh(x.re) * cos(x.im), sinh(x.re) * sin(x.im)}; }
TS_C tanh(Complex<R> x) {
  if (abs(x.re) > R(20)) {
    R rest = 4 * sin(x.im) * cos(x.im) * exp(-2 * abs(x.re));
    return {copysign(R(1), x.re), isinf(x.im) ? copysign(R(0), x.im) : rest};
  }
  R t = tan(x.im), beta = 1 + t * t, s = sinh(x.re), rho = sqrt(1 + s * s);
  if (isinf(t)) return {rho / s, 1 / t};
  R below = 1 + beta * s * s;
  return {beta * rho * s / below, t / below};
}
TS_C sin(Complex<R> x) { return {sin(x.re) * cosh(x.im), cos(x.re) * sinh(x.im)}; }
TS_C cos(Complex<R> x) { return {cos(x.re) * cosh(x.im), negate(sin(x.re) * sinh(x.im))}; }
TS_C tan(Complex<R> x) {
  Complex<R> y = tanh(Complex<R>(negate(x.im), x.re));
  return {y.im, negate(y.re)};
}
TS_C asin(Complex<R> x) {
  Complex<R> a = sqrt(Complex<R>(1 - x.re, negate(x.im))), b = sqrt(Complex<R>(1 + x.re, x.im));
  return {atan2(x.re, a.re * b.re - a.im * b.im), asinh(a.re * b.im - a.im * b.re)};
}
TS_C acos(Complex<R> x) {
  Complex<R> a = sqrt(Complex<R>(1 - x.re, negate(x.im))), b = sqrt(Complex<R>(1 + x.re, x.im));
  return {2 * atan2(a.re, b.re), asinh(b.re * a.im - b.im * a.re)};
}
TS_C acosh(Complex<R> x) {
  Complex<R> a = sqrt(Complex<R>(x.re - 1, x.im)), b = sqrt(Complex<R>(x.re + 1, x.im));
  return {asinh(a.re * b.re + a.im * b.im), 2 * atan2(a.im, b.re)};
}
TS_C asinh(Complex<R> x) {
  Complex<R> y = asin(Complex<R>(negate(x.im), x.re));
  return {y.im, negate(y.re)};
}
TS_C atanh(Complex<R> x) {
  R a = abs(x.re), from_one = 1 - a, squares = x.im * x.im;
  return {copysign(R(0.25) * log1p(4 * a / (from_one * from_one + squares)), x.re),
          R(0.5) * atan2(2 * x.im, from_one * (1 + a) - squares)};
}
TS_C atan(Complex<R> x) {
  Complex<R> y = atanh(Complex<R>(negate(x.im), x.re));
  return {y.im, negate(y.re)};
}
TS_C pow(Complex<R> x, Complex<R> y) {
  if (x == Complex<R>(0) && y.re > 0) return Complex<R>(0);
  return exp(y * log(x));
}
)";
}

}  // namespace tessera::cuda
