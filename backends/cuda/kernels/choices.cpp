// Permutations, choices by weight, Poisson numbers and normal doubles, by the rules of
// tessera/ops/philox.h: the numbers that the CPU's kernels draw from the same seed and offset.
#include "sorting.h"
#include "tessera/driver/random_args.h"

namespace tessera::cuda {
namespace {

struct Seed {
  uint64_t seed, offset;
  const unsigned long long* state;
  explicit Seed(const KernelArgs& a)
      : seed(static_cast<uint64_t>(a.ints[0])),
        offset(static_cast<uint64_t>(a.ints[1])),
        state(philox_state(a)) {}
};

constexpr TextKernel kPermKeys{"randperm_keys", R"(
struct Params { tessera::PhiloxSource from; int64_t* keys; int64_t n; };
extern "C" __global__ void __launch_bounds__(256) randperm_keys(const __grid_constant__ Params p) {
  const uint64_t seed = tessera::philox_seed(p.from), base = tessera::philox_offset(p.from);
  for (int64_t b = thread(); 2 * b < p.n; b += threads()) {
    const tessera::PhiloxBlock r = tessera::philox_block(seed, base + b);
    // Signed numbers in the order of the unsigned words.
    p.keys[2 * b] = (int64_t)((uint64_t)(r.w[0] ^ 0x80000000u) << 32 | r.w[1]);
    if (2 * b + 1 < p.n) p.keys[2 * b + 1] = (int64_t)((uint64_t)(r.w[2] ^ 0x80000000u) << 32 | r.w[3]);
  }
})",
                               true};
constexpr TextKernel kPermConvert{"randperm_convert", R"(
struct Params { const int64_t* in; T::S* out; int64_t n; };
extern "C" __global__ void __launch_bounds__(256) randperm_convert(const __grid_constant__ Params p) {
  for (int64_t i = thread(); i < p.n; i += threads()) p.out[i] = T::st(T::take(p.in[i]));
})"};

// ints: seed, offset. Out: n numbers.
Status run_randperm(Device& d, CUstream stream, const KernelArgs& args) {
  const KernelTensor& out = args.outputs[0];
  const int64_t n = out.numel;
  if (n == 0) return ok();
  if (n >= int64_t{1} << 32)
    return fail(Code::kUnsupported, "randperm(): not implemented for CUDA from 2^32 elements on");
  const bool direct = out.dtype == DType::kInt64;
  Parts parts;
  const size_t keys = parts.add(n, 8), order = parts.add(direct ? 0 : n, 8);
  Scratch room(d, stream);
  TS_TRY(room.take(parts.bytes));
  struct {
    Seed seed;
    void* keys;
    int64_t n;
  } p{Seed(args), part<void>(room, keys), n};
  TS_TRY(launch_text(d, stream, kPermKeys, {}, {fill_blocks(d, (n + 1) / 2), 256}, &p));
  int64_t* to = direct ? static_cast<int64_t*>(out.data) : part<int64_t>(room, order);
  TS_TRY(sort_rows(d, stream, {DType::kInt64, 1, n, false, p.keys, nullptr, to, n}));
  if (direct) return ok();
  struct {
    const void* in;
    void* out;
    int64_t n;
  } q{to, out.data, n};
  return launch_text(d, stream, kPermConvert, {def("T", out.dtype)}, {fill_blocks(d, n), 256}, &q);
}

// What is wrong with a weight is said by whoever reads it.
constexpr char kWeightText[] = R"(
TS_FN double weight(ErrorSlot* slot, double w) {
  if (!(w >= 0)) report(slot, w != w || w - w != 0 ? NOT_A_NUMBER : NEGATIVE, 0, 0, 0);
  else if (w - w != 0) report(slot, NOT_A_NUMBER, 0, 0, 0);
  return w;
}
)";
#define TS_WEIGHT_DEFS(dtype)                                                   \
  def("T", dtype), def("NOT_A_NUMBER", code_of(DataError::kMultinomialNumber)), \
      def("NEGATIVE", code_of(DataError::kMultinomialNegative)),                \
      def("NO_SUM", code_of(DataError::kMultinomialSum))

