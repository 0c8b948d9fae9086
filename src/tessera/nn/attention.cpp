// The operators of the Python face's multi_head_attention_forward, in its order.
#include "tessera/nn/attention.h"

#include <cmath>
#include <limits>

#include "tessera/nn/functional.h"
#include "tessera/nn/init.h"

namespace tessera::nn {

Tensor additive_mask(const Tensor& mask, const char* name, DType dtype) {
  if (!mask.defined()) return mask;
  TS_CHECK_VALUE(mask.dtype() == DType::kBool || is_floating(mask.dtype()),
                 "only bool and floating types of ", name, " are supported");
  if (mask.dtype() != DType::kBool) return mask;
  return zeros_like(mask, dtype).masked_fill_(mask, -std::numeric_limits<double>::infinity());
}

namespace {

// Where parameters stand: of one matrix for all three projections, and of three.
enum : size_t { kPacked = 0, kQuery = 0, kKey = 1, kValue = 2, kInBias = 4, kBiasK, kBiasV };

int64_t checked(int64_t embed, int64_t heads) {
  TS_CHECK_VALUE(embed > 0 && heads > 0,
                 "embed_dim and num_heads must be greater than 0, got embed_dim=", embed,
                 " and num_heads=", heads, " instead");
  TS_CHECK_VALUE(embed % heads == 0, "embed_dim must be divisible by num_heads");
  return embed;
}

// (length, batch, width) as (batch * heads, length, width of a head).
Tensor by_head(const Tensor& x, int64_t batch, int64_t heads, int64_t width) {
  return x.contiguous().view({x.size(0), batch * heads, width}).transpose(0, 1);
}

bool check_shapes(const Tensor& query, const Tensor& key, const Tensor& value,
                  const AttentionOptions& o, int64_t heads) {
  TS_CHECK_VALUE(query.dim() == 2 || query.dim() == 3,
                 "query should be unbatched 2D or batched 3D tensor but received ", query.dim(),
                 "-D query tensor");
  bool batched = query.dim() == 3;
  const char* kind = batched ? "batched 3-D" : "unbatched 2-D";
  TS_CHECK_VALUE(key.dim() == query.dim() && value.dim() == query.dim(), "For ", kind,
                 " `query`, expected `key` and `value` to be ", query.dim(), "-D but found ",
                 key.dim(), "-D and ", value.dim(), "-D tensors respectively");
  if (o.key_padding_mask.defined())
    TS_CHECK_VALUE(o.key_padding_mask.dim() == query.dim() - 1, "For ", kind,
                   " `query`, expected `key_padding_mask` to be `None` or ", query.dim() - 1,
                   "-D but found ", o.key_padding_mask.dim(), "-D tensor instead");
  if (o.attn_mask.defined()) {
    TS_CHECK_VALUE(o.attn_mask.dim() == 2 || o.attn_mask.dim() == 3, "For ", kind,
                   " `query`, expected `attn_mask` to be `None`, 2-D or 3-D but found ",
                   o.attn_mask.dim(), "-D tensor instead");
    Dims wanted{heads, query.size(0), key.size(0)};
    if (!batched && o.attn_mask.dim() == 3)
      TS_CHECK_VALUE(o.attn_mask.sizes() == wanted, "Expected `attn_mask` shape to be ", wanted,
                     " but got ", o.attn_mask.sizes());
  }
  return batched;
}

Tensor widened(const Tensor& mask) { return mask.defined() ? pad(mask, {0, 1}) : mask; }

}  // namespace

MultiheadAttention::MultiheadAttention(int64_t embed, int64_t heads,
                                       const MultiheadAttentionOptions& o)
    : embed_dim(checked(embed, heads)),
      num_heads(heads),
      options(o),
      out_proj(embed, embed, {.bias = o.bias, .device = o.device, .dtype = o.dtype}),
      same_dims_(o.kdim.value_or(embed) == embed && o.vdim.value_or(embed) == embed) {
  auto make = [&](const char* name, Ints shape) {
    register_parameter(name, empty(std::move(shape), o.dtype, o.device));
  };
  if (same_dims_) {
    make("in_proj_weight", {3 * embed, embed});
    for (const char* name : {"q_proj_weight", "k_proj_weight", "v_proj_weight"})
      register_parameter(name, Tensor());
  } else {
    make("q_proj_weight", {embed, embed});
    make("k_proj_weight", {embed, o.kdim.value_or(embed)});
    make("v_proj_weight", {embed, o.vdim.value_or(embed)});
    register_parameter("in_proj_weight", Tensor());
  }
  if (o.bias)
    make("in_proj_bias", {3 * embed});
  else
    register_parameter("in_proj_bias", Tensor());
  for (const char* name : {"bias_k", "bias_v"})
    if (o.add_bias_kv)
      make(name, {1, 1, embed});
    else
      register_parameter(name, Tensor());
  add_module("out_proj", out_proj);
  reset_parameters();
}

void MultiheadAttention::reset_parameters() {
  for (size_t i : {kQuery, kKey, kValue})
    if (parameter_at(i).defined()) init::xavier_uniform_(parameter_at(i));
  if (options.bias) {
    init::constant_(parameter_at(kInBias), 0.0);
    init::constant_(out_proj.bias(), 0.0);
  }
  for (size_t i : {kBiasK, kBiasV})
    if (parameter_at(i).defined()) init::xavier_normal_(parameter_at(i));
}

std::tuple<Tensor, Tensor, Tensor> MultiheadAttention::project(const Tensor& query,
                                                               const Tensor& key,
                                                               const Tensor& value) const {
  const Tensor& bias = parameter_at(kInBias);
  std::vector<Tensor> weights, biases(3);
  if (same_dims_) {
    if (key.is_same(value) && query.is_same(key)) {
      std::vector<Tensor> all = linear(query, parameter_at(kPacked), bias).chunk(3, -1);
      return {all[0], all[1], all[2]};
    }
    weights = parameter_at(kPacked).chunk(3);
  } else {
    weights = {parameter_at(kQuery), parameter_at(kKey), parameter_at(kValue)};
  }
  if (bias.defined()) biases = bias.chunk(3);
  return {linear(query, weights[0], biases[0]), linear(key, weights[1], biases[1]),
          linear(value, weights[2], biases[2])};
}

std::tuple<Tensor, Tensor> MultiheadAttention::forward(const Tensor& given_query,
                                                       const Tensor& given_key,
                                                       const Tensor& given_value,
                                                       const AttentionOptions& o) {
  // Tensors that are the same stay the same: they are projected together.
  Tensor query = given_query, key = given_key, value = given_value;
  auto each = [&](auto change) {
    bool same_key = key.is_same(query), same_value = value.is_same(key);
    query = change(query);
    key = same_key ? query : change(key);
    value = same_value ? key : change(value);
  };
  bool swapped = options.batch_first && query.dim() == 3;
  if (swapped) each([](const Tensor& t) { return t.transpose(1, 0); });
  bool batched = check_shapes(query, key, value, o, num_heads);
  Tensor padding = o.key_padding_mask, mask = o.attn_mask;
  if (!batched) {
    each([](const Tensor& t) { return t.unsqueeze(1); });
    if (padding.defined()) padding = padding.unsqueeze(0);
  }
  int64_t tgt_len = query.size(0), batch = query.size(1), src_len = key.size(0);
  bool is_causal = o.is_causal;
  padding = additive_mask(padding, "key_padding_mask", query.dtype());
  TS_CHECK(!is_causal || mask.defined(),
           "Need attn_mask if specifying the is_causal hint. You may use the Transformer module "
           "method `generate_square_subsequent_mask` to create this mask.");
  if (is_causal && !padding.defined() && !o.need_weights) {
    mask = Tensor();
  } else {
    mask = additive_mask(mask, "attn_mask", query.dtype());
    if (padding.defined()) is_causal = false;
  }
  TS_CHECK_VALUE(query.size(2) == embed_dim, "was expecting embedding dimension of ", embed_dim,
                 ", but got ", query.size(2));
  int64_t width = embed_dim / num_heads, rows = batch * num_heads;
  TS_CHECK_VALUE(key.size(0) == value.size(0) && key.size(1) == value.size(1) &&
                     (!same_dims_ || key.size(2) == value.size(2)),
                 "key shape ", key.sizes(), " does not match value shape ", value.sizes());
  auto [q, k, v] = project(query, key, value);
  if (mask.defined()) {
    Dims wanted = mask.dim() == 2 ? Dims{tgt_len, src_len} : Dims{rows, tgt_len, src_len};
    TS_CHECK(mask.sizes() == wanted, "The shape of the ", mask.dim(), "D attn_mask is ",
             mask.sizes(), ", but should be ", wanted, ".");
    if (mask.dim() == 2) mask = mask.unsqueeze(0);
  }
  auto more = [&](const Tensor& to, const Tensor& added, int64_t dim) {
    return Tensor(op::cat(std::vector<TensorBase>{to, added}, dim));
  };
  if (options.add_bias_kv) {
    k = more(k, parameter_at(kBiasK).repeat({1, batch, 1}), 0);
    v = more(v, parameter_at(kBiasV).repeat({1, batch, 1}), 0);
    mask = widened(mask);
    padding = widened(padding);
  }
  q = by_head(q, batch, num_heads, width);
  k = by_head(k, batch, num_heads, width);
  v = by_head(v, batch, num_heads, width);
  if (options.add_zero_attn) {
    Tensor none = zeros({rows, 1, width}, k.dtype(), k.device());
    k = more(k, none, 1);
    v = more(v, none, 1);
    mask = widened(mask);
    padding = widened(padding);
  }
  src_len = k.size(1);
  if (padding.defined()) {
    TS_CHECK_VALUE(padding.sizes() == (Dims{batch, src_len}),
                   "expecting key_padding_mask shape of ", Dims{batch, src_len}, ", but got ",
                   padding.sizes());
    padding = padding.view({batch, 1, 1, src_len})
                  .expand({-1, num_heads, -1, -1})
                  .reshape({rows, 1, src_len});
    mask = mask.defined() ? mask + padding : padding;
  }
  double dropout = is_training() ? options.dropout : 0.0;

  Tensor out, weights;
  if (o.need_weights) {
    q = q * std::sqrt(1.0 / static_cast<double>(width));
    Tensor scores = bmm(q, k.transpose(-2, -1));
    if (mask.defined()) scores = scores + mask;
    weights = softmax(scores, -1);
    if (dropout > 0) weights = functional::dropout(weights, dropout);
    out = bmm(weights, v).transpose(0, 1).contiguous().view({tgt_len * batch, embed_dim});
    weights = weights.view({batch, num_heads, tgt_len, src_len});
    if (o.average_attn_weights) weights = weights.mean(1);
  } else {
    if (mask.defined())
      mask = mask.size(0) == 1 && mask.dim() == 3 ? mask.unsqueeze(0)
                                                  : mask.view({batch, num_heads, -1, src_len});
    out = scaled_dot_product_attention(
        q.view({batch, num_heads, tgt_len, width}), k.view({batch, num_heads, src_len, width}),
        v.view({batch, num_heads, src_len, width}), mask, dropout, is_causal);
    out = out.permute({2, 0, 1, 3}).contiguous().view({batch * tgt_len, embed_dim});
  }
  out = out_proj(out).view({tgt_len, batch, -1});
  if (!batched) {
    out = out.squeeze(1);
    if (weights.defined()) weights = weights.squeeze(0);
  }
  return {swapped ? out.transpose(1, 0) : out, weights};
}

}  // namespace tessera::nn
