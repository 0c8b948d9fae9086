// CUDA's language for a host compiler: the head of every kernel, after kernel_abi.h. No includes,
// for a kernel is compiled in the time a header takes. Functions of PTX are called by the names
// translate.cpp gives them; one that is missing here is a compile error that says so.
#pragma once
#define __CUDA_ARCH__ EMULATED_ARCH
#define __CUDACC_RTC__ 1
#define __CUDACC__ 1
#define __global__
#define __device__
#define __host__
#define __constant__ static
#define __managed__ static
#define __grid_constant__
#define __launch_bounds__(...)
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __align__(n) alignas(n)
#define __shared__ static __attribute__((section("emulated_shared")))

extern "C" __attribute__((visibility("default"))) emulator::State emulator_state;
emulator::State emulator_state;
// Where this module's shared memory lies, for the driver to fill it with rubbish.
extern "C" __attribute__((weak, visibility("hidden"))) char __start_emulated_shared[];
extern "C" __attribute__((weak, visibility("hidden"))) char __stop_emulated_shared[];
extern "C" __attribute__((visibility("default"))) char* emulator_shared_begin() {
  return __start_emulated_shared;
}
extern "C" __attribute__((visibility("default"))) char* emulator_shared_end() {
  return __stop_emulated_shared;
}

#define threadIdx (emulator_state.thread)
#define blockIdx (emulator_state.block)
#define blockDim (emulator_state.block_dim)
#define gridDim (emulator_state.grid_dim)
#define warpSize 32
#define assert(x) ((x) ? (void)0 : emulator_state.runtime->trap("assertion failed: " #x))

// ---- entries -----------------------------------------------------------------------------------

namespace emulator {

template <int... I>
struct Numbers {};
template <int N, int... I>
struct UpTo : UpTo<N - 1, N - 1, I...> {};
template <int... I>
struct UpTo<0, I...> {
  typedef Numbers<I...> type;
};
template <class T>
struct Plain {
  typedef T type;
};
template <class T>
struct Plain<const T> {
  typedef T type;
};

template <class... A, int... I>
inline void call(void (*kernel)(A...), void** a, Numbers<I...>) {
  kernel(*(typename Plain<A>::type*)a[I]...);
}

template <class... A>
inline void run(void (*kernel)(A...), void** a, int whole_block) {
  typedef typename UpTo<sizeof...(A)>::type Each;
  if (!whole_block) return call(kernel, a, Each());
  const Index3 n = emulator_state.block_dim;
  for (unsigned z = 0; z < n.z; ++z)
    for (unsigned y = 0; y < n.y; ++y)
      for (unsigned x = 0; x < n.x; ++x) {
        emulator_state.thread = {x, y, z};
        call(kernel, a, Each());
      }
}

template <class... A>
inline int bytes_of(void (*)(A...), int which) {
  const int all[] = {(int)sizeof(A)..., 0};
  return which < (int)sizeof...(A) ? all[which] : 0;
}

}  // namespace emulator

// What the driver asks of a kernel beside running it: the threads of a block it was compiled for
// (-1), and the bytes of its parameters (0 past the last).
#define EMULATED_KERNEL(name, threads)                                                            \
  extern "C" __attribute__((visibility("default"))) void emulator_entry_##name(void** a, int w) { \
    emulator::run(&name, a, w);                                                                   \
  }                                                                                               \
  extern "C" __attribute__((visibility("default"))) int emulator_about_##name(int what) {         \
    return what < 0 ? (int)(threads) : emulator::bytes_of(&name, what);                           \
  }

// ---- vector types ------------------------------------------------------------------------------

struct dim3 {
  unsigned x, y, z;
  dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {}
};
#define EMULATED_VECTORS(type, name, a2, a4)                       \
  struct name##1 {                                                 \
    type x;                                                        \
  };                                                               \
  struct alignas(a2) name##2 {                                     \
    type x, y;                                                     \
  };                                                               \
  struct name##3 {                                                 \
    type x, y, z;                                                  \
  };                                                               \
  struct alignas(a4) name##4 {                                     \
    type x, y, z, w;                                               \
  };                                                               \
  inline name##2 make_##name##2(type x, type y) { return {x, y}; } \
  inline name##4 make_##name##4(type x, type y, type z, type w) { return {x, y, z, w}; }
EMULATED_VECTORS(signed char, char, 2, 4)
EMULATED_VECTORS(unsigned char, uchar, 2, 4)
EMULATED_VECTORS(short, short, 4, 8)
EMULATED_VECTORS(unsigned short, ushort, 4, 8)
EMULATED_VECTORS(int, int, 8, 16)
EMULATED_VECTORS(unsigned, uint, 8, 16)
EMULATED_VECTORS(long long, longlong, 16, 16)
EMULATED_VECTORS(unsigned long long, ulonglong, 16, 16)
EMULATED_VECTORS(float, float, 8, 16)
EMULATED_VECTORS(double, double, 16, 16)

