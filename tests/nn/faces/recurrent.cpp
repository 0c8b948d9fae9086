#include "nn/faces/faces.h"

namespace tessera::faces {

using namespace nn;

void recurrent() {
  layer(
      "RNN(3, 4)", "torch.randn(5, 2, 3)", [] { return RNN(3, 4); },
      [](auto& m) {
        Tensor x0 = randn({5, 2, 3});
        auto [out, state] = m(x0);
        return Outs{out, state};
      });
  layer(
      "RNN(3, 4, num_layers=2, bias=False, batch_first=True, bidirectional=True)",
      "torch.randn(2, 5, 3)",
      [] {
        return RNN(3, 4,
                   {.num_layers = 2, .bias = false, .batch_first = true, .bidirectional = true});
      },
      [](auto& m) {
        Tensor x0 = randn({2, 5, 3});
        auto [out, state] = m(x0);
        return Outs{out, state};
      });
  layer(
      "RNN(3, 4, num_layers=2, dropout=0.5)", "torch.randn(5, 2, 3)",
      [] { return RNN(3, 4, {.num_layers = 2, .dropout = 0.5}); },
      [](auto& m) {
        Tensor x0 = randn({5, 2, 3});
        auto [out, state] = m(x0);
        return Outs{out, state};
      });
  layer(
      "RNN(3, 4)", "torch.randn(5, 3)", [] { return RNN(3, 4); },
      [](auto& m) {
        Tensor x0 = randn({5, 3});
        auto [out, state] = m(x0);
        return Outs{out, state};
      });
  layer(
      "RNN(3, 4)", "torch.randn(5, 2, 3), torch.randn(1, 2, 4)", [] { return RNN(3, 4); },
      [](auto& m) {
        Tensor x0 = randn({5, 2, 3});
        Tensor x1 = randn({1, 2, 4});
        auto [out, state] = m(x0, x1);
        return Outs{out, state};
      });
  layer(
      "GRU(3, 4)", "torch.randn(5, 2, 3)", [] { return GRU(3, 4); },
      [](auto& m) {
        Tensor x0 = randn({5, 2, 3});
        auto [out, state] = m(x0);
        return Outs{out, state};
      });
  layer(
      "GRU(3, 4, num_layers=2, bias=False, batch_first=True, bidirectional=True)",
      "torch.randn(2, 5, 3)",
      [] {
        return GRU(3, 4,
                   {.num_layers = 2, .bias = false, .batch_first = true, .bidirectional = true});
      },
      [](auto& m) {
        Tensor x0 = randn({2, 5, 3});
        auto [out, state] = m(x0);
        return Outs{out, state};
      });
  layer(
      "GRU(3, 4, num_layers=2, dropout=0.5)", "torch.randn(5, 2, 3)",
      [] { return GRU(3, 4, {.num_layers = 2, .dropout = 0.5}); },
      [](auto& m) {
        Tensor x0 = randn({5, 2, 3});
        auto [out, state] = m(x0);
        return Outs{out, state};
      });
  layer(
      "GRU(3, 4)", "torch.randn(5, 3)", [] { return GRU(3, 4); },
      [](auto& m) {
        Tensor x0 = randn({5, 3});
        auto [out, state] = m(x0);
        return Outs{out, state};
      });
  layer(
      "GRU(3, 4)", "torch.randn(5, 2, 3), torch.randn(1, 2, 4)", [] { return GRU(3, 4); },
      [](auto& m) {
        Tensor x0 = randn({5, 2, 3});
        Tensor x1 = randn({1, 2, 4});
        auto [out, state] = m(x0, x1);
        return Outs{out, state};
      });
  layer(
      "LSTM(3, 4)", "torch.randn(5, 2, 3)", [] { return LSTM(3, 4); },
      [](auto& m) {
        Tensor x0 = randn({5, 2, 3});
        auto [out, state] = m(x0);
        return Outs{out, state.h, state.c};
      });
  layer(
      "LSTM(3, 4, num_layers=2, bias=False, batch_first=True, bidirectional=True)",
      "torch.randn(2, 5, 3)",
      [] {
        return LSTM(3, 4,
                    {.num_layers = 2, .bias = false, .batch_first = true, .bidirectional = true});
      },
      [](auto& m) {
        Tensor x0 = randn({2, 5, 3});
        auto [out, state] = m(x0);
        return Outs{out, state.h, state.c};
      });
  layer(
      "LSTM(3, 4, num_layers=2, dropout=0.5)", "torch.randn(5, 2, 3)",
      [] { return LSTM(3, 4, {.num_layers = 2, .dropout = 0.5}); },
      [](auto& m) {
        Tensor x0 = randn({5, 2, 3});
        auto [out, state] = m(x0);
        return Outs{out, state.h, state.c};
      });
  layer(
      "LSTM(3, 4)", "torch.randn(5, 3)", [] { return LSTM(3, 4); },
      [](auto& m) {
        Tensor x0 = randn({5, 3});
        auto [out, state] = m(x0);
        return Outs{out, state.h, state.c};
      });
  layer(
      "LSTM(3, 4)", "torch.randn(5, 2, 3), (torch.randn(1, 2, 4), torch.randn(1, 2, 4))",
      [] { return LSTM(3, 4); },
      [](auto& m) {
        Tensor x0 = randn({5, 2, 3});
        Tensor x1 = randn({1, 2, 4});
        Tensor x2 = randn({1, 2, 4});
        auto [out, state] = m(x0, {x1, x2});
        return Outs{out, state.h, state.c};
      });
  layer(
      "RNN(3, 4, nonlinearity='relu')", "torch.randn(5, 2, 3)",
      [] { return RNN(3, 4, {.nonlinearity = "relu"}); },
      [](auto& m) {
        Tensor x0 = randn({5, 2, 3});
        auto [out, state] = m(x0);
        return Outs{out, state};
      });
  layer(
      "LSTM(3, 4, num_layers=2, proj_size=2, bidirectional=True)", "torch.randn(5, 2, 3)",
      [] { return LSTM(3, 4, {.num_layers = 2, .bidirectional = true, .proj_size = 2}); },
      [](auto& m) {
        Tensor x0 = randn({5, 2, 3});
        auto [out, state] = m(x0);
        return Outs{out, state.h, state.c};
      });
  layer(
      "RNNCell(3, 4)", "torch.randn(2, 3)", [] { return RNNCell(3, 4); },
      [](auto& m) {
        Tensor x0 = randn({2, 3});
        return Outs{m(x0)};
      });
  layer(
      "RNNCell(3, 4, bias=False)", "torch.randn(2, 3), torch.randn(2, 4)",
      [] { return RNNCell(3, 4, {.bias = false}); },
      [](auto& m) {
        Tensor x0 = randn({2, 3});
        Tensor x1 = randn({2, 4});
        return Outs{m(x0, x1)};
      });
  layer(
      "RNNCell(3, 4)", "torch.randn(3)", [] { return RNNCell(3, 4); },
      [](auto& m) {
        Tensor x0 = randn({3});
        return Outs{m(x0)};
      });
  layer(
      "GRUCell(3, 4)", "torch.randn(2, 3)", [] { return GRUCell(3, 4); },
      [](auto& m) {
        Tensor x0 = randn({2, 3});
        return Outs{m(x0)};
      });
  layer(
      "GRUCell(3, 4, bias=False)", "torch.randn(2, 3), torch.randn(2, 4)",
      [] { return GRUCell(3, 4, {.bias = false}); },
      [](auto& m) {
        Tensor x0 = randn({2, 3});
        Tensor x1 = randn({2, 4});
        return Outs{m(x0, x1)};
      });
  layer(
      "GRUCell(3, 4)", "torch.randn(3)", [] { return GRUCell(3, 4); },
      [](auto& m) {
        Tensor x0 = randn({3});
        return Outs{m(x0)};
      });
  layer(
      "RNNCell(3, 4, nonlinearity='relu')", "torch.randn(2, 3)",
      [] { return RNNCell(3, 4, {.nonlinearity = "relu"}); },
      [](auto& m) {
        Tensor x0 = randn({2, 3});
        return Outs{m(x0)};
      });
  layer(
      "LSTMCell(3, 4)", "torch.randn(2, 3)", [] { return LSTMCell(3, 4); },
      [](auto& m) {
        LSTMState s = m(randn({2, 3}));
        return Outs{s.h, s.c};
      });
  layer(
      "LSTMCell(3, 4, bias=False)", "torch.randn(2, 3), (torch.randn(2, 4), torch.randn(2, 4))",
      [] { return LSTMCell(3, 4, {.bias = false}); },
      [](auto& m) {
        Tensor x = randn({2, 3}), h = randn({2, 4}), c = randn({2, 4});
        LSTMState s = m(x, {h, c});
        return Outs{s.h, s.c};
      });
}

}  // namespace tessera::faces
