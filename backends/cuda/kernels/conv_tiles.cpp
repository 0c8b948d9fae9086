// Convolutions without cuDNN: the product of conv_text.h in tiles, and what tiles are too large
// for.
#include "conv_tiles.h"

#include <algorithm>

#include "../kernels.h"
#include "conv_text.h"

namespace tessera::cuda {
namespace {

// Tiles of 64 x 64, 16 of k at a time through shared memory; while one step is computed the next
// is on its way. Threads read neighbours along n or k (N_NEAR), m or k (M_NEAR).
constexpr auto kTilesWhole = join(kConvText, R"(
typedef T::S S;
typedef T::A A;
extern "C" __global__ void __launch_bounds__(256) conv_tiles(const __grid_constant__ Params p) {
  __shared__ uint4 raw[2 * 68 * sizeof(A)];
  __shared__ int64_t row_left[2][16], row_data[2][16];
  __shared__ int row_at[2][3][16];
  A (*left_tile)[68] = (A(*)[68])raw;
  A (*data_tile)[68] = (A(*)[68])(raw + 68 * sizeof(A));
  const int t = threadIdx.x;
  const int64_t group = p.first_group + blockIdx.z / p.splits, split = blockIdx.z % p.splits;
  const int64_t m0 = (int64_t)blockIdx.y * 64, n0 = (int64_t)blockIdx.x * 64;
  const int64_t k0 = split * p.k_each, k1 = tm::min(k0 + p.k_each, p.k);
  const S* left = p.left + group * p.left_group;
  const S* data = p.data + group * p.data_group;
  // Rows of the next step: where digits of k lead. -1: beyond the end.
  auto rows = [&](int buffer, int64_t k) {
    if (t >= 16) return;
    k += t;
    int64_t d[4] = {0, 0, 0, 0};
    if (k < k1) digits(k, p.k_size, K_FIRST, d);
    const Spot s = spot_k(p, d);
    row_data[buffer][t] = k < k1 ? s.offset : -1;
    row_left[buffer][t] =
        d[0] * p.k_left[0] + d[1] * p.k_left[1] + d[2] * p.k_left[2] + d[3] * p.k_left[3];
    for (int i = 0; i < 3; ++i) row_at[buffer][i][t] = s.at[i];
  };
  Spot spots[N_NEAR ? 1 : 4];
  bool has[N_NEAR ? 1 : 4];
  #pragma unroll
  for (int j = 0; j < (N_NEAR ? 1 : 4); ++j) {
    const int64_t n = n0 + (N_NEAR ? t % 64 : t / 16 + 16 * j);
    int64_t d[4] = {0, 0, 0, 0};
    has[j] = n < p.n;
    if (has[j]) digits(n, p.n_size, N_FIRST, d);
    spots[j] = spot_n(p, d);
  }
  S next_left[4], next_data[4];
  auto fetch = [&](int buffer) {
    #pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int kl = M_NEAR ? t / 64 + 4 * j : t % 16, ml = M_NEAR ? t % 64 : t / 16 + 16 * j;
      next_left[j] = S();
      if (m0 + ml < p.m && row_data[buffer][kl] >= 0)
        next_left[j] = left[(m0 + ml) * p.left_m + row_left[buffer][kl]];
      const int kd = N_NEAR ? t / 64 + 4 * j : t % 16, of = N_NEAR ? 0 : j;
      const int64_t offset = row_data[buffer][kd];
      next_data[j] = S();
      if (has[of] && offset >= 0)
        next_data[j] = read(p, data, offset + spots[of].offset, spots[of].at, row_at[buffer][0][kd],
                            row_at[buffer][1][kd], row_at[buffer][2][kd]);
    }
  };
  A sum[4][4];
  #pragma unroll
  for (int i = 0; i < 16; ++i) sum[i / 4][i % 4] = A(0);
  const int tx = t % 16, ty = t / 16;
  rows(0, k0);
  __syncthreads();
  fetch(0);
  int buffer = 0;
  for (int64_t k = k0; k < k1; k += 16) {
    #pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int kl = M_NEAR ? t / 64 + 4 * j : t % 16, ml = M_NEAR ? t % 64 : t / 16 + 16 * j;
      const int kd = N_NEAR ? t / 64 + 4 * j : t % 16, nd = N_NEAR ? t % 64 : t / 16 + 16 * j;
      left_tile[kl][ml] = T::ld(next_left[j]);
      data_tile[kd][nd] = T::ld(next_data[j]);
    }
    buffer ^= 1;
    rows(buffer, k + 16);
    __syncthreads();
    if (k + 16 < k1) fetch(buffer);
    #pragma unroll
    for (int kk = 0; kk < 16; ++kk) {
      A a[4], b[4];
      #pragma unroll
      for (int i = 0; i < 4; ++i) a[i] = left_tile[kk][ty * 4 + i], b[i] = data_tile[kk][tx + 16 * i];
      #pragma unroll
      for (int i = 0; i < 16; ++i) sum[i / 4][i % 4] = mad(a[i / 4], b[i % 4], sum[i / 4][i % 4]);
    }
    __syncthreads();
  }
  #pragma unroll
  for (int j = 0; j < 4; ++j) {
    const int64_t n = n0 + tx + 16 * j;
    if (n >= p.n) continue;
    const int64_t to = SPLIT ? 0 : out_offset(p, n);
    #pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int64_t m = m0 + ty * 4 + i;
      if (m >= p.m) continue;
      if (SPLIT)
        p.parts[((split * p.groups + group) * p.m + m) * p.n + n] = sum[i][j];
      else
        put(p, group, m, to, sum[i][j]);
    }
  }
})");
constexpr TextKernel kTiles{"conv_tiles", kTilesWhole.text};

