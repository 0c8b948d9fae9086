// Turns the text of a body into the CPU's tile loops, once per instruction set, and keeps the text.
//
// Note [One body, every ISA, the same bits]
// A body is scalar C++ over a compute type, written without branches the vectoriser cannot turn
// into selects. The loop around it is compiled three times with different target attributes; the
// library is built with -ffp-contract=off, so vector body, scalar tail and every instruction set
// round each operation alike, and a fused group gives the bits of the unfused operators.
// But for one thing: where two NaNs meet, the first operand's is passed on, and a compiler may take
// the operands in another order in the scalar rest of a loop than in its vectors. So there is no
// rest: the last elements are filled up to whole vectors and go through the same instructions.
#pragma once
#include <algorithm>

#include "tessera/driver/bodies.h"
#include "tessera/ops/complex_math.h"
#include "tessera/ops/float_math.h"
#include "tessera/ops/math.h"
#include "tessera/ops/shared_math.h"

#if defined(__x86_64__)
#define TS_TARGET_AVX2 __attribute__((target("avx2,f16c,fma")))
#define TS_TARGET_AVX512 \
  __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,f16c,fma,prefer-vector-width=512")))
#else
#define TS_TARGET_AVX2
#define TS_TARGET_AVX512
#endif
#define TS_INLINE inline __attribute__((always_inline))
// A function that is one piece of code, whoever calls it with whatever.
#if defined(__clang__)
#define TS_ONE_COPY __attribute__((noinline))
#else
#define TS_ONE_COPY __attribute__((noipa))
#endif

