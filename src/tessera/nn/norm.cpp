#include "tessera/nn/norm.h"

#include "tessera/nn/init.h"
#include "tessera/nn/text.h"

namespace tessera::nn {

NormBase::NormBase(int n, int64_t features, const BatchNormOptions& o)
    : num_features(features),
      eps(o.eps),
      momentum(o.momentum),
      affine(o.affine),
      track_running_stats(o.track_running_stats),
      n_(n) {
  for (const char* name : {"weight", "bias"})
    register_parameter(name, affine ? empty({features}, o.dtype, o.device) : Tensor());
  bool track = track_running_stats;
  register_buffer("running_mean", track ? zeros({features}, o.dtype, o.device) : Tensor());
  register_buffer("running_var", track ? ones({features}, o.dtype, o.device) : Tensor());
  register_buffer("num_batches_tracked", track ? zeros(Dims{}, DType::kInt64, o.device) : Tensor());
  reset_parameters();
}

void NormBase::reset_running_stats() {
  if (!track_running_stats) return;
  op::zero_(running_mean());
  op::fill_(running_var(), 1);
  op::zero_(num_batches_tracked());
}

void NormBase::reset_parameters() {
  reset_running_stats();
  if (!affine) return;
  init::ones_(weight());
  init::zeros_(bias());
}

// Batches were not always counted.
bool NormBase::may_be_missing(std::string_view name) const { return name == "num_batches_tracked"; }

std::string NormBase::extra_repr() const {
  return cat(num_features, ", eps=", py(eps), ", momentum=", py(momentum), ", affine=", affine,
             ", track_running_stats=", track_running_stats);
}

Tensor BatchNormNd::forward(const Tensor& input) {
  if (n_ == 1)
    TS_CHECK_VALUE(input.dim() == 2 || input.dim() == 3, "expected 2D or 3D input (got ",
                   input.dim(), "D input)");
  else
    TS_CHECK_VALUE(input.dim() == n_ + 2, "expected ", n_ + 2, "D input (got ", input.dim(),
                   "D input)");
  double factor = momentum.value_or(0.0);
  bool training = is_training();
  if (training && track_running_stats && num_batches_tracked().defined()) {
    autograd::GradMode off(false);
    op::add_(num_batches_tracked(), 1);
    if (!momentum) factor = 1.0 / num_batches_tracked().item();
  }
  // Without running statistics those of the batch serve in evaluation too.
  bool of_batch = training || (!running_mean().defined() && !running_var().defined());
  bool tracked = !training || track_running_stats;
  Tensor none;
  return batch_norm(input, tracked ? running_mean() : none, tracked ? running_var() : none,
                    weight(), bias(), of_batch, factor, eps);
}

Tensor InstanceNormNd::forward(const Tensor& input) {
  int dims = n_ + 1;  // without a batch
  TS_CHECK_VALUE(input.dim() == dims || input.dim() == dims + 1, "expected ", dims, "D or ",
                 dims + 1, "D input (got ", input.dim(), "D input)");
  int feature_dim = input.dim() - dims;
  TS_CHECK_VALUE(!affine || input.size(feature_dim) == num_features,
                 "expected input's size at dim=", feature_dim, " to match num_features (",
                 num_features, "), but got: ", input.size(feature_dim), ".");
  bool of_input = is_training() || !track_running_stats;
  auto run = [&](const Tensor& x) {
    return instance_norm(x, running_mean(), running_var(), weight(), bias(), of_input,
                         momentum.value_or(0.0), eps);
  };
  return input.dim() == dims ? run(input.unsqueeze(0)).squeeze(0) : run(input);
}

LayerNorm::LayerNorm(Ints shape, const LayerNormOptions& o)
    : normalized_shape(shape), eps(o.eps), elementwise_affine(o.elementwise_affine) {
  register_parameter("weight", elementwise_affine ? empty(shape, o.dtype, o.device) : Tensor());
  register_parameter("bias",
                     elementwise_affine && o.bias ? empty(shape, o.dtype, o.device) : Tensor());
  reset_parameters();
}
void LayerNorm::reset_parameters() {
  if (weight().defined()) init::ones_(weight());
  if (bias().defined()) init::zeros_(bias());
}
Tensor LayerNorm::forward(const Tensor& input) {
  return layer_norm(input, normalized_shape, weight(), bias(), eps);
}
std::string LayerNorm::extra_repr() const {
  return cat(py_tuple(normalized_shape), ", eps=", py(eps),
             ", elementwise_affine=", elementwise_affine);
}

RMSNorm::RMSNorm(Ints shape, const RMSNormOptions& o)
    : normalized_shape(shape), eps(o.eps), elementwise_affine(o.elementwise_affine) {
  register_parameter("weight", elementwise_affine ? empty(shape, o.dtype, o.device) : Tensor());
  reset_parameters();
}
void RMSNorm::reset_parameters() {
  if (weight().defined()) init::ones_(weight());
}
Tensor RMSNorm::forward(const Tensor& input) {
  return rms_norm(input, normalized_shape, weight(), eps);
}
std::string RMSNorm::extra_repr() const {
  return cat(py_tuple(normalized_shape), ", eps=", py(eps),
             ", elementwise_affine=", elementwise_affine);
}

Tensor LocalResponseNorm::forward(const Tensor& input) {
  return local_response_norm(input, size, options.alpha, options.beta, options.k);
}
std::string LocalResponseNorm::extra_repr() const {
  return cat(size, ", alpha=", py(options.alpha), ", beta=", py(options.beta),
             ", k=", py(options.k));
}

GroupNorm::GroupNorm(int64_t groups, int64_t channels, const GroupNormOptions& o)
    : num_groups(groups), num_channels(channels), eps(o.eps), affine(o.affine) {
  TS_CHECK_VALUE(channels % groups == 0, "num_channels (", channels,
                 ") must be divisible by num_groups (", groups, ")");
  for (const char* name : {"weight", "bias"})
    register_parameter(name, affine ? empty({channels}, o.dtype, o.device) : Tensor());
  reset_parameters();
}
void GroupNorm::reset_parameters() {
  if (!affine) return;
  init::ones_(weight());
  init::zeros_(bias());
}
Tensor GroupNorm::forward(const Tensor& input) {
  return group_norm(input, num_groups, weight(), bias(), eps);
}
std::string GroupNorm::extra_repr() const {
  return cat(num_groups, ", ", num_channels, ", eps=", py(eps), ", affine=", affine);
}

}  // namespace tessera::nn
