#include "nn/faces/faces.h"

namespace tessera::faces {

using namespace nn;

void convolutions() {
  layer(
      "Conv1d(4, 6, 3)", "torch.randn(2, 4, 9)", [] { return Conv1d(4, 6, 3); },
      [](auto& m) {
        return Outs{m(randn({2, 4, 9}))};
      });
  layer(
      "Conv1d(4, 6, 3, stride=2, padding=1, dilation=2, groups=2, bias=False)",
      "torch.randn(2, 4, 9)",
      [] {
        return Conv1d(4, 6, 3,
                      {.stride = 2, .padding = 1, .dilation = 2, .groups = 2, .bias = false});
      },
      [](auto& m) {
        return Outs{m(randn({2, 4, 9}))};
      });
  layer(
      "Conv1d(4, 2, 2, padding='same')", "torch.randn(2, 4, 9)",
      [] { return Conv1d(4, 2, 2, {.padding = "same"}); },
      [](auto& m) {
        return Outs{m(randn({2, 4, 9}))};
      });
  layer(
      "Conv1d(4, 2, 3, padding=1, padding_mode='circular')", "torch.randn(2, 4, 9)",
      [] { return Conv1d(4, 2, 3, {.padding = 1, .padding_mode = "circular"}); },
      [](auto& m) {
        return Outs{m(randn({2, 4, 9}))};
      });
  layer(
      "Conv1d(4, 2, 3, padding=1, padding_mode='replicate')", "torch.randn(2, 4, 9)",
      [] { return Conv1d(4, 2, 3, {.padding = 1, .padding_mode = "replicate"}); },
      [](auto& m) {
        return Outs{m(randn({2, 4, 9}))};
      });
  layer(
      "ConvTranspose1d(4, 3, 2)", "torch.randn(2, 4, 7)", [] { return ConvTranspose1d(4, 3, 2); },
      [](auto& m) {
        return Outs{m(randn({2, 4, 7}))};
      });
  layer(
      "ConvTranspose1d(4, 6, 3, stride=2, padding=1, output_padding=1, groups=2, bias=False)",
      "torch.randn(2, 4, 7)",
      [] {
        return ConvTranspose1d(
            4, 6, 3, {.stride = 2, .padding = 1, .output_padding = 1, .groups = 2, .bias = false});
      },
      [](auto& m) {
        return Outs{m(randn({2, 4, 7}))};
      });
  layer(
      "Conv2d(4, 6, 3)", "torch.randn(2, 4, 8, 9)", [] { return Conv2d(4, 6, 3); },
      [](auto& m) {
        return Outs{m(randn({2, 4, 8, 9}))};
      });
  layer(
      "Conv2d(4, 6, 3, stride=2, padding=1, dilation=2, groups=2, bias=False)",
      "torch.randn(2, 4, 8, 9)",
      [] {
        return Conv2d(4, 6, 3,
                      {.stride = 2, .padding = 1, .dilation = 2, .groups = 2, .bias = false});
      },
      [](auto& m) {
        return Outs{m(randn({2, 4, 8, 9}))};
      });
  layer(
      "Conv2d(4, 2, 2, padding='same')", "torch.randn(2, 4, 8, 9)",
      [] { return Conv2d(4, 2, 2, {.padding = "same"}); },
      [](auto& m) {
        return Outs{m(randn({2, 4, 8, 9}))};
      });
  layer(
      "Conv2d(4, 2, 3, padding=1, padding_mode='circular')", "torch.randn(2, 4, 8, 9)",
      [] { return Conv2d(4, 2, 3, {.padding = 1, .padding_mode = "circular"}); },
      [](auto& m) {
        return Outs{m(randn({2, 4, 8, 9}))};
      });
  layer(
      "Conv2d(4, 2, 3, padding=1, padding_mode='replicate')", "torch.randn(2, 4, 8, 9)",
      [] { return Conv2d(4, 2, 3, {.padding = 1, .padding_mode = "replicate"}); },
      [](auto& m) {
        return Outs{m(randn({2, 4, 8, 9}))};
      });
  layer(
      "ConvTranspose2d(4, 3, 2)", "torch.randn(2, 4, 6, 7)",
      [] { return ConvTranspose2d(4, 3, 2); },
      [](auto& m) {
        return Outs{m(randn({2, 4, 6, 7}))};
      });
  layer(
      "ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1, groups=2, bias=False)",
      "torch.randn(2, 4, 6, 7)",
      [] {
        return ConvTranspose2d(
            4, 6, 3, {.stride = 2, .padding = 1, .output_padding = 1, .groups = 2, .bias = false});
      },
      [](auto& m) {
        return Outs{m(randn({2, 4, 6, 7}))};
      });
  layer(
      "Conv3d(4, 6, 3)", "torch.randn(2, 4, 5, 6, 7)", [] { return Conv3d(4, 6, 3); },
      [](auto& m) {
        return Outs{m(randn({2, 4, 5, 6, 7}))};
      });
  layer(
      "Conv3d(4, 6, 3, stride=2, padding=1, dilation=2, groups=2, bias=False)",
      "torch.randn(2, 4, 5, 6, 7)",
      [] {
        return Conv3d(4, 6, 3,
                      {.stride = 2, .padding = 1, .dilation = 2, .groups = 2, .bias = false});
      },
      [](auto& m) {
        return Outs{m(randn({2, 4, 5, 6, 7}))};
      });
  layer(
      "Conv3d(4, 2, 2, padding='same')", "torch.randn(2, 4, 5, 6, 7)",
      [] { return Conv3d(4, 2, 2, {.padding = "same"}); },
      [](auto& m) {
        return Outs{m(randn({2, 4, 5, 6, 7}))};
      });
  layer(
      "Conv3d(4, 2, 3, padding=1, padding_mode='circular')", "torch.randn(2, 4, 5, 6, 7)",
      [] { return Conv3d(4, 2, 3, {.padding = 1, .padding_mode = "circular"}); },
      [](auto& m) {
        return Outs{m(randn({2, 4, 5, 6, 7}))};
      });
  layer(
      "Conv3d(4, 2, 3, padding=1, padding_mode='replicate')", "torch.randn(2, 4, 5, 6, 7)",
      [] { return Conv3d(4, 2, 3, {.padding = 1, .padding_mode = "replicate"}); },
      [](auto& m) {
        return Outs{m(randn({2, 4, 5, 6, 7}))};
      });
  layer(
      "ConvTranspose3d(4, 3, 2)", "torch.randn(2, 4, 3, 4, 5)",
      [] { return ConvTranspose3d(4, 3, 2); },
      [](auto& m) {
        return Outs{m(randn({2, 4, 3, 4, 5}))};
      });
  layer(
      "ConvTranspose3d(4, 6, 3, stride=2, padding=1, output_padding=1, groups=2, bias=False)",
      "torch.randn(2, 4, 3, 4, 5)",
      [] {
        return ConvTranspose3d(
            4, 6, 3, {.stride = 2, .padding = 1, .output_padding = 1, .groups = 2, .bias = false});
      },
      [](auto& m) {
        return Outs{m(randn({2, 4, 3, 4, 5}))};
      });
  layer(
      "Conv2d(1, 2, (2, 3), stride=(1, 2), padding=(1, 0))", "torch.randn(1, 1, 5, 6)",
      [] {
        return Conv2d(1, 2, {2, 3}, {.stride = {1, 2}, .padding = {1, 0}});
      },
      [](auto& m) {
        return Outs{m(randn({1, 1, 5, 6}))};
      });
  layer(
      "Conv2d(2, 2, 3, padding='same', padding_mode='reflect')", "torch.randn(1, 2, 5, 6)",
      [] { return Conv2d(2, 2, 3, {.padding = "same", .padding_mode = "reflect"}); },
      [](auto& m) {
        return Outs{m(randn({1, 2, 5, 6}))};
      });
  layer(
      "ConvTranspose2d(2, 3, 3, stride=2, padding=1)", "torch.randn(1, 2, 3, 3), [6, 6]",
      [] { return ConvTranspose2d(2, 3, 3, {.stride = 2, .padding = 1}); },
      [](auto& m) {
        return Outs{m(randn({1, 2, 3, 3}), {6, 6})};
      });
}

}  // namespace tessera::faces
