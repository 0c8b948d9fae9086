// Turns the text of a body into the CPU's tile loops, once per instruction set, and keeps the text.
//
// Note [One body, every ISA, the same bits]
// A body is scalar C++ over a compute type, written without branches the vectoriser cannot turn
// into selects. The loop around it is compiled three times with different target attributes; the
// library is built with -ffp-contract=off, so vector body, scalar tail and every instruction set
// round each operation alike, and a fused group gives the bits of the unfused operators.
#pragma once
#include "tessera/driver/program.h"
#include "tessera/ops/math.h"

#if defined(__x86_64__)
#define TS_TARGET_AVX2 __attribute__((target("avx2,f16c,fma")))
#define TS_TARGET_AVX512 \
  __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,f16c,fma,prefer-vector-width=512")))
#else
#define TS_TARGET_AVX2
#define TS_TARGET_AVX512
#endif
#define TS_INLINE inline __attribute__((always_inline))

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

template <class T>
TS_INLINE T imm(const Imm& v) {
  if constexpr (std::is_same_v<T, float>)
    return v.f32;
  else if constexpr (std::is_same_v<T, double>)
    return v.f64;
  else if constexpr (std::is_same_v<T, int64_t>)
    return v.i64;
  else
    return v.b8 != 0;
}

// The loop itself. B::call<T>(a, b, c, d, scalars) is the body; unused sources are dropped by the
// compiler because their pointers are never read (B::kSources says how many are).
template <class B, class T>
TS_INLINE void tile(void* out_, const void* const* in, const Imm* scalars, int64_t n) {
  using R = std::conditional_t<B::kResultBool, bool, T>;
  // Booleans are read as bytes: GCC does not vectorise a branch on a loaded bool.
  using A0 = std::conditional_t<B::kBool0 || std::is_same_v<T, bool>, uint8_t, T>;
  using A1 = std::conditional_t<B::kBool1 || std::is_same_v<T, bool>, uint8_t, T>;
  R* __restrict out = static_cast<R*>(out_);
  const T s0 = B::kScalars > 0 ? imm<T>(scalars[0]) : T();
  const T s1 = B::kScalars > 1 ? imm<T>(scalars[1]) : T();
  const T s2 = B::kScalars > 2 ? imm<T>(scalars[2]) : T();
  const A0* a = static_cast<const A0*>(in[0]);
  if constexpr (B::kSources == 1) {
    for (int64_t i = 0; i < n; ++i) out[i] = B::template call<T>(a[i], A1(), T(), s0, s1, s2);
  } else {
    const A1* b = static_cast<const A1*>(in[1]);
    if constexpr (B::kSources == 2) {
      for (int64_t i = 0; i < n; ++i) out[i] = B::template call<T>(a[i], b[i], T(), s0, s1, s2);
    } else {
      const T* c = static_cast<const T*>(in[2]);
      for (int64_t i = 0; i < n; ++i) out[i] = B::template call<T>(a[i], b[i], c[i], s0, s1, s2);
    }
  }
}

template <class B, class T>
void tile_baseline(void* o, const void* const* in, const Imm* s, int64_t n) {
  tile<B, T>(o, in, s, n);
}
template <class B, class T>
TS_TARGET_AVX2 void tile_avx2(void* o, const void* const* in, const Imm* s, int64_t n) {
  tile<B, T>(o, in, s, n);
}
template <class B, class T>
TS_TARGET_AVX512 void tile_avx512(void* o, const void* const* in, const Imm* s, int64_t n) {
  tile<B, T>(o, in, s, n);
}

template <class B, class T>
void add_type(PointwiseBody& body) {
  constexpr int c = static_cast<int>(RegClassOf<T>::value);
  body.tiles[0][c] = &tile_baseline<B, T>;
  body.tiles[1][c] = &tile_avx2<B, T>;
  body.tiles[2][c] = &tile_avx512<B, T>;
}

template <class B, class... Ts>
PointwiseBody make_body() {
  PointwiseBody body{B::kName, B::kText, B::kPattern, B::kResultBool ? 'b' : 't', B::kScalars, {}};
  (add_type<B, Ts>(body), ...);
  return body;
}

}  // namespace tessera::loops

// The types a body is defined on.
#define TS_FLOATS float, double
#define TS_NUMBERS float, double, int64_t
#define TS_ALL float, double, int64_t, bool

// TS_BODY(name, "tt", 't', scalars, (TYPES), statements...)
//   sources a, b, c by the letters of the pattern; scalars s0, s1, s2; the statements end in
//   return.
#define TS_BODY(body_name, pattern, result, num_scalars, types, ...)                               \
  struct body_name##_body_t {                                                                      \
    static constexpr const char* kName = #body_name;                                               \
    static constexpr const char* kText = #__VA_ARGS__;                                             \
    static constexpr const char* kPattern = pattern;                                               \
    static constexpr int kSources = sizeof(pattern) - 1;                                           \
    static constexpr int kScalars = num_scalars;                                                   \
    static constexpr bool kResultBool = (result) == 'b';                                           \
    static constexpr bool kBool0 = pattern[0] == 'b';                                              \
    static constexpr bool kBool1 = kSources > 1 && pattern[kSources > 1 ? 1 : 0] == 'b';           \
    template <class T>                                                                             \
    static TS_INLINE auto call([[maybe_unused]] std::conditional_t<kBool0, bool, T> a,             \
                               [[maybe_unused]] std::conditional_t<kBool1, bool, T> b,             \
                               [[maybe_unused]] T c, [[maybe_unused]] T s0, [[maybe_unused]] T s1, \
                               [[maybe_unused]] T s2)                                              \
        -> std::conditional_t<kResultBool, bool, T> {                                              \
      using namespace ::tessera::math;                                                             \
      __VA_ARGS__                                                                                  \
    }                                                                                              \
  };                                                                                               \
  static const ::tessera::PointwiseBody body_name##_body =                                         \
      ::tessera::loops::make_body<body_name##_body_t, TS_UNPACK types>();
#define TS_UNPACK(...) __VA_ARGS__
