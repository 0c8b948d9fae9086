// Elementary functions of complex numbers that operator bodies call. Right by libm, one element at
// a time.
#pragma once
#include <complex>

#include "tessera/base/complex.h"
#include "tessera/ops/float_math.h"

namespace tessera::math {

namespace detail {
template <class R>
TS_MATH_FN std::complex<R> to_std(Complex<R> x) {
  return {x.re, x.im};
}
template <class R>
TS_MATH_FN Complex<R> from_std(std::complex<R> x) {
  return {x.real(), x.imag()};
}
}  // namespace detail

template <class R>
TS_MATH_FN Complex<R> negate(Complex<R> x) {
  return {negate(x.re), negate(x.im)};
}
template <class R>
TS_MATH_FN Complex<R> conj(Complex<R> x) {
  return {x.re, negate(x.im)};
}
template <class R>
TS_MATH_FN bool isnan(Complex<R> x) {
  return isnan(x.re) || isnan(x.im);
}
template <class R>
TS_MATH_FN bool is_nan(Complex<R> x) {
  return isnan(x);
}
template <class R>
TS_MATH_FN bool isinf(Complex<R> x) {
  return isinf(x.re) || isinf(x.im);
}
template <class R>
TS_MATH_FN bool isfinite(Complex<R> x) {
  return isfinite(x.re) && isfinite(x.im);
}
template <class R>
TS_MATH_FN R abs(Complex<R> x) {
  return hypot(x.re, x.im);
}
template <class R>
TS_MATH_FN R arg(Complex<R> x) {
  return atan2(x.im, x.re);
}

#define TS_COMPLEX_FN(name)                                \
  template <class R>                                       \
  TS_MATH_FN Complex<R> name(Complex<R> x) {               \
    return detail::from_std(std::name(detail::to_std(x))); \
  }
TS_COMPLEX_FN(exp)
TS_COMPLEX_FN(log)
TS_COMPLEX_FN(log10)
TS_COMPLEX_FN(sqrt)
TS_COMPLEX_FN(sin)
TS_COMPLEX_FN(cos)
TS_COMPLEX_FN(tan)
TS_COMPLEX_FN(asin)
TS_COMPLEX_FN(acos)
TS_COMPLEX_FN(atan)
TS_COMPLEX_FN(sinh)
TS_COMPLEX_FN(cosh)
TS_COMPLEX_FN(tanh)
TS_COMPLEX_FN(asinh)
TS_COMPLEX_FN(acosh)
TS_COMPLEX_FN(atanh)
#undef TS_COMPLEX_FN

template <class R>
TS_MATH_FN Complex<R> exp2(Complex<R> x) {
  return exp(Complex<R>(x.re * R(0.693147180559945309417), x.im * R(0.693147180559945309417)));
}
template <class R>
TS_MATH_FN Complex<R> log2(Complex<R> x) {
  Complex<R> y = log(x);
  return {y.re * R(1.44269504088896340736), y.im * R(1.44269504088896340736)};
}
// By functions that are exact for small real parts.
template <class R>
TS_MATH_FN Complex<R> expm1(Complex<R> x) {
  R half = std::sin(x.im / 2);
  return {std::expm1(x.re) * std::cos(x.im) - 2 * half * half, std::exp(x.re) * std::sin(x.im)};
}
template <class R>
TS_MATH_FN Complex<R> log1p(Complex<R> x) {
  R angle = std::atan2(x.im, x.re + 1);
  R size = std::hypot(x.re, x.im);
  // Squares neither overflow nor vanish in between.
  if (size < R(0.5) && size > R(1e-15))
    return {R(0.5) * std::log1p(x.re * (x.re + 2) + x.im * x.im), angle};
  return {size <= R(1e-15) ? x.re : std::log(std::hypot(x.re + 1, x.im)), angle};
}

template <class R>
TS_MATH_FN Complex<R> pow(Complex<R> x, Complex<R> y) {
  return detail::from_std(std::pow(detail::to_std(x), detail::to_std(y)));
}

}  // namespace tessera::math
