#include "prelude.h"

#include <algorithm>
#include <cstring>

#include "tessera/ops/shared_math.h"
#include "tessera/ops/special/bessel.h"
#include "tessera/ops/special/error.h"
#include "tessera/ops/special/gamma.h"
#include "tessera/ops/special/polynomials.h"

namespace tessera::cuda {

namespace {

// Conversions are PTX rather than cuda_fp16.h: a kernel without headers compiles in a tenth of the
// time, and needs none on the user's machine.
constexpr const char* kPrelude =
    R"(typedef unsigned char uint8_t; typedef signed char int8_t; typedef short int16_t;
typedef int int32_t; typedef long int64_t; typedef unsigned short uint16_t;
typedef unsigned int uint32_t; typedef unsigned long uint64_t;
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)
#define INT64_MAX 0x7fffffffffffffffL
#define INT64_MIN (-INT64_MAX - 1L)
#define M_PI 3.14159265358979323846
#define TS_FN static __device__ __forceinline__
#define TS_MEMBER __device__ __forceinline__
#define TS_MATH_FN TS_FN
namespace std {
using ::int64_t; using ::uint64_t; using ::int32_t; using ::uint32_t;
template <class A, class B> inline constexpr bool is_same_v = false;
template <class A> inline constexpr bool is_same_v<A, A> = true;
template <class A> inline constexpr bool is_floating_point_v =
    is_same_v<A, float> || is_same_v<A, double>;
template <class A> inline constexpr bool is_integral_v =
    is_same_v<A, int64_t> || is_same_v<A, bool>;
template <bool C, class A, class B> struct conditional { typedef A type; };
template <class A, class B> struct conditional<false, A, B> { typedef B type; };
template <bool C, class A, class B> using conditional_t = typename conditional<C, A, B>::type;
template <class T, class U> TS_FN T bit_cast(U x) { return __builtin_bit_cast(T, x); }
template <class T> struct numeric_limits;
template <> struct numeric_limits<float> {
  TS_FN float infinity() { return __int_as_float(0x7f800000); }
  TS_FN float quiet_NaN() { return __int_as_float(0x7fc00000); }
  TS_FN float max() { return 3.402823466e+38f; }
  TS_FN float lowest() { return -3.402823466e+38f; }
  TS_FN float min() { return 1.175494351e-38f; }
  TS_FN float epsilon() { return 1.1920928955078125e-7f; }
};
template <> struct numeric_limits<double> {
  TS_FN double infinity() { return __longlong_as_double(0x7ff0000000000000LL); }
  TS_FN double quiet_NaN() { return __longlong_as_double(0x7ff8000000000000LL); }
  TS_FN double max() { return 1.7976931348623157e+308; }
  TS_FN double lowest() { return -1.7976931348623157e+308; }
  TS_FN double min() { return 2.2250738585072014e-308; }
  TS_FN double epsilon() { return 2.2204460492503131e-16; }
};
template <> struct numeric_limits<int64_t> {
  TS_FN int64_t infinity() { return 0; }
  TS_FN int64_t quiet_NaN() { return 0; }
  TS_FN int64_t max() { return INT64_MAX; }
  TS_FN int64_t lowest() { return INT64_MIN; }
  TS_FN int64_t min() { return INT64_MIN; }
};
template <> struct numeric_limits<bool> {
  TS_FN bool infinity() { return false; }
  TS_FN bool quiet_NaN() { return false; }
  TS_FN bool max() { return true; }
  TS_FN bool lowest() { return false; }
  TS_FN bool min() { return false; }
};
}
namespace tm {
template <class T> inline constexpr bool is_complex_v = false;
#define TS_REAL1(name) \
  TS_FN float name(float x) { return ::name##f(x); } \
  TS_FN double name(double x) { return ::name(x); }
#define TS_REAL2(name) \
  TS_FN float name(float x, float y) { return ::name##f(x, y); } \
  TS_FN double name(double x, double y) { return ::name(x, y); }
TS_REAL1(sin) TS_REAL1(cos) TS_REAL1(tan) TS_REAL1(asin) TS_REAL1(acos) TS_REAL1(atan)
TS_REAL1(sinh) TS_REAL1(cosh) TS_REAL1(tanh) TS_REAL1(asinh) TS_REAL1(acosh) TS_REAL1(atanh)
TS_REAL1(exp) TS_REAL1(exp2) TS_REAL1(expm1) TS_REAL1(log) TS_REAL1(log2) TS_REAL1(log10)
TS_REAL1(log1p) TS_REAL1(erf) TS_REAL1(erfc) TS_REAL1(lgamma) TS_REAL1(cbrt)
TS_REAL1(fabs) TS_REAL2(fmod) TS_REAL2(atan2) TS_REAL2(hypot) TS_REAL2(pow)
// By bits: of the instruction `copysign` with one register for both, and its sign turned after that,
// ptxas of CUDA 13.0 makes one operation that sets the sign always.
TS_FN float copysign(float x, float s) {
  return __uint_as_float((__float_as_uint(x) & 0x7fffffffu) | (__float_as_uint(s) & 0x80000000u));
}
TS_FN double copysign(double x, double s) {
  const long long sign = (long long)0x8000000000000000ull;
  return __longlong_as_double((__double_as_longlong(x) & ~sign) | (__double_as_longlong(s) & sign));
}
// An instruction of its own: a float select that looks like a maximum would become one, which
// changes a NaN's bits in one kernel and not in another.
TS_FN float select(bool c, float a, float b) {
  unsigned r;
  asm("{ .reg .pred p; setp.ne.u32 p, %3, 0; selp.b32 %0, %1, %2, p; }"
      : "=r"(r) : "r"(__float_as_uint(a)), "r"(__float_as_uint(b)), "r"((unsigned)c));
  return __uint_as_float(r);
}
TS_FN double select(bool c, double a, double b) {
  long long r;
  asm("{ .reg .pred p; setp.ne.u32 p, %3, 0; selp.b64 %0, %1, %2, p; }"
      : "=l"(r) : "l"(__double_as_longlong(a)), "l"(__double_as_longlong(b)), "r"((unsigned)c));
  return __longlong_as_double(r);
}
template <class T> TS_FN T select(bool c, T a, T b) { return c ? a : b; }
TS_FN float negate(float x) { return __uint_as_float(__float_as_uint(x) ^ 0x80000000u); }
TS_FN double negate(double x) { return __longlong_as_double(__double_as_longlong(x) ^ (long long)0x8000000000000000ull); }
// The steps of sqrt.rn, its rounding too, on numbers brought into the range where they hold: without
// a branch, across which a thread does not work on several elements at a time.
TS_FN float sqrt(float x) {
  const bool small = x < 0x1p-101f;
  const float a = small ? x * 0x1p100f : x;
  float y;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(a));
  const float g = __fmul_rn(a, y), h = __fmul_rn(y, 0.5f);
  const float r = __fmaf_rn(__fmaf_rn(-g, g, a), h, g), scaled = small ? r * 0x1p-50f : r;
  const bool itself = x == 0.0f || x == __uint_as_float(0x7f800000u);
  return __uint_as_float(itself ? __float_as_uint(x) : __float_as_uint(scaled));
}
TS_FN double sqrt(double x) { return ::sqrt(x); }
// 1 / (1 + exp(-x)): the divisor is between 1 and 2, so its reciprocal needs none of the branches
// that other divisions have.
TS_FN float logistic(float x) {
  const float e = ::expf(__uint_as_float(__float_as_uint(x) | 0x80000000u)), y = 1.0f + e;
  float r;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(y));
  r = __fmaf_rn(r, __fmaf_rn(-y, r, 1.0f), r);
  return __uint_as_float(x < 0.0f ? __float_as_uint(e * r) : __float_as_uint(r));
}
TS_FN double logistic(double x) { return 1.0 / (1.0 + ::exp(negate(x))); }
TS_FN int64_t negate(int64_t x) { return (int64_t)(0ul - (uint64_t)x); }
template <class T> TS_FN bool is_nan(T x) { return x != x; }
template <class T> TS_FN bool isnan(T x) { return x != x; }
template <class T> TS_FN bool isinf(T x) {
  if constexpr (std::is_floating_point_v<T>)
    return x == std::numeric_limits<T>::infinity() || x == -std::numeric_limits<T>::infinity();
  else
    return false;
}
template <class T> TS_FN bool isfinite(T x) {
  if constexpr (std::is_floating_point_v<T>) return x - x == T(0);
  else return true;
}
// By bits: the instruction becomes an addition of zero, which makes of a NaN another one, or is taken
// into the next operation, where it does not.
TS_FN float abs(float x) { return __uint_as_float(__float_as_uint(x) & 0x7fffffffu); }
TS_FN double abs(double x) { return __longlong_as_double(__double_as_longlong(x) & 0x7fffffffffffffffll); }
TS_FN int64_t abs(int64_t x) { return x < 0 ? (int64_t)(0ul - (uint64_t)x) : x; }
TS_FN bool abs(bool x) { return x; }
template <class T> TS_FN T min(T a, T b) { return a < b ? a : b; }
template <class T> TS_FN T max(T a, T b) { return a > b ? a : b; }
template <class T> TS_FN T min_nan(T a, T b) { return select((a < b) | (a != a), a, b); }
template <class T> TS_FN T max_nan(T a, T b) { return select((a > b) | (a != a), a, b); }
#define TS_ROUNDING(name) \
  TS_FN float name(float x) { return ::name##f(x); } \
  TS_FN double name(double x) { return ::name(x); } \
  TS_FN int64_t name(int64_t x) { return x; }
TS_ROUNDING(floor) TS_ROUNDING(ceil) TS_ROUNDING(trunc) TS_ROUNDING(rint)
TS_FN int64_t pow(int64_t x, int64_t y) {
  if (y < 0) return x == 1 ? 1 : x == -1 ? (y % 2 != 0 ? -1 : 1) : 0;
  uint64_t base = (uint64_t)x, r = 1;
  for (uint64_t e = (uint64_t)y; e; e >>= 1, base *= base)
    if (e & 1) r *= base;
  return (int64_t)r;
}
TS_FN float ld_f16(unsigned short h) {
  float f;
  asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h));
  return f;
}
// From memory: the one NaN that st_f16 makes. The assembler may drop a pair of conversions, and with
// it the bits they would set, in one kernel and not in another.
TS_FN float in_f16(unsigned short h) { return ld_f16((h & 0x7fffu) > 0x7c00u ? (unsigned short)0x7fffu : h); }
TS_FN unsigned short st_f16(float f) {
  unsigned short h;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(f));
  return h;
}
// The same value, of which the compiler knows nothing: where a branch makes it a constant, the next
// operator would be worked out at compile time, by other means than the GPU's. Of a sum of integers
// it would know that it did not overflow, and so that x + x is zero for none but zero.
TS_FN float opaque(float x) {
  float y;
  asm("mov.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
TS_FN double opaque(double x) {
  double y;
  asm("mov.f64 %0, %1;" : "=d"(y) : "d"(x));
  return y;
}
TS_FN int64_t opaque(int64_t x) {
  long long y;
  asm("mov.b64 %0, %1;" : "=l"(y) : "l"((long long)x));
  return (int64_t)y;
}
TS_FN bool opaque(bool x) { return x; }
// The assembler looks through a move. Of a constant (x == x on integers, x to the power of 0) it would
// work the functions of it out by itself, not as the GPU does; a block has threads, which it does
// not know.
TS_FN unsigned block_threads() {
  unsigned n;
  asm("mov.u32 %0, %%ntid.x;" : "=r"(n));
  return n;
}
TS_FN bool hidden(bool x) { return x != (block_threads() == 0); }
TS_FN int64_t hidden(int64_t x) { return x ^ (int64_t)(block_threads() == 0); }
TS_FN float hidden(float x) {
  return __uint_as_float(__float_as_uint(x) ^ (unsigned)(block_threads() == 0));
}
TS_FN double hidden(double x) {
  return __longlong_as_double(__double_as_longlong(x) ^ (long long)(block_threads() == 0));
}
// Arithmetic of doubles passes a NaN of its operands on, of which one depends on their order, and
// that on the assembler: one kernel's result would differ from another's. That of floats makes one,
// but a special function has paths on which its argument is passed on.
TS_FN float one_nan(float x) {
  const unsigned b = __float_as_uint(x);
  return __uint_as_float((b & 0x7fffffffu) > 0x7f800000u ? 0x7fffffffu : b);
}
TS_FN double one_nan(double x) {
  const long long b = __double_as_longlong(x);
  const bool nan = (b & 0x7fffffffffffffffll) > 0x7ff0000000000000ll;
  return __longlong_as_double(nan ? 0x7ff8000000000000ll : b);
}
TS_FN float ld_bf16(unsigned short h) { return __uint_as_float((unsigned)h << 16); }
TS_FN unsigned short st_bf16(float f) {
#if __CUDA_ARCH__ >= 900
  unsigned short h;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h) : "f"(f));
#else
  unsigned x = __float_as_uint(f);
  unsigned short h = (unsigned short)((x + 0x7fffu + ((x >> 16) & 1u)) >> 16);
#endif
  return f != f ? (unsigned short)0x7fc0 : h;
}
template <class T, int N> struct __align__(sizeof(T) * N < 16 ? sizeof(T) * N : 16) Vec { T v[N]; };
)";

}  // namespace