// Weight over an exponential number; seen: the row has a weight above zero. BEST: of each row the
// largest, its bits before its place turned over, so that the first of equals is the largest.
constexpr char kRaceText[] = R"(
typedef std::conditional_t<std::is_same_v<typename T::A, double>, double, float> C;
struct Params {
  tessera::PhiloxSource from; ErrorSlot* slot; const T::S* weights; C* keys; unsigned long long* best;
  int* seen; int64_t places, chunk, chunks;
};
extern "C" __global__ void __launch_bounds__(256) multinomial_race(const __grid_constant__ Params p) {
  const uint64_t seed = tessera::philox_seed(p.from), base = tessera::philox_offset(p.from);
  const int64_t row = blockIdx.x / p.chunks, begin = blockIdx.x % p.chunks * p.chunk;
  const int64_t end = begin + p.chunk < p.places ? begin + p.chunk : p.places;
  unsigned long long best = 0;
  bool seen = false;
  for (int64_t j = begin + threadIdx.x; j < end; j += 256) {
    const int64_t i = row * p.places + j;
    const double w = weight(p.slot, (double)T::ld(p.weights[i]));
    const C q = (C)-log1p(-tessera::philox_unit(seed, base, i)), key = (C)w / q;
    seen |= w > 0;
    if constexpr (BEST) {
      const unsigned long long mine =
          (unsigned long long)__float_as_uint((float)key) << 32 | (unsigned)~(unsigned)j;
      best = mine > best ? mine : best;
    } else {
      p.keys[i] = key;
    }
  }
  if (__syncthreads_or(seen) && threadIdx.x == 0) p.seen[row] = 1;
  if constexpr (BEST) {
    #pragma unroll
    for (int by = 16; by > 0; by /= 2) {
      const unsigned long long other = __shfl_xor_sync(0xffffffffu, best, by);
      best = other > best ? other : best;
    }
    if ((threadIdx.x & 31) == 0 && best) atomicMax(&p.best[row], best);
  }
})";
constexpr TextKernel kRace{"multinomial_race", kJoined<kWeightText, kRaceText>.data(), true};

// Of each row: whether there was a weight, and, with BEST, who won.
constexpr TextKernel kFinish{"multinomial_finish", R"(
struct Params {
  ErrorSlot* slot; const int* seen; const unsigned long long* best; int64_t* out; int64_t rows;
};
extern "C" __global__ void __launch_bounds__(256) multinomial_finish(const __grid_constant__ Params p) {
  for (int64_t row = thread(); row < p.rows; row += threads()) {
    if (!p.seen[row]) report(p.slot, NO_SUM, 0, 0, 0);
    if constexpr (BEST) p.out[row] = (int64_t)(unsigned)~(unsigned)p.best[row];
  }
})"};

// The weights of a row added up, by one block.
constexpr char kSumsText[] = R"(
struct Params { ErrorSlot* slot; const T::S* weights; double* sums; int64_t places; };
extern "C" __global__ void __launch_bounds__(1024) multinomial_sums(const __grid_constant__ Params p) {
  __shared__ double warps[32];
  const int t = threadIdx.x, lane = t & 31;
  const int64_t begin = (int64_t)blockIdx.x * p.places;
  double before = 0;
  for (int64_t base = 0; base < p.places; base += 1024) {
    const int64_t j = base + t;
    double upto = j < p.places ? weight(p.slot, (double)T::ld(p.weights[begin + j])) : 0.0;
    for (int by = 1; by < 32; by *= 2) {
      const double y = __shfl_up_sync(0xffffffffu, upto, by);
      if (lane >= by) upto = y + upto;
    }
    if (lane == 31) warps[t / 32] = upto;
    __syncthreads();
    double all = before;
    for (int w = 0; w < 32; ++w) {
      if (w == t / 32) upto = all + upto;
      all += warps[w];
    }
    if (j < p.places) p.sums[begin + j] = upto;
    before = all;
    __syncthreads();
  }
  if (t == 0 && !(before > 0)) report(p.slot, NO_SUM, 0, 0, 0);
})";
constexpr TextKernel kSums{"multinomial_sums", kJoined<kWeightText, kSumsText>.data()};

constexpr TextKernel kSearch{"multinomial_search", R"(
struct Params { tessera::PhiloxSource from; const double* sums; int64_t* out; int64_t n, places, count; };
extern "C" __global__ void __launch_bounds__(256) multinomial_search(const __grid_constant__ Params p) {
  const uint64_t seed = tessera::philox_seed(p.from), base = tessera::philox_offset(p.from);
  for (int64_t i = thread(); i < p.n; i += threads()) {
    const double* sums = p.sums + i / p.count * p.places;
    const double u = tessera::philox_unit(seed, base, i) * sums[p.places - 1];
    int64_t left = 0, right = p.places - 1;
    while (left < right) {
      const int64_t middle = left + (right - left) / 2;
      if (sums[middle] < u) left = middle + 1;
      else right = middle;
    }
    p.out[i] = left;
  }
})",
                             true};