namespace tessera::loops {

template <class T>
struct RegClassOf;
template <>
struct RegClassOf<float> {
  static constexpr RegClass value = RegClass::kF32;
};
template <>
struct RegClassOf<double> {
  static constexpr RegClass value = RegClass::kF64;
};
template <>
struct RegClassOf<int64_t> {
  static constexpr RegClass value = RegClass::kI64;
};
template <>
struct RegClassOf<bool> {
  static constexpr RegClass value = RegClass::kB8;
};
template <>
struct RegClassOf<c64> {
  static constexpr RegClass value = RegClass::kC64;
};
template <>
struct RegClassOf<c128> {
  static constexpr RegClass value = RegClass::kC128;
};

// The letter of source `i`; those a body does not have are T and not used.
template <size_t N>
constexpr char letter_at(const char (&pattern)[N], size_t i) {
  return i + 1 < N ? pattern[i] : 't';
}

// What a letter of a body's pattern means where it computes in T.
template <class T>
struct ComplexOf {
  using type = T;
};
template <>
struct ComplexOf<float> {
  using type = c64;
};
template <>
struct ComplexOf<double> {
  using type = c128;
};
template <char L, class T>
using Letter = std::conditional_t<
    L == 'b', bool,
    std::conditional_t<L == 'r', real_t<T>,
                       std::conditional_t<L == 'c', typename ComplexOf<T>::type, T>>>;
// Booleans are read as bytes: GCC does not vectorise a branch on a loaded bool.
template <char L, class T>
using Stored = std::conditional_t<std::is_same_v<Letter<L, T>, bool>, uint8_t, Letter<L, T>>;

template <class T>
TS_INLINE T imm(const Imm& v) {
  if constexpr (std::is_same_v<T, float>)
    return v.f32;
  else if constexpr (std::is_same_v<T, double>)
    return v.f64;
  else if constexpr (std::is_same_v<T, int64_t>)
    return v.i64;
  else if constexpr (std::is_same_v<T, c64>)
    return v.c32;
  else if constexpr (std::is_same_v<T, c128>)
    return v.c;
  else
    return v.b8 != 0;
}

struct NoNear {
  static constexpr bool kHasNear = false;
};
// True, and written, if a body of one or two sources has a short way in T and every element may go
// it: Note [Near and far].
template <class B, class T>
TS_INLINE bool near_tile(T* __restrict out, const void* const* in, int64_t n) {
  const T* a = static_cast<const T*>(in[0]);
  const T* b = static_cast<const T*>(in[B::kSources - 1]);
  uint32_t far = 0;
  for (int64_t i = 0; i < n; ++i) far |= B::is_near(a[i], b[i]) ? 0u : 1u;
  if (far != 0) return false;
  for (int64_t i = 0; i < n; ++i) out[i] = B::near(a[i], b[i]);
  return true;
}
// Has the body one? A function of float only would take a double and return a float.
template <class B, class T>
constexpr bool has_near() {
  if constexpr (B::kHasNear && std::is_floating_point_v<T>)
    return std::is_same_v<decltype(B::near(T(), T())), T>;
  else
    return false;
}

// The loop itself. B::call<T>(a, b, c, d, scalars) is the body; B::kSources says how many of the
// sources there are.
template <class B, class T>
TS_INLINE void tile(void* out_, const void* const* in, const Imm* scalars, int64_t n) {
  using R = Letter<B::kResult, T>;
  using A0 = Stored<B::letter(0), T>;
  using A1 = Stored<B::letter(1), T>;
  using A2 = Stored<B::letter(2), T>;
  using A3 = Stored<B::letter(3), T>;
  R* __restrict out = static_cast<R*>(out_);
  const T s0 = B::kScalars > 0 ? imm<T>(scalars[0]) : T();
  const T s1 = B::kScalars > 1 ? imm<T>(scalars[1]) : T();
  const T s2 = B::kScalars > 2 ? imm<T>(scalars[2]) : T();
  if constexpr (has_near<B, T>())
    if (near_tile<B, T>(out, in, n)) return;
  const A0* a = static_cast<const A0*>(in[0]);
  if constexpr (B::kSources == 1) {
    for (int64_t i = 0; i < n; ++i)
      out[i] = B::template call<T>(a[i], A1(), A2(), A3(), s0, s1, s2);
  } else {
    const A1* b = static_cast<const A1*>(in[1]);
    if constexpr (B::kSources == 2) {
      for (int64_t i = 0; i < n; ++i)
        out[i] = B::template call<T>(a[i], b[i], A2(), A3(), s0, s1, s2);
    } else {
      const A2* c = static_cast<const A2*>(in[2]);
      if constexpr (B::kSources == 3) {
        for (int64_t i = 0; i < n; ++i)
          out[i] = B::template call<T>(a[i], b[i], c[i], A3(), s0, s1, s2);
      } else {
        const A3* d = static_cast<const A3*>(in[3]);
        for (int64_t i = 0; i < n; ++i)
          out[i] = B::template call<T>(a[i], b[i], c[i], d[i], s0, s1, s2);
      }
    }
  }
}

template <class B, class T>
TS_ONE_COPY void tile_baseline(void* o, const void* const* in, const Imm* s, int64_t n) {
  tile<B, T>(o, in, s, n);
}
template <class B, class T>
TS_TARGET_AVX2 TS_ONE_COPY void tile_avx2(void* o, const void* const* in, const Imm* s, int64_t n) {
  tile<B, T>(o, in, s, n);
}
template <class B, class T>
TS_TARGET_AVX512 TS_ONE_COPY void tile_avx512(void* o, const void* const* in, const Imm* s,
                                              int64_t n) {
  tile<B, T>(o, in, s, n);
}

// How many elements whole vectors of any width hold: those of its smallest type do not fill one.
template <class B, class T>
constexpr int64_t whole() {
  return 64 / static_cast<int64_t>(std::min(
                  {sizeof(real_t<Letter<B::kResult, T>>), sizeof(real_t<Stored<B::letter(0), T>>),
                   sizeof(real_t<Stored<B::letter(1), T>>), sizeof(real_t<Stored<B::letter(2), T>>),
                   sizeof(real_t<Stored<B::letter(3), T>>)}));
}

// By a loop over n elements, without a rest.
template <class B, class T, TileFn kLoop>
void whole_tile(void* out, const void* const* in, const Imm* scalars, int64_t n) {
  using R = Letter<B::kResult, T>;
  constexpr int64_t kWhole = whole<B, T>();
  const int64_t rest = static_cast<int64_t>(static_cast<uint64_t>(n) % kWhole), before = n - rest;
  if (before) kLoop(out, in, scalars, before);
  if (!rest) return;
  alignas(64) Stored<B::letter(0), T> a[kWhole];
  alignas(64) Stored<B::letter(1), T> b[kWhole];
  alignas(64) Stored<B::letter(2), T> c[kWhole];
  alignas(64) Stored<B::letter(3), T> d[kWhole];
  alignas(64) R result[kWhole];
  auto last = [&](int i, auto* to) {
    const auto* from = static_cast<decltype(to)>(const_cast<void*>(in[i])) + before;
    std::copy_n(from, rest, to);
    std::fill(to + rest, to + kWhole, from[rest - 1]);
  };
  if constexpr (B::kSources > 0) last(0, a);
  if constexpr (B::kSources > 1) last(1, b);
  if constexpr (B::kSources > 2) last(2, c);
  if constexpr (B::kSources > 3) last(3, d);
  const void* const sources[] = {a, b, c, d};
  kLoop(result, sources, scalars, kWhole);
  std::copy_n(result, rest, static_cast<R*>(out) + before);
}

// Numbers that are whole have no NaN.
template <class B, class T, TileFn kLoop>
constexpr TileFn tile_of() {
  if constexpr (std::is_integral_v<T>)
    return kLoop;
  else
    return &whole_tile<B, T, kLoop>;
}

template <class B, class T>
void add_type(PointwiseBody& body) {
  constexpr int c = static_cast<int>(RegClassOf<T>::value);
  body.tiles[0][c] = tile_of<B, T, &tile_baseline<B, T>>();
  body.tiles[1][c] = tile_of<B, T, &tile_avx2<B, T>>();
  body.tiles[2][c] = tile_of<B, T, &tile_avx512<B, T>>();
}

template <class B, class... Ts>
PointwiseBody make_body() {
  PointwiseBody body{B::kName, B::kText, B::kPattern, B::kResult, B::kScalars, {}};
  (add_type<B, Ts>(body), ...);
  return body;
}

}  // namespace tessera::loops

