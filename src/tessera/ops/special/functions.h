// Special functions, in double precision: right to a few units in the last place where they are
// tame, by series, continued fractions, recurrences and integrals. One element at a time.
#pragma once
#include <cmath>
#include <cstdint>
#include <limits>

namespace tessera::special {

double digamma(double x);
// Hurwitz zeta: sum over k of (k + q) to the power of -s.
double zeta(double s, double q);
double polygamma(int64_t n, double x);
double trigamma(double x);
// Regularised incomplete gamma functions, lower and upper.
double gammainc(double a, double x);
double gammaincc(double a, double x);

double erfinv(double x);
double erfcx(double x);
double ndtri(double p);
double log_ndtr(double x);

// Modified Bessel functions of the first kind; the second argument of the template-free ones: times
// exp(-|x|).
double i0(double x);
double i0e(double x);
double i1(double x);
double i1e(double x);
double k0(double x);
double k0e(double x);
double k1(double x);
double k1e(double x);
double airy_ai(double x);
double spherical_j0(double x);

// Orthogonal polynomials of degree n.
double chebyshev_t(double x, double n);
double chebyshev_u(double x, double n);
double chebyshev_v(double x, double n);
double chebyshev_w(double x, double n);
double hermite_h(double x, double n);
double hermite_he(double x, double n);
double laguerre_l(double x, double n);
double legendre_p(double x, double n);

}  // namespace tessera::special
