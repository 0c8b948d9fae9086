#include "tessera/nn/shape.h"

#include "tessera/nn/functional.h"
#include "tessera/nn/text.h"

namespace tessera::nn {

Tensor Flatten::forward(const Tensor& x) { return x.flatten(options.start_dim, options.end_dim); }
std::string Flatten::extra_repr() const {
  return cat("start_dim=", options.start_dim, ", end_dim=", options.end_dim);
}

Tensor Unflatten::forward(const Tensor& x) { return x.unflatten(dim, unflattened_size); }
std::string Unflatten::extra_repr() const {
  return cat("dim=", dim, ", unflattened_size=", py_tuple(unflattened_size));
}

Fold::Fold(Ints output, Ints kernel, const FoldOptions& o)
    : output_size(output),
      kernel_size(kernel),
      dilation(o.dilation),
      padding(o.padding),
      stride(o.stride) {}
Tensor Fold::forward(const Tensor& x) {
  return fold(x, output_size, kernel_size, dilation, padding, stride);
}
std::string Fold::extra_repr() const {
  return "output_size=" + py_sizes(output_size) + ", kernel_size=" + py_sizes(kernel_size) +
         ", dilation=" + py_sizes(dilation) + ", padding=" + py_sizes(padding) +
         ", stride=" + py_sizes(stride);
}

Unfold::Unfold(Ints kernel, const FoldOptions& o)
    : kernel_size(kernel), dilation(o.dilation), padding(o.padding), stride(o.stride) {}
Tensor Unfold::forward(const Tensor& x) {
  return unfold(x, kernel_size, dilation, padding, stride);
}
std::string Unfold::extra_repr() const {
  return "kernel_size=" + py_sizes(kernel_size) + ", dilation=" + py_sizes(dilation) +
         ", padding=" + py_sizes(padding) + ", stride=" + py_sizes(stride);
}

Tensor PixelShuffle::forward(const Tensor& x) { return pixel_shuffle(x, upscale_factor); }
std::string PixelShuffle::extra_repr() const { return cat("upscale_factor=", upscale_factor); }
Tensor PixelUnshuffle::forward(const Tensor& x) { return pixel_unshuffle(x, downscale_factor); }
std::string PixelUnshuffle::extra_repr() const {
  return cat("downscale_factor=", downscale_factor);
}
Tensor ChannelShuffle::forward(const Tensor& x) { return channel_shuffle(x, groups); }
std::string ChannelShuffle::extra_repr() const { return cat("groups=", groups); }

Tensor Upsample::forward(const Tensor& x) {
  return functional::interpolate(x, {options.size, options.scale_factor, options.mode,
                                     options.align_corners, options.recompute_scale_factor});
}
std::string Upsample::extra_repr() const {
  const std::vector<double>& factors = options.scale_factor;
  std::string by = factors.empty()       ? "size=" + py_sizes(options.size)
                   : factors.size() == 1 ? "scale_factor=" + py(factors[0])
                                         : "scale_factor=" + py_tuple(factors);
  return by + ", mode=" + py_quoted(options.mode);
}

Tensor PairwiseDistance::forward(const Tensor& x1, const Tensor& x2) {
  return pairwise_distance(x1, x2, options.p, options.eps, options.keepdim);
}
Tensor CosineSimilarity::forward(const Tensor& x1, const Tensor& x2) {
  return cosine_similarity(x1, x2, options.dim, options.eps);
}

}  // namespace tessera::nn
