#include "nn/faces/faces.h"

namespace tessera::faces {

using namespace nn;

namespace {

// Arguments of Python by name are of the module's call: see test_cpp_face.py.
void one_input(const char* python, const MultiheadAttentionOptions& o) {
  layer(
      python, "*[torch.randn(5, 2, 6)] * 3", [&] { return MultiheadAttention(6, 2, o); },
      [](auto& m) {
        Tensor x = randn({5, 2, 6});
        auto [out, weights] = m(x, x, x);
        return Outs{out, weights};
      });
}

void heads() {
  one_input("MultiheadAttention(6, 2)", {});
  one_input("MultiheadAttention(6, 2, dropout=0.4, bias=False)", {.dropout = 0.4, .bias = false});
  one_input("MultiheadAttention(6, 2, add_bias_kv=True, add_zero_attn=True)",
            {.add_bias_kv = true, .add_zero_attn = true});
  one_input("MultiheadAttention(6, 2, batch_first=True)", {.batch_first = true});
  layer(
      "MultiheadAttention(6, 2, kdim=3, vdim=4)",
      "torch.randn(5, 2, 6), torch.randn(7, 2, 3), torch.randn(7, 2, 4)",
      [] { return MultiheadAttention(6, 2, {.kdim = 3, .vdim = 4}); },
      [](auto& m) {
        Tensor q = randn({5, 2, 6}), k = randn({7, 2, 3}), v = randn({7, 2, 4});
        auto [out, weights] = m(q, k, v, {.average_attn_weights = false});
        return Outs{out, weights};
      });
  layer(
      "MultiheadAttention(6, 2)",
      "torch.randn(3, 6), torch.randn(4, 6), torch.randn(4, 6), "
      "torch.tensor([True, False, False, False]), False, torch.randn(3, 4)",
      [] { return MultiheadAttention(6, 2); },
      [](auto& m) {
        Tensor q = randn({3, 6}), k = randn({4, 6}), v = randn({4, 6});
        auto [out, weights] = m(q, k, v,
                                {.key_padding_mask = tensor({true, false, false, false}),
                                 .need_weights = false,
                                 .attn_mask = randn({3, 4})});
        return Outs{out, weights};
      });
}

void layers() {
  layer(
      "TransformerEncoderLayer(6, 2, dim_feedforward=8)", "torch.randn(5, 2, 6)",
      [] { return TransformerEncoderLayer(6, 2, {.dim_feedforward = 8}); },
      [](auto& m) {
        return Outs{m(randn({5, 2, 6}))};
      });
  layer(
      "TransformerEncoderLayer(6, 2, 8, 0.0, 'gelu', norm_first=True, batch_first=True, "
      "bias=False)",
      "torch.randn(2, 5, 6), None, torch.tensor([[False, True, False, False, True]] * 2)",
      [] {
        return TransformerEncoderLayer(6, 2,
                                       {.dim_feedforward = 8,
                                        .dropout = 0.0,
                                        .activation = "gelu",
                                        .batch_first = true,
                                        .norm_first = true,
                                        .bias = false});
      },
      [](auto& m) {
        return Outs{m(randn({2, 5, 6}),
                      {.src_key_padding_mask = tensor({{false, true, false, false, true},
                                                       {false, true, false, false, true}})})};
      });
  layer(
      "TransformerDecoderLayer(6, 2, dim_feedforward=8)",
      "torch.randn(4, 2, 6), torch.randn(5, 2, 6), "
      "Transformer.generate_square_subsequent_mask(4)",
      [] { return TransformerDecoderLayer(6, 2, {.dim_feedforward = 8}); },
      [](auto& m) {
        Tensor tgt = randn({4, 2, 6}), memory = randn({5, 2, 6});
        Tensor mask = Transformer::generate_square_subsequent_mask(4);
        return Outs{m(tgt, memory, {.tgt_mask = mask})};
      });
  layer(
      "TransformerDecoderLayer(6, 2, dim_feedforward=8, norm_first=True)",
      "torch.randn(4, 2, 6), torch.randn(5, 2, 6)",
      [] { return TransformerDecoderLayer(6, 2, {.dim_feedforward = 8, .norm_first = true}); },
      [](auto& m) {
        Tensor tgt = randn({4, 2, 6}), memory = randn({5, 2, 6});
        return Outs{m(tgt, memory)};
      });
}

void stacks() {
  layer(
      "TransformerEncoder(TransformerEncoderLayer(6, 2, 8), 3, LayerNorm(6))",
      "torch.randn(5, 2, 6)",
      [] {
        return TransformerEncoder(TransformerEncoderLayer(6, 2, {.dim_feedforward = 8}), 3,
                                  LayerNorm(6));
      },
      [](auto& m) {
        return Outs{m(randn({5, 2, 6}))};
      });
  layer(
      "TransformerDecoder(TransformerDecoderLayer(6, 2, 8), 2)",
      "torch.randn(4, 2, 6), torch.randn(5, 2, 6)",
      [] { return TransformerDecoder(TransformerDecoderLayer(6, 2, {.dim_feedforward = 8}), 2); },
      [](auto& m) {
        Tensor tgt = randn({4, 2, 6}), memory = randn({5, 2, 6});
        return Outs{m(tgt, memory)};
      });
  layer(
      "Transformer(6, 2, 1, 2, dim_feedforward=8, dropout=0.2)",
      "torch.randn(5, 2, 6), torch.randn(4, 2, 6)",
      [] {
        return Transformer({.d_model = 6,
                            .nhead = 2,
                            .num_encoder_layers = 1,
                            .num_decoder_layers = 2,
                            .layer = {.dim_feedforward = 8, .dropout = 0.2}});
      },
      [](auto& m) {
        Tensor src = randn({5, 2, 6}), tgt = randn({4, 2, 6});
        return Outs{m(src, tgt)};
      });
}

}  // namespace

void attention() {
  heads();
  layers();
  stacks();
}

}  // namespace tessera::faces
