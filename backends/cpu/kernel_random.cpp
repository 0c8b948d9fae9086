// Random numbers: PyTorch's own with a Mersenne Twister, else Philox (see ops/philox.h).
#include <algorithm>
#include <cmath>
#include <memory>

#include "convert.h"
#include "convert_scalar.h"
#include "kernels.h"
#include "normal_fill.h"
#include "tessera/driver/random_args.h"
#include "tessera/ops/philox.h"
#include "tessera/tensor/rng.h"
#include "thread_pool.h"

namespace tessera::cpu {

namespace {

constexpr double kTwoPi = 6.283185307179586476925286766559;

struct Draw {
  void* data;
  DType dtype;
  int64_t n;
  uint64_t seed, offset;
  Mt19937Generator* gen;

  explicit Draw(const KernelArgs& a)
      : data(a.outputs[0].data),
        dtype(a.outputs[0].dtype),
        n(a.outputs[0].numel),
        seed(static_cast<uint64_t>(a.ints[0])),
        offset(static_cast<uint64_t>(a.ints[1])),
        gen(reinterpret_cast<Mt19937Generator*>(a.ints[2])) {
    if (const unsigned long long* state = philox_state(a)) {
      seed = state[0];
      offset += state[1];
      gen = nullptr;
    }
  }
};

// out[i] = value(i): in order with a generator, on all threads without.
template <class T, class F>
void fill(const Draw& d, F value) {
  T* out = static_cast<T*>(d.data);
  if (d.gen) {
    for (int64_t i = 0; i < d.n; ++i) out[i] = value(i);
  } else {
    parallel_for(0, d.n, 16 * 1024, [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i) out[i] = value(i);
    });
  }
}

template <class T>
constexpr int kDigits = std::is_same_v<T, double>   ? 53
                        : std::is_same_v<T, float>  ? 24
                        : std::is_same_v<T, BFloat> ? 8
                                                    : 11;
template <class T>
using Compute = std::conditional_t<std::is_same_v<T, double>, double, float>;

// In [0, 1), with as many bits as T has: the low bits of a word of the Mersenne Twister, the high
// bits of a Philox word.
template <class T>
Compute<T> unit(const Draw& d, int64_t i) {
  using C = Compute<T>;
  constexpr int digits = kDigits<T>;
  constexpr C scale = C(1) / static_cast<C>(uint64_t{1} << digits);
  uint64_t bits;
  if (d.gen) {
    bits = std::is_same_v<T, double> ? d.gen->random64() : d.gen->random();
    bits &= (uint64_t{1} << digits) - 1;
  } else if (std::is_same_v<T, double>) {
    bits = philox_word64(d.seed, d.offset, static_cast<uint64_t>(i)) >> (64 - digits);
  } else {
    bits = philox_word32(d.seed, d.offset, static_cast<uint64_t>(i)) >> ((32 - digits) & 31);
  }
  return static_cast<C>(bits) * scale;
}

// PyTorch's build contracts the scaling into a fused multiply-add.
template <class T>
Status uniform_as(const Draw& d, double lo, double hi) {
  using C = Compute<T>;
  const C from = cast<C>(cast<T>(lo)), to = cast<C>(cast<T>(hi));
  if (d.gen)
    fill<T>(d, [&](int64_t i) { return cast<T>(std::fma(unit<T>(d, i), to - from, from)); });
  else
    fill<T>(d, [&](int64_t i) { return cast<T>(unit<T>(d, i) * (to - from) + from); });
  return {};
}

// The distribution PyTorch uses for fewer than 16 elements: pairs, the second kept for later.
double next_normal(Mt19937Generator& g) {
  if (g.next_double_normal) {
    double z = *g.next_double_normal;
    g.next_double_normal.reset();
    return z;
  }
  constexpr uint64_t mask = (uint64_t{1} << 53) - 1;
  double u1 = static_cast<double>(g.random64() & mask) * 0x1p-53;
  double u2 = static_cast<double>(g.random64() & mask) * 0x1p-53;
  double r = std::sqrt(-2.0 * std::log1p(-u2)), theta = kTwoPi * u1;
  g.next_double_normal = r * std::sin(theta);
  return r * std::cos(theta);
}

template <class T>
Status normal_philox(const Draw& d, double mean, double std) {
  using C = Compute<T>;
  T* out = static_cast<T*>(d.data);
  parallel_for(0, (d.n + 1) / 2, 4096, [&](int64_t b, int64_t e) {
    for (int64_t j = b; j < e; ++j) {
      const uint64_t i = static_cast<uint64_t>(2 * j);
      C u1, u2;
      if constexpr (std::is_same_v<T, double>) {
        u1 = static_cast<C>(philox_word64(d.seed, d.offset, i) >> 11) * 0x1p-53 + 0x1p-53;
        u2 = static_cast<C>(philox_word64(d.seed, d.offset, i + 1) >> 11) * 0x1p-53;
      } else {
        u1 = static_cast<C>(philox_word32(d.seed, d.offset, i) >> 8) * 0x1p-24f + 0x1p-24f;
        u2 = static_cast<C>(philox_word32(d.seed, d.offset, i + 1) >> 8) * 0x1p-24f;
      }
      C r = std::sqrt(C(-2) * std::log(u1)), t = static_cast<C>(kTwoPi) * u2;
      const C s = static_cast<C>(std), m = static_cast<C>(mean);
      out[2 * j] = cast<T>(r * std::cos(t) * s + m);
      if (2 * j + 1 < d.n) out[2 * j + 1] = cast<T>(r * std::sin(t) * s + m);
    }
  });
  return {};
}

template <class T>
Status normal_as(const Draw& d, double mean, double std) {
  if (!d.gen) return normal_philox<T>(d, mean, std);
  T* out = static_cast<T*>(d.data);
  if (d.n < 16) {
    for (int64_t i = 0; i < d.n; ++i) out[i] = cast<T>(std::fma(next_normal(*d.gen), std, mean));
    return {};
  }
  for (int64_t i = 0; i < d.n; ++i) out[i] = cast<T>(unit<T>(d, i));
  for (int64_t i = 0; i + 16 <= d.n; i += 16) normal_fill_16(out + i, mean, std);
  if (d.n % 16 != 0) {
    // The last sixteen are drawn again, over the end of the last whole block.
    T* last = out + d.n - 16;
    for (int64_t i = 0; i < 16; ++i) last[i] = cast<T>(unit<T>(d, i));
    normal_fill_16(last, mean, std);
  }
  return {};
}

template <class F>
Status with_floating(const char* name, DType t, F f) {
  switch (t) {
    case DType::kFloat32:
      return f(std::type_identity<float>());
    case DType::kFloat64:
      return f(std::type_identity<double>());
    case DType::kFloat16:
      return f(std::type_identity<Half>());
    case DType::kBFloat16:
      return f(std::type_identity<BFloat>());
    default:
      return fail(Code::kUnsupported, "%s(): not implemented for %s", name, dtype_name(t));
  }
}

}  // namespace

