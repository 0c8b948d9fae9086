#include "tessera/ops/conv/geometry.h"

namespace tessera::conv {

Dims spread(const Dims& given, int n, const char* name) {
  if (given.ndim() == n) return given;
  TS_CHECK(given.ndim() == 1, "expected ", name, " to be a single integer value or a list of ", n,
           " values to match the convolution dimensions, but got ", name, "=", given);
  Dims all;
  for (int i = 0; i < n; ++i) all.push_back(given[0]);
  return all;
}

void check(const TensorBase& input, const TensorBase& weight, const TensorBase& bias,
           const Params& p) {
  int n = p.spatial();
  for (int64_t v : p.padding) TS_CHECK(v >= 0, "negative padding is not supported");
  for (int64_t v : p.output_padding) TS_CHECK(v >= 0, "negative output_padding is not supported");
  for (int64_t v : p.stride) TS_CHECK(v > 0, "non-positive stride is not supported");
  for (int64_t v : p.dilation) TS_CHECK(v > 0, "dilation should be greater than zero");
  TS_CHECK(p.groups > 0, "non-positive groups is not supported");
  TS_CHECK(weight.dim() == n + 2 && input.dim() == n + 2, "Expected ", n + 1, "D (unbatched) or ",
           n + 2, "D (batched) input to conv", p.transposed ? "_transpose" : "", n,
           "d, but got input of size: ", input.sizes(), " and weight of size ", weight.sizes());
  int64_t w0 = weight.sizes()[0], w1 = weight.sizes()[1], channels = input.sizes()[1];
  TS_CHECK(input.dtype() == weight.dtype(), "Input type (", input.dtype(), ") and weight type (",
           weight.dtype(), ") should be the same");
  TS_CHECK(!bias.defined() || bias.dtype() == input.dtype(), "Input type (", input.dtype(),
           ") and bias type (", bias.defined() ? bias.dtype() : input.dtype(),
           ") should be the same");
  if (!p.transposed) {
    TS_CHECK(w0 >= p.groups, "Given groups=", p.groups, ", expected weight to be at least ",
             p.groups, " at dimension 0, but got weight of size ", weight.sizes(), " instead");
    TS_CHECK(w0 % p.groups == 0, "Given groups=", p.groups, ", expected weight to be divisible by ",
             p.groups, " at dimension 0, but got weight of size ", weight.sizes(), " instead");
    TS_CHECK(channels == w1 * p.groups, "Given groups=", p.groups, ", weight of size ",
             weight.sizes(), ", expected input", input.sizes(), " to have ", w1 * p.groups,
             " channels, but got ", channels, " channels instead");
    TS_CHECK(!bias.defined() || (bias.dim() == 1 && bias.sizes()[0] == w0), "Given weight of size ",
             weight.sizes(), ", expected bias to be 1-dimensional with ", w0,
             " elements, but got bias of size ", bias.defined() ? bias.sizes() : Dims{},
             " instead");
    for (int d = 0; d < n; ++d) {
      int64_t padded = input.sizes()[d + 2] + 2 * p.padding[d];
      int64_t kernel = p.dilation[d] * (weight.sizes()[d + 2] - 1) + 1;
      TS_CHECK(padded >= kernel, "Calculated padded input size per channel: (", padded,
               "). Kernel size: (", kernel,
               "). Kernel size can't be greater than actual input size");
    }
  } else {
    TS_CHECK(channels == w0, "Given transposed=1, weight of size ", weight.sizes(),
             ", expected input", input.sizes(), " to have ", w0, " channels, but got ", channels,
             " channels instead");
    TS_CHECK(w0 % p.groups == 0, "Given groups=", p.groups, ", expected weight to be divisible by ",
             p.groups, " at dimension 0, but got weight of size ", weight.sizes(), " instead");
    TS_CHECK(!bias.defined() || (bias.dim() == 1 && bias.sizes()[0] == w1 * p.groups),
             "Given transposed=1, weight of size ", weight.sizes(),
             ", expected bias to be 1-dimensional with ", w1 * p.groups,
             " elements, but got bias of size ", bias.defined() ? bias.sizes() : Dims{},
             " instead");
    for (int d = 0; d < n; ++d)
      TS_CHECK(p.output_padding[d] < p.stride[d] || p.output_padding[d] < p.dilation[d],
               "output padding must be smaller than either stride or dilation, but got "
               "output_padding: ",
               p.output_padding, " stride: ", p.stride, " dilation: ", p.dilation);
  }
}

Dims output_size(const Dims& input, const Dims& weight, const Params& p) {
  Dims out;
  out.push_back(input[0]);
  out.push_back(p.transposed ? weight[1] * p.groups : weight[0]);
  for (int d = 0; d < p.spatial(); ++d) {
    int64_t kernel = p.dilation[d] * (weight[d + 2] - 1) + 1;
    int64_t size = p.transposed ? (input[d + 2] - 1) * p.stride[d] - 2 * p.padding[d] + kernel +
                                      p.output_padding[d]
                                : (input[d + 2] + 2 * p.padding[d] - kernel) / p.stride[d] + 1;
    TS_CHECK(size >= 0, "the convolution's output would have size ", size, " in dimension ", d + 2);
    out.push_back(size);
  }
  return out;
}

}  // namespace tessera::conv