// The parts of k, added in their order.
constexpr auto kPartsWhole = join(kConvText, R"(
extern "C" __global__ void __launch_bounds__(256) conv_parts(const __grid_constant__ Params p) {
  const int64_t all = p.groups * p.m * p.n;
  for (int64_t i = thread(); i < all; i += threads()) {
    T::A sum = T::A(0);
    for (int64_t s = 0; s < p.splits; ++s) sum = sum + p.parts[s * all + i];
    const int64_t row = i / p.n, n = i - row * p.n, group = row / p.m;
    put(p, group, row - group * p.m, out_offset(p, n), sum);
  }
})");
constexpr TextKernel kParts{"conv_parts", kPartsWhole.text};

// A thread for each element, where few m make tiles empty: depthwise ones. Neighbours are
// neighbouring n, or (CHANNELS_NEAR) channels.
constexpr auto kThreadsWhole = join(kConvText, R"(
extern "C" __global__ void __launch_bounds__(256) conv_threads(const __grid_constant__ Params p) {
  const int64_t channels = p.groups * p.m, all = channels * p.n;
  for (int64_t i = thread(); i < all; i += threads()) {
    const int64_t q = divided(i, CHANNELS_NEAR ? channels : p.n);
    const int64_t n = CHANNELS_NEAR ? q : i - q * p.n, channel = CHANNELS_NEAR ? i - q * channels : q;
    const int64_t group = divided(channel, p.m), m = channel - group * p.m;
    const T::S* left = p.left + group * p.left_group + m * p.left_m;
    const T::S* data = p.data + group * p.data_group;
    int64_t d[4];
    digits(n, p.n_size, N_FIRST, d);
    const Spot s = spot_n(p, d);
    T::A sum = T::A(0);
    for (int64_t c = 0; c < p.k_size[0]; ++c)
      for (int z = 0; z < (int)p.k_size[1]; ++z)
        for (int y = 0; y < (int)p.k_size[2]; ++y)
          for (int x = 0; x < (int)p.k_size[3]; ++x) {
            const T::S v = read(p, data, s.offset + c * p.k_data, s.at,
                                z * p.k_times[0] + p.k_plus[0], y * p.k_times[1] + p.k_plus[1],
                                x * p.k_times[2] + p.k_plus[2]);
            const T::S w =
                left[c * p.k_left[0] + z * p.k_left[1] + y * p.k_left[2] + x * p.k_left[3]];
            sum = mad(T::ld(w), T::ld(v), sum);
          }
    put(p, group, m, out_offset(p, n), sum);
  }
})");
constexpr TextKernel kThreads{"conv_threads", kThreadsWhole.text};

