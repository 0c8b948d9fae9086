// Note [PyTorch's normal numbers]
// For float PyTorch's x86 builds do not call libm but vector code after the Cephes library; the
// numbers below repeat it operation for operation, where it matters with the fused multiply-add
// its compiler made of it, so that they agree to the last bit. Other dtypes go through libm.
#include "normal_fill.h"

#include <bit>
#include <cmath>

#include "isa.h"

namespace tessera::cpu {

namespace {

constexpr double kTwoPi = 6.283185307179586476925286766559;

TS_INLINE float fused(float a, float b, float c) { return __builtin_fmaf(a, b, c); }

TS_INLINE float cephes_log(float x) {
  x = x < 1.17549435e-38f ? 1.17549435e-38f : x;
  uint32_t bits = std::bit_cast<uint32_t>(x);
  float e = static_cast<float>(static_cast<int32_t>(bits >> 23) - 127) + 1.0f;
  x = std::bit_cast<float>((bits & 0x807fffffu) | 0x3f000000u);
  bool low = x < 0.707106781186547524f;
  float rest = low ? x : 0.0f;
  x -= 1.0f;
  e -= low ? 1.0f : 0.0f;
  x += rest;
  float z = x * x;
  float y = 7.0376836292e-2f;
  y = fused(y, x, -1.1514610310e-1f);
  y = fused(y, x, 1.1676998740e-1f);
  y = fused(y, x, -1.2420140846e-1f);
  y = fused(y, x, 1.4249322787e-1f);
  y = fused(y, x, -1.6668057665e-1f);
  y = fused(y, x, 2.0000714765e-1f);
  y = fused(y, x, -2.4999993993e-1f);
  y = fused(y, x, 3.3333331174e-1f);
  y = y * x;
  y = fused(y, z, e * -2.12194440e-4f);
  y = fused(z, -0.5f, y);
  return fused(e, 0.693359375f, x + y);
}

TS_INLINE void cephes_sincos(float x, float* s, float* c) {
  uint32_t sign_sin = std::bit_cast<uint32_t>(x) & 0x80000000u;
  x = __builtin_fabsf(x);
  uint32_t j = static_cast<uint32_t>(static_cast<int32_t>(x * 1.27323954473516f));
  j = (j + 1) & ~1u;
  float y = static_cast<float>(static_cast<int32_t>(j));
  sign_sin ^= (j & 4) << 29;
  uint32_t sign_cos = (~(j - 2) & 4) << 29;
  bool plain = (j & 2) == 0;
  x = fused(y, -0.78515625f, x);
  x = fused(y, -2.4187564849853515625e-4f, x);
  x = fused(y, -3.77489497744594108e-8f, x);
  float z = x * x;
  float p = 2.443315711809948e-5f;
  p = fused(p, z, -1.388731625493765e-3f);
  p = fused(p, z, 4.166664568298827e-2f);
  p = p * z;
  p = fused(p, z, -(z * 0.5f));
  p = p + 1.0f;
  float q = -1.9515295891e-4f;
  q = fused(q, z, 8.3321608736e-3f);
  q = fused(q, z, -1.6666654611e-1f);
  q = q * z;
  q = fused(q, x, x);
  *s = std::bit_cast<float>(std::bit_cast<uint32_t>(plain ? q : p) ^ sign_sin);
  *c = std::bit_cast<float>(std::bit_cast<uint32_t>(plain ? p : q) ^ sign_cos);
}

TS_INLINE void fill_float(float* data, float mean, float std) {
  for (int j = 0; j < 8; ++j) {
    float u1 = 1.0f - data[j], u2 = data[j + 8];
    float radius = __builtin_sqrtf(-2.0f * cephes_log(u1));
    float s, c;
    cephes_sincos(static_cast<float>(kTwoPi) * u2, &s, &c);
    data[j] = fused(radius * c, std, mean);
    data[j + 8] = fused(radius * s, std, mean);
  }
}
void fill_float_baseline(float* data, float mean, float std) { fill_float(data, mean, std); }
TS_TARGET_AVX2 void fill_float_avx2(float* data, float mean, float std) {
  fill_float(data, mean, std);
}

// Every operation rounded to the dtype, as PyTorch's half types do.
template <class T>
void fill_narrow(T* data, float mean, float std) {
  auto r = [](double v) { return cast<float>(cast<T>(static_cast<float>(v))); };
  mean = r(mean);
  std = r(std);
  for (int j = 0; j < 8; ++j) {
    float u1 = r(1.0f - cast<float>(data[j])), u2 = cast<float>(data[j + 8]);
    float radius = r(std::sqrt(r(-2.0f * r(std::log(u1)))));
    float theta = r(kTwoPi * static_cast<double>(u2));
    data[j] = cast<T>(r(r(radius * r(std::cos(theta))) * std) + mean);
    data[j + 8] = cast<T>(r(r(radius * r(std::sin(theta))) * std) + mean);
  }
}

}  // namespace

void normal_fill_16(float* data, double mean, double std) {
  float m = static_cast<float>(mean), s = static_cast<float>(std);
  if (g_isa >= 1)
    fill_float_avx2(data, m, s);
  else
    fill_float_baseline(data, m, s);
}
void normal_fill_16(double* data, double mean, double std) {
  for (int j = 0; j < 8; ++j) {
    double u1 = 1 - data[j], u2 = data[j + 8];
    double radius = std::sqrt(-2 * std::log(u1)), theta = kTwoPi * u2;
    data[j] = std::fma(radius * std::cos(theta), std, mean);
    data[j + 8] = std::fma(radius * std::sin(theta), std, mean);
  }
}
void normal_fill_16(Half* data, double mean, double std) {
  fill_narrow(data, static_cast<float>(mean), static_cast<float>(std));
}
void normal_fill_16(BFloat* data, double mean, double std) {
  fill_narrow(data, static_cast<float>(mean), static_cast<float>(std));
}

}  // namespace tessera::cpu
