// Samplers: the order in which a dataset's samples are taken, drawn as PyTorch draws it.
#pragma once
#include "tessera/data/dataset.h"

namespace tessera::data {

class Sampler {
 public:
  virtual ~Sampler() = default;
  // The indices of one pass: one dimension, int64, on the CPU.
  virtual Tensor indices() = 0;
  virtual int64_t size() const = 0;
};

// 0, 1, 2, ...
class SequentialSampler : public Sampler {
 public:
  explicit SequentialSampler(int64_t size) : size_(size) {}
  Tensor indices() override;
  int64_t size() const override { return size_; }

 private:
  int64_t size_;
};

struct RandomSamplerOptions {
  bool replacement = false;
  std::optional<int64_t> num_samples = std::nullopt;
  Mt19937Generator* generator = nullptr;  // without one, one is seeded from the default generator
};
// A permutation, or draws with replacement.
class RandomSampler : public Sampler {
 public:
  explicit RandomSampler(int64_t dataset_size, RandomSamplerOptions options = {});
  Tensor indices() override;
  int64_t size() const override { return options_.num_samples.value_or(n_); }

 private:
  int64_t n_;
  RandomSamplerOptions options_;
};

// A permutation of the given indices.
class SubsetRandomSampler : public Sampler {
 public:
  explicit SubsetRandomSampler(std::vector<int64_t> indices, Mt19937Generator* generator = nullptr)
      : indices_(std::move(indices)), generator_(generator) {}
  Tensor indices() override;
  int64_t size() const override { return static_cast<int64_t>(indices_.size()); }

 private:
  std::vector<int64_t> indices_;
  Mt19937Generator* generator_;
};

// Draws with given weights.
class WeightedRandomSampler : public Sampler {
 public:
  WeightedRandomSampler(const std::vector<double>& weights, int64_t num_samples,
                        bool replacement = true, Mt19937Generator* generator = nullptr);
  Tensor indices() override;
  int64_t size() const override { return num_samples_; }

 private:
  Tensor weights_;
  int64_t num_samples_;
  bool replacement_;
  Mt19937Generator* generator_;
};

// A random int64, drawn as torch.empty((), dtype=torch.int64).random_() draws it.
int64_t draw_seed(Mt19937Generator* generator = nullptr);

}  // namespace tessera::data
