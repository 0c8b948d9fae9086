// Complex numbers in kernels: the struct of base/complex.h and the functions of
// ops/complex_math.h, by real ones.
#include "prelude.h"

namespace tessera::cuda {

// The inverse functions are Kahan's formulas, by square roots of 1 + z and 1 - z: right on both
// sides of their cuts. Infinities, NaN and signs of zeros are those of C's functions (Annex G of
// its standard), which the CPU has.
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
TS_C opaque(Complex<R> x) { return {opaque(x.re), opaque(x.im)}; }
TS_C hidden(Complex<R> x) { return {hidden(x.re), hidden(x.im)}; }
TS_C one_nan(Complex<R> x) { return {one_nan(x.re), one_nan(x.im)}; }
TS_C negate(Complex<R> x) { return {negate(x.re), negate(x.im)}; }
TS_C conj(Complex<R> x) { return {x.re, negate(x.im)}; }
template <class R> TS_FN bool isnan(Complex<R> x) { return isnan(x.re) || isnan(x.im); }
template <class R> TS_FN bool is_nan(Complex<R> x) { return isnan(x); }
template <class R> TS_FN bool isinf(Complex<R> x) { return isinf(x.re) || isinf(x.im); }
template <class R> TS_FN bool isfinite(Complex<R> x) { return isfinite(x.re) && isfinite(x.im); }
template <class R> TS_FN R abs(Complex<R> x) { return hypot(x.re, x.im); }
template <class R> TS_FN R arg(Complex<R> x) { return atan2(x.im, x.re); }
TS_C scaled(Complex<R> x, R by) { return {x.re * by, x.im * by}; }
template <class R> TS_FN R no_number() { return std::numeric_limits<R>::quiet_NaN(); }
template <class R> TS_FN R infinite() { return std::numeric_limits<R>::infinity(); }
TS_FN float fused(float x, float y, float z) { return ::fmaf(x, y, z); }
TS_FN double fused(double x, double y, double z) { return ::fma(x, y, z); }
TS_FN void turn(float x, float& s, float& c) { ::sincosf(x, &s, &c); }
TS_FN void turn(double x, double& s, double& c) { ::sincos(x, &s, &c); }
// exp(x) * by * (c, s), where exp(x) alone may be too large.
TS_C stretched(R x, R by, R c, R s) {
  const R size = exp(x);
  if (!isinf(size)) return {size * (by * c), size * (by * s)};
  const R half = exp(x / 2);
  return {half * (by * c) * half, half * (by * s) * half};
}
TS_C exp(Complex<R> x) {
  if (x.im == 0) return {exp(x.re), x.im};
  R s, c;
  turn(x.im, s, c);
  if (!isinf(x.re)) return stretched(x.re, R(1), c, s);
  const R size = x.re > 0 ? x.re : R(0);
  if (isfinite(x.im)) return {copysign(size, c), copysign(size, s)};
  return {size, x.re > 0 ? no_number<R>() : copysign(R(0), x.im)};
}
TS_C logistic(Complex<R> x) { return Complex<R>(R(1)) / (Complex<R>(R(1)) + exp(negate(x))); }
TS_C expm1(Complex<R> x) {
  R half = sin(x.im / 2);
  return {expm1(x.re) * cos(x.im) - 2 * half * half, exp(x.re) * sin(x.im)};
}
TS_C exp2(Complex<R> x) { return exp(scaled(x, R(0.693147180559945309417))); }
// x + y; what is lost of it is added to `rest`.
template <class R> TS_FN R sum_and_rest(R x, R y, R& rest) {
  R sum = x + y, moved = sum - x;
  rest += (x - (sum - moved)) + (y - moved);
  return sum;
}
// high^2 + low^2 - 1 without cancellation, of numbers around 1.
template <class R> TS_FN R squares_less_one(R high, R low) {
  R a = high * high, b = low * low, rest = fused(high, high, -a) + fused(low, low, -b);
  R sum = sum_and_rest(sum_and_rest(a, R(-1), rest), b, rest);
  return sum + rest;
}
// Near size 1 the logarithm is that of what is left of it. Elsewhere scaled where the size is beyond
// what numbers hold, or has few digits.
TS_C log(Complex<R> x) {
  R a = abs(x.re), b = abs(x.im), angle = atan2(x.im, x.re);
  R high = a > b ? a : b, low = a > b ? b : a;
  if (high > R(0.5) && high < R(2) && low < R(2))
    return {R(0.5) * log1p(squares_less_one(high, low)), angle};
  const R large = std::numeric_limits<R>::max() / 4, small = std::numeric_limits<R>::min() * 4;
  const R by = sizeof(R) == 4 ? R(16777216) : R(9007199254740992.0), bits = sizeof(R) == 4 ? R(24) : R(53);
  const R scale = high > large ? R(1) / by : high < small ? by : R(1);
  const R off = high > large ? bits : high < small ? -bits : R(0);
  const R size = log(hypot(a * scale, b * scale));
  return {off == 0 || isinf(size) ? size : size + off * R(0.693147180559945309417), angle};
}
TS_C log1p(Complex<R> x) {
  R angle = atan2(x.im, x.re + 1), size = hypot(x.re, x.im);
  if (size < R(0.5) && size > R(1e-15)) return {R(0.5) * log1p(x.re * (x.re + 2) + x.im * x.im), angle};
  return {size <= R(1e-15) ? x.re : log(hypot(x.re + 1, x.im)), angle};
}
TS_C log2(Complex<R> x) { return scaled(log(x), R(1.44269504088896340736)); }
TS_C log10(Complex<R> x) {
  Complex<R> y = log(x);
  return {y.re / R(2.302585092994045684), y.im / R(2.302585092994045684)};
}
TS_C sqrt(Complex<R> x) {
  R a = abs(x.re), b = abs(x.im);
  if (isinf(b)) return {b, x.im};
  if (isinf(a)) {
    const R other = isnan(x.im) ? x.im : R(0);
    return x.re > 0 ? Complex<R>(a, copysign(other, x.im)) : Complex<R>(other, copysign(a, x.im));
  }
  if (a == 0 && b == 0) return {R(0), x.im};
  if (b == 0 && !isnan(a)) {
    const R root = sqrt(a);
    return x.re > 0 ? Complex<R>(root, x.im) : Complex<R>(R(0), copysign(root, x.im));
  }
  // Scaled so that the sum neither overflows nor vanishes.
  bool large = (a > b ? a : b) > R(1e30), tiny = (a > b ? a : b) < R(1e-30);
  R up = sizeof(R) == 4 ? R(68719476736.0) : R(1.6069380442589903e60);
  R down = sizeof(R) == 4 ? R(3.814697265625e-6) : R(7.8886090522101181e-31);
  R by = large ? R(0.0625) : tiny ? up : R(1), back = large ? R(4) : tiny ? down : R(1);
  R root = sqrt((a * by + hypot(a * by, b * by)) * R(0.5)) * back, other = b / (2 * root);
  return x.re >= 0 ? Complex<R>(root, copysign(other, x.im)) : Complex<R>(other, copysign(root, x.im));
}
// The functions below are long, and seldom what a kernel waits for: one copy of each.
#define TS_CN template <class R> static __device__ __noinline__ Complex<R>
TS_CN sinh(Complex<R> x) {
  if (!isfinite(x.im))
    return {x.re == 0 ? x.re : isinf(x.re) ? abs(x.re) : no_number<R>(), no_number<R>()};
  if (x.im == 0) return {sinh(x.re), x.im};
  R s, c;
  turn(x.im, s, c);
  if (isinf(x.re)) return {copysign(x.re, x.re * c), copysign(x.re, s)};
  if (!(abs(x.re) >= R(20))) return {sinh(x.re) * c, cosh(x.re) * s};
  return stretched(abs(x.re), R(0.5), x.re < 0 ? negate(c) : c, s);
}
TS_CN cosh(Complex<R> x) {
  if (!isfinite(x.im))
    return {isinf(x.re) ? abs(x.re) : no_number<R>(), x.re == 0 ? R(0) : no_number<R>()};
  if (x.im == 0) return {cosh(x.re), isnan(x.re) ? x.im : x.im * copysign(R(1), x.re)};
  R s, c;
  turn(x.im, s, c);
  if (isinf(x.re)) return {copysign(x.re, c), copysign(x.re, x.re * s)};
  if (!(abs(x.re) >= R(20))) return {cosh(x.re) * c, sinh(x.re) * s};
  return stretched(abs(x.re), R(0.5), c, x.re < 0 ? negate(s) : s);
}
TS_CN tanh(Complex<R> x) {
  if (x.im == 0) return {tanh(x.re), x.im};
  R s, c;
  turn(x.im, s, c);
  if (isinf(x.re)) {
    const bool turns = isfinite(x.im) && abs(x.im) > R(1);
    return {copysign(R(1), x.re), copysign(R(0), turns ? s * c : x.im)};
  }
  if (isnan(x.re) || !isfinite(x.im)) return {x.re == 0 ? x.re : no_number<R>(), no_number<R>()};
  if (abs(x.re) > R(20)) return {copysign(R(1), x.re), 4 * s * c * exp(-2 * abs(x.re))};
  const R sh = sinh(x.re), ch = cosh(x.re), below = sh * sh + c * c;
  return {sh * ch / below, s * c / below};
}
TS_C sin(Complex<R> x) {
  if (!isfinite(x.re) && isinf(x.im)) return {no_number<R>(), abs(x.im)};
  Complex<R> y = sinh(Complex<R>(negate(x.im), x.re));
  return {y.im, negate(y.re)};
}
TS_C cos(Complex<R> x) { return cosh(Complex<R>(negate(x.im), x.re)); }
TS_C tan(Complex<R> x) {
  Complex<R> y = tanh(Complex<R>(negate(x.im), x.re));
  return {y.im, negate(y.re)};
}
// So large that adding or subtracting 1 to the square changes nothing.
template <class R> TS_FN bool huge(Complex<R> x) {
  const R size = sizeof(R) == 4 ? R(1e5) : R(1e10);
  return abs(x.re) > size || abs(x.im) > size;
}
// log(2 |x|)
template <class R> TS_FN R log_twice(Complex<R> x) {
  const R high = max(abs(x.re), abs(x.im)), low = min(abs(x.re), abs(x.im)) / high;
  return log(high) + R(0.693147180559945309417) + R(0.5) * log1p(low * low);
}
TS_CN asinh(Complex<R> x) {
  const R pi = R(3.14159265358979323846);
  if (isinf(x.im)) {
    if (isnan(x.re)) return {abs(x.im), x.re};
    return {copysign(x.im, x.re), copysign(isinf(x.re) ? pi / 4 : pi / 2, x.im)};
  }
  if (isinf(x.re)) return {x.re, isnan(x.im) ? x.im : copysign(R(0), x.im)};
  if (isnan(x.re)) return {x.re, x.im == 0 ? x.im : x.re};
  if (isnan(x.im)) return {x.im, x.im};
  if (x.re == 0 && x.im == 0) return x;
  if (huge(x)) return {copysign(log_twice(x), x.re), atan2(x.im, abs(x.re))};
  Complex<R> a = sqrt(Complex<R>(1 + x.im, negate(x.re))), b = sqrt(Complex<R>(1 - x.im, x.re));
  return {copysign(asinh(a.re * b.im - a.im * b.re), x.re), atan2(x.im, a.re * b.re - a.im * b.im)};
}
TS_C asin(Complex<R> x) {
  if (isnan(x.re) || isnan(x.im)) {
    if (x.re == 0) return x;
    return {no_number<R>(), isinf(x.re) || isinf(x.im) ? copysign(infinite<R>(), x.im) : no_number<R>()};
  }
  Complex<R> y = asinh(Complex<R>(negate(x.im), x.re));
  return {y.im, negate(y.re)};
}
TS_CN acos(Complex<R> x) {
  const R half_pi = R(1.57079632679489661923);
  if (!isfinite(x) || (x.re == 0 && x.im == 0)) {
    Complex<R> y = asin(x);
    return {half_pi - y.re, negate(y.im)};
  }
  if (huge(x)) return {abs(atan2(x.im, x.re)), negate(copysign(log_twice(x), x.im))};
  Complex<R> a = sqrt(Complex<R>(1 - x.re, negate(x.im))), b = sqrt(Complex<R>(1 + x.re, x.im));
  return {2 * atan2(a.re, b.re), negate(copysign(asinh(b.re * a.im - b.im * a.re), x.im))};
}
TS_CN acosh(Complex<R> x) {
  const R pi = R(3.14159265358979323846);
  if (isinf(x.im)) {
    const R angle = isinf(x.re) ? (x.re < 0 ? pi - pi / 4 : pi / 4) : pi / 2;
    return {abs(x.im), isnan(x.re) ? x.re : copysign(angle, x.im)};
  }
  if (isinf(x.re)) return {abs(x.re), isnan(x.im) ? x.im : copysign(x.re < 0 ? pi : R(0), x.im)};
  if (isnan(x)) return {no_number<R>(), x.re == 0 ? pi / 2 : no_number<R>()};
  if (x.re == 0 && x.im == 0) return {R(0), copysign(pi / 2, x.im)};
  if (huge(x)) return {log_twice(x), atan2(x.im, x.re)};
  Complex<R> a = sqrt(Complex<R>(x.re - 1, x.im)), b = sqrt(Complex<R>(x.re + 1, x.im));
  return {abs(asinh(a.re * b.re + a.im * b.im)), 2 * atan2(a.im, b.re)};
}
TS_CN atanh(Complex<R> x) {
  const R half_pi = R(1.57079632679489661923);
  if (isinf(x.im)) return {copysign(R(0), x.re), copysign(half_pi, x.im)};
  if (isinf(x.re) || (x.re == 0 && isnan(x.im)))
    return {copysign(R(0), x.re), isnan(x.im) ? x.im : copysign(half_pi, x.im)};
  if (isnan(x)) return {no_number<R>(), no_number<R>()};
  if (x.re == 0 && x.im == 0) return x;
  const R a = abs(x.re), b = abs(x.im), high = max(a, b), low = min(a, b);
  if (huge(x)) {
    // The real part is that of 1 / x.
    const R ratio = low / high, re = (a > b ? R(1) : ratio) / high / (1 + ratio * ratio);
    return {copysign(re, x.re), copysign(half_pi, x.im)};
  }
  const R tiny = sizeof(R) == 4 ? R(1e-12) : R(1e-30);
  const R squares = b > tiny ? b * b : R(0), from_one = 1 - a;
  const R re = a == 1 && b <= tiny ? R(0.5) * (R(0.693147180559945309417) - log(b))
                                   : R(0.25) * log1p(4 * a / (from_one * from_one + squares));
  const R below = high > R(0.5) && high < R(2) ? negate(squares_less_one(high, low))
                                               : (1 - high) * (1 + high) - low * low;
  return {copysign(re, x.re), R(0.5) * atan2(2 * x.im, below == 0 ? R(0) : below)};
}
TS_C atan(Complex<R> x) {
  Complex<R> y = atanh(Complex<R>(negate(x.im), x.re));
  return {y.im, negate(y.re)};
}
// A product in which infinity times what is not zero is infinite.
TS_C times(Complex<R> x, Complex<R> y) {
  Complex<R> z = x * y;
  if (!isnan(z.re) || !isnan(z.im)) return z;
  R a = x.re, b = x.im, c = y.re, d = y.im;
  bool again = false;
  if (isinf(x)) {
    a = copysign(isinf(a) ? R(1) : R(0), a);
    b = copysign(isinf(b) ? R(1) : R(0), b);
    if (isnan(c)) c = copysign(R(0), c);
    if (isnan(d)) d = copysign(R(0), d);
    again = true;
  }
  if (isinf(y)) {
    c = copysign(isinf(c) ? R(1) : R(0), c);
    d = copysign(isinf(d) ? R(1) : R(0), d);
    if (isnan(a)) a = copysign(R(0), a);
    if (isnan(b)) b = copysign(R(0), b);
    again = true;
  }
  if (!again && (isinf(x.re * y.re) || isinf(x.im * y.im) || isinf(x.re * y.im) || isinf(x.im * y.re))) {
    if (isnan(a)) a = copysign(R(0), a);
    if (isnan(b)) b = copysign(R(0), b);
    if (isnan(c)) c = copysign(R(0), c);
    if (isnan(d)) d = copysign(R(0), d);
    again = true;
  }
  if (!again) return z;
  return {infinite<R>() * (a * c - b * d), infinite<R>() * (a * d + b * c)};
}
TS_CN pow(Complex<R> x, Complex<R> y) { return exp(times(y, log(x))); }
)";
}

}  // namespace tessera::cuda
