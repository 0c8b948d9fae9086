// Attention with several heads.
#pragma once
#include <tuple>

#include "tessera/nn/linear.h"

namespace tessera::nn {

struct MultiheadAttentionOptions {
  double dropout = 0.0;
  bool bias = true;
  bool add_bias_kv = false;
  bool add_zero_attn = false;
  std::optional<int64_t> kdim = std::nullopt;
  std::optional<int64_t> vdim = std::nullopt;
  bool batch_first = false;
  std::optional<Device> device = std::nullopt;
  std::optional<DType> dtype = std::nullopt;
};

// Masks are of bools (true: not attended to) or of numbers that are added; undefined ones are none.
struct AttentionOptions {
  Tensor key_padding_mask = {};
  bool need_weights = true;
  Tensor attn_mask = {};
  bool average_attn_weights = true;
  bool is_causal = false;
};

// Attention of queries to keys and values, with several heads side by side.
class MultiheadAttention : public Module {
 public:
  MultiheadAttention(int64_t embed_dim, int64_t num_heads,
                     const MultiheadAttentionOptions& options = {});
  // The result and the weights, which are undefined unless they are asked for.
  std::tuple<Tensor, Tensor> forward(const Tensor& query, const Tensor& key, const Tensor& value,
                                     const AttentionOptions& options = {});
  std::tuple<Tensor, Tensor> operator()(const Tensor& query, const Tensor& key, const Tensor& value,
                                        const AttentionOptions& options = {}) {
    return forward(query, key, value, options);
  }

  int64_t embed_dim, num_heads;
  MultiheadAttentionOptions options;
  NonDynamicallyQuantizableLinear out_proj;

 private:
  void reset_parameters();
  std::tuple<Tensor, Tensor, Tensor> project(const Tensor& query, const Tensor& key,
                                             const Tensor& value) const;

  bool same_dims_;
};

// A mask of bools as one of numbers that are added: -inf where nothing is attended to.
Tensor additive_mask(const Tensor& mask, const char* name, DType dtype);

}  // namespace tessera::nn
