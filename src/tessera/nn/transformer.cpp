#include "tessera/nn/transformer.h"

#include <limits>

#include "tessera/nn/init.h"

namespace tessera::nn {

namespace {

Tensor activated(const TransformerLayerOptions& o, const Tensor& x) {
  return o.activation == "gelu" ? gelu(x) : relu(x);
}

MultiheadAttention attention_of(int64_t d_model, int64_t nhead, const TransformerLayerOptions& o) {
  TS_CHECK(o.activation == "relu" || o.activation == "gelu", "activation should be relu/gelu, not ",
           o.activation);
  return MultiheadAttention(d_model, nhead,
                            {.dropout = o.dropout,
                             .bias = o.bias,
                             .batch_first = o.batch_first,
                             .device = o.device,
                             .dtype = o.dtype});
}
Linear linear_of(int64_t in, int64_t out, const TransformerLayerOptions& o) {
  return Linear(in, out, {o.bias, o.device, o.dtype});
}
LayerNorm norm_of(int64_t d_model, const TransformerLayerOptions& o) {
  return LayerNorm(d_model,
                   {.eps = o.layer_norm_eps, .bias = o.bias, .device = o.device, .dtype = o.dtype});
}

template <class Layer>
ModuleList copies(const Layer& layer, int64_t count) {
  ModuleList list;
  for (int64_t i = 0; i < count; ++i) list.append(clone(layer));
  return list;
}

}  // namespace

TransformerEncoderLayer::TransformerEncoderLayer(int64_t d_model, int64_t nhead,
                                                 const TransformerLayerOptions& o)
    : options_(o),
      self_attn_(register_module("self_attn", attention_of(d_model, nhead, o))),
      linear1_(register_module("linear1", linear_of(d_model, o.dim_feedforward, o))),
      dropout_(register_module("dropout", Dropout(o.dropout))),
      linear2_(register_module("linear2", linear_of(o.dim_feedforward, d_model, o))),
      norm1_(register_module("norm1", norm_of(d_model, o))),
      norm2_(register_module("norm2", norm_of(d_model, o))),
      dropout1_(register_module("dropout1", Dropout(o.dropout))),
      dropout2_(register_module("dropout2", Dropout(o.dropout))) {}

Tensor TransformerEncoderLayer::forward(const Tensor& src, const EncoderMasks& masks) {
  AttentionOptions how{.key_padding_mask = additive_mask(masks.src_key_padding_mask,
                                                         "src_key_padding_mask", src.dtype()),
                       .need_weights = false,
                       .attn_mask = additive_mask(masks.mask, "src_mask", src.dtype()),
                       .is_causal = masks.is_causal};
  auto attend = [&](const Tensor& x) { return dropout1_(std::get<0>(self_attn_(x, x, x, how))); };
  auto feed = [&](const Tensor& x) {
    return dropout2_(linear2_(dropout_(activated(options_, linear1_(x)))));
  };
  if (options_.norm_first) {
    Tensor x = src + attend(norm1_(src));
    return x + feed(norm2_(x));
  }
  Tensor x = norm1_(src + attend(src));
  return norm2_(x + feed(x));
}

TransformerDecoderLayer::TransformerDecoderLayer(int64_t d_model, int64_t nhead,
                                                 const TransformerLayerOptions& o)
    : options_(o),
      self_attn_(register_module("self_attn", attention_of(d_model, nhead, o))),
      multihead_attn_(register_module("multihead_attn", attention_of(d_model, nhead, o))),
      linear1_(register_module("linear1", linear_of(d_model, o.dim_feedforward, o))),
      dropout_(register_module("dropout", Dropout(o.dropout))),
      linear2_(register_module("linear2", linear_of(o.dim_feedforward, d_model, o))),
      norm1_(register_module("norm1", norm_of(d_model, o))),
      norm2_(register_module("norm2", norm_of(d_model, o))),
      norm3_(register_module("norm3", norm_of(d_model, o))),
      dropout1_(register_module("dropout1", Dropout(o.dropout))),
      dropout2_(register_module("dropout2", Dropout(o.dropout))),
      dropout3_(register_module("dropout3", Dropout(o.dropout))) {}

Tensor TransformerDecoderLayer::forward(const Tensor& tgt, const Tensor& memory,
                                        const DecoderMasks& m) {
  AttentionOptions own{.key_padding_mask = m.tgt_key_padding_mask,
                       .need_weights = false,
                       .attn_mask = m.tgt_mask,
                       .is_causal = m.tgt_is_causal};
  AttentionOptions other{.key_padding_mask = m.memory_key_padding_mask,
                         .need_weights = false,
                         .attn_mask = m.memory_mask,
                         .is_causal = m.memory_is_causal};
  auto attend = [&](const Tensor& x) { return dropout1_(std::get<0>(self_attn_(x, x, x, own))); };
  auto look = [&](const Tensor& x) {
    return dropout2_(std::get<0>(multihead_attn_(x, memory, memory, other)));
  };
  auto feed = [&](const Tensor& x) {
    return dropout3_(linear2_(dropout_(activated(options_, linear1_(x)))));
  };
  if (options_.norm_first) {
    Tensor x = tgt + attend(norm1_(tgt));
    x = x + look(norm2_(x));
    return x + feed(norm3_(x));
  }
  Tensor x = norm1_(tgt + attend(tgt));
  x = norm2_(x + look(x));
  return norm3_(x + feed(x));
}

TransformerEncoder::TransformerEncoder(const TransformerEncoderLayer& layer, int64_t num_layers,
                                       std::optional<LayerNorm> norm)
    : layers_(register_module("layers", copies(layer, num_layers))), norm_(std::move(norm)) {
  if (norm_) add_module("norm", *norm_);
}

Tensor TransformerEncoder::forward(const Tensor& src, const EncoderMasks& masks) {
  EncoderMasks canonical{.mask = additive_mask(masks.mask, "mask", src.dtype()),
                         .src_key_padding_mask = additive_mask(masks.src_key_padding_mask,
                                                               "src_key_padding_mask", src.dtype()),
                         .is_causal = masks.is_causal};
  Tensor x = src;
  for (size_t i = 0; i < layers_.size(); ++i)
    x = layers_.at<TransformerEncoderLayer>(static_cast<int64_t>(i))(x, canonical);
  return norm_ ? (*norm_)(x) : x;
}

TransformerDecoder::TransformerDecoder(const TransformerDecoderLayer& layer, int64_t num_layers,
                                       std::optional<LayerNorm> norm)
    : layers_(register_module("layers", copies(layer, num_layers))), norm_(std::move(norm)) {
  if (norm_) add_module("norm", *norm_);
}

Tensor TransformerDecoder::forward(const Tensor& tgt, const Tensor& memory,
                                   const DecoderMasks& masks) {
  Tensor x = tgt;
  for (size_t i = 0; i < layers_.size(); ++i)
    x = layers_.at<TransformerDecoderLayer>(static_cast<int64_t>(i))(x, memory, masks);
  return norm_ ? (*norm_)(x) : x;
}

Transformer::Transformer(const TransformerOptions& o)
    : encoder(register_module(
          "encoder", TransformerEncoder(TransformerEncoderLayer(o.d_model, o.nhead, o.layer),
                                        o.num_encoder_layers, norm_of(o.d_model, o.layer)))),
      decoder(register_module(
          "decoder", TransformerDecoder(TransformerDecoderLayer(o.d_model, o.nhead, o.layer),
                                        o.num_decoder_layers, norm_of(o.d_model, o.layer)))),
      options_(o) {
  for (const Tensor& p : parameters())
    if (p.dim() > 1) init::xavier_uniform_(p);
}

Tensor Transformer::forward(const Tensor& src, const Tensor& tgt, const EncoderMasks& of_src,
                            const DecoderMasks& of_tgt) {
  int64_t batch_dim = options_.layer.batch_first ? 0 : 1;
  TS_CHECK(src.dim() != 3 || src.size(batch_dim) == tgt.size(batch_dim),
           "the batch number of src and tgt must be equal");
  TS_CHECK(src.size(-1) == options_.d_model && tgt.size(-1) == options_.d_model,
           "the feature number of src and tgt must be equal to d_model");
  return decoder(tgt, encoder(src, of_src), of_tgt);
}

Tensor Transformer::generate_square_subsequent_mask(int64_t size, std::optional<Device> device,
                                                    std::optional<DType> dtype) {
  return full({size, size}, -std::numeric_limits<double>::infinity(), dtype, device).triu(1);
}

}  // namespace tessera::nn
