#include "nn/faces/faces.h"

namespace tessera::faces {

using namespace nn;

void paddings_and_shapes() {
  layer(
      "ZeroPad1d(2)", "torch.randn(1, 2, 6)", [] { return ZeroPad1d(2); },
      [](auto& m) {
        return Outs{m(randn({1, 2, 6}))};
      });
  layer(
      "ZeroPad1d((1, 2))", "torch.randn(1, 2, 6)",
      [] {
        return ZeroPad1d({1, 2});
      },
      [](auto& m) {
        return Outs{m(randn({1, 2, 6}))};
      });
  layer(
      "ReflectionPad1d(2)", "torch.randn(1, 2, 6)", [] { return ReflectionPad1d(2); },
      [](auto& m) {
        return Outs{m(randn({1, 2, 6}))};
      });
  layer(
      "ReflectionPad1d((1, 2))", "torch.randn(1, 2, 6)",
      [] {
        return ReflectionPad1d({1, 2});
      },
      [](auto& m) {
        return Outs{m(randn({1, 2, 6}))};
      });
  layer(
      "ReplicationPad1d(2)", "torch.randn(1, 2, 6)", [] { return ReplicationPad1d(2); },
      [](auto& m) {
        return Outs{m(randn({1, 2, 6}))};
      });
  layer(
      "ReplicationPad1d((1, 2))", "torch.randn(1, 2, 6)",
      [] {
        return ReplicationPad1d({1, 2});
      },
      [](auto& m) {
        return Outs{m(randn({1, 2, 6}))};
      });
  layer(
      "CircularPad1d(2)", "torch.randn(1, 2, 6)", [] { return CircularPad1d(2); },
      [](auto& m) {
        return Outs{m(randn({1, 2, 6}))};
      });
  layer(
      "CircularPad1d((1, 2))", "torch.randn(1, 2, 6)",
      [] {
        return CircularPad1d({1, 2});
      },
      [](auto& m) {
        return Outs{m(randn({1, 2, 6}))};
      });
  layer(
      "ConstantPad1d(1, 3.5)", "torch.randn(1, 2, 6)", [] { return ConstantPad1d(1, 3.5); },
      [](auto& m) {
        return Outs{m(randn({1, 2, 6}))};
      });
  layer(
      "ZeroPad2d(2)", "torch.randn(1, 2, 5, 6)", [] { return ZeroPad2d(2); },
      [](auto& m) {
        return Outs{m(randn({1, 2, 5, 6}))};
      });
  layer(
      "ZeroPad2d((1, 2, 1, 2))", "torch.randn(1, 2, 5, 6)",
      [] {
        return ZeroPad2d({1, 2, 1, 2});
      },
      [](auto& m) {
        return Outs{m(randn({1, 2, 5, 6}))};
      });
  layer(
      "ReflectionPad2d(2)", "torch.randn(1, 2, 5, 6)", [] { return ReflectionPad2d(2); },
      [](auto& m) {
        return Outs{m(randn({1, 2, 5, 6}))};
      });
  layer(
      "ReflectionPad2d((1, 2, 1, 2))", "torch.randn(1, 2, 5, 6)",
      [] {
        return ReflectionPad2d({1, 2, 1, 2});
      },
      [](auto& m) {
        return Outs{m(randn({1, 2, 5, 6}))};
      });
  layer(
      "ReplicationPad2d(2)", "torch.randn(1, 2, 5, 6)", [] { return ReplicationPad2d(2); },
      [](auto& m) {
        return Outs{m(randn({1, 2, 5, 6}))};
      });
  layer(
      "ReplicationPad2d((1, 2, 1, 2))", "torch.randn(1, 2, 5, 6)",
      [] {
        return ReplicationPad2d({1, 2, 1, 2});
      },
      [](auto& m) {
        return Outs{m(randn({1, 2, 5, 6}))};
      });
  layer(
      "CircularPad2d(2)", "torch.randn(1, 2, 5, 6)", [] { return CircularPad2d(2); },
      [](auto& m) {
        return Outs{m(randn({1, 2, 5, 6}))};
      });
  layer(
      "CircularPad2d((1, 2, 1, 2))", "torch.randn(1, 2, 5, 6)",
      [] {
        return CircularPad2d({1, 2, 1, 2});
      },
      [](auto& m) {
        return Outs{m(randn({1, 2, 5, 6}))};
      });
  layer(
      "ConstantPad2d(1, 3.5)", "torch.randn(1, 2, 5, 6)", [] { return ConstantPad2d(1, 3.5); },
      [](auto& m) {
        return Outs{m(randn({1, 2, 5, 6}))};
      });
  layer(
      "ZeroPad3d(2)", "torch.randn(1, 2, 4, 5, 6)", [] { return ZeroPad3d(2); },
      [](auto& m) {
        return Outs{m(randn({1, 2, 4, 5, 6}))};
      });
  layer(
      "ZeroPad3d((1, 2, 1, 2, 1, 2))", "torch.randn(1, 2, 4, 5, 6)",
      [] {
        return ZeroPad3d({1, 2, 1, 2, 1, 2});
      },
      [](auto& m) {
        return Outs{m(randn({1, 2, 4, 5, 6}))};
      });
  layer(
      "ReflectionPad3d(2)", "torch.randn(1, 2, 4, 5, 6)", [] { return ReflectionPad3d(2); },
      [](auto& m) {
        return Outs{m(randn({1, 2, 4, 5, 6}))};
      });
  layer(
      "ReflectionPad3d((1, 2, 1, 2, 1, 2))", "torch.randn(1, 2, 4, 5, 6)",
      [] {
        return ReflectionPad3d({1, 2, 1, 2, 1, 2});
      },
      [](auto& m) {
        return Outs{m(randn({1, 2, 4, 5, 6}))};
      });
  layer(
      "ReplicationPad3d(2)", "torch.randn(1, 2, 4, 5, 6)", [] { return ReplicationPad3d(2); },
      [](auto& m) {
        return Outs{m(randn({1, 2, 4, 5, 6}))};
      });
  layer(
      "ReplicationPad3d((1, 2, 1, 2, 1, 2))", "torch.randn(1, 2, 4, 5, 6)",
      [] {
        return ReplicationPad3d({1, 2, 1, 2, 1, 2});
      },
      [](auto& m) {
        return Outs{m(randn({1, 2, 4, 5, 6}))};
      });
  layer(
      "CircularPad3d(2)", "torch.randn(1, 2, 4, 5, 6)", [] { return CircularPad3d(2); },
      [](auto& m) {
        return Outs{m(randn({1, 2, 4, 5, 6}))};
      });
  layer(
      "CircularPad3d((1, 2, 1, 2, 1, 2))", "torch.randn(1, 2, 4, 5, 6)",
      [] {
        return CircularPad3d({1, 2, 1, 2, 1, 2});
      },
      [](auto& m) {
        return Outs{m(randn({1, 2, 4, 5, 6}))};
      });
  layer(
      "ConstantPad3d(1, 3.5)", "torch.randn(1, 2, 4, 5, 6)", [] { return ConstantPad3d(1, 3.5); },
      [](auto& m) {
        return Outs{m(randn({1, 2, 4, 5, 6}))};
      });
  layer(
      "Flatten()", "torch.randn(2, 3, 4)", [] { return Flatten(); },
      [](auto& m) {
        return Outs{m(randn({2, 3, 4}))};
      });
  layer(
      "Flatten(0, 1)", "torch.randn(2, 3, 4)",
      [] { return Flatten({.start_dim = 0, .end_dim = 1}); },
      [](auto& m) {
        return Outs{m(randn({2, 3, 4}))};
      });
  layer(
      "Unflatten(1, (2, 3))", "torch.randn(2, 6)",
      [] {
        return Unflatten(1, {2, 3});
      },
      [](auto& m) {
        return Outs{m(randn({2, 6}))};
      });
  layer(
      "Fold((4, 5), (2, 2))", "torch.randn(1, 8, 12)",
      [] {
        return Fold({4, 5}, {2, 2});
      },
      [](auto& m) {
        return Outs{m(randn({1, 8, 12}))};
      });
  layer(
      "Fold((4, 5), 2, dilation=1, padding=1, stride=2)", "torch.randn(1, 8, 9)",
      [] {
        return Fold({4, 5}, 2, {.dilation = 1, .padding = 1, .stride = 2});
      },
      [](auto& m) {
        return Outs{m(randn({1, 8, 9}))};
      });
  layer(
      "Unfold(2)", "torch.randn(1, 2, 4, 5)", [] { return Unfold(2); },
      [](auto& m) {
        return Outs{m(randn({1, 2, 4, 5}))};
      });
  layer(
      "Unfold((2, 3), padding=1, stride=2)", "torch.randn(1, 2, 4, 5)",
      [] {
        return Unfold({2, 3}, {.padding = 1, .stride = 2});
      },
      [](auto& m) {
        return Outs{m(randn({1, 2, 4, 5}))};
      });
  layer(
      "PixelShuffle(2)", "torch.randn(1, 8, 2, 3)", [] { return PixelShuffle(2); },
      [](auto& m) {
        return Outs{m(randn({1, 8, 2, 3}))};
      });
  layer(
      "PixelUnshuffle(2)", "torch.randn(1, 2, 4, 6)", [] { return PixelUnshuffle(2); },
      [](auto& m) {
        return Outs{m(randn({1, 2, 4, 6}))};
      });
  layer(
      "ChannelShuffle(2)", "torch.randn(1, 4, 2, 3)", [] { return ChannelShuffle(2); },
      [](auto& m) {
        return Outs{m(randn({1, 4, 2, 3}))};
      });
  layer(
      "Upsample(scale_factor=2)", "torch.randn(1, 2, 3, 4)",
      [] { return Upsample({.scale_factor = {2}}); },
      [](auto& m) {
        return Outs{m(randn({1, 2, 3, 4}))};
      });
  layer(
      "Upsample(size=(5, 7), mode='bilinear', align_corners=True)", "torch.randn(1, 2, 3, 4)",
      [] {
        return Upsample({.size = {5, 7}, .mode = "bilinear", .align_corners = true});
      },
      [](auto& m) {
        return Outs{m(randn({1, 2, 3, 4}))};
      });
  layer(
      "Upsample(scale_factor=(1.5, 2.5), mode='bicubic')", "torch.randn(1, 2, 3, 4)",
      [] {
        return Upsample({.scale_factor = {1.5, 2.5}, .mode = "bicubic"});
      },
      [](auto& m) {
        return Outs{m(randn({1, 2, 3, 4}))};
      });
  layer(
      "Upsample(size=5, mode='linear')", "torch.randn(1, 2, 3)",
      [] { return Upsample({.size = 5, .mode = "linear"}); },
      [](auto& m) {
        return Outs{m(randn({1, 2, 3}))};
      });
  layer(
      "Upsample(size=4, mode='area')", "torch.randn(1, 2, 3, 4)",
      [] { return Upsample({.size = 4, .mode = "area"}); },
      [](auto& m) {
        return Outs{m(randn({1, 2, 3, 4}))};
      });
  layer(
      "Upsample(scale_factor=1.7, mode='nearest-exact', recompute_scale_factor=True)",
      "torch.randn(1, 2, 3, 4)",
      [] {
        return Upsample(
            {.scale_factor = {1.7}, .mode = "nearest-exact", .recompute_scale_factor = true});
      },
      [](auto& m) {
        return Outs{m(randn({1, 2, 3, 4}))};
      });
  layer(
      "UpsamplingNearest2d(scale_factor=2)", "torch.randn(1, 2, 3, 4)",
      [] { return UpsamplingNearest2d({.scale_factor = {2}}); },
      [](auto& m) {
        return Outs{m(randn({1, 2, 3, 4}))};
      });
  layer(
      "UpsamplingBilinear2d(size=(5, 6))", "torch.randn(1, 2, 3, 4)",
      [] {
        return UpsamplingBilinear2d({.size = {5, 6}});
      },
      [](auto& m) {
        return Outs{m(randn({1, 2, 3, 4}))};
      });
  layer(
      "PairwiseDistance()", "torch.randn(3, 4), torch.randn(3, 4)",
      [] { return PairwiseDistance(); },
      [](auto& m) {
        Tensor x0 = randn({3, 4});
        Tensor x1 = randn({3, 4});
        return Outs{m(x0, x1)};
      });
  layer(
      "PairwiseDistance(1.0, keepdim=True)", "torch.randn(3, 4), torch.randn(3, 4)",
      [] { return PairwiseDistance({.p = 1.0, .keepdim = true}); },
      [](auto& m) {
        Tensor x0 = randn({3, 4});
        Tensor x1 = randn({3, 4});
        return Outs{m(x0, x1)};
      });
  layer(
      "CosineSimilarity()", "torch.randn(3, 4), torch.randn(3, 4)",
      [] { return CosineSimilarity(); },
      [](auto& m) {
        Tensor x0 = randn({3, 4});
        Tensor x1 = randn({3, 4});
        return Outs{m(x0, x1)};
      });
  layer(
      "CosineSimilarity(dim=0, eps=1e-4)", "torch.randn(3, 4), torch.randn(3, 4)",
      [] { return CosineSimilarity({.dim = 0, .eps = 1e-4}); },
      [](auto& m) {
        Tensor x0 = randn({3, 4});
        Tensor x1 = randn({3, 4});
        return Outs{m(x0, x1)};
      });
}

}  // namespace tessera::faces