Status random_uniform(const KernelArgs& args) {
  Draw d(args);
  return with_floating("uniform_", d.dtype, [&]<class T>(std::type_identity<T>) {
    return uniform_as<T>(d, args.doubles[0], args.doubles[1]);
  });
}

Status random_normal(const KernelArgs& args) {
  Draw d(args);
  return with_floating("normal_", d.dtype, [&]<class T>(std::type_identity<T>) {
    return normal_as<T>(d, args.doubles[0], args.doubles[1]);
  });
}

Status random_bernoulli(const KernelArgs& args) {
  Draw d(args);
  const double p = args.doubles[0];
  return with_type(d.dtype, [&]<class T>(std::type_identity<T>) {
    fill<T>(d, [&](int64_t i) {
      bool hit;
      if (d.gen)
        hit = static_cast<double>(d.gen->random64() & ((uint64_t{1} << 53) - 1)) * 0x1p-53 < p;
      else
        hit = philox_word32(d.seed, d.offset, static_cast<uint64_t>(i)) * 0x1p-32 < p;
      return cast<T>(hit ? 1.0f : 0.0f);
    });
    return Status{};
  });
}

Status random_int(const KernelArgs& args) {
  Draw d(args);
  const uint64_t low = static_cast<uint64_t>(args.ints[3]);
  const uint64_t range = static_cast<uint64_t>(args.ints[4]) - low;
  const bool wide = range >= uint64_t{1} << 32;
  if (range == 0) return fail(Code::kInvalid, "random_int: the range is empty");
  return with_type(d.dtype, [&]<class T>(std::type_identity<T>) {
    fill<T>(d, [&](int64_t i) {
      uint64_t v;
      if (d.gen)
        v = wide ? d.gen->random64() : d.gen->random();
      else if (wide)
        v = philox_word64(d.seed, d.offset, static_cast<uint64_t>(i));
      else
        v = philox_word32(d.seed, d.offset, static_cast<uint64_t>(i));
      return cast<T>(static_cast<int64_t>(v % range + low));
    });
    return Status{};
  });
}

TS_KERNEL("uniform", random_uniform)
TS_KERNEL("normal", random_normal)
TS_KERNEL("bernoulli", random_bernoulli)
TS_KERNEL("random_int", random_int)

}  // namespace tessera::cpu
