// Permutations, choices by weight, and Poisson numbers.
#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "convert_scalar.h"
#include "kernels.h"
#include "tessera/driver/random_args.h"
#include "tessera/ops/philox.h"
#include "tessera/tensor/rng.h"

namespace tessera::cpu {

namespace {

// Words one after another: of the Mersenne Twister, or of Philox from an offset on.
class Words {
 public:
  explicit Words(const KernelArgs& a)
      : seed_(static_cast<uint64_t>(a.ints[0])),
        offset_(static_cast<uint64_t>(a.ints[1])),
        gen_(reinterpret_cast<Mt19937Generator*>(a.ints[2])) {
    if (const unsigned long long* state = philox_state(a)) {
      seed_ = state[0];
      offset_ += state[1];
      gen_ = nullptr;
    }
  }

  bool by_counter() const { return gen_ == nullptr; }
  uint64_t key(uint64_t i) const { return philox_word64(seed_, offset_, i); }
  // By counter, element i has words of its own from here on.
  void begin_element(int64_t i) {
    if (gen_) return;
    own_ = true;
    element_ = offset_ + static_cast<uint64_t>(i);
    at_ = 0;
  }
  uint32_t word() {
    if (gen_) return gen_->random();
    const uint64_t i = at_++;
    if (!own_) return philox_word32(seed_, offset_, i);
    return philox_block(seed_, element_, static_cast<uint32_t>(1 + i / 4)).w[i % 4];
  }
  // In [0, 1), with 53 bits.
  double unit() {
    if (gen_) return static_cast<double>(gen_->random64() & kMask) * 0x1p-53;
    uint64_t high = word();
    return static_cast<double>((high << 32 | word()) & kMask) * 0x1p-53;
  }
  double normal() {
    if (gen_ && gen_->next_double_normal) {
      double z = *gen_->next_double_normal;
      gen_->next_double_normal.reset();
      return z;
    }
    double u1 = unit(), u2 = unit();
    double r = std::sqrt(-2.0 * std::log1p(-u2)), theta = 6.283185307179586476925286766559 * u1;
    if (gen_) gen_->next_double_normal = r * std::sin(theta);
    return r * std::cos(theta);
  }

