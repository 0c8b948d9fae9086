#include "tessera/data/sampler.h"

#include "tessera/face/build.h"
#include "tessera/tensor/rng.h"

namespace tessera::data {

int64_t draw_seed(Mt19937Generator* generator) {
  Tensor seed(op::random_(new_empty(Dims{}, DType::kInt64, Device{}), generator));
  return seed.item<int64_t>();
}

Tensor SequentialSampler::indices() { return arange(size_); }

RandomSampler::RandomSampler(int64_t n, RandomSamplerOptions options) : n_(n), options_(options) {
  TS_CHECK_VALUE(size() > 0,
                 "num_samples should be a positive integer value, but got num_samples=", size());
}

Tensor RandomSampler::indices() {
  Mt19937Generator own(0);
  Mt19937Generator* generator = options_.generator;
  if (!generator) {
    own.manual_seed(static_cast<uint64_t>(draw_seed()));
    generator = &own;
  }
  std::vector<TensorBase> parts;
  int64_t wanted = size();
  if (options_.replacement) {
    for (int64_t at = 0; at < wanted; at += 32)
      parts.push_back(op::randint(n_, Dims{std::min<int64_t>(32, wanted - at)}, DType::kInt64, {},
                                  false, generator));
  } else {
    for (int64_t at = 0; at < wanted; at += n_) {
      TensorBase order = op::randperm(n_, {}, {}, false, generator);
      parts.push_back(wanted - at < n_ ? op::slice(order, 0, 0, wanted - at, 1) : order);
    }
    // PyTorch draws the rest even where there is none, which shows in a generator of one's own.
    if (wanted % n_ == 0 && options_.generator) op::randperm(n_, {}, {}, false, generator);
  }
  return Tensor(parts.size() == 1 ? parts[0] : op::cat(parts));
}

Tensor SubsetRandomSampler::indices() {
  Tensor order = randperm(size(), {}, {}, false, generator_);
  return index_tensor(indices_).index_select(0, order);
}

WeightedRandomSampler::WeightedRandomSampler(const std::vector<double>& weights,
                                             int64_t num_samples, bool replacement,
                                             Mt19937Generator* generator)
    : weights_(tensor(weights, DType::kFloat64)),
      num_samples_(num_samples),
      replacement_(replacement),
      generator_(generator) {
  TS_CHECK_VALUE(
      num_samples > 0,
      "num_samples should be a positive integer value, but got num_samples=", num_samples);
}

Tensor WeightedRandomSampler::indices() {
  return weights_.multinomial(num_samples_, replacement_, generator_);
}

}  // namespace tessera::data
