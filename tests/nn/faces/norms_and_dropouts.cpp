#include "nn/faces/faces.h"

namespace tessera::faces {

using namespace nn;

void norms_and_dropouts() {
  layer(
      "BatchNorm1d(3)", "torch.randn(4, 3, 5)", [] { return BatchNorm1d(3); },
      [](auto& m) {
        return Outs{m(randn({4, 3, 5}))};
      });
  layer(
      "BatchNorm1d(3, eps=1e-3, momentum=None, affine=False)", "torch.randn(4, 3, 5)",
      [] { return BatchNorm1d(3, {.eps = 1e-3, .momentum = std::nullopt, .affine = false}); },
      [](auto& m) {
        return Outs{m(randn({4, 3, 5}))};
      });
  layer(
      "BatchNorm1d(3, track_running_stats=False)", "torch.randn(4, 3, 5)",
      [] { return BatchNorm1d(3, {.track_running_stats = false}); },
      [](auto& m) {
        return Outs{m(randn({4, 3, 5}))};
      });
  layer(
      "BatchNorm1d(3).eval()", "torch.randn(4, 3, 5)",
      [] {
        return [] {
          BatchNorm1d m(3);
          m.eval();
          return m;
        }();
      },
      [](auto& m) {
        return Outs{m(randn({4, 3, 5}))};
      });
  layer(
      "InstanceNorm1d(3)", "torch.randn(4, 3, 5)", [] { return InstanceNorm1d(3); },
      [](auto& m) {
        return Outs{m(randn({4, 3, 5}))};
      });
  layer(
      "InstanceNorm1d(3, affine=True, track_running_stats=True)", "torch.randn(4, 3, 5)",
      [] { return InstanceNorm1d(3, {.affine = true, .track_running_stats = true}); },
      [](auto& m) {
        return Outs{m(randn({4, 3, 5}))};
      });
  layer(
      "BatchNorm2d(3)", "torch.randn(4, 3, 5, 2)", [] { return BatchNorm2d(3); },
      [](auto& m) {
        return Outs{m(randn({4, 3, 5, 2}))};
      });
  layer(
      "BatchNorm2d(3, eps=1e-3, momentum=None, affine=False)", "torch.randn(4, 3, 5, 2)",
      [] { return BatchNorm2d(3, {.eps = 1e-3, .momentum = std::nullopt, .affine = false}); },
      [](auto& m) {
        return Outs{m(randn({4, 3, 5, 2}))};
      });
  layer(
      "BatchNorm2d(3, track_running_stats=False)", "torch.randn(4, 3, 5, 2)",
      [] { return BatchNorm2d(3, {.track_running_stats = false}); },
      [](auto& m) {
        return Outs{m(randn({4, 3, 5, 2}))};
      });
  layer(
      "BatchNorm2d(3).eval()", "torch.randn(4, 3, 5, 2)",
      [] {
        return [] {
          BatchNorm2d m(3);
          m.eval();
          return m;
        }();
      },
      [](auto& m) {
        return Outs{m(randn({4, 3, 5, 2}))};
      });
  layer(
      "InstanceNorm2d(3)", "torch.randn(4, 3, 5, 2)", [] { return InstanceNorm2d(3); },
      [](auto& m) {
        return Outs{m(randn({4, 3, 5, 2}))};
      });
  layer(
      "InstanceNorm2d(3, affine=True, track_running_stats=True)", "torch.randn(4, 3, 5, 2)",
      [] { return InstanceNorm2d(3, {.affine = true, .track_running_stats = true}); },
      [](auto& m) {
        return Outs{m(randn({4, 3, 5, 2}))};
      });
  layer(
      "BatchNorm3d(3)", "torch.randn(4, 3, 5, 2, 2)", [] { return BatchNorm3d(3); },
      [](auto& m) {
        return Outs{m(randn({4, 3, 5, 2, 2}))};
      });
  layer(
      "BatchNorm3d(3, eps=1e-3, momentum=None, affine=False)", "torch.randn(4, 3, 5, 2, 2)",
      [] { return BatchNorm3d(3, {.eps = 1e-3, .momentum = std::nullopt, .affine = false}); },
      [](auto& m) {
        return Outs{m(randn({4, 3, 5, 2, 2}))};
      });
  layer(
      "BatchNorm3d(3, track_running_stats=False)", "torch.randn(4, 3, 5, 2, 2)",
      [] { return BatchNorm3d(3, {.track_running_stats = false}); },
      [](auto& m) {
        return Outs{m(randn({4, 3, 5, 2, 2}))};
      });
  layer(
      "BatchNorm3d(3).eval()", "torch.randn(4, 3, 5, 2, 2)",
      [] {
        return [] {
          BatchNorm3d m(3);
          m.eval();
          return m;
        }();
      },
      [](auto& m) {
        return Outs{m(randn({4, 3, 5, 2, 2}))};
      });
  layer(
      "InstanceNorm3d(3)", "torch.randn(4, 3, 5, 2, 2)", [] { return InstanceNorm3d(3); },
      [](auto& m) {
        return Outs{m(randn({4, 3, 5, 2, 2}))};
      });
  layer(
      "InstanceNorm3d(3, affine=True, track_running_stats=True)", "torch.randn(4, 3, 5, 2, 2)",
      [] { return InstanceNorm3d(3, {.affine = true, .track_running_stats = true}); },
      [](auto& m) {
        return Outs{m(randn({4, 3, 5, 2, 2}))};
      });
  layer(
      "InstanceNorm1d(3)", "torch.randn(3, 5)", [] { return InstanceNorm1d(3); },
      [](auto& m) {
        return Outs{m(randn({3, 5}))};
      });
  layer(
      "BatchNorm1d(3)", "torch.randn(4, 3)", [] { return BatchNorm1d(3); },
      [](auto& m) {
        return Outs{m(randn({4, 3}))};
      });
  layer(
      "LayerNorm(5)", "torch.randn(4, 5)", [] { return LayerNorm(5); },
      [](auto& m) {
        return Outs{m(randn({4, 5}))};
      });
  layer(
      "LayerNorm((3, 5), eps=1e-3, bias=False)", "torch.randn(4, 3, 5)",
      [] {
        return LayerNorm({3, 5}, {.eps = 1e-3, .bias = false});
      },
      [](auto& m) {
        return Outs{m(randn({4, 3, 5}))};
      });
  layer(
      "LayerNorm(5, elementwise_affine=False)", "torch.randn(4, 5)",
      [] { return LayerNorm(5, {.elementwise_affine = false}); },
      [](auto& m) {
        return Outs{m(randn({4, 5}))};
      });
  layer(
      "RMSNorm(5)", "torch.randn(4, 5)", [] { return RMSNorm(5); },
      [](auto& m) {
        return Outs{m(randn({4, 5}))};
      });
  layer(
      "RMSNorm((3, 5), eps=1e-3, elementwise_affine=False)", "torch.randn(4, 3, 5)",
      [] {
        return RMSNorm({3, 5}, {.eps = 1e-3, .elementwise_affine = false});
      },
      [](auto& m) {
        return Outs{m(randn({4, 3, 5}))};
      });
  layer(
      "GroupNorm(2, 6)", "torch.randn(4, 6, 3)", [] { return GroupNorm(2, 6); },
      [](auto& m) {
        return Outs{m(randn({4, 6, 3}))};
      });
  layer(
      "GroupNorm(3, 6, eps=1e-3, affine=False)", "torch.randn(4, 6, 3)",
      [] { return GroupNorm(3, 6, {.eps = 1e-3, .affine = false}); },
      [](auto& m) {
        return Outs{m(randn({4, 6, 3}))};
      });
  layer(
      "Dropout()", "torch.randn(6, 5)", [] { return Dropout(); },
      [](auto& m) {
        return Outs{m(randn({6, 5}))};
      });
  layer(
      "Dropout(0.25, inplace=True)", "torch.randn(6, 5)",
      [] { return Dropout(0.25, {.inplace = true}); },
      [](auto& m) {
        return Outs{m(randn({6, 5}))};
      });
  layer(
      "Dropout(0.25).eval()", "torch.randn(6, 5)",
      [] {
        return [] {
          Dropout m(0.25);
          m.eval();
          return m;
        }();
      },
      [](auto& m) {
        return Outs{m(randn({6, 5}))};
      });
  layer(
      "Dropout1d(0.4)", "torch.randn(4, 5, 3)", [] { return Dropout1d(0.4); },
      [](auto& m) {
        return Outs{m(randn({4, 5, 3}))};
      });
  layer(
      "Dropout1d(0.4)", "torch.randn(5, 3)", [] { return Dropout1d(0.4); },
      [](auto& m) {
        return Outs{m(randn({5, 3}))};
      });
  layer(
      "Dropout2d(0.4)", "torch.randn(4, 5, 2, 2)", [] { return Dropout2d(0.4); },
      [](auto& m) {
        return Outs{m(randn({4, 5, 2, 2}))};
      });
  layer(
      "Dropout3d(0.4, inplace=True)", "torch.randn(4, 5, 2, 2, 2)",
      [] { return Dropout3d(0.4, {.inplace = true}); },
      [](auto& m) {
        return Outs{m(randn({4, 5, 2, 2, 2}))};
      });
  layer(
      "AlphaDropout(0.4)", "torch.randn(6, 5)", [] { return AlphaDropout(0.4); },
      [](auto& m) {
        return Outs{m(randn({6, 5}))};
      });
  layer(
      "FeatureAlphaDropout(0.4)", "torch.randn(4, 5, 3)", [] { return FeatureAlphaDropout(0.4); },
      [](auto& m) {
        return Outs{m(randn({4, 5, 3}))};
      });
  layer(
      "LocalResponseNorm(2)", "torch.randn(4, 5, 3)", [] { return LocalResponseNorm(2); },
      [](auto& m) {
        return Outs{m(randn({4, 5, 3}))};
      });
  layer(
      "LocalResponseNorm(3, alpha=0.1, beta=0.5, k=2.0)", "torch.randn(4, 5, 3)",
      [] { return LocalResponseNorm(3, {.alpha = 0.1, .beta = 0.5, .k = 2.0}); },
      [](auto& m) {
        return Outs{m(randn({4, 5, 3}))};
      });
}

}  // namespace tessera::faces
