// Embedding and EmbeddingBag: rows of a table, by their numbers.
#pragma once
#include "tessera/nn/module.h"

namespace tessera::nn {

struct EmbeddingOptions {
  std::optional<int64_t> padding_idx = std::nullopt;
  std::optional<double> max_norm = std::nullopt;
  double norm_type = 2.0;
  bool scale_grad_by_freq = false;
  bool sparse = false;
  std::optional<Device> device = std::nullopt;
  std::optional<DType> dtype = std::nullopt;
};

// A table whose rows are looked up.
class Embedding : public Module {
 public:
  Embedding(int64_t num_embeddings, int64_t embedding_dim, const EmbeddingOptions& options = {});
  // With the given table, frozen unless said otherwise.
  static Embedding from_pretrained(const Tensor& embeddings, bool freeze = true,
                                   const EmbeddingOptions& options = {});
  void reset_parameters();
  Tensor& weight() const { return parameter_at(0); }
  Tensor forward(const Tensor& input) override;
  std::string extra_repr() const override;

  int64_t num_embeddings, embedding_dim;
  EmbeddingOptions options;

 private:
  Embedding(const Tensor& weight, bool freeze, const EmbeddingOptions& options);
};

struct EmbeddingBagOptions {
  std::optional<double> max_norm = std::nullopt;
  double norm_type = 2.0;
  bool scale_grad_by_freq = false;
  std::string mode = "mean";  // "sum", "max"
  bool sparse = false;
  bool include_last_offset = false;
  std::optional<int64_t> padding_idx = std::nullopt;
  std::optional<Device> device = std::nullopt;
  std::optional<DType> dtype = std::nullopt;
};

// Sums, means or maxima over bags of looked-up rows.
class EmbeddingBag : public Module {
 public:
  EmbeddingBag(int64_t num_embeddings, int64_t embedding_dim,
               const EmbeddingBagOptions& options = {});
  void reset_parameters();
  Tensor& weight() const { return parameter_at(0); }
  Tensor forward(const Tensor& input) override { return forward(input, Tensor()); }
  // Bags begin at the offsets; without them each row of the input is one.
  Tensor forward(const Tensor& input, const Tensor& offsets,
                 const Tensor& per_sample_weights = Tensor());
  Tensor operator()(const Tensor& input, const Tensor& offsets = Tensor(),
                    const Tensor& per_sample_weights = Tensor()) {
    return forward(input, offsets, per_sample_weights);
  }
  std::string extra_repr() const override;

  int64_t num_embeddings, embedding_dim;
  EmbeddingBagOptions options;
};

}  // namespace tessera::nn