// ints: seed, offset, -, replacement. Inputs: dense weights, rows of them.
Status run_multinomial(Device& d, CUstream stream, const KernelArgs& args) {
  const KernelTensor &weights = args.inputs[0], &out = args.outputs[0];
  TS_TRY(refuse_complex(args, "multinomial"));
  const int64_t places = weights.sizes[weights.ndim - 1], count = out.sizes[out.ndim - 1];
  if (places == 0)
    return fail(Code::kRefused, "invalid multinomial distribution (sum of probabilities <= 0)");
  const int64_t rows = weights.numel / places;
  if (rows == 0) return ok();
  const DType t = weights.dtype;
  const Seed seed(args);
  const CUdeviceptr slot = d.slot_on_device;
  Scratch room(d, stream);
  if (args.ints[3] != 0 && count > 1) {
    TS_TRY(room.take(static_cast<size_t>(weights.numel) * 8));
    struct {
      CUdeviceptr slot;
      const void *weights, *sums;
      int64_t places;
    } p{slot, weights.data, part<void>(room, 0), places};
    TS_TRY(launch_text(d, stream, kSums, {TS_WEIGHT_DEFS(t)}, {rows, 1024}, &p));
    struct {
      Seed seed;
      const void* sums;
      void* out;
      int64_t n, places, count;
    } q{seed, p.sums, out.data, out.numel, places, count};
    return launch_text(d, stream, kSearch, {}, {fill_blocks(d, out.numel), 256}, &q);
  }
  // One number of a row is the largest key, more of them the first when keys are sorted.
  const bool best = count == 1 && t != DType::kFloat64;
  const DType key = t == DType::kFloat64 ? t : DType::kFloat32;
  Parts parts;
  const size_t seen = parts.add(rows, 4), winners = parts.add(best ? rows : 0, 8);
  const size_t cleared = parts.bytes, keys = parts.add(best ? 0 : weights.numel, itemsize(key));
  TS_TRY(room.take(parts.bytes));
  TS_TRY(check(d, driver().cuMemsetD8Async(room.address(), 0, cleared, stream), "multinomial"));
  struct {
    Seed seed;
    CUdeviceptr slot;
    const void* weights;
    void *keys, *best, *seen;
    int64_t places, chunk, chunks;
  } p{seed,
      slot,
      weights.data,
      part<void>(room, keys),
      part<void>(room, winners),
      part<void>(room, seen),
      places,
      2048,
      (places + 2047) / 2048};
  TS_TRY(launch_text(d, stream, kRace, {TS_WEIGHT_DEFS(t), def("BEST", best ? 1 : 0)},
                     {rows * p.chunks, 256}, &p));
  struct {
    CUdeviceptr slot;
    const void *seen, *best;
    void* out;
    int64_t rows;
  } q{slot, p.seen, p.best, out.data, rows};
  TS_TRY(
      launch_text(d, stream, kFinish,
                  {def("NO_SUM", code_of(DataError::kMultinomialSum)), def("BEST", best ? 1 : 0)},
                  {fill_blocks(d, rows), 256}, &q));
  if (best) return ok();
  return sort_rows(
      d, stream,
      {key, rows, places, true, p.keys, nullptr, static_cast<int64_t*>(out.data), count});
}