 private:
  static constexpr uint64_t kMask = (uint64_t{1} << 53) - 1;
  uint64_t seed_, offset_, element_ = 0, at_ = 0;
  bool own_ = false;
  Mt19937Generator* gen_;
};

// ints: seed, offset, generator. Out: n numbers.
Status randperm(const KernelArgs& args) {
  Words words(args);
  const KernelTensor& out = args.outputs[0];
  return with_type(out.dtype, [&]<class T>(std::type_identity<T>) {
    T* p = static_cast<T*>(out.data);
    const int64_t n = out.numel;
    if (words.by_counter()) {  // the rule that a device can follow: see tessera/ops/philox.h
      std::vector<std::pair<uint64_t, int64_t>> keys(static_cast<size_t>(n));
      for (int64_t i = 0; i < n; ++i)
        keys[static_cast<size_t>(i)] = {words.key(static_cast<uint64_t>(i)), i};
      std::sort(keys.begin(), keys.end());
      for (int64_t i = 0; i < n; ++i) p[i] = cast<T>(keys[static_cast<size_t>(i)].second);
      return Status{};
    }
    for (int64_t i = 0; i < n; ++i) p[i] = cast<T>(i);
    for (int64_t i = 0; i + 1 < n; ++i) {
      int64_t z = static_cast<int64_t>(words.word() % static_cast<uint64_t>(n - i));
      std::swap(p[i], p[z + i]);
    }
    return Status{};
  });
}

Status check_row(const double* w, int64_t n, double* sum) {
  *sum = 0;
  for (int64_t j = 0; j < n; ++j) {
    if (!(w[j] >= 0)) {
      return fail(Code::kRefused,
                  std::isnan(w[j]) || std::isinf(w[j])
                      ? "probability tensor contains either `inf`, `nan` or element < 0"
                      : "invalid multinomial distribution (encountering probability entry < 0)");
    }
    if (std::isinf(w[j]))
      return fail(Code::kRefused, "probability tensor contains either `inf`, `nan` or element < 0");
    *sum += w[j];
  }
  if (!(*sum > 0))
    return fail(Code::kRefused, "invalid multinomial distribution (sum of probabilities <= 0)");
  return {};
}

// With replacement: by the place a uniform number has among the cumulated weights, which are kept
// in the weights' own precision. Without: the largest of weight / exponential number.
template <class T>
void draw_row(Words& words, const double* w, int64_t places, int64_t* out, int64_t count,
              bool replacement, std::vector<double>& scratch) {
  using C = std::conditional_t<std::is_same_v<T, double>, double, float>;
  scratch.resize(static_cast<size_t>(places));
  if (replacement && count > 1) {
    C sum = 0;
    std::vector<C> cumulated(static_cast<size_t>(places));
    for (int64_t j = 0; j < places; ++j) {
      sum += static_cast<C>(w[j]);
      cumulated[static_cast<size_t>(j)] = sum;
    }
    for (C& x : cumulated) x /= sum;
    for (int64_t k = 0; k < count; ++k) {
      double u = words.unit();
      int64_t left = 0, right = places;
      while (left < right) {
        int64_t middle = left + (right - left) / 2;
        if (cumulated[static_cast<size_t>(middle)] < u)
          left = middle + 1;
        else
          right = middle;
      }
      out[k] = std::min(left, places - 1);
    }
    return;
  }
  for (int64_t j = 0; j < places; ++j) {
    C q = static_cast<C>(-std::log1p(-words.unit()));
    scratch[static_cast<size_t>(j)] = static_cast<C>(w[j]) / q;
  }
  std::vector<int64_t> order(static_cast<size_t>(places));
  std::iota(order.begin(), order.end(), 0);
  std::partial_sort(order.begin(), order.begin() + count, order.end(), [&](int64_t a, int64_t b) {
    double x = scratch[static_cast<size_t>(a)], y = scratch[static_cast<size_t>(b)];
    return x > y || (x == y && a < b);
  });
  std::copy_n(order.begin(), count, out);
}

// ints: seed, offset, generator, replacement. Inputs: dense weights, rows of them.
Status multinomial(const KernelArgs& args) {
  Words words(args);
  const KernelTensor &weights = args.inputs[0], &out = args.outputs[0];
  const bool replacement = args.ints[3] != 0;
  const int64_t places = weights.sizes[weights.ndim - 1], count = out.sizes[out.ndim - 1];
  const int64_t rows = places ? weights.numel / places : 0;
  if (places == 0)
    return fail(Code::kRefused, "invalid multinomial distribution (sum of probabilities <= 0)");
  std::vector<double> row(static_cast<size_t>(places)), scratch;
  // All rows are looked at before any is drawn: an error leaves the generator as it was.
  for (int pass = 0; pass < 2; ++pass) {
    for (int64_t r = 0; r < rows; ++r) {
      Status s = with_type(weights.dtype, [&]<class T>(std::type_identity<T>) {
        const T* w = static_cast<const T*>(weights.data) + r * places;
        for (int64_t j = 0; j < places; ++j) row[static_cast<size_t>(j)] = cast<double>(w[j]);
        double sum;
        if (pass == 0) return check_row(row.data(), places, &sum);
        draw_row<T>(words, row.data(), places, static_cast<int64_t*>(out.data) + r * count, count,
                    replacement, scratch);
        return Status{};
      });
      if (!s.ok()) return s;
    }
  }
  return {};
}

// Hörmann's transformed rejection from a rate of ten on, products of uniforms below.
double poisson_of(Words& words, double rate) {
  if (rate == 0) return 0;
  if (rate < 10) {
    double limit = std::exp(-rate), product = 1;
    int64_t n = 0;
    for (;;) {
      product *= words.unit();
      if (!(product > limit)) return static_cast<double>(n);
      ++n;
    }
  }
  const double root = std::sqrt(rate), log_rate = std::log(rate);
  const double b = 0.931 + 2.53 * root, a = -0.059 + 0.02483 * b;
  const double inverse = 1.1239 + 1.1328 / (b - 3.4), v_r = 0.9277 - 3.6224 / (b - 2);
  for (;;) {
    double u = words.unit() - 0.5, v = words.unit();
    double us = 0.5 - std::fabs(u);
    double k = std::floor((2 * a / us + b) * u + rate + 0.43);
    if (us >= 0.07 && v <= v_r) return k;
    if (k < 0 || (us < 0.013 && v > us)) continue;
    if (std::log(v) + std::log(inverse) - std::log(a / (us * us) + b) <=
        -rate + k * log_rate - std::lgamma(k + 1))
      return k;
  }
}

// ints: seed, offset, generator. Inputs: rates in any layout, the shape of the output.
Status poisson(const KernelArgs& args) {
  Words words(args);
  const KernelTensor &rates = args.inputs[0], &out = args.outputs[0];
  return with_type(out.dtype, [&]<class T>(std::type_identity<T>) {
    const T* in = static_cast<const T*>(rates.data);
    T* to = static_cast<T*>(out.data);
    for (int64_t i = 0; i < out.numel; ++i) {
      int64_t at = 0, rest = i;
      for (int d = rates.ndim - 1; d >= 0; --d) {
        at += rest % rates.sizes[d] * rates.strides[d];
        rest /= rates.sizes[d];
      }
      double rate = cast<double>(in[at]);
      if (!(rate >= 0))
        return fail(Code::kRefused, "invalid Poisson rate, expected rate to be non-negative");
      words.begin_element(i);
      to[i] = cast<T>(poisson_of(words, rate));
    }
    return Status{};
  });
}

// Normal doubles by pairs, for any number of them. doubles: mean, standard deviation.
Status normal_each(const KernelArgs& args) {
  Words words(args);
  double* out = static_cast<double*>(args.outputs[0].data);
  for (int64_t i = 0; i < args.outputs[0].numel; ++i)
    out[i] = words.normal() * args.doubles[1] + args.doubles[0];
  return {};
}

}  // namespace

TS_KERNEL("randperm", randperm)
TS_KERNEL("multinomial", multinomial)
TS_KERNEL("poisson", poisson)
TS_KERNEL("normal_each", normal_each)

}  // namespace tessera::cpu
