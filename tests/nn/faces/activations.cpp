#include "nn/faces/faces.h"

namespace tessera::faces {

using namespace nn;

void activations() {
  layer(
      "ReLU()", "torch.randn(3, 4)", [] { return ReLU(); },
      [](auto& m) {
        return Outs{m(randn({3, 4}))};
      });
  layer(
      "ReLU(inplace=True)", "torch.randn(3, 4)", [] { return ReLU({.inplace = true}); },
      [](auto& m) {
        return Outs{m(randn({3, 4}))};
      });
  layer(
      "SELU()", "torch.randn(3, 4)", [] { return SELU(); },
      [](auto& m) {
        return Outs{m(randn({3, 4}))};
      });
  layer(
      "SELU(inplace=True)", "torch.randn(3, 4)", [] { return SELU({.inplace = true}); },
      [](auto& m) {
        return Outs{m(randn({3, 4}))};
      });
  layer(
      "SiLU()", "torch.randn(3, 4)", [] { return SiLU(); },
      [](auto& m) {
        return Outs{m(randn({3, 4}))};
      });
  layer(
      "SiLU(inplace=True)", "torch.randn(3, 4)", [] { return SiLU({.inplace = true}); },
      [](auto& m) {
        return Outs{m(randn({3, 4}))};
      });
  layer(
      "Mish()", "torch.randn(3, 4)", [] { return Mish(); },
      [](auto& m) {
        return Outs{m(randn({3, 4}))};
      });
  layer(
      "Mish(inplace=True)", "torch.randn(3, 4)", [] { return Mish({.inplace = true}); },
      [](auto& m) {
        return Outs{m(randn({3, 4}))};
      });
  layer(
      "Hardsigmoid()", "torch.randn(3, 4)", [] { return Hardsigmoid(); },
      [](auto& m) {
        return Outs{m(randn({3, 4}))};
      });
  layer(
      "Hardsigmoid(inplace=True)", "torch.randn(3, 4)",
      [] { return Hardsigmoid({.inplace = true}); },
      [](auto& m) {
        return Outs{m(randn({3, 4}))};
      });
  layer(
      "Hardswish()", "torch.randn(3, 4)", [] { return Hardswish(); },
      [](auto& m) {
        return Outs{m(randn({3, 4}))};
      });
  layer(
      "Hardswish(inplace=True)", "torch.randn(3, 4)", [] { return Hardswish({.inplace = true}); },
      [](auto& m) {
        return Outs{m(randn({3, 4}))};
      });
  layer(
      "Sigmoid()", "torch.randn(3, 4)", [] { return Sigmoid(); },
      [](auto& m) {
        return Outs{m(randn({3, 4}))};
      });
  layer(
      "Tanh()", "torch.randn(3, 4)", [] { return Tanh(); },
      [](auto& m) {
        return Outs{m(randn({3, 4}))};
      });
  layer(
      "LogSigmoid()", "torch.randn(3, 4)", [] { return LogSigmoid(); },
      [](auto& m) {
        return Outs{m(randn({3, 4}))};
      });
  layer(
      "Softsign()", "torch.randn(3, 4)", [] { return Softsign(); },
      [](auto& m) {
        return Outs{m(randn({3, 4}))};
      });
  layer(
      "Tanhshrink()", "torch.randn(3, 4)", [] { return Tanhshrink(); },
      [](auto& m) {
        return Outs{m(randn({3, 4}))};
      });
  layer(
      "Threshold(0.1, 20.0)", "torch.randn(3, 4)", [] { return Threshold(0.1, 20.0); },
      [](auto& m) {
        return Outs{m(randn({3, 4}))};
      });
  layer(
      "Threshold(0.1, 20.0, inplace=True)", "torch.randn(3, 4)",
      [] { return Threshold(0.1, 20.0, {.inplace = true}); },
      [](auto& m) {
        return Outs{m(randn({3, 4}))};
      });
  layer(
      "RReLU()", "torch.randn(3, 4)", [] { return RReLU(); },
      [](auto& m) {
        return Outs{m(randn({3, 4}))};
      });
  layer(
      "RReLU(0.25, 0.5, inplace=True)", "torch.randn(3, 4)",
      [] { return RReLU({.lower = 0.25, .upper = 0.5, .inplace = true}); },
      [](auto& m) {
        return Outs{m(randn({3, 4}))};
      });
  layer(
      "Hardtanh()", "torch.randn(3, 4)", [] { return Hardtanh(); },
      [](auto& m) {
        return Outs{m(randn({3, 4}))};
      });
  layer(
      "Hardtanh(-0.5, 0.25, inplace=True)", "torch.randn(3, 4)",
      [] { return Hardtanh({.min_val = -0.5, .max_val = 0.25, .inplace = true}); },
      [](auto& m) {
        return Outs{m(randn({3, 4}))};
      });
  layer(
      "ReLU6()", "torch.randn(3, 4)", [] { return ReLU6(); },
      [](auto& m) {
        return Outs{m(randn({3, 4}))};
      });
  layer(
      "ReLU6(inplace=True)", "torch.randn(3, 4)", [] { return ReLU6({.inplace = true}); },
      [](auto& m) {
        return Outs{m(randn({3, 4}))};
      });
  layer(
      "ELU()", "torch.randn(3, 4)", [] { return ELU(); },
      [](auto& m) {
        return Outs{m(randn({3, 4}))};
      });
  layer(
      "ELU(0.5, inplace=True)", "torch.randn(3, 4)", [] { return ELU(0.5, {.inplace = true}); },
      [](auto& m) {
        return Outs{m(randn({3, 4}))};
      });
  layer(
      "CELU()", "torch.randn(3, 4)", [] { return CELU(); },
      [](auto& m) {
        return Outs{m(randn({3, 4}))};
      });
  layer(
      "CELU(0.5, inplace=True)", "torch.randn(3, 4)", [] { return CELU(0.5, {.inplace = true}); },
      [](auto& m) {
        return Outs{m(randn({3, 4}))};
      });
  layer(
      "GLU()", "torch.randn(3, 4)", [] { return GLU(); },
      [](auto& m) {
        return Outs{m(randn({3, 4}))};
      });
  layer(
      "GLU(1)", "torch.randn(3, 4)", [] { return GLU(1); },
      [](auto& m) {
        return Outs{m(randn({3, 4}))};
      });
  layer(
      "GELU()", "torch.randn(3, 4)", [] { return GELU(); },
      [](auto& m) {
        return Outs{m(randn({3, 4}))};
      });
  layer(
      "GELU(approximate='tanh')", "torch.randn(3, 4)", [] { return GELU({.approximate = "tanh"}); },
      [](auto& m) {
        return Outs{m(randn({3, 4}))};
      });
  layer(
      "Hardshrink()", "torch.randn(3, 4)", [] { return Hardshrink(); },
      [](auto& m) {
        return Outs{m(randn({3, 4}))};
      });
  layer(
      "Softshrink(0.25)", "torch.randn(3, 4)", [] { return Softshrink(0.25); },
      [](auto& m) {
        return Outs{m(randn({3, 4}))};
      });
  layer(
      "LeakyReLU()", "torch.randn(3, 4)", [] { return LeakyReLU(); },
      [](auto& m) {
        return Outs{m(randn({3, 4}))};
      });
  layer(
      "LeakyReLU(0.2, inplace=True)", "torch.randn(3, 4)",
      [] { return LeakyReLU(0.2, {.inplace = true}); },
      [](auto& m) {
        return Outs{m(randn({3, 4}))};
      });
  layer(
      "Softplus()", "torch.randn(3, 4)", [] { return Softplus(); },
      [](auto& m) {
        return Outs{m(randn({3, 4}))};
      });
  layer(
      "Softplus(2.0, 0.5)", "torch.randn(3, 4)",
      [] { return Softplus({.beta = 2.0, .threshold = 0.5}); },
      [](auto& m) {
        return Outs{m(randn({3, 4}))};
      });
  layer(
      "PReLU()", "torch.randn(3, 4)", [] { return PReLU(); },
      [](auto& m) {
        return Outs{m(randn({3, 4}))};
      });
  layer(
      "PReLU(4, init=0.1)", "torch.randn(3, 4)", [] { return PReLU(4, {.init = 0.1}); },
      [](auto& m) {
        return Outs{m(randn({3, 4}))};
      });
  layer(
      "Softmax(1)", "torch.randn(3, 4)", [] { return Softmax(1); },
      [](auto& m) {
        return Outs{m(randn({3, 4}))};
      });
  layer(
      "Softmin(0)", "torch.randn(3, 4)", [] { return Softmin(0); },
      [](auto& m) {
        return Outs{m(randn({3, 4}))};
      });
  layer(
      "LogSoftmax(-1)", "torch.randn(3, 4)", [] { return LogSoftmax(-1); },
      [](auto& m) {
        return Outs{m(randn({3, 4}))};
      });
  layer(
      "Softmax2d()", "torch.randn(2, 3, 2, 2)", [] { return Softmax2d(); },
      [](auto& m) {
        return Outs{m(randn({2, 3, 2, 2}))};
      });
}

}  // namespace tessera::faces
