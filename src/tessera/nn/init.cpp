#include "tessera/nn/init.h"

#include <cmath>

namespace tessera::nn::init {

using autograd::GradMode;

double calculate_gain(std::string_view nonlinearity, double param) {
  if (nonlinearity == "linear" || nonlinearity == "sigmoid") return 1;
  for (std::string_view conv :
       {"conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d"})
    if (nonlinearity == conv) return 1;
  if (nonlinearity == "tanh") return 5.0 / 3;
  if (nonlinearity == "relu") return std::sqrt(2.0);
  if (nonlinearity == "leaky_relu") return std::sqrt(2.0 / (1 + param * param));
  if (nonlinearity == "selu") return 3.0 / 4;
  raise(ErrorKind::kValue, cat("Unsupported nonlinearity ", nonlinearity));
}

std::pair<int64_t, int64_t> calculate_fan_in_and_fan_out(const TensorBase& t) {
  TS_CHECK_VALUE(t.dim() >= 2,
                 "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions");
  int64_t field = 1;
  for (int d = 2; d < t.dim(); ++d) field *= t.size(d);
  return {t.size(1) * field, t.size(0) * field};
}

Tensor uniform_(Tensor t, double a, double b, Generator* generator) {
  GradMode off(false);
  op::uniform_(t, a, b, generator);
  return t;
}

Tensor normal_(Tensor t, double mean, double std, Generator* generator) {
  GradMode off(false);
  op::normal_(t, mean, std, generator);
  return t;
}

Tensor trunc_normal_(Tensor t, double mean, double std, double a, double b, Generator* generator) {
  GradMode off(false);
  auto cdf = [](double x) { return (1.0 + std::erf(x / std::sqrt(2.0))) / 2.0; };
  // Uniform between the two ends' places in the distribution, then its inverse.
  double low = cdf((a - mean) / std), high = cdf((b - mean) / std);
  op::uniform_(t, 2 * low - 1, 2 * high - 1, generator);
  op::erfinv_(t);
  op::mul_(t, std * std::sqrt(2.0));
  op::add_(t, mean);
  op::clamp_(t, Scalar(a), Scalar(b));
  return t;
}

Tensor constant_(Tensor t, double value) {
  GradMode off(false);
  op::fill_(t, value);
  return t;
}
Tensor ones_(Tensor t) { return constant_(std::move(t), 1.0); }
Tensor zeros_(Tensor t) {
  GradMode off(false);
  op::zero_(t);
  return t;
}

Tensor eye_(Tensor t) {
  TS_CHECK_VALUE(t.dim() == 2, "Only tensors with 2 dimensions are supported");
  GradMode off(false);
  op::zero_(t);
  op::fill_(op::diagonal(t), 1.0);
  return t;
}

Tensor dirac_(Tensor t, int64_t groups) {
  TS_CHECK_VALUE(t.dim() >= 3 && t.dim() <= 5,
                 "Only tensors with 3, 4, or 5 dimensions are supported");
  TS_CHECK_VALUE(t.size(0) % groups == 0, "dim 0 must be divisible by groups");
  GradMode off(false);
  op::zero_(t);
  int64_t per_group = t.size(0) / groups;
  for (int64_t g = 0; g < groups; ++g)
    for (int64_t d = 0; d < std::min(per_group, t.size(1)); ++d) {
      Tensor at = t[g * per_group + d][d];
      while (at.dim() > 0) at = at[at.size(0) / 2];
      op::fill_(at, 1);
    }
  return t;
}

namespace {
double xavier_std(const TensorBase& t, double gain) {
  auto [fan_in, fan_out] = calculate_fan_in_and_fan_out(t);
  return gain * std::sqrt(2.0 / static_cast<double>(fan_in + fan_out));
}
double kaiming_std(const TensorBase& t, const KaimingOptions& o) {
  TS_CHECK_VALUE(o.mode == "fan_in" || o.mode == "fan_out", "Mode ", o.mode,
                 " not supported, please use one of ['fan_in', 'fan_out']");
  auto [fan_in, fan_out] = calculate_fan_in_and_fan_out(t);
  return calculate_gain(o.nonlinearity, o.a) /
         std::sqrt(static_cast<double>(o.mode == "fan_in" ? fan_in : fan_out));
}
}  // namespace

Tensor xavier_uniform_(Tensor t, double gain, Generator* generator) {
  double a = std::sqrt(3.0) * xavier_std(t, gain);
  return uniform_(std::move(t), -a, a, generator);
}
Tensor xavier_normal_(Tensor t, double gain, Generator* generator) {
  double std = xavier_std(t, gain);
  return normal_(std::move(t), 0.0, std, generator);
}
Tensor kaiming_uniform_(Tensor t, const KaimingOptions& o) {
  if (t.numel() == 0) return t;
  double bound = std::sqrt(3.0) * kaiming_std(t, o);
  return uniform_(std::move(t), -bound, bound, o.generator);
}
Tensor kaiming_normal_(Tensor t, const KaimingOptions& o) {
  if (t.numel() == 0) return t;
  double std = kaiming_std(t, o);
  return normal_(std::move(t), 0, std, o.generator);
}

Tensor orthogonal_(Tensor t, double gain, Generator* generator) {
  TS_CHECK_VALUE(t.dim() >= 2, "Only tensors with 2 or more dimensions are supported");
  if (t.numel() == 0) return t;
  int64_t rows = t.size(0), columns = t.numel() / rows;
  GradMode off(false);
  Tensor flat(new_empty(Dims{rows, columns}, t.dtype(), t.device()));
  op::normal_(flat, 0, 1, generator);
  if (rows < columns) flat = flat.t();
  Outputs qr = op::linalg_qr(flat);
  // The signs of the diagonal make it uniform among all orthogonal matrices.
  Tensor q(op::mul(qr[0], op::sign(op::diag(qr[1], 0))));
  if (rows < columns) q = q.t();
  op::copy_(t.view(q.sizes()), q);
  op::mul_(t, gain);
  return t;
}

Tensor sparse_(Tensor t, double sparsity, double std, Generator* generator) {
  TS_CHECK_VALUE(t.dim() == 2, "Only tensors with 2 dimensions are supported");
  GradMode off(false);
  int64_t rows = t.size(0);
  auto zeros = static_cast<int64_t>(std::ceil(sparsity * static_cast<double>(rows)));
  op::normal_(t, 0, std, generator);
  for (int64_t column = 0; column < t.size(1); ++column) {
    TensorBase some = op::slice(op::randperm(rows), 0, 0, zeros, 1);
    op::index_fill_(op::select(t, 1, column), 0, some, Scalar(0));
  }
  return t;
}

}  // namespace tessera::nn::init
