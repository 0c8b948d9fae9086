// Transformers: layers of attention and of what follows it.
#pragma once
#include "tessera/nn/attention.h"
#include "tessera/nn/container.h"
#include "tessera/nn/dropout.h"
#include "tessera/nn/norm.h"

namespace tessera::nn {

struct TransformerLayerOptions {
  int64_t dim_feedforward = 2048;
  double dropout = 0.1;
  std::string activation = "relu";  // or "gelu"
  double layer_norm_eps = 1e-5;
  bool batch_first = false;
  bool norm_first = false;
  bool bias = true;
  std::optional<Device> device = std::nullopt;
  std::optional<DType> dtype = std::nullopt;
};

struct EncoderMasks {
  Tensor mask = {};
  Tensor src_key_padding_mask = {};
  bool is_causal = false;
};

struct DecoderMasks {
  Tensor tgt_mask = {};
  Tensor memory_mask = {};
  Tensor tgt_key_padding_mask = {};
  Tensor memory_key_padding_mask = {};
  bool tgt_is_causal = false;
  bool memory_is_causal = false;
};

// Self-attention, then two linear layers; each with a residual and a normalisation.
class TransformerEncoderLayer : public Module {
 public:
  TransformerEncoderLayer(int64_t d_model, int64_t nhead,
                          const TransformerLayerOptions& options = {});
  Tensor forward(const Tensor& src) override { return forward(src, EncoderMasks{}); }
  Tensor forward(const Tensor& src, const EncoderMasks& masks);
  Tensor operator()(const Tensor& src, const EncoderMasks& masks = {}) {
    return forward(src, masks);
  }

 private:
  TransformerLayerOptions options_;
  MultiheadAttention self_attn_;
  Linear linear1_;
  Dropout dropout_;
  Linear linear2_;
  LayerNorm norm1_, norm2_;
  Dropout dropout1_, dropout2_;
};

// Self-attention, attention to the encoder's output, then two linear layers.
class TransformerDecoderLayer : public Module {
 public:
  TransformerDecoderLayer(int64_t d_model, int64_t nhead,
                          const TransformerLayerOptions& options = {});
  Tensor forward(const Tensor& tgt, const Tensor& memory, const DecoderMasks& masks = {});
  Tensor operator()(const Tensor& tgt, const Tensor& memory, const DecoderMasks& masks = {}) {
    return forward(tgt, memory, masks);
  }

 private:
  TransformerLayerOptions options_;
  MultiheadAttention self_attn_, multihead_attn_;
  Linear linear1_;
  Dropout dropout_;
  Linear linear2_;
  LayerNorm norm1_, norm2_, norm3_;
  Dropout dropout1_, dropout2_, dropout3_;
};

// Copies of an encoder layer one after another.
class TransformerEncoder : public Module {
 public:
  TransformerEncoder(const TransformerEncoderLayer& layer, int64_t num_layers,
                     std::optional<LayerNorm> norm = std::nullopt);
  Tensor forward(const Tensor& src) override { return forward(src, EncoderMasks{}); }
  Tensor forward(const Tensor& src, const EncoderMasks& masks);
  Tensor operator()(const Tensor& src, const EncoderMasks& masks = {}) {
    return forward(src, masks);
  }

 private:
  ModuleList layers_;
  std::optional<LayerNorm> norm_;
};

// Copies of a decoder layer one after another.
class TransformerDecoder : public Module {
 public:
  TransformerDecoder(const TransformerDecoderLayer& layer, int64_t num_layers,
                     std::optional<LayerNorm> norm = std::nullopt);
  Tensor forward(const Tensor& tgt, const Tensor& memory, const DecoderMasks& masks = {});
  Tensor operator()(const Tensor& tgt, const Tensor& memory, const DecoderMasks& masks = {}) {
    return forward(tgt, memory, masks);
  }

 private:
  ModuleList layers_;
  std::optional<LayerNorm> norm_;
};

struct TransformerOptions {
  int64_t d_model = 512;
  int64_t nhead = 8;
  int64_t num_encoder_layers = 6;
  int64_t num_decoder_layers = 6;
  TransformerLayerOptions layer = {};
};

// An encoder and a decoder.
class Transformer : public Module {
 public:
  explicit Transformer(const TransformerOptions& options = {});
  Tensor forward(const Tensor& src, const Tensor& tgt, const EncoderMasks& encoder_masks = {},
                 const DecoderMasks& decoder_masks = {});
  Tensor operator()(const Tensor& src, const Tensor& tgt, const EncoderMasks& encoder_masks = {},
                    const DecoderMasks& decoder_masks = {}) {
    return forward(src, tgt, encoder_masks, decoder_masks);
  }
  // A mask under which each position sees itself and those before it.
  static Tensor generate_square_subsequent_mask(int64_t size,
                                                std::optional<Device> device = std::nullopt,
                                                std::optional<DType> dtype = std::nullopt);

  TransformerEncoder encoder;
  TransformerDecoder decoder;

 private:
  TransformerOptions options_;
};

}  // namespace tessera::nn
