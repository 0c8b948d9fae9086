// Functions that bodies call and that are the same code on every device: the macro both compiles
// its argument and keeps it as text, which CUDA kernels begin with. No directives inside it, and of
// functions only those of math.h.
#pragma once
#include "tessera/ops/math.h"

#define TS_SHARED_MATH(name, ...) \
  __VA_ARGS__                     \
  inline constexpr const char* name##_text = #__VA_ARGS__;

namespace tessera::math {

// A sign bit, of zeros and NaN too; false of what has none.
TS_SHARED_MATH(
    signs, TS_MATH_FN bool signbit(float x) { return (std::bit_cast<uint32_t>(x) >> 31) != 0; }  //
    TS_MATH_FN bool signbit(double x) { return (std::bit_cast<uint64_t>(x) >> 63) != 0; }        //
    TS_MATH_FN bool signbit(int64_t x) { return x < 0; }                                         //
    template <class T>
    TS_MATH_FN T sign(T x) { return static_cast<T>((x > T(0)) - (x < T(0))); })

// Division of integers never traps: by zero it gives 0 (the CPU's callers raise before), and the
// lowest number wraps. Of floats the quotient is Python's: floor(a / b) as if computed exactly.
TS_SHARED_MATH(
    division,
    TS_MATH_FN int64_t div_trunc(int64_t a, int64_t b) {
      if (b == 0) return 0;
      return b == -1 ? negate(a) : a / b;
    }                                                                         //
    TS_MATH_FN float div_trunc(float a, float b) { return trunc(a / b); }     //
    TS_MATH_FN double div_trunc(double a, double b) { return trunc(a / b); }  //
    TS_MATH_FN int64_t div_floor(int64_t a, int64_t b) {
      int64_t q = div_trunc(a, b);
      return b != 0 && (a < 0) != (b < 0) && q * b != a ? q - 1 : q;
    }  //
    template <class T>
    TS_MATH_FN T div_floor(T a, T b) {
      T mod = fmod(a, b);
      T exact = (a - mod) / b;
      T div = mod != T(0) && (b < T(0)) != (mod < T(0)) ? exact - T(1) : exact;
      T down = floor(div);
      T near = div - down > T(0.5) ? down + T(1) : down;
      T q = div != T(0) ? near : copysign(T(0), a / b);
      return b == T(0) ? a / b : q;
    }  //
    TS_MATH_FN int64_t fmod(int64_t a, int64_t b) {
      return b == 0 || b == -1 ? int64_t(0) : a % b;
    }  //
    TS_MATH_FN int64_t modulo(int64_t a, int64_t b) {
      int64_t mod = fmod(a, b);
      return mod != 0 && (b < 0) != (mod < 0) ? mod + b : mod;
    }  //
    template <class T>
    TS_MATH_FN T modulo(T a, T b) {
      T mod = fmod(a, b);
      return mod != T(0) && (b < T(0)) != (mod < T(0)) ? mod + b : mod;
    })

// A shift by less than nothing or by all bits leaves the sign, or nothing. Divisors are those of
// the sizes, without a sign: the lowest integer has no positive one.
TS_SHARED_MATH(
    integers,
    TS_MATH_FN int64_t shift_left(int64_t a, int64_t b) {
      return b < 0 || b > 63 ? int64_t(0) : static_cast<int64_t>(static_cast<uint64_t>(a) << b);
    }  //
    TS_MATH_FN int64_t shift_right(int64_t a, int64_t b) {
      return a >> (b < 0 || b > 63 ? 63 : b);
    }  //
    TS_MATH_FN uint64_t size_of(int64_t a) {
      return a < 0 ? uint64_t(0) - static_cast<uint64_t>(a) : static_cast<uint64_t>(a);
    }  //
    TS_MATH_FN int64_t gcd(int64_t a, int64_t b) {
      uint64_t x = size_of(a);
      uint64_t y = size_of(b);
      while (x != 0) {
        uint64_t rest = y % x;
        y = x;
        x = rest;
      }
      return static_cast<int64_t>(y);
    }  //
    TS_MATH_FN int64_t lcm(int64_t a, int64_t b) {
      uint64_t g = static_cast<uint64_t>(gcd(a, b));
      return g == 0 ? int64_t(0) : abs(static_cast<int64_t>(size_of(a) / g * size_of(b)));
    })

// The neighbour of a towards b, where numbers lie `step` apart in their bits: those of float16 and
// bfloat16 are floats whose last bits are zero. `tiny` is the smallest above zero.
TS_SHARED_MATH(
    neighbours,
    TS_MATH_FN float next_float(float a, float b, uint32_t step, float tiny) {
      uint32_t bits = std::bit_cast<uint32_t>(a);
      float next = std::bit_cast<float>((a < b) == (a > 0.0f) ? bits + step : bits - step);
      next = a == 0.0f ? copysign(tiny, b) : next;
      next = a == b ? b : next;
      return a != a || b != b ? a + b : next;
    }  //
    TS_MATH_FN float next_after(float a, float b) {
      return next_float(a, b, 1u, 1.40129846e-45f);
    }  //
    TS_MATH_FN float next_bfloat16(float a, float b) {
      return next_float(a, b, 0x10000u, 9.18354962e-41f);
    }  //
    TS_MATH_FN float next_float16(float a, float b) {
      float size = abs(a);
      bool inwards = (a < b) != (a > 0.0f);
      bool small = size < 6.103515625e-5f || (size == 6.103515625e-5f && inwards);
      float near = a < b ? a + 5.9604644775390625e-8f : a - 5.9604644775390625e-8f;
      near = near == 0.0f ? copysign(near, a) : near;
      float far = next_float(a, b, 0x2000u, 5.9604644775390625e-8f);
      far = size > 65504.0f && far == far && a != b ? copysign(65504.0f, a) : far;
      return small && a != b && b == b ? near : far;
    }  //
    TS_MATH_FN double next_after(double a, double b) {
      uint64_t bits = std::bit_cast<uint64_t>(a);
      double next = std::bit_cast<double>((a < b) == (a > 0.0) ? bits + 1 : bits - 1);
      next = a == 0.0 ? copysign(4.9406564584124654e-324, b) : next;
      next = a == b ? b : next;
      return a != a || b != b ? a + b : next;
    })

// x = mantissa * 2^exponent with a mantissa of [0.5, 1); what is zero or not finite is its own.
TS_SHARED_MATH(
    parts,
    TS_MATH_FN float frexp_exponent(float x) {
      bool tiny = abs(x) < 1.17549435e-38f;
      uint32_t bits = std::bit_cast<uint32_t>(tiny ? x * 16777216.0f : x);
      float e = static_cast<float>(static_cast<int32_t>(bits >> 23 & 255u) - 126);
      return x == 0.0f || !isfinite(x) ? 0.0f : tiny ? e - 24.0f : e;
    }  //
    TS_MATH_FN float frexp_mantissa(float x) {
      bool tiny = abs(x) < 1.17549435e-38f;
      uint32_t bits = std::bit_cast<uint32_t>(tiny ? x * 16777216.0f : x);
      float m = std::bit_cast<float>((bits & 0x807fffffu) | 0x3f000000u);
      return x == 0.0f || !isfinite(x) ? x : m;
    }  //
    TS_MATH_FN double frexp_exponent(double x) {
      bool tiny = abs(x) < 2.2250738585072014e-308;
      uint64_t bits = std::bit_cast<uint64_t>(tiny ? x * 18014398509481984.0 : x);
      double e = static_cast<double>(static_cast<int32_t>(bits >> 52 & 2047u) - 1022);
      return x == 0.0 || !isfinite(x) ? 0.0 : tiny ? e - 54.0 : e;
    }  //
    TS_MATH_FN double frexp_mantissa(double x) {
      bool tiny = abs(x) < 2.2250738585072014e-308;
      uint64_t bits = std::bit_cast<uint64_t>(tiny ? x * 18014398509481984.0 : x);
      double m = std::bit_cast<double>((bits & 0x800fffffffffffffu) | 0x3fe0000000000000u);
      return x == 0.0 || !isfinite(x) ? x : m;
    })

}  // namespace tessera::math