// A block for each element, where there are few of them and k is long: depthwise weights.
constexpr auto kBlocksWhole = join(kConvText, R"(
extern "C" __global__ void __launch_bounds__(256) conv_blocks(const __grid_constant__ Params p) {
  __shared__ uint4 raw[16 * sizeof(T::A)];
  T::A* sums = (T::A*)raw;
  const int64_t i = (int64_t)blockIdx.x, row = i / p.n, n = i - row * p.n, group = row / p.m;
  const int64_t m = row - group * p.m;
  const T::S* left = p.left + group * p.left_group + m * p.left_m;
  const T::S* data = p.data + group * p.data_group;
  int64_t dn[4], d[4];
  digits(n, p.n_size, N_FIRST, dn);
  const Spot s = spot_n(p, dn);
  T::A sum = T::A(0);
  for (int64_t k = threadIdx.x; k < p.k; k += 256) {
    digits(k, p.k_size, K_FIRST, d);
    const Spot at = spot_k(p, d);
    const T::S v = read(p, data, s.offset + at.offset, s.at, at.at[0], at.at[1], at.at[2]);
    const T::S w = left[d[0] * p.k_left[0] + d[1] * p.k_left[1] + d[2] * p.k_left[2] +
                        d[3] * p.k_left[3]];
    sum = mad(T::ld(w), T::ld(v), sum);
  }
  sums[threadIdx.x] = sum;
  for (int half = 128; half > 0; half >>= 1) {
    __syncthreads();
    if (threadIdx.x < half) sums[threadIdx.x] = sums[threadIdx.x] + sums[threadIdx.x + half];
  }
  if (threadIdx.x == 0) put(p, group, m, out_offset(p, n), sums[0]);
})");
constexpr TextKernel kBlocks{"conv_blocks", kBlocksWhole.text};

int64_t tiles_of(int64_t n) { return (n + 63) / 64; }

// One digit of sizes and strides: the channel or sample, then the places.
void set_digits(int64_t (&to)[4], int64_t first, const int64_t* places) {
  to[0] = first;
  std::copy_n(places, 3, to + 1);
}

struct Problem {
  ConvParams p{};
  bool n_first, k_first, n_near, m_near, stepped;
};

// Strides are those of five dimensions: sample, channel, places. `of` is either image side.
Problem problem_of(const ConvCall& c) {
  Problem r;
  ConvParams& p = r.p;
  const int64_t *in = c.input.strides, *out = c.output.strides, *w = c.weight.strides;
  const int64_t samples = c.input.sizes[0], channels = c.input.sizes[1] / c.groups,
                outs = c.output.sizes[1] / c.groups;
  const bool weights = c.kind == ConvKind::kBackwardWeight;
  const bool inputs = c.kind == ConvKind::kBackwardInput;
  const KernelTensor& data = inputs ? c.output : c.input;
  const int64_t image_group[2] = {channels * in[1], outs * out[1]};
  p.groups = c.groups;
  p.left = weights ? c.output.data : c.weight.data;
  p.data = data.data;
  p.bias = c.bias;
  p.out = weights ? c.weight.data : inputs ? c.input.data : c.output.data;
  p.m = inputs ? channels : outs;
  p.left_m = weights ? out[1] : w[inputs ? 1 : 0];
  p.out_m = weights ? w[0] : inputs ? in[1] : out[1];
  p.left_group = weights ? image_group[1] : outs * w[0];
  p.data_group = image_group[inputs ? 1 : 0];
  p.out_group = weights ? outs * w[0] : image_group[inputs ? 0 : 1];
  for (int d = 0; d < 3; ++d) {
    const auto stride = static_cast<int32_t>(c.stride[d]),
               padding = static_cast<int32_t>(c.padding[d]),
               dilation = static_cast<int32_t>(c.dilation[d]);
    p.data_place[d] = data.strides[d + 2];
    p.limit[d] = static_cast<int32_t>(data.sizes[d + 2]);
    p.step[d] = inputs ? stride : 1;
    p.n_times[d] = weights ? dilation : inputs ? 1 : stride;
    p.n_plus[d] = weights ? 0 : inputs ? padding : -padding;
    p.k_times[d] = weights ? stride : inputs ? -dilation : dilation;
    p.k_plus[d] = weights ? -padding : 0;
    r.stepped = (d ? r.stepped : false) || p.step[d] != 1;
  }
  if (weights) {
    set_digits(p.n_size, channels, c.weight.sizes + 2);
    set_digits(p.n_out, w[1], w + 2);
    p.n_data = in[1];
    set_digits(p.k_size, samples, c.output.sizes + 2);
    set_digits(p.k_left, out[0], out + 2);
    p.k_data = in[0];
  } else {
    const KernelTensor& result = inputs ? c.input : c.output;
    set_digits(p.n_size, samples, result.sizes + 2);
    set_digits(p.n_out, result.strides[0], result.strides + 2);
    p.n_data = data.strides[0];
    set_digits(p.k_size, inputs ? outs : channels, c.weight.sizes + 2);
    set_digits(p.k_left, w[inputs ? 0 : 1], w + 2);
    p.k_data = data.strides[1];
  }
  auto product = [](const int64_t(&s)[4]) { return s[0] * s[1] * s[2] * s[3]; };
  p.n = product(p.n_size);
  p.k = product(p.k_size);
  // Channels side by side in `data` are read by neighbouring threads, whichever of n and k they
  // belong to.
  const int64_t data_channel = data.strides[1];
  const bool near = data_channel < data.strides[4];
  r.n_first = weights && near;
  r.k_first = !weights && near;
  r.n_near = weights || !near;
  r.m_near = p.left_m < p.k_left[r.k_first ? 0 : 3];
  return r;
}

