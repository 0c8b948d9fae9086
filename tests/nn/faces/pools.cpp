#include "nn/faces/faces.h"

namespace tessera::faces {

using namespace nn;

void pools() {
  layer(
      "MaxPool1d(2)", "torch.randn(2, 3, 9)", [] { return MaxPool1d(2); },
      [](auto& m) {
        return Outs{m(randn({2, 3, 9}))};
      });
  layer(
      "MaxPool1d(3, stride=2, padding=1, dilation=1, ceil_mode=True)", "torch.randn(2, 3, 9)",
      [] { return MaxPool1d(3, {.stride = 2, .padding = 1, .dilation = 1, .ceil_mode = true}); },
      [](auto& m) {
        return Outs{m(randn({2, 3, 9}))};
      });
  layer(
      "MaxPool1d(2, return_indices=True)", "torch.randn(2, 3, 9)", [] { return MaxPool1d(2); },
      [](auto& m) {
        auto [values, places] = m.forward_with_indices(randn({2, 3, 9}));
        return Outs{values, places};
      });
  layer(
      "AvgPool1d(2)", "torch.randn(2, 3, 9)", [] { return AvgPool1d(2); },
      [](auto& m) {
        return Outs{m(randn({2, 3, 9}))};
      });
  layer(
      "AvgPool1d(3, stride=2, padding=1, ceil_mode=True, count_include_pad=False)",
      "torch.randn(2, 3, 9)",
      [] {
        return AvgPool1d(
            3, {.stride = 2, .padding = 1, .ceil_mode = true, .count_include_pad = false});
      },
      [](auto& m) {
        return Outs{m(randn({2, 3, 9}))};
      });
  layer(
      "LPPool1d(2, 2)", "torch.randn(2, 3, 9)", [] { return LPPool1d(2, 2); },
      [](auto& m) {
        return Outs{m(randn({2, 3, 9}))};
      });
  layer(
      "LPPool1d(2, 3, stride=2, ceil_mode=True)", "torch.randn(2, 3, 9)",
      [] { return LPPool1d(2, 3, {.stride = 2, .ceil_mode = true}); },
      [](auto& m) {
        return Outs{m(randn({2, 3, 9}))};
      });
  layer(
      "AdaptiveAvgPool1d(3)", "torch.randn(2, 3, 9)", [] { return AdaptiveAvgPool1d(3); },
      [](auto& m) {
        return Outs{m(randn({2, 3, 9}))};
      });
  layer(
      "AdaptiveMaxPool1d(3)", "torch.randn(2, 3, 9)", [] { return AdaptiveMaxPool1d(3); },
      [](auto& m) {
        return Outs{m(randn({2, 3, 9}))};
      });
  layer(
      "AdaptiveMaxPool1d(2, return_indices=True)", "torch.randn(2, 3, 9)",
      [] { return AdaptiveMaxPool1d(2); },
      [](auto& m) {
        auto [values, places] = m.forward_with_indices(randn({2, 3, 9}));
        return Outs{values, places};
      });
  layer(
      "MaxUnpool1d(2)", "torch.randn(1, 1, 2), torch.tensor([[[1, 3]]])",
      [] { return MaxUnpool1d(2); },
      [](auto& m) {
        return Outs{m(randn({1, 1, 2}), tensor({{{1, 3}}}))};
      });
  layer(
      "MaxPool2d(2)", "torch.randn(2, 3, 8, 9)", [] { return MaxPool2d(2); },
      [](auto& m) {
        return Outs{m(randn({2, 3, 8, 9}))};
      });
  layer(
      "MaxPool2d(3, stride=2, padding=1, dilation=1, ceil_mode=True)", "torch.randn(2, 3, 8, 9)",
      [] { return MaxPool2d(3, {.stride = 2, .padding = 1, .dilation = 1, .ceil_mode = true}); },
      [](auto& m) {
        return Outs{m(randn({2, 3, 8, 9}))};
      });
  layer(
      "MaxPool2d(2, return_indices=True)", "torch.randn(2, 3, 8, 9)", [] { return MaxPool2d(2); },
      [](auto& m) {
        auto [values, places] = m.forward_with_indices(randn({2, 3, 8, 9}));
        return Outs{values, places};
      });
  layer(
      "AvgPool2d(2)", "torch.randn(2, 3, 8, 9)", [] { return AvgPool2d(2); },
      [](auto& m) {
        return Outs{m(randn({2, 3, 8, 9}))};
      });
  layer(
      "AvgPool2d(3, stride=2, padding=1, ceil_mode=True, count_include_pad=False)",
      "torch.randn(2, 3, 8, 9)",
      [] {
        return AvgPool2d(
            3, {.stride = 2, .padding = 1, .ceil_mode = true, .count_include_pad = false});
      },
      [](auto& m) {
        return Outs{m(randn({2, 3, 8, 9}))};
      });
  layer(
      "AvgPool2d(2, divisor_override=3)", "torch.randn(2, 3, 8, 9)",
      [] { return AvgPool2d(2, {.divisor_override = 3}); },
      [](auto& m) {
        return Outs{m(randn({2, 3, 8, 9}))};
      });
  layer(
      "LPPool2d(2, 2)", "torch.randn(2, 3, 8, 9)", [] { return LPPool2d(2, 2); },
      [](auto& m) {
        return Outs{m(randn({2, 3, 8, 9}))};
      });
  layer(
      "LPPool2d(2, 3, stride=2, ceil_mode=True)", "torch.randn(2, 3, 8, 9)",
      [] { return LPPool2d(2, 3, {.stride = 2, .ceil_mode = true}); },
      [](auto& m) {
        return Outs{m(randn({2, 3, 8, 9}))};
      });
  layer(
      "AdaptiveAvgPool2d(3)", "torch.randn(2, 3, 8, 9)", [] { return AdaptiveAvgPool2d(3); },
      [](auto& m) {
        return Outs{m(randn({2, 3, 8, 9}))};
      });
  layer(
      "AdaptiveMaxPool2d(3)", "torch.randn(2, 3, 8, 9)", [] { return AdaptiveMaxPool2d(3); },
      [](auto& m) {
        return Outs{m(randn({2, 3, 8, 9}))};
      });
  layer(
      "AdaptiveMaxPool2d(2, return_indices=True)", "torch.randn(2, 3, 8, 9)",
      [] { return AdaptiveMaxPool2d(2); },
      [](auto& m) {
        auto [values, places] = m.forward_with_indices(randn({2, 3, 8, 9}));
        return Outs{values, places};
      });
  layer(
      "MaxUnpool2d(2)", "torch.randn(1, 1, 1, 2), torch.tensor([[[[1, 3]]]])",
      [] { return MaxUnpool2d(2); },
      [](auto& m) {
        return Outs{m(randn({1, 1, 1, 2}), tensor({{{{1, 3}}}}))};
      });
  layer(
      "MaxPool3d(2)", "torch.randn(2, 3, 5, 6, 7)", [] { return MaxPool3d(2); },
      [](auto& m) {
        return Outs{m(randn({2, 3, 5, 6, 7}))};
      });
  layer(
      "MaxPool3d(3, stride=2, padding=1, dilation=1, ceil_mode=True)", "torch.randn(2, 3, 5, 6, 7)",
      [] { return MaxPool3d(3, {.stride = 2, .padding = 1, .dilation = 1, .ceil_mode = true}); },
      [](auto& m) {
        return Outs{m(randn({2, 3, 5, 6, 7}))};
      });
  layer(
      "MaxPool3d(2, return_indices=True)", "torch.randn(2, 3, 5, 6, 7)",
      [] { return MaxPool3d(2); },
      [](auto& m) {
        auto [values, places] = m.forward_with_indices(randn({2, 3, 5, 6, 7}));
        return Outs{values, places};
      });
  layer(
      "AvgPool3d(2)", "torch.randn(2, 3, 5, 6, 7)", [] { return AvgPool3d(2); },
      [](auto& m) {
        return Outs{m(randn({2, 3, 5, 6, 7}))};
      });
  layer(
      "AvgPool3d(3, stride=2, padding=1, ceil_mode=True, count_include_pad=False)",
      "torch.randn(2, 3, 5, 6, 7)",
      [] {
        return AvgPool3d(
            3, {.stride = 2, .padding = 1, .ceil_mode = true, .count_include_pad = false});
      },
      [](auto& m) {
        return Outs{m(randn({2, 3, 5, 6, 7}))};
      });
  layer(
      "AvgPool3d(2, divisor_override=3)", "torch.randn(2, 3, 5, 6, 7)",
      [] { return AvgPool3d(2, {.divisor_override = 3}); },
      [](auto& m) {
        return Outs{m(randn({2, 3, 5, 6, 7}))};
      });
  layer(
      "LPPool3d(2, 2)", "torch.randn(2, 3, 5, 6, 7)", [] { return LPPool3d(2, 2); },
      [](auto& m) {
        return Outs{m(randn({2, 3, 5, 6, 7}))};
      });
  layer(
      "LPPool3d(2, 3, stride=2, ceil_mode=True)", "torch.randn(2, 3, 5, 6, 7)",
      [] { return LPPool3d(2, 3, {.stride = 2, .ceil_mode = true}); },
      [](auto& m) {
        return Outs{m(randn({2, 3, 5, 6, 7}))};
      });
  layer(
      "AdaptiveAvgPool3d(3)", "torch.randn(2, 3, 5, 6, 7)", [] { return AdaptiveAvgPool3d(3); },
      [](auto& m) {
        return Outs{m(randn({2, 3, 5, 6, 7}))};
      });
  layer(
      "AdaptiveMaxPool3d(3)", "torch.randn(2, 3, 5, 6, 7)", [] { return AdaptiveMaxPool3d(3); },
      [](auto& m) {
        return Outs{m(randn({2, 3, 5, 6, 7}))};
      });
  layer(
      "AdaptiveMaxPool3d(2, return_indices=True)", "torch.randn(2, 3, 5, 6, 7)",
      [] { return AdaptiveMaxPool3d(2); },
      [](auto& m) {
        auto [values, places] = m.forward_with_indices(randn({2, 3, 5, 6, 7}));
        return Outs{values, places};
      });
  layer(
      "MaxUnpool3d(2)", "torch.randn(1, 1, 1, 1, 2), torch.tensor([[[[[1, 3]]]]])",
      [] { return MaxUnpool3d(2); },
      [](auto& m) {
        return Outs{m(randn({1, 1, 1, 1, 2}), tensor({{{{{1, 3}}}}}))};
      });
  layer(
      "AdaptiveAvgPool2d((None, 2))", "torch.randn(1, 2, 5, 6)",
      [] {
        return AdaptiveAvgPool2d({-1, 2});
      },
      [](auto& m) {
        return Outs{m(randn({1, 2, 5, 6}))};
      });
  layer(
      "AdaptiveMaxPool2d((3, None))", "torch.randn(1, 2, 5, 6)",
      [] {
        return AdaptiveMaxPool2d({3, -1});
      },
      [](auto& m) {
        return Outs{m(randn({1, 2, 5, 6}))};
      });
  layer(
      "MaxPool2d((2, 3), stride=(2, 1))", "torch.randn(1, 2, 5, 6)",
      [] {
        return MaxPool2d({2, 3}, {.stride = {2, 1}});
      },
      [](auto& m) {
        return Outs{m(randn({1, 2, 5, 6}))};
      });
  layer(
      "MaxUnpool2d(2, stride=2)", "torch.randn(1, 1, 1, 2), torch.tensor([[[[1, 3]]]]), (3, 5)",
      [] { return MaxUnpool2d(2, {.stride = 2}); },
      [](auto& m) {
        return Outs{m(randn({1, 1, 1, 2}), tensor({{{{1, 3}}}}), {3, 5})};
      });
  layer(
      "FractionalMaxPool2d(2, output_size=3)", "torch.randn(2, 3, 7, 8)",
      [] { return FractionalMaxPool2d(2, {.output_size = 3}); },
      [](auto& m) {
        return Outs{m(randn({2, 3, 7, 8}))};
      });
  layer(
      "FractionalMaxPool3d(2, output_ratio=(0.5, 0.4, 0.6))", "torch.randn(2, 3, 7, 8, 6)",
      [] {
        return FractionalMaxPool3d(2, {.output_ratio = {0.5, 0.4, 0.6}});
      },
      [](auto& m) {
        return Outs{m(randn({2, 3, 7, 8, 6}))};
      });
}

}  // namespace tessera::faces