// ---- bits --------------------------------------------------------------------------------------

#define EMULATED_CAST(to, from, name) \
  inline to name(from x) { return __builtin_bit_cast(to, x); }
EMULATED_CAST(float, int, __int_as_float)
EMULATED_CAST(float, unsigned, __uint_as_float)
EMULATED_CAST(int, float, __float_as_int)
EMULATED_CAST(unsigned, float, __float_as_uint)
EMULATED_CAST(double, long long, __longlong_as_double)
EMULATED_CAST(long long, double, __double_as_longlong)
inline unsigned __umulhi(unsigned a, unsigned b) {
  return (unsigned)((unsigned long long)a * b >> 32);
}
inline int __mulhi(int a, int b) { return (int)((long long)a * b >> 32); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return (unsigned long long)((unsigned __int128)a * b >> 64);
}
// By hand: the compiler's own may be a call of its library, which kernels are not linked with.
inline int __popc(unsigned x) {
  x -= x >> 1 & 0x55555555u;
  x = (x & 0x33333333u) + (x >> 2 & 0x33333333u);
  return (int)((x + (x >> 4) & 0x0f0f0f0fu) * 0x01010101u >> 24);
}
inline int __popcll(unsigned long long x) {
  return __popc((unsigned)x) + __popc((unsigned)(x >> 32));
}
inline int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
inline int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline unsigned __brev(unsigned x) {
  unsigned r = 0;
  for (int i = 0; i < 32; ++i) r |= (x >> i & 1u) << (31 - i);
  return r;
}
template <class T>
inline T __ldg(const T* p) {
  return *p;
}
template <class T>
inline T __ldcs(const T* p) {
  return *p;
}
template <class T>
inline void __stcs(T* p, T v) {
  *p = v;
}

// A GPU's arithmetic makes one NaN. An x86 keeps the bits of one of the operands, and which one is
// the compiler's choice: a fused group would differ from its operators one by one.
inline float emulated_result(float x) { return x != x ? __uint_as_float(0x7fffffffu) : x; }
inline double emulated_result(double x) {
  return x != x ? __longlong_as_double(0x7fffffffffffffffll) : x;
}
inline bool emulated_result(bool x) { return x; }
inline long emulated_result(long x) { return x; }
template <class Complex>
inline Complex emulated_result(Complex x) {
  x.re = emulated_result(x.re);
  x.im = emulated_result(x.im);
  return x;
}

// ---- PTX ---------------------------------------------------------------------------------------

namespace emulated_ptx {

inline void mov_f32_0_1(float& out, float x) {
  asm("" : "+x"(x));
  out = x;
}
inline void mov_f64_0_1(double& out, double x) {
  asm("" : "+x"(x));
  out = x;
}
// Exact where the GPU's are off by a unit or so: what they are used for mends that.
inline void rcp_approx_ftz_f32_0_1(float& out, float x) { out = 1.0f / x; }
inline void rsqrt_approx_ftz_f32_0_1(float& out, float x) {
  out = (float)(1.0 / __builtin_sqrt((double)x));
}
inline void mov_b64_0_1(long long& out, long long x) {
  asm("" : "+r"(x));
  out = x;
}

inline void mov_u32_0_ntid_x(unsigned& out) {
  out = blockDim.x;
  asm("" : "+r"(out));
}

inline void cvt_f32_f16_0_1(float& out, unsigned short h) {
  unsigned sign = (h & 0x8000u) << 16, e = h >> 10 & 31u, m = h & 0x3ffu;
  if (e == 31) {
    out = __uint_as_float(m ? 0x7fffffffu : sign | 0x7f800000u);
  } else if (e) {
    out = __uint_as_float(sign | (e + 112) << 23 | m << 13);
  } else {
    float small = (float)m * 5.9604644775390625e-8f;
    out = sign ? -small : small;
  }
}
inline void cvt_rn_f16_f32_0_1(unsigned short& out, float f) {
  unsigned x = __float_as_uint(f), sign = x >> 16 & 0x8000u, a = x & 0x7fffffffu;
  if (a > 0x7f800000u) {
    out = 0x7fff;
  } else if (a >= 0x477ff000u) {
    out = (unsigned short)(sign | 0x7c00u);
  } else if (a >= 0x38800000u) {
    a += 0xc8000000u + 0xfffu + (a >> 13 & 1u);
    out = (unsigned short)(sign | a >> 13);
  } else {
    // Adding 0.5 rounds to a multiple of the smallest number, to even.
    float r = __uint_as_float(a) + 0.5f;
    out = (unsigned short)(sign | (__float_as_uint(r) - 0x3f000000u));
  }
}
inline void cvt_rn_bf16_f32_0_1(unsigned short& out, float f) {
  unsigned x = __float_as_uint(f);
  out = f != f ? (unsigned short)0x7fff : (unsigned short)((x + 0x7fffu + (x >> 16 & 1u)) >> 16);
}
inline void reg_pred_p_setp_ne_u32_p_3_0_selp_b32_0_1_2_p(unsigned& out, unsigned a, unsigned b,
                                                          unsigned c) {
  out = c != 0 ? a : b;
}
inline void reg_pred_p_setp_ne_u32_p_3_0_selp_b64_0_1_2_p(long long& out, long long a, long long b,
                                                          unsigned c) {
  out = c != 0 ? a : b;
}

}  // namespace emulated_ptx

