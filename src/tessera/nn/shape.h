// Layers that move elements about: Flatten, Unflatten, Fold, shuffles, Upsample; and distances.
#pragma once
#include "tessera/nn/module.h"

namespace tessera::nn {

struct FlattenOptions {
  int64_t start_dim = 1;
  int64_t end_dim = -1;
};
// Makes one dimension of several.
class Flatten : public Module {
 public:
  explicit Flatten(FlattenOptions options = {}) : options(options) {}
  Tensor forward(const Tensor& input) override;
  std::string extra_repr() const override;

  FlattenOptions options;
};

// Makes several dimensions of one.
class Unflatten : public Module {
 public:
  Unflatten(int64_t dim, Ints unflattened_size) : dim(dim), unflattened_size(unflattened_size) {}
  Tensor forward(const Tensor& input) override;
  std::string extra_repr() const override;

  int64_t dim;
  Dims unflattened_size;
};

struct FoldOptions {
  Ints dilation = 1;
  Ints padding = 0;
  Ints stride = 1;
};
// Sums patches into an image.
class Fold : public Module {
 public:
  Fold(Ints output_size, Ints kernel_size, const FoldOptions& options = {});
  Tensor forward(const Tensor& input) override;
  std::string extra_repr() const override;

  Dims output_size, kernel_size, dilation, padding, stride;
};
// The patches of an image, as columns.
class Unfold : public Module {
 public:
  explicit Unfold(Ints kernel_size, const FoldOptions& options = {});
  Tensor forward(const Tensor& input) override;
  std::string extra_repr() const override;

  Dims kernel_size, dilation, padding, stride;
};

// Spreads channels over a finer image.
class PixelShuffle : public Module {
 public:
  explicit PixelShuffle(int64_t upscale_factor) : upscale_factor(upscale_factor) {}
  Tensor forward(const Tensor& input) override;
  std::string extra_repr() const override;

  int64_t upscale_factor;
};
// Gathers neighbouring pixels into channels.
class PixelUnshuffle : public Module {
 public:
  explicit PixelUnshuffle(int64_t downscale_factor) : downscale_factor(downscale_factor) {}
  Tensor forward(const Tensor& input) override;
  std::string extra_repr() const override;

  int64_t downscale_factor;
};
// Takes a channel of each group in turn.
class ChannelShuffle : public Module {
 public:
  explicit ChannelShuffle(int64_t groups) : groups(groups) {}
  Tensor forward(const Tensor& input) override;
  std::string extra_repr() const override;

  int64_t groups;
};

struct UpsampleOptions {
  Ints size = {};
  std::vector<double> scale_factor = {};  // one, or one for each dimension
  std::string mode = "nearest";
  std::optional<bool> align_corners = std::nullopt;
  bool recompute_scale_factor = false;
};
// To a size, or by a factor.
class Upsample : public Module {
 public:
  explicit Upsample(UpsampleOptions options) : options(std::move(options)) {}
  Tensor forward(const Tensor& input) override;
  std::string extra_repr() const override;

  UpsampleOptions options;
};

struct UpsamplingOptions {
  Ints size = {};
  std::vector<double> scale_factor = {};
};
// By repeating pixels.
class UpsamplingNearest2d : public Upsample {
 public:
  explicit UpsamplingNearest2d(UpsamplingOptions o)
      : Upsample({o.size, std::move(o.scale_factor), "nearest"}) {}
};
// Between pixels, corners on corners.
class UpsamplingBilinear2d : public Upsample {
 public:
  explicit UpsamplingBilinear2d(UpsamplingOptions o)
      : Upsample({o.size, std::move(o.scale_factor), "bilinear", true}) {}
};

struct PairwiseDistanceOptions {
  double p = 2.0;
  double eps = 1e-6;
  bool keepdim = false;
};
// The p-norm of the difference.
class PairwiseDistance : public Module {
 public:
  explicit PairwiseDistance(PairwiseDistanceOptions options = {}) : options(options) {}
  Tensor forward(const Tensor& x1, const Tensor& x2);
  Tensor operator()(const Tensor& x1, const Tensor& x2) { return forward(x1, x2); }

  PairwiseDistanceOptions options;
};

struct CosineSimilarityOptions {
  int64_t dim = 1;
  double eps = 1e-8;
};
// The cosine of the angle.
class CosineSimilarity : public Module {
 public:
  explicit CosineSimilarity(CosineSimilarityOptions options = {}) : options(options) {}
  Tensor forward(const Tensor& x1, const Tensor& x2);
  Tensor operator()(const Tensor& x1, const Tensor& x2) { return forward(x1, x2); }

  CosineSimilarityOptions options;
};

}  // namespace tessera::nn