// How many parts k is divided into so that there are blocks enough; not by the device, so that
// sums are the same on all of them.
int64_t splits_for(int64_t tiles, int64_t k) {
  constexpr int64_t kEnough = 256, kShortest = 256;
  if (tiles >= kEnough / 2) return 1;
  return std::clamp<int64_t>(kEnough / tiles, 1, std::max<int64_t>(1, k / kShortest));
}

}  // namespace

Status conv_by_tiles(Device& d, CUstream stream, const ConvCall& c) {
  const DType t = c.output.dtype;
  Problem r = problem_of(c);
  ConvParams& p = r.p;
  p.splits = 1;
  p.k_each = std::max<int64_t>(p.k, 1);
  const bool weights = c.kind == ConvKind::kBackwardWeight;
  const Def type = def("T", t), n_first = def("N_FIRST", r.n_first),
            k_first = def("K_FIRST", r.k_first), stepped = def("STEPPED", r.stepped);
  const int64_t all = p.groups * p.m * p.n;
  if (p.m <= 4 && weights && p.n <= 256 && all <= INT32_MAX)
    return launch_text(d, stream, kBlocks, {type, n_first, k_first, stepped}, {all, 256}, &p);
  if (p.m <= 4 && !weights) {
    const bool channels_near = p.out_m < p.n_out[3];
    return launch_text(d, stream, kThreads,
                       {type, n_first, k_first, stepped, def("CHANNELS_NEAR", channels_near)},
                       {fill_blocks(d, all), 256}, &p);
  }
  const int64_t tiles = tiles_of(p.m) * tiles_of(p.n) * p.groups;
  p.splits = splits_for(tiles, p.k);
  p.k_each = std::max<int64_t>(16, ((p.k + p.splits - 1) / p.splits + 15) / 16 * 16);
  p.splits = std::max<int64_t>(1, (p.k + p.k_each - 1) / p.k_each);
  const bool split = p.splits > 1;
  Scratch parts(d, stream);
  if (split) {
    const int64_t accumulator = is_reduced_floating(t) ? 4
                                : is_floating(t) || is_complex(t)
                                    ? static_cast<int64_t>(itemsize(t))
                                    : 8;
    TS_TRY(parts.take(static_cast<size_t>(p.splits * all * accumulator)));
    p.parts = parts.address();
  }
  const int64_t at_once = std::max<int64_t>(1, 65535 / p.splits);
  for (p.first_group = 0; p.first_group < p.groups; p.first_group += at_once) {
    const Grid grid{tiles_of(p.n), 256, tiles_of(p.m),
                    std::min(at_once, p.groups - p.first_group) * p.splits};
    TS_TRY(launch_text(d, stream, kTiles,
                       {type, n_first, k_first, stepped, def("N_NEAR", r.n_near),
                        def("M_NEAR", r.m_near), def("SPLIT", split)},
                       grid, &p));
  }
  if (!split) return ok();
  return launch_text(d, stream, kParts, {type, n_first, k_first, stepped},
                     {fill_blocks(d, all), 256}, &p);
}

}  // namespace tessera::cuda
