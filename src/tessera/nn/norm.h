// Normalisations: over the batch, over a sample's own image, over the last dimensions or groups.
#pragma once
#include "tessera/nn/module.h"

namespace tessera::nn {

struct BatchNormOptions {
  double eps = 1e-5;
  std::optional<double> momentum = 0.1;  // none: the mean of all batches
  bool affine = true;
  bool track_running_stats = true;
  std::optional<Device> device = std::nullopt;
  std::optional<DType> dtype = std::nullopt;
};

struct InstanceNormOptions {
  double eps = 1e-5;
  std::optional<double> momentum = 0.1;
  bool affine = false;
  bool track_running_stats = false;
  std::optional<Device> device = std::nullopt;
  std::optional<DType> dtype = std::nullopt;
};

// Scale and shift of each feature, and running statistics. What is not there is undefined.
class NormBase : public Module {
 public:
  void reset_running_stats();
  void reset_parameters();
  Tensor& weight() const { return parameter_at(0); }
  Tensor& bias() const { return parameter_at(1); }
  Tensor& running_mean() const { return buffer_at(0); }
  Tensor& running_var() const { return buffer_at(1); }
  Tensor& num_batches_tracked() const { return buffer_at(2); }
  std::string extra_repr() const override;

  int64_t num_features;
  double eps;
  std::optional<double> momentum;
  bool affine, track_running_stats;

 protected:
  NormBase(int n, int64_t num_features, const BatchNormOptions& options);
  bool may_be_missing(std::string_view name) const override;

  int n_;  // dimensions beside batch and features
};

class BatchNormNd : public NormBase {
 public:
  using NormBase::NormBase;
  Tensor forward(const Tensor& input) override;
};

class InstanceNormNd : public NormBase {
 public:
  Tensor forward(const Tensor& input) override;

 protected:
  InstanceNormNd(int n, int64_t num_features, const InstanceNormOptions& o)
      : NormBase(n, num_features,
                 {o.eps, o.momentum, o.affine, o.track_running_stats, o.device, o.dtype}) {}
};

#define TS_NORM(Name, Base, Options, n)                              \
  class Name : public Base {                                         \
   public:                                                           \
    explicit Name(int64_t num_features, const Options& options = {}) \
        : Base(n, num_features, options) {}                          \
  };
TS_NORM(BatchNorm1d, BatchNormNd, BatchNormOptions, 1)
TS_NORM(BatchNorm2d, BatchNormNd, BatchNormOptions, 2)
TS_NORM(BatchNorm3d, BatchNormNd, BatchNormOptions, 3)
TS_NORM(InstanceNorm1d, InstanceNormNd, InstanceNormOptions, 1)
TS_NORM(InstanceNorm2d, InstanceNormNd, InstanceNormOptions, 2)
TS_NORM(InstanceNorm3d, InstanceNormNd, InstanceNormOptions, 3)
#undef TS_NORM

struct LayerNormOptions {
  double eps = 1e-5;
  bool elementwise_affine = true;
  bool bias = true;
  std::optional<Device> device = std::nullopt;
  std::optional<DType> dtype = std::nullopt;
};
// Over the last dimensions, whose sizes are given.
class LayerNorm : public Module {
 public:
  explicit LayerNorm(Ints normalized_shape, const LayerNormOptions& options = {});
  void reset_parameters();
  Tensor& weight() const { return parameter_at(0); }
  Tensor& bias() const { return parameter_at(1); }
  Tensor forward(const Tensor& input) override;
  std::string extra_repr() const override;

  Dims normalized_shape;
  double eps;
  bool elementwise_affine;
};

struct RMSNormOptions {
  std::optional<double> eps = std::nullopt;
  bool elementwise_affine = true;
  std::optional<Device> device = std::nullopt;
  std::optional<DType> dtype = std::nullopt;
};
// Divides by the root of the mean square over the last dimensions.
class RMSNorm : public Module {
 public:
  explicit RMSNorm(Ints normalized_shape, const RMSNormOptions& options = {});
  void reset_parameters();
  Tensor& weight() const { return parameter_at(0); }
  Tensor forward(const Tensor& input) override;
  std::string extra_repr() const override;

  Dims normalized_shape;
  std::optional<double> eps;
  bool elementwise_affine;
};

struct LocalResponseNormOptions {
  double alpha = 1e-4;
  double beta = 0.75;
  double k = 1.0;
};
// Over neighbouring channels.
class LocalResponseNorm : public Module {
 public:
  explicit LocalResponseNorm(int64_t size, LocalResponseNormOptions options = {})
      : size(size), options(options) {}
  Tensor forward(const Tensor& input) override;
  std::string extra_repr() const override;

  int64_t size;
  LocalResponseNormOptions options;
};

struct GroupNormOptions {
  double eps = 1e-5;
  bool affine = true;
  std::optional<Device> device = std::nullopt;
  std::optional<DType> dtype = std::nullopt;
};
// Over groups of channels.
class GroupNorm : public Module {
 public:
  GroupNorm(int64_t num_groups, int64_t num_channels, const GroupNormOptions& options = {});
  void reset_parameters();
  Tensor& weight() const { return parameter_at(0); }
  Tensor& bias() const { return parameter_at(1); }
  Tensor forward(const Tensor& input) override;
  std::string extra_repr() const override;

  int64_t num_groups, num_channels;
  double eps;
  bool affine;
};

}  // namespace tessera::nn
