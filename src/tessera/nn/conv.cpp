#include "tessera/nn/conv.h"

#include <cmath>

#include "tessera/nn/init.h"
#include "tessera/nn/sizes.h"
#include "tessera/nn/text.h"

namespace tessera::nn {

namespace {
bool all(const Dims& dims, int64_t value) {
  for (int64_t d : dims)
    if (d != value) return false;
  return true;
}
}  // namespace

ConvNd::ConvNd(int n, int64_t in, int64_t out, Ints kernel, const ConvOptions& o)
    : in_channels(in),
      out_channels(out),
      groups(o.groups),
      kernel_size(each(n, kernel)),
      stride(each(n, o.stride)),
      padding(each(n, o.padding.amounts())),
      dilation(each(n, o.dilation)),
      output_padding(static_cast<size_t>(n), 0),
      padding_text(o.padding.text()),
      padding_mode(o.padding_mode) {
  if (!padding_text.empty()) {
    TS_CHECK_VALUE(padding_text == "same" || padding_text == "valid", "Invalid padding string '",
                   padding_text, "', should be one of {'valid', 'same'}");
    TS_CHECK_VALUE(padding_text == "valid" || all(stride, 1),
                   "padding='same' is not supported for strided convolutions");
  }
  TS_CHECK_VALUE(padding_mode == "zeros" || padding_mode == "reflect" ||
                     padding_mode == "replicate" || padding_mode == "circular",
                 "padding_mode must be one of {'zeros', 'reflect', 'replicate', 'circular'}, but "
                 "got padding_mode='",
                 padding_mode, "'");
  make(false, o.bias, o.device, o.dtype);
}

ConvNd::ConvNd(int n, int64_t in, int64_t out, Ints kernel, const ConvTransposeOptions& o)
    : in_channels(in),
      out_channels(out),
      groups(o.groups),
      kernel_size(each(n, kernel)),
      stride(each(n, o.stride)),
      padding(each(n, o.padding)),
      dilation(each(n, o.dilation)),
      output_padding(each(n, o.output_padding)) {
  make(true, o.bias, o.device, o.dtype);
}

void ConvNd::make(bool transposed, bool bias, std::optional<Device> device,
                  std::optional<DType> dtype) {
  TS_CHECK_VALUE(groups > 0, "groups must be a positive integer");
  TS_CHECK_VALUE(in_channels % groups == 0, "in_channels must be divisible by groups");
  TS_CHECK_VALUE(out_channels % groups == 0, "out_channels must be divisible by groups");
  Dims shape = transposed ? Dims{in_channels, out_channels / groups}
                          : Dims{out_channels, in_channels / groups};
  for (int64_t k : kernel_size) shape.push_back(k);
  register_parameter("weight", empty(shape, dtype, device));
  register_parameter("bias", bias ? empty({out_channels}, dtype, device) : Tensor());
  reset_parameters();
}

void ConvNd::reset_parameters() {
  init::kaiming_uniform_(weight(), {.a = std::sqrt(5.0)});
  if (!bias().defined()) return;
  int64_t fan_in = init::calculate_fan_in_and_fan_out(weight()).first;
  if (fan_in == 0) return;
  double bound = 1 / std::sqrt(static_cast<double>(fan_in));
  init::uniform_(bias(), -bound, bound);
}

Tensor ConvNd::forward(const Tensor& input) {
  Tensor x = input;
  size_t n = stride.size();
  Dims amounts = padding;
  std::string text = padding_text;
  if (padding_mode != "zeros") {
    Dims sides(2 * n, 0);  // the last dimension first
    for (size_t d = 0; d < n; ++d) {
      size_t at = 2 * (n - 1 - d);
      int64_t total = text == "same" ? dilation[d] * (kernel_size[d] - 1) : 0;
      sides[at] = text.empty() ? padding[d] : total / 2;
      sides[at + 1] = text.empty() ? padding[d] : total - total / 2;
    }
    x = pad(x, sides, padding_mode);
    amounts = Dims(n, 0);
    text.clear();
  }
  if (!text.empty()) {
    if (n == 1) return Tensor(op::conv1d(x, weight(), bias(), stride, text, dilation, groups));
    if (n == 2) return Tensor(op::conv2d(x, weight(), bias(), stride, text, dilation, groups));
    return Tensor(op::conv3d(x, weight(), bias(), stride, text, dilation, groups));
  }
  std::span<const int64_t> pads = amounts;
  if (n == 1) return Tensor(op::conv1d(x, weight(), bias(), stride, pads, dilation, groups));
  if (n == 2) return Tensor(op::conv2d(x, weight(), bias(), stride, pads, dilation, groups));
  return Tensor(op::conv3d(x, weight(), bias(), stride, pads, dilation, groups));
}

Tensor ConvTransposeNd::forward(const Tensor& input, Ints output_size) {
  Dims extra = output_padding;
  std::span<const int64_t> size = output_size;
  size_t n = stride.size();
  if (!size.empty()) {
    size_t leading = input.dim() == static_cast<int>(n) + 2 ? 2 : 1;
    if (size.size() == leading + n) size = size.subspan(leading);
    TS_CHECK_VALUE(size.size() == n, "ConvTranspose", n, "D: for ", input.dim(),
                   "D input, output_size must have ", n, " or ", leading + n, " elements (got ",
                   size.size(), ")");
    for (size_t d = 0; d < n; ++d) {
      int64_t low = (input.sizes()[d + leading] - 1) * stride[d] - 2 * padding[d] +
                    dilation[d] * (kernel_size[d] - 1) + 1;
      int64_t high = low + stride[d] - 1;
      TS_CHECK_VALUE(size[d] >= low && size[d] <= high, "requested an output size of ", Dims(size),
                     ", but valid sizes range from ", low, " to ", high, " in dimension ", d,
                     " (for an input of ", Dims(input.sizes().span().subspan(leading)), ")");
      extra[d] = size[d] - low;
    }
  }
  const Tensor &w = weight(), &b = bias();
  if (n == 1)
    return Tensor(op::conv_transpose1d(input, w, b, stride, padding, extra, groups, dilation));
  if (n == 2)
    return Tensor(op::conv_transpose2d(input, w, b, stride, padding, extra, groups, dilation));
  return Tensor(op::conv_transpose3d(input, w, b, stride, padding, extra, groups, dilation));
}

std::string ConvNd::extra_repr() const {
  std::string text = cat(in_channels, ", ", out_channels, ", kernel_size=", py_tuple(kernel_size),
                         ", stride=", py_tuple(stride));
  if (!padding_text.empty())
    text += ", padding=" + padding_text;
  else if (!all(padding, 0))
    text += ", padding=" + py_tuple(padding);
  if (!all(dilation, 1)) text += ", dilation=" + py_tuple(dilation);
  if (!all(output_padding, 0)) text += ", output_padding=" + py_tuple(output_padding);
  if (groups != 1) text += cat(", groups=", groups);
  if (!bias().defined()) text += ", bias=False";
  if (padding_mode != "zeros") text += ", padding_mode=" + padding_mode;
  return text;
}

}  // namespace tessera::nn