// The types a body is defined on.
#define TS_FLOATS float, double
#define TS_NUMBERS float, double, int64_t
#define TS_ALL float, double, int64_t, bool
#define TS_COMPLEX c64, c128

// TS_BODY(name, "tt", 't', scalars, (TYPES), statements...)
//   sources a, b, c, d by the letters of the pattern; scalars s0, s1, s2; the statements end in
//   return.
#define TS_BODY(body_name, pattern, result, num_scalars, types, ...)                          \
  TS_BODY_OF(::tessera::loops::NoNear, #__VA_ARGS__, body_name, pattern, result, num_scalars, \
             types, __VA_ARGS__)
// TS_BODY_NEAR(name, "tt", 't', 0, (TYPES), condition, value, statements...)
//   of one or two sources: on tiles whose elements all have the condition, the CPU's loop computes
//   the value instead of the statements, in the types in which the value is a function of math.h.
#define TS_BODY_NEAR(body_name, pattern, result, num_scalars, types, condition, value, ...)    \
  struct body_name##_near_t {                                                                  \
    static constexpr bool kHasNear = true;                                                     \
    template <class T>                                                                         \
    static TS_INLINE bool is_near([[maybe_unused]] T a, [[maybe_unused]] T b) {                \
      return ::tessera::math::condition;                                                       \
    }                                                                                          \
    template <class T>                                                                         \
    static TS_INLINE auto near([[maybe_unused]] T a, [[maybe_unused]] T b)                     \
        -> decltype(::tessera::math::value) {                                                  \
      return ::tessera::math::value;                                                           \
    }                                                                                          \
  };                                                                                           \
  TS_BODY_OF(body_name##_near_t, #__VA_ARGS__, body_name, pattern, result, num_scalars, types, \
             __VA_ARGS__)
// The text is made above: down here the statements' macros are expanded.
#define TS_BODY_OF(near_type, text, body_name, pattern, result, num_scalars, types, ...)         \
  struct body_name##_body_t : near_type {                                                        \
    static constexpr const char* kName = #body_name;                                             \
    static constexpr const char* kText = text;                                                   \
    static constexpr const char* kPattern = pattern;                                             \
    static constexpr int kSources = sizeof(pattern) - 1;                                         \
    static constexpr int kScalars = num_scalars;                                                 \
    static constexpr char kResult = result;                                                      \
    static constexpr char letter(int i) { return ::tessera::loops::letter_at(pattern, i); }      \
    template <class T>                                                                           \
    static TS_INLINE auto call(                                                                  \
        [[maybe_unused]] ::tessera::loops::Letter<::tessera::loops::letter_at(pattern, 0), T> a, \
        [[maybe_unused]] ::tessera::loops::Letter<::tessera::loops::letter_at(pattern, 1), T> b, \
        [[maybe_unused]] ::tessera::loops::Letter<::tessera::loops::letter_at(pattern, 2), T> c, \
        [[maybe_unused]] ::tessera::loops::Letter<::tessera::loops::letter_at(pattern, 3), T> d, \
        [[maybe_unused]] T s0, [[maybe_unused]] T s1, [[maybe_unused]] T s2)                     \
        -> ::tessera::loops::Letter<result, T> {                                                 \
      using namespace ::tessera::math;                                                           \
      [[maybe_unused]] typedef ::tessera::real_t<T> R;                                           \
      __VA_ARGS__                                                                                \
    }                                                                                            \
  };                                                                                             \
  static const ::tessera::PointwiseBody body_name##_body =                                       \
      ::tessera::loops::make_body<body_name##_body_t, TS_UNPACK types>();                        \
  [[maybe_unused]] static const bool body_name##_listed = ::tessera::list_body(body_name##_body);
#define TS_UNPACK(...) __VA_ARGS__