std::string prelude_text(bool complex) {
  std::string text = kPrelude;
  for (const char* shared : {math::signs_text, math::division_text, math::integers_text,
                             math::neighbours_text, math::parts_text})
    text += std::string(shared) + "\n";
  return complex ? text + complex_prelude_text() : text;
}

std::string special_text() {
  std::string text =
      "#define TS_SPECIAL_FN static __device__ __noinline__\n"
      "#define TS_ROLLED _Pragma(\"unroll 1\")\nnamespace special {\n";
  for (const char* shared : {special::common_text, special::gamma_text, special::error_text,
                             special::bessel_text, special::polynomials_text})
    text += std::string(shared) + "\n";
  return text + "}\n";
}

bool uses_special(const PointwiseBody& body) {
  return std::strstr(body.text, "special::") != nullptr;
}
bool uses_special(const GroupProgram& g) {
  return std::any_of(g.instrs, g.instrs + g.num_instrs,
                     [](const Instr& in) { return in.body && uses_special(*in.body); });
}

const char* storage_type(DType t) {
  constexpr const char* names[kNumDTypes] = {
      "unsigned char", "unsigned char", "signed char",    "short",
      "int",           "int64_t",       "unsigned short", "unsigned short",
      "float",         "double",        "Complex<float>", "Complex<double>"};
  return names[static_cast<int>(t)];
}

