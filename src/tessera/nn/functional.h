// nn::functional: what Python's torch.nn.functional has. Most are operators, here by that name too;
// declared here are those that choose between operators.
#pragma once
#include <functional>
#include <optional>
#include <string_view>
#include <tuple>

#include "tessera/face/tensor.h"

namespace tessera::nn::functional {

using tessera::adaptive_avg_pool1d;
using tessera::adaptive_avg_pool2d;
using tessera::adaptive_avg_pool3d;
using tessera::alpha_dropout;
using tessera::avg_pool1d;
using tessera::avg_pool2d;
using tessera::avg_pool3d;
using tessera::batch_norm;
using tessera::bilinear;
using tessera::binary_cross_entropy;
using tessera::binary_cross_entropy_with_logits;
using tessera::celu;
using tessera::channel_shuffle;
using tessera::conv1d;
using tessera::conv2d;
using tessera::conv3d;
using tessera::conv_transpose1d;
using tessera::conv_transpose2d;
using tessera::conv_transpose3d;
using tessera::cosine_embedding_loss;
using tessera::cosine_similarity;
using tessera::cross_entropy;
using tessera::ctc_loss;
using tessera::elu;
using tessera::embedding;
using tessera::embedding_bag;
using tessera::feature_alpha_dropout;
using tessera::fold;
using tessera::gaussian_nll_loss;
using tessera::gelu;
using tessera::glu;
using tessera::group_norm;
using tessera::hardshrink;
using tessera::hardsigmoid;
using tessera::hardswish;
using tessera::hardtanh;
using tessera::hinge_embedding_loss;
using tessera::huber_loss;
using tessera::instance_norm;
using tessera::kl_div;
using tessera::l1_loss;
using tessera::layer_norm;
using tessera::leaky_relu;
using tessera::linear;
using tessera::local_response_norm;
using tessera::log_softmax;
using tessera::logsigmoid;
using tessera::margin_ranking_loss;
using tessera::max_pool1d;
using tessera::max_pool1d_with_indices;
using tessera::max_pool2d;
using tessera::max_pool2d_with_indices;
using tessera::max_pool3d;
using tessera::max_pool3d_with_indices;
using tessera::mish;
using tessera::mse_loss;
using tessera::multi_margin_loss;
using tessera::multilabel_margin_loss;
using tessera::multilabel_soft_margin_loss;
using tessera::nll_loss;
using tessera::normalize;
using tessera::one_hot;
using tessera::pad;
using tessera::pairwise_distance;
using tessera::pixel_shuffle;
using tessera::pixel_unshuffle;
using tessera::poisson_nll_loss;
using tessera::prelu;
using tessera::relu;
using tessera::relu6;
using tessera::rms_norm;
using tessera::rrelu;
using tessera::scaled_dot_product_attention;
using tessera::selu;
using tessera::sigmoid;
using tessera::silu;
using tessera::smooth_l1_loss;
using tessera::soft_margin_loss;
using tessera::softmax;
using tessera::softplus;
using tessera::softshrink;
using tessera::softsign;
using tessera::tanh;
using tessera::tanhshrink;
using tessera::threshold;
using tessera::triplet_margin_loss;
using tessera::unfold;

Tensor softmin(const Tensor& input, int64_t dim, std::optional<DType> dtype = std::nullopt);
Tensor dropout(const Tensor& input, double p = 0.5, bool training = true);
// Of whole channels; a single sample has no batch dimension.
Tensor dropout1d(const Tensor& input, double p = 0.5, bool training = true);
Tensor dropout2d(const Tensor& input, double p = 0.5, bool training = true);
Tensor dropout3d(const Tensor& input, double p = 0.5, bool training = true);

// Values and where they were; n is the number of spatial dimensions. Of the sizes, -1 stands for
// the input's own.
std::tuple<Tensor, Tensor> adaptive_max_pool_with_indices(int n, const Tensor& input,
                                                          Ints output_size);
Tensor adaptive_max_pool1d(const Tensor& input, Ints output_size);
Tensor adaptive_max_pool2d(const Tensor& input, Ints output_size);
Tensor adaptive_max_pool3d(const Tensor& input, Ints output_size);
Tensor adaptive_avg_pool(int n, const Tensor& input, Ints output_size);

// An empty stride is the kernel's size, an empty output_size the usual one.
Tensor max_unpool(int n, const Tensor& input, const Tensor& indices, Ints kernel_size,
                  Ints stride = {}, Ints padding = 0, Ints output_size = {});
Tensor lp_pool(int n, const Tensor& input, double norm_type, Ints kernel_size, Ints stride = {},
               bool ceil_mode = false);

struct InterpolateOptions {
  Ints size = {};
  std::vector<double> scale_factor = {};  // one, or one for each dimension
  std::string_view mode = "nearest";
  std::optional<bool> align_corners = std::nullopt;
  bool recompute_scale_factor = false;
  bool antialias = false;
};
Tensor interpolate(const Tensor& input, const InterpolateOptions& options);
Tensor grid_sample(const Tensor& input, const Tensor& grid, std::string_view mode = "bilinear",
                   std::string_view padding_mode = "zeros", bool align_corners = false);

// A sample that is nearly one class; with hard it is one, and only its gradient is soft.
Tensor gumbel_softmax(const Tensor& logits, double tau = 1, bool hard = false, int64_t dim = -1);

using Distance = std::function<Tensor(const Tensor&, const Tensor&)>;
// Without a distance, pairwise_distance.
Tensor triplet_margin_with_distance_loss(const Tensor& anchor, const Tensor& positive,
                                         const Tensor& negative, const Distance& distance = {},
                                         double margin = 1.0, bool swap = false,
                                         std::string_view reduction = "mean");

}  // namespace tessera::nn::functional
