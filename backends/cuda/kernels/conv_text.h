// Convolution and its two gradients as one product of matrices whose operands are never laid out:
//   out(m, n) = sum over k of left(m, k) * data(n, k)
// n and k are numbers of four digits each (a channel or sample, then a place or a tap), and where
// `data` is read follows from the sum of both places. What m, n and k stand for:
//                    m               n                    k              left     data
//   forward          out channel     sample, out place    channel, tap   weight   input
//   backward_input   channel         sample, in place     out ch., tap   weight   gradient
//   backward_weight  out channel     channel, tap         sample, place  gradient input
#pragma once
#include "../text.h"
#include "join.h"

namespace tessera::cuda {

// The same struct stands in kConvText.
struct ConvParams {
  const void *left, *data, *bias;
  void* out;
  CUdeviceptr parts;
  int64_t m, n, k, splits, k_each, groups, first_group;
  int64_t left_m, out_m, left_group, data_group, out_group;
  int64_t n_size[4], n_data, n_out[4];
  int64_t k_size[4], k_data, k_left[4];
  int64_t data_place[3];
  // The place of digits n and k: n * n_times + n_plus + k * k_times + k_plus, divided by `step`
  // (an element only where nothing is left), inside from 0 to `limit`.
  int32_t n_times[3], n_plus[3], k_times[3], k_plus[3], limit[3], step[3];
};

// Needs T, N_FIRST and K_FIRST (the first digit is the fastest), STEPPED.
inline constexpr char kConvText[] = R"(
struct Params {
  const T::S *left, *data, *bias;
  T::S* out;
  T::A* parts;
  int64_t m, n, k, splits, k_each, groups, first_group;
  int64_t left_m, out_m, left_group, data_group, out_group;
  int64_t n_size[4], n_data, n_out[4];
  int64_t k_size[4], k_data, k_left[4];
  int64_t data_place[3];
  int n_times[3], n_plus[3], k_times[3], k_plus[3], limit[3], step[3];
};
TS_FN float mad(float a, float b, float c) { return fmaf(a, b, c); }
TS_FN double mad(double a, double b, double c) { return fma(a, b, c); }
TS_FN int64_t mad(int64_t a, int64_t b, int64_t c) {
  return (int64_t)((uint64_t)a * (uint64_t)b + (uint64_t)c);
}
template <class A> TS_FN A mad(A a, A b, A c) { return a * b + c; }
TS_FN int64_t divided(int64_t a, int64_t b) {
  return (a | b) >> 31 == 0 ? (int64_t)((unsigned)a / (unsigned)b) : a / b;
}
TS_FN void digits(int64_t i, const int64_t (&size)[4], bool first, int64_t (&d)[4]) {
  int64_t q;
  if (first) q = divided(i, size[0]), d[0] = i - q * size[0], i = q;
  q = divided(i, size[3]), d[3] = i - q * size[3], i = q;
  q = divided(i, size[2]), d[2] = i - q * size[2], i = q;
  if (first) {
    d[1] = i;
  } else {
    q = divided(i, size[1]), d[1] = i - q * size[1];
    d[0] = q;
  }
}
struct Spot { int64_t offset; int at[3]; };
TS_FN Spot spot_n(const Params& p, const int64_t (&d)[4]) {
  Spot s;
  s.offset = d[0] * p.n_data;
  #pragma unroll
  for (int i = 0; i < 3; ++i) s.at[i] = (int)d[i + 1] * p.n_times[i] + p.n_plus[i];
  return s;
}
TS_FN Spot spot_k(const Params& p, const int64_t (&d)[4]) {
  Spot s;
  s.offset = d[0] * p.k_data;
  #pragma unroll
  for (int i = 0; i < 3; ++i) s.at[i] = (int)d[i + 1] * p.k_times[i] + p.k_plus[i];
  return s;
}
TS_FN T::S read(const Params& p, const T::S* data, int64_t offset, const int (&n)[3], int z, int y,
                int x) {
  const int k[3] = {z, y, x};
  bool inside = true;
  #pragma unroll
  for (int i = 0; i < 3; ++i) {
    int at = n[i] + k[i];
    if (STEPPED && p.step[i] != 1) {
      const int q = at / p.step[i];
      inside = inside && at >= 0 && q * p.step[i] == at;
      at = q;
    }
    inside = inside && (unsigned)at < (unsigned)p.limit[i];
    offset += at * p.data_place[i];
  }
  T::S s = T::S();
  if (inside) s = data[offset];
  return s;
}
TS_FN int64_t out_offset(const Params& p, int64_t n) {
  int64_t d[4];
  digits(n, p.n_size, N_FIRST, d);
  return d[0] * p.n_out[0] + d[1] * p.n_out[1] + d[2] * p.n_out[2] + d[3] * p.n_out[3];
}
TS_FN void put(const Params& p, int64_t group, int64_t m, int64_t n_offset, T::A sum) {
  if (p.bias) sum = sum + T::ld(p.bias[group * p.m + m]);
  p.out[group * p.out_group + m * p.out_m + n_offset] = T::st(sum);
}
)";

}  // namespace tessera::cuda