const char* register_type(RegClass c) {
  constexpr const char* names[kNumRegClasses] = {"float", "double",         "int64_t",
                                                 "bool",  "Complex<float>", "Complex<double>"};
  return names[static_cast<int>(c)];
}

const char* class_suffix(RegClass c) {
  constexpr const char* names[kNumRegClasses] = {"f32", "f64", "i64", "b8", "c64", "c128"};
  return names[static_cast<int>(c)];
}

std::string load_text(DType t, const std::string& x) {
  switch (t) {
    case DType::kBool:
      return "(" + x + " != 0)";
    case DType::kFloat16:
      return "ld_f16(" + x + ")";
    case DType::kBFloat16:
      return "ld_bf16(" + x + ")";
    case DType::kFloat32:
    case DType::kFloat64:
    case DType::kInt64:
    case DType::kComplex64:
    case DType::kComplex128:
      return x;
    default:
      return "(int64_t)" + x;
  }
}

std::string store_text(DType t, const std::string& x) {
  switch (t) {
    case DType::kFloat16:
      return "st_f16(" + x + ")";
    case DType::kBFloat16:
      return "st_bf16(" + x + ")";
    case DType::kFloat64:
    case DType::kComplex128:
      return "one_nan(" + x + ")";
    case DType::kFloat32:
    case DType::kInt64:
    case DType::kComplex64:
      return x;
    default:
      return std::string("(") + storage_type(t) + ")(" + x + ")";
  }
}

std::string result_text(const PointwiseBody& body, const std::string& x) {
  return uses_special(body) && body.result != 'b' ? "one_nan(" + x + ")" : x;
}

std::string convert_text(RegClass from, RegClass to, const std::string& x) {
  if (from == to) return x;
  bool narrowed = is_complex(from) && !is_complex(to);
  if (narrowed && to == RegClass::kB8) return "((" + x + ").re != 0 || (" + x + ").im != 0)";
  if (narrowed) return std::string("(") + register_type(to) + ")(" + x + ").re";
  if (to == RegClass::kB8) return "(" + x + " != 0)";
  return std::string("(") + register_type(to) + ")(" + x + ")";
}

std::string convert_text(RegClass from, DType to, const std::string& x) {
  const bool narrow = to == DType::kInt32 || to == DType::kInt16 || to == DType::kInt8;
  if (!narrow || from == RegClass::kI64 || from == RegClass::kB8)
    return convert_text(from, reg_class(to), x);
  return std::string("(int64_t)(int)(") + x + (is_complex(from) ? ").re" : ")");
}

}  // namespace tessera::cuda
