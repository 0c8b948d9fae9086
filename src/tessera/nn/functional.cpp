#include "tessera/nn/functional.h"

#include <cmath>

#include "tessera/nn/sizes.h"

namespace tessera::nn::functional {

namespace {

Dims own_where_unknown(const Ints& given, const Tensor& input) {
  Dims size{std::span<const int64_t>(given)};
  if (size.size() == 1 && size[0] >= 0) return size;
  TS_CHECK_VALUE(input.dim() > size.ndim(), "Input dimension should be at least ", size.size() + 1);
  for (size_t d = 0; d < size.size(); ++d)
    if (size[d] == -1) size[d] = input.size(static_cast<int64_t>(d) - size.ndim());
  return size;
}

// A single sample has no batch dimension.
Tensor feature_dropout(const Tensor& input, double p, bool training, bool single) {
  TS_CHECK_VALUE(p >= 0 && p <= 1, "dropout probability has to be between 0 and 1, but got ", p);
  if (single) return Tensor(op::feature_dropout(input.unsqueeze(0), p, training)).squeeze(0);
  return Tensor(op::feature_dropout(input, p, training));
}

}  // namespace

Tensor softmin(const Tensor& input, int64_t dim, std::optional<DType> dtype) {
  return Tensor(op::softmax(op::neg(input), dim, dtype));
}

Tensor dropout(const Tensor& input, double p, bool training) {
  return Tensor(op::dropout(input, p, training));
}

Tensor dropout1d(const Tensor& input, double p, bool training) {
  TS_CHECK(input.dim() == 2 || input.dim() == 3,
           "dropout1d: Expected 2D or 3D input, but received a ", input.dim(), "D input.");
  return feature_dropout(input, p, training, input.dim() == 2);
}
Tensor dropout2d(const Tensor& input, double p, bool training) {
  // PyTorch takes three dimensions for a batch of sequences here.
  return feature_dropout(input, p, training, false);
}
Tensor dropout3d(const Tensor& input, double p, bool training) {
  return feature_dropout(input, p, training, input.dim() != 5);
}

std::tuple<Tensor, Tensor> adaptive_max_pool_with_indices(int n, const Tensor& input,
                                                          Ints output_size) {
  Dims size = own_where_unknown(output_size, input);
  Outputs out = n == 1   ? op::_adaptive_max_pool1d(input, size)
                : n == 2 ? op::_adaptive_max_pool2d(input, size)
                         : op::_adaptive_max_pool3d(input, size);
  return {Tensor(out[0]), Tensor(out[1])};
}
Tensor adaptive_max_pool1d(const Tensor& input, Ints output_size) {
  return std::get<0>(adaptive_max_pool_with_indices(1, input, output_size));
}
Tensor adaptive_max_pool2d(const Tensor& input, Ints output_size) {
  return std::get<0>(adaptive_max_pool_with_indices(2, input, output_size));
}
Tensor adaptive_max_pool3d(const Tensor& input, Ints output_size) {
  return std::get<0>(adaptive_max_pool_with_indices(3, input, output_size));
}
Tensor adaptive_avg_pool(int n, const Tensor& input, Ints output_size) {
  Dims size = own_where_unknown(output_size, input);
  return Tensor(n == 1   ? op::adaptive_avg_pool1d(input, size)
                : n == 2 ? op::adaptive_avg_pool2d(input, size)
                         : op::adaptive_avg_pool3d(input, size));
}

Tensor max_unpool(int n, const Tensor& input, const Tensor& indices, Ints kernel_size, Ints stride,
                  Ints padding, Ints output_size) {
  Dims kernel = each(n, kernel_size), pads = each(n, padding);
  bool own_stride = !std::span<const int64_t>(stride).empty();
  Dims steps = own_stride ? each(n, stride) : kernel;
  Dims usual;
  for (int d = 0; d < n; ++d)
    usual.push_back((input.size(d - n) - 1) * steps[static_cast<size_t>(d)] +
                    kernel[static_cast<size_t>(d)] - 2 * pads[static_cast<size_t>(d)]);
  std::span<const int64_t> given = output_size;
  Dims size = usual;
  if (!given.empty()) {
    auto count = static_cast<size_t>(n);
    if (given.size() == count + 1 || given.size() == count + 2) given = given.last(count);
    TS_CHECK_VALUE(given.size() == count, "output_size should be a sequence containing ", n, " or ",
                   n + 2, " elements, but it has a length of '", given.size(), "'");
    for (size_t d = 0; d < count; ++d)
      TS_CHECK_VALUE(usual[d] - steps[d] < given[d] && given[d] < usual[d] + steps[d],
                     "invalid output_size \"", Dims(given), "\" (dim ", d, " must be between ",
                     usual[d] - steps[d], " and ", usual[d] + steps[d], ")");
    size = Dims(given);
  }
  return Tensor(n == 1   ? op::_max_unpool1d(input, indices, size)
                : n == 2 ? op::_max_unpool2d(input, indices, size)
                         : op::_max_unpool3d(input, indices, size));
}

Tensor lp_pool(int n, const Tensor& input, double norm_type, Ints kernel_size, Ints stride,
               bool ceil_mode) {
  Dims kernel = each(n, kernel_size);
  std::optional<std::span<const int64_t>> steps;
  Dims own = each(n, stride);
  if (!std::span<const int64_t>(stride).empty()) steps = own.span();
  TensorBase powers = op::pow(input, norm_type);
  Dims none{0};
  TensorBase pooled = n == 1   ? op::avg_pool1d(powers, kernel, steps, none, ceil_mode)
                      : n == 2 ? op::avg_pool2d(powers, kernel, steps, none, ceil_mode)
                               : op::avg_pool3d(powers, kernel, steps, none, ceil_mode);
  int64_t count = 1;
  for (int64_t k : kernel) count *= k;
  TensorBase sum = op::mul(op::mul(op::sign(pooled), op::relu(op::abs(pooled))), count);
  return Tensor(op::pow(sum, 1.0 / norm_type));
}

Tensor interpolate(const Tensor& input, const InterpolateOptions& o) {
  int n = input.dim() - 2;
  auto count = static_cast<size_t>(std::max(n, 0));
  bool plain = o.mode == "nearest" || o.mode == "area" || o.mode == "nearest-exact";
  TS_CHECK_VALUE(!plain || !o.align_corners,
                 "align_corners option can only be set with the interpolating modes: linear | "
                 "bilinear | bicubic | trilinear");
  std::span<const int64_t> size = o.size;
  TS_CHECK_VALUE(size.empty() || o.scale_factor.empty(),
                 "only one of size or scale_factor should be defined");
  TS_CHECK_VALUE(!size.empty() || !o.scale_factor.empty(),
                 "either size or scale_factor should be defined");
  TS_CHECK_VALUE(!o.recompute_scale_factor || size.empty(),
                 "recompute_scale_factor is not meaningful with an explicit size.");
  Dims sizes;
  std::vector<double> scales(count, 0.0);
  if (!size.empty()) {
    TS_CHECK_VALUE(size.size() == 1 || size.size() == count,
                   "Input and output must have the same number of spatial dimensions, but got "
                   "input with spatial dimensions of ",
                   Dims(input.sizes().span().subspan(2)), " and output size of ", Dims(size), ".");
    sizes = each(n, o.size);
  } else {
    TS_CHECK_VALUE(o.scale_factor.size() == 1 || o.scale_factor.size() == count,
                   "Input and scale_factor must have the same number of spatial dimensions, but "
                   "got input with spatial dimensions of ",
                   Dims(input.sizes().span().subspan(2)), " and ", o.scale_factor.size(),
                   " factors.");
    for (size_t d = 0; d < count; ++d) {
      scales[d] = o.scale_factor.size() == 1 ? o.scale_factor[0] : o.scale_factor[d];
      sizes.push_back(
          static_cast<int64_t>(std::floor(static_cast<double>(input.sizes()[d + 2]) * scales[d])));
    }
    if (o.recompute_scale_factor) scales.assign(count, 0.0);
  }
  TS_CHECK_VALUE(!o.antialias || ((o.mode == "bilinear" || o.mode == "bicubic") && n == 2),
                 "Anti-alias option is restricted to bilinear and bicubic modes and requires a 4-D "
                 "tensor as input");
  int wanted = o.mode == "linear"                            ? 1
               : o.mode == "bilinear" || o.mode == "bicubic" ? 2
               : o.mode == "trilinear"                       ? 3
                                                             : 0;
  TS_CHECK_IMPLEMENTED(
      n >= 1 && n <= 3 && (plain || wanted == n),
      "Input Error: Only 3D, 4D and 5D input Tensors supported (got ", input.dim(),
      "D) for the modes: nearest | linear | bilinear | bicubic | trilinear | area | nearest-exact "
      "(got ",
      o.mode, ")");
  if (o.mode == "area") return adaptive_avg_pool(n, input, sizes);
  return Tensor(
      op::_upsample(input, sizes, scales, o.mode, o.align_corners.value_or(false), o.antialias));
}

namespace {
int64_t place_of(std::string_view what, std::initializer_list<std::string_view> known,
                 const char* words) {
  int64_t at = 0;
  for (std::string_view one : known) {
    if (one == what) return at;
    ++at;
  }
  raise(ErrorKind::kValue,
        cat("nn.functional.grid_sample(): expected ", words, ", but got: '", what, "'"));
}
}  // namespace

Tensor grid_sample(const Tensor& input, const Tensor& grid, std::string_view mode,
                   std::string_view padding_mode, bool align_corners) {
  int64_t how = place_of(mode, {"bilinear", "nearest", "bicubic"},
                         "mode to be 'bilinear', 'nearest' or 'bicubic'");
  int64_t edge = place_of(padding_mode, {"zeros", "border", "reflection"},
                          "padding_mode to be 'zeros', 'border', or 'reflection'");
  return Tensor(op::grid_sampler(input, grid, how, edge, align_corners));
}

Tensor gumbel_softmax(const Tensor& logits, double tau, bool hard, int64_t dim) {
  TensorBase drawn = op::exponential_(op::empty_like(logits));
  Tensor gumbels(op::neg(op::log(drawn)));
  Tensor soft = ((logits + gumbels) / tau).softmax(dim);
  if (!hard) return soft;
  TensorBase index = op::argmax(soft, dim, true);
  Tensor one_hot(op::scatter(op::zeros_like(logits), dim, index, 1.0));
  return one_hot - soft.detach() + soft;
}

Tensor triplet_margin_with_distance_loss(const Tensor& anchor, const Tensor& positive,
                                         const Tensor& negative, const Distance& distance,
                                         double margin, bool swap, std::string_view reduction) {
  TS_CHECK_VALUE(reduction == "mean" || reduction == "sum" || reduction == "none", reduction,
                 " is not a valid value for reduction");
  TS_CHECK_VALUE(margin > 0, "margin must be greater than 0, got ", margin);
  TS_CHECK(anchor.dim() == positive.dim() && anchor.dim() == negative.dim(),
           "The anchor, positive, and negative tensors are expected to have the same number of "
           "dimensions, but got: anchor ",
           anchor.dim(), "D, positive ", positive.dim(), "D, and negative ", negative.dim(),
           "D inputs");
  auto between = [&](const Tensor& a, const Tensor& b) {
    return distance ? distance(a, b) : Tensor(op::pairwise_distance(a, b));
  };
  Tensor near = between(anchor, positive), far = between(anchor, negative);
  if (swap) far = Tensor(op::minimum(far, between(positive, negative)));
  Tensor loss(op::clamp_min(margin + near - far, 0));
  return reduction == "none" ? loss : reduction == "mean" ? loss.mean() : loss.sum();
}

}  // namespace tessera::nn::functional