// ---- barriers and warps ------------------------------------------------------------------------

inline void __syncthreads() { emulator_state.runtime->sync_block(0); }
inline int __syncthreads_count(int p) { return emulator_state.runtime->sync_block(p); }
inline int __syncthreads_or(int p) { return emulator_state.runtime->sync_block(p) != 0; }
inline int __syncthreads_and(int p) { return emulator_state.runtime->sync_block(!p) == 0; }
inline void __threadfence() { __atomic_thread_fence(5); }
inline void __threadfence_block() { __atomic_thread_fence(5); }
inline void __threadfence_system() { __atomic_thread_fence(5); }
inline void __syncwarp(unsigned mask = 0xffffffffu) {
  emulator_state.runtime->warp(emulator::WarpOp::kSync, mask, 0, 0);
}
inline unsigned __activemask() { return emulator_state.runtime->active_mask(); }
inline unsigned __ballot_sync(unsigned mask, int p) {
  return (unsigned)emulator_state.runtime->warp(emulator::WarpOp::kBallot, mask, p != 0, 0);
}
inline int __any_sync(unsigned mask, int p) { return __ballot_sync(mask, p) != 0; }
inline int __all_sync(unsigned mask, int p) { return __ballot_sync(mask, !p) == 0; }
inline void __trap() { emulator_state.runtime->trap("__trap()"); }
inline void __nanosleep(unsigned) {}

namespace emulator {

inline int lane() {
  const Index3 t = emulator_state.thread, n = emulator_state.block_dim;
  return (int)((t.x + n.x * (t.y + n.y * t.z)) % 32);
}
template <class T>
inline T shuffle(unsigned mask, T value, int from) {
  static_assert(sizeof(T) <= 8, "a shuffle moves at most 8 bytes");
  unsigned long long word = 0;
  __builtin_memcpy(&word, &value, sizeof value);
  word = emulator_state.runtime->warp(WarpOp::kShuffle, mask, word, from);
  __builtin_memcpy(&value, &word, sizeof value);
  return value;
}

}  // namespace emulator

template <class T>
inline T __shfl_sync(unsigned mask, T x, int from, int width = 32) {
  return emulator::shuffle(mask, x, (emulator::lane() & ~(width - 1)) + (from & (width - 1)));
}
template <class T>
inline T __shfl_up_sync(unsigned mask, T x, unsigned by, int width = 32) {
  int me = emulator::lane(), from = me - (int)by;
  return emulator::shuffle(mask, x, from < (me & ~(width - 1)) ? me : from);
}
template <class T>
inline T __shfl_down_sync(unsigned mask, T x, unsigned by, int width = 32) {
  int me = emulator::lane(), from = me + (int)by;
  return emulator::shuffle(mask, x, from > (me | (width - 1)) ? me : from);
}
template <class T>
inline T __shfl_xor_sync(unsigned mask, T x, int with, int width = 32) {
  int me = emulator::lane(), from = me ^ with;
  return emulator::shuffle(mask, x, from > (me | (width - 1)) ? me : from);
}

// ---- atomics: kernels of two streams may meet --------------------------------------------------

namespace emulator {

template <class T, class F>
inline T update(T* at, F next) {
  T old;
  __atomic_load(at, &old, 0);
  for (;;) {
    T fresh = next(old);
    if (__atomic_compare_exchange(at, &old, &fresh, false, 0, 0)) return old;
  }
}

}  // namespace emulator

#define EMULATED_ATOMIC(name, expression)                              \
  template <class T, class U>                                          \
  inline T name(T* at, U given) {                                      \
    const T v = (T)given;                                              \
    return emulator::update(at, [=](T x) { return (T)(expression); }); \
  }
