// Special functions, in double precision: right to a few units in the last place where they are
// tame, by series, continued fractions, recurrences and integrals. One element at a time, the same
// text on every device: bodies that say `special::` get it. Functions of <cmath> are named without
// their namespace; device code has its own of those names.
#pragma once
#include <cmath>
#include <limits>

#include "tessera/ops/shared_math.h"

#define TS_SPECIAL_FN inline
// Before a loop that a device's compiler is not to unroll: the functions in them are long there.
#define TS_ROLLED

namespace tessera::special {

using std::acos;
using std::copysign;
using std::cos;
using std::cosh;
using std::erf;
using std::erfc;
using std::exp;
using std::fabs;
using std::floor;
using std::isinf;
using std::isnan;
using std::lgamma;
using std::log;
using std::log1p;
using std::pow;
using std::sin;
using std::sinh;
using std::sqrt;
using std::tan;
using std::trunc;

TS_SHARED_MATH(
    common, constexpr double kPi = 3.14159265358979323846;
    constexpr double kRootPi = 1.7724538509055160273;
    constexpr double kRoot2 = 1.41421356237309504880;
    TS_SPECIAL_FN double no_number() { return std::numeric_limits<double>::quiet_NaN(); }  //
    TS_SPECIAL_FN double infinite() { return std::numeric_limits<double>::infinity(); })

}  // namespace tessera::special
