#include "tessera/nn/pool.h"

#include "tessera/nn/functional.h"
#include "tessera/nn/sizes.h"
#include "tessera/nn/text.h"

namespace tessera::nn {

namespace {
Dims or_kernel(const Ints& stride, const Dims& kernel) {
  std::span<const int64_t> given = stride;
  return given.empty() ? kernel : Dims(given);
}
Dims dims_of(const Ints& v) { return Dims(std::span<const int64_t>(v)); }
}  // namespace

MaxPoolNd::MaxPoolNd(int n, Ints kernel, const MaxPoolOptions& o)
    : kernel_size(dims_of(kernel)),
      stride(or_kernel(o.stride, kernel_size)),
      padding(dims_of(o.padding)),
      dilation(dims_of(o.dilation)),
      ceil_mode(o.ceil_mode),
      n_(n) {}

Tensor MaxPoolNd::forward(const Tensor& x) {
  if (n_ == 1) return Tensor(op::max_pool1d(x, kernel_size, stride, padding, dilation, ceil_mode));
  if (n_ == 2) return Tensor(op::max_pool2d(x, kernel_size, stride, padding, dilation, ceil_mode));
  return Tensor(op::max_pool3d(x, kernel_size, stride, padding, dilation, ceil_mode));
}

std::tuple<Tensor, Tensor> MaxPoolNd::forward_with_indices(const Tensor& x) {
  std::span<const int64_t> s = stride;
  Outputs out =
      n_ == 1   ? op::max_pool1d_with_indices(x, kernel_size, s, padding, dilation, ceil_mode)
      : n_ == 2 ? op::max_pool2d_with_indices(x, kernel_size, s, padding, dilation, ceil_mode)
                : op::max_pool3d_with_indices(x, kernel_size, s, padding, dilation, ceil_mode);
  return {Tensor(out[0]), Tensor(out[1])};
}

std::string MaxPoolNd::extra_repr() const {
  return "kernel_size=" + py_sizes(kernel_size) + ", stride=" + py_sizes(stride) +
         ", padding=" + py_sizes(padding) + ", dilation=" + py_sizes(dilation) +
         ", ceil_mode=" + py(ceil_mode);
}

AvgPoolNd::AvgPoolNd(int n, Ints kernel, const AvgPoolOptions& o)
    : kernel_size(dims_of(kernel)),
      stride(or_kernel(o.stride, kernel_size)),
      padding(dims_of(o.padding)),
      ceil_mode(o.ceil_mode),
      count_include_pad(o.count_include_pad),
      divisor_override(o.divisor_override),
      n_(n) {
  TS_CHECK_TYPE(n > 1 || !divisor_override, "AvgPool1d has no divisor_override");
}

Tensor AvgPoolNd::forward(const Tensor& x) {
  std::span<const int64_t> s = stride;
  if (n_ == 1)
    return Tensor(op::avg_pool1d(x, kernel_size, s, padding, ceil_mode, count_include_pad));
  if (n_ == 2)
    return Tensor(
        op::avg_pool2d(x, kernel_size, s, padding, ceil_mode, count_include_pad, divisor_override));
  return Tensor(
      op::avg_pool3d(x, kernel_size, s, padding, ceil_mode, count_include_pad, divisor_override));
}

std::string AvgPoolNd::extra_repr() const {
  auto text = [&](const Dims& d) { return n_ == 1 ? py_tuple(d) : py_sizes(d); };
  return "kernel_size=" + text(kernel_size) + ", stride=" + text(stride) +
         ", padding=" + text(padding);
}

MaxUnpoolNd::MaxUnpoolNd(int n, Ints kernel, const MaxUnpoolOptions& o)
    : kernel_size(each(n, kernel)),
      stride(each(n, or_kernel(o.stride, kernel_size))),
      padding(each(n, o.padding)),
      n_(n) {}

Tensor MaxUnpoolNd::forward(const Tensor& input, const Tensor& indices, Ints output_size) {
  return functional::max_unpool(n_, input, indices, kernel_size, stride, padding,
                                std::move(output_size));
}

std::string MaxUnpoolNd::extra_repr() const {
  return "kernel_size=" + py_tuple(kernel_size) + ", stride=" + py_tuple(stride) +
         ", padding=" + py_tuple(padding);
}

LPPoolNd::LPPoolNd(int n, double norm, Ints kernel, const LPPoolOptions& o)
    : norm_type(norm),
      kernel_size(dims_of(kernel)),
      stride(dims_of(o.stride)),
      ceil_mode(o.ceil_mode),
      n_(n) {}

Tensor LPPoolNd::forward(const Tensor& x) {
  return functional::lp_pool(n_, x, norm_type, kernel_size, stride, ceil_mode);
}

std::string LPPoolNd::extra_repr() const {
  // A whole number is mostly given as one.
  auto whole = static_cast<int64_t>(norm_type);
  std::string norm = static_cast<double>(whole) == norm_type ? py(whole) : py(norm_type);
  return "norm_type=" + norm + ", kernel_size=" + py_sizes(kernel_size) +
         ", stride=" + py_sizes(stride) + ", ceil_mode=" + py(ceil_mode);
}

FractionalMaxPoolNd::FractionalMaxPoolNd(int n, Ints kernel, const FractionalMaxPoolOptions& o)
    : kernel_size(each(n, kernel)), output_ratio(o.output_ratio), n_(n) {
  register_buffer("_random_samples", o.random_samples);
  std::span<const int64_t> size = o.output_size;
  std::string kind = cat("FractionalMaxPool", n, "d");
  TS_CHECK_VALUE(!size.empty() || !output_ratio.empty(), kind,
                 " requires specifying either an output size, or a pooling ratio");
  TS_CHECK_VALUE(size.empty() || output_ratio.empty(),
                 "only one of output_size and output_ratio may be specified");
  if (!size.empty()) output_size = each(n, size);
  if (output_ratio.size() == 1) output_ratio.resize(static_cast<size_t>(n), output_ratio[0]);
  for (double ratio : output_ratio)
    TS_CHECK_VALUE(ratio > 0 && ratio < 1, "output_ratio must be between 0 and 1 (got ", py(ratio),
                   ")");
}

std::tuple<Tensor, Tensor> FractionalMaxPoolNd::forward_with_indices(const Tensor& x) {
  Dims size = output_size;
  if (size.empty())
    for (int d = 0; d < n_; ++d)
      size.push_back(static_cast<int64_t>(static_cast<double>(x.size(d - n_)) *
                                          output_ratio[static_cast<size_t>(d)]));
  Tensor samples = buffer_at(0);
  if (!samples.defined()) {
    int64_t batch = x.dim() == n_ + 1 ? 1 : x.size(0);
    samples = rand({batch, x.size(-n_ - 1), n_}, x.dtype(), x.device());
  }
  Outputs out = op::_fractional_max_pool(x, kernel_size, size, samples);
  return {Tensor(out[0]), Tensor(out[1])};
}
Tensor FractionalMaxPoolNd::forward(const Tensor& x) {
  return std::get<0>(forward_with_indices(x));
}

std::string AdaptivePoolNd::extra_repr() const {
  std::string text = py_sizes(output_size);
  for (size_t at = 0; (at = text.find("-1", at)) != std::string::npos;) text.replace(at, 2, "None");
  return "output_size=" + text;
}

Tensor AdaptiveMaxPoolNd::forward(const Tensor& x) {
  return std::get<0>(functional::adaptive_max_pool_with_indices(n_, x, output_size));
}
std::tuple<Tensor, Tensor> AdaptiveMaxPoolNd::forward_with_indices(const Tensor& x) {
  return functional::adaptive_max_pool_with_indices(n_, x, output_size);
}
Tensor AdaptiveAvgPoolNd::forward(const Tensor& x) {
  return functional::adaptive_avg_pool(n_, x, output_size);
}

}  // namespace tessera::nn