EMULATED_ATOMIC(atomicAdd, x + v)
EMULATED_ATOMIC(atomicSub, x - v)
EMULATED_ATOMIC(atomicMin, v < x ? v : x)
EMULATED_ATOMIC(atomicMax, v > x ? v : x)
EMULATED_ATOMIC(atomicExch, (x, v))
EMULATED_ATOMIC(atomicAnd, x& v)
EMULATED_ATOMIC(atomicOr, x | v)
EMULATED_ATOMIC(atomicXor, x ^ v)
EMULATED_ATOMIC(atomicInc, x >= v ? 0 : x + 1)
EMULATED_ATOMIC(atomicDec, x == 0 || x > v ? v : x - 1)
template <class T, class U, class V>
inline T atomicCAS(T* at, U expected, V fresh) {
  T old = (T)expected, v = (T)fresh;
  __atomic_compare_exchange(at, &old, &v, false, 0, 0);
  return old;
}

// ---- mathematics: the host's, correctly rounded where CUDA's is --------------------------------

#define EMULATED_MATH1(name)      \
  extern "C" double name(double); \
  extern "C" float name##f(float)
#define EMULATED_MATH2(name)              \
  extern "C" double name(double, double); \
  extern "C" float name##f(float, float)
EMULATED_MATH1(sin);
EMULATED_MATH1(cos);
EMULATED_MATH1(tan);
EMULATED_MATH1(asin);
EMULATED_MATH1(acos);
EMULATED_MATH1(atan);
EMULATED_MATH1(sinh);
EMULATED_MATH1(cosh);
EMULATED_MATH1(tanh);
EMULATED_MATH1(asinh);
EMULATED_MATH1(acosh);
EMULATED_MATH1(atanh);
EMULATED_MATH1(exp);
EMULATED_MATH1(exp2);
EMULATED_MATH1(expm1);
EMULATED_MATH1(log);
EMULATED_MATH1(log2);
EMULATED_MATH1(log10);
EMULATED_MATH1(log1p);
EMULATED_MATH1(erf);
EMULATED_MATH1(erfc);
EMULATED_MATH1(lgamma);
EMULATED_MATH1(tgamma);
EMULATED_MATH1(cbrt);
EMULATED_MATH1(sqrt);
EMULATED_MATH1(fabs);
EMULATED_MATH1(floor);
EMULATED_MATH1(ceil);
EMULATED_MATH1(trunc);
EMULATED_MATH1(rint);
EMULATED_MATH1(round);
EMULATED_MATH1(nearbyint);
EMULATED_MATH1(logb);
EMULATED_MATH1(j0);
EMULATED_MATH1(j1);
EMULATED_MATH1(y0);
EMULATED_MATH1(y1);
EMULATED_MATH2(fmod);
EMULATED_MATH2(atan2);
EMULATED_MATH2(hypot);
EMULATED_MATH2(copysign);
EMULATED_MATH2(pow);
EMULATED_MATH2(fmin);
EMULATED_MATH2(fmax);
EMULATED_MATH2(remainder);
EMULATED_MATH2(nextafter);
EMULATED_MATH2(fdim);
extern "C" double fma(double, double, double);
extern "C" float fmaf(float, float, float);
extern "C" double ldexp(double, int);
extern "C" float ldexpf(float, int);
extern "C" double frexp(double, int*);
extern "C" float frexpf(float, int*);
inline float rsqrtf(float x) { return (float)(1.0 / sqrt((double)x)); }
inline double rsqrt(double x) { return 1.0 / sqrt(x); }
inline float __expf(float x) { return expf(x); }
inline float __logf(float x) { return logf(x); }
inline float __sinf(float x) { return sinf(x); }
inline float __cosf(float x) { return cosf(x); }
inline float __powf(float x, float y) { return powf(x, y); }
inline float __fdividef(float x, float y) { return x / y; }
inline float fdividef(float x, float y) { return x / y; }
inline float __frcp_rn(float x) { return 1.0f / x; }
inline float __fadd_rn(float x, float y) { return x + y; }
inline float __fmul_rn(float x, float y) { return x * y; }
inline float __fdiv_rn(float x, float y) { return x / y; }
inline float __fsqrt_rn(float x) { return sqrtf(x); }
inline float __fmaf_rn(float x, float y, float z) { return fmaf(x, y, z); }
inline float __saturatef(float x) { return x > 0 ? x < 1 ? x : 1.0f : 0.0f; }
inline void sincosf(float x, float* s, float* c) {
  *s = sinf(x);
  *c = cosf(x);
}
inline void sincos(double x, double* s, double* c) {
  *s = sin(x);
  *c = cos(x);
}
