// Complex numbers as registers and memory hold them: two reals side by side, as C, NumPy and CUDA
// lay them out. Plain arithmetic without the C standard's recovery of infinities, so that loops
// vectorise and every instruction set gives the same bits.
#pragma once
#include <cmath>
#include <type_traits>

namespace tessera {

// A product that is rounded before it is added. GCC's vectoriser makes fused multiply-add-subtracts
// of complex products even with -ffp-contract=off; elements of the vector loop would then differ
// from those of its tail.
template <class R>
constexpr R rounded_product(R a, R b) {
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 12
  return __builtin_assoc_barrier(a * b);
#else
  return a * b;
#endif
}

template <class R>
struct Complex {
  using Real = R;
  R re;
  R im;

  Complex() = default;
  constexpr Complex(R r, R i) : re(r), im(i) {}
  template <class N>
  requires std::is_arithmetic_v<N>
  constexpr Complex(N r) : re(static_cast<R>(r)), im(0) {}
  template <class O>
  requires(!std::is_same_v<O, R>) constexpr explicit Complex(const Complex<O>& o)
      : re(static_cast<R>(o.re)), im(static_cast<R>(o.im)) {}

  friend constexpr Complex operator+(Complex a, Complex b) { return {a.re + b.re, a.im + b.im}; }
  friend constexpr Complex operator-(Complex a, Complex b) { return {a.re - b.re, a.im - b.im}; }
  friend constexpr Complex operator-(Complex a) { return {-a.re, -a.im}; }
  friend constexpr Complex operator*(Complex a, Complex b) {
    return {rounded_product(a.re, b.re) - rounded_product(a.im, b.im),
            rounded_product(a.re, b.im) + rounded_product(a.im, b.re)};
  }
  // Scaled by the larger part of the divisor, so that squares neither overflow nor vanish.
  friend constexpr Complex operator/(Complex a, Complex b) {
    R x = b.re < 0 ? -b.re : b.re;
    R y = b.im < 0 ? -b.im : b.im;
    if (x >= y) {
      if (x == 0 && y == 0) return {a.re / x, a.im / y};
      R ratio = b.im / b.re;
      R scale = R(1) / (b.re + rounded_product(b.im, ratio));
      return {(a.re + rounded_product(a.im, ratio)) * scale,
              (a.im - rounded_product(a.re, ratio)) * scale};
    }
    R ratio = b.re / b.im;
    R scale = R(1) / (rounded_product(b.re, ratio) + b.im);
    return {(rounded_product(a.re, ratio) + a.im) * scale,
            (rounded_product(a.im, ratio) - a.re) * scale};
  }
  friend constexpr bool operator==(Complex a, Complex b) { return a.re == b.re && a.im == b.im; }
};

using c64 = Complex<float>;
using c128 = Complex<double>;
static_assert(sizeof(c64) == 8 && sizeof(c128) == 16 && std::is_trivially_copyable_v<c64>);

template <class T>
inline constexpr bool is_complex_v = false;
template <class R>
inline constexpr bool is_complex_v<Complex<R>> = true;

template <class T>
struct RealOf {
  using type = T;
};
template <class R>
struct RealOf<Complex<R>> {
  using type = R;
};
template <class T>
using real_t = typename RealOf<T>::type;

}  // namespace tessera