// Hörmann's transformed rejection from a rate of ten on, products of uniforms below.
constexpr TextKernel kPoisson{"poisson", R"(
struct Params {
  tessera::PhiloxSource from; ErrorSlot* slot; const T::S* rates; T::S* out; int64_t n; Walk<1> walk;
};
struct Units {
  uint64_t seed, counter; unsigned at; tessera::PhiloxBlock block;
  TS_MEMBER double unit() {
    if (at % 2 == 0) block = tessera::philox_block(seed, counter, 1 + at / 2);
    const uint64_t high = at % 2 ? block.w[2] : block.w[0], low = at % 2 ? block.w[3] : block.w[1];
    ++at;
    return (double)((high << 32 | low) & 0x1fffffffffffffull) * 0x1p-53;
  }
};
TS_FN double poisson_of(Units& units, double rate) {
  if (rate == 0) return 0;
  if (rate < 10) {
    const double limit = exp(-rate);
    double product = 1;
    for (int64_t n = 0;; ++n) {
      product *= units.unit();
      if (!(product > limit)) return (double)n;
    }
  }
  const double root = sqrt(rate), log_rate = log(rate);
  const double b = 0.931 + 2.53 * root, a = -0.059 + 0.02483 * b;
  const double inverse = 1.1239 + 1.1328 / (b - 3.4), v_r = 0.9277 - 3.6224 / (b - 2);
  for (;;) {
    const double u = units.unit() - 0.5, v = units.unit();
    const double us = 0.5 - fabs(u);
    const double k = floor((2 * a / us + b) * u + rate + 0.43);
    if (us >= 0.07 && v <= v_r) return k;
    if (k < 0 || (us < 0.013 && v > us)) continue;
    if (log(v) + log(inverse) - log(a / (us * us) + b) <= -rate + k * log_rate - lgamma(k + 1))
      return k;
  }
}
extern "C" __global__ void __launch_bounds__(256) poisson(const __grid_constant__ Params p) {
  const uint64_t seed = tessera::philox_seed(p.from), base = tessera::philox_offset(p.from);
  for (int64_t i = thread(); i < p.n; i += threads()) {
    const double rate = (double)T::ld(p.rates[offset(p.walk, i)]);
    if (!(rate >= 0)) {
      report(p.slot, WRONG, 0, 0, 0);
      continue;
    }
    Units units{seed, base + i, 0};
    p.out[i] = T::st((typename T::A)poisson_of(units, rate));
  }
})",
                              true};

// ints: seed, offset. Inputs: rates in any layout, the shape of the output.
Status run_poisson(Device& d, CUstream stream, const KernelArgs& args) {
  const KernelTensor &rates = args.inputs[0], &out = args.outputs[0];
  TS_TRY(refuse_complex(args, "poisson"));
  if (out.numel == 0) return ok();
  struct {
    Seed seed;
    CUdeviceptr slot;
    const void* rates;
    void* out;
    int64_t n;
    Walk<1> walk;
  } p{Seed(args), d.slot_on_device, rates.data, out.data, out.numel, {}};
  for (int i = 0; i < rates.ndim; ++i) TS_TRY(p.walk.add(rates.sizes[i], {rates.strides[i]}));
  return launch_text(d, stream, kPoisson,
                     {def("T", out.dtype), def("WRONG", code_of(DataError::kPoissonRate))},
                     {fill_blocks(d, out.numel), 256}, &p);
}

constexpr TextKernel kNormalEach{"normal_each", R"(
struct Params { tessera::PhiloxSource from; double* out; int64_t n; double mean, deviation; };
extern "C" __global__ void __launch_bounds__(256) normal_each(const __grid_constant__ Params p) {
  const uint64_t seed = tessera::philox_seed(p.from), base = tessera::philox_offset(p.from);
  for (int64_t i = thread(); i < p.n; i += threads()) {
    const double u1 = tessera::philox_unit(seed, base, 2 * i);
    const double u2 = tessera::philox_unit(seed, base, 2 * i + 1);
    const double r = sqrt(-2.0 * log1p(-u2)), theta = 6.283185307179586476925286766559 * u1;
    p.out[i] = r * cos(theta) * p.deviation + p.mean;
  }
})",
                                 true};

// ints: seed, offset. doubles: mean, standard deviation.
Status run_normal_each(Device& d, CUstream stream, const KernelArgs& args) {
  const KernelTensor& out = args.outputs[0];
  if (out.numel == 0) return ok();
  struct {
    Seed seed;
    void* out;
    int64_t n;
    double mean, deviation;
  } p{Seed(args), out.data, out.numel, args.doubles[0], args.doubles[1]};
  return launch_text(d, stream, kNormalEach, {}, {fill_blocks(d, out.numel), 256}, &p);
}

TS_CUDA_KERNEL("randperm", run_randperm)
TS_CUDA_KERNEL("multinomial", run_multinomial)
TS_CUDA_KERNEL("poisson", run_poisson)
TS_CUDA_KERNEL("normal_each", run_normal_each)

}  // namespace
}  // namespace tessera::cuda
