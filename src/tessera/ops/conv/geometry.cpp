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

namespace {

// "5 x 5": sizes of an image as PyTorch's messages write them.
std::string image_text(std::span<const int64_t> sizes) {
  std::string out;
  for (size_t d = 0; d < sizes.size(); ++d) out += (d ? " x " : "") + std::to_string(sizes[d]);
  return out;
}

// "kernel_height: 0 kernel_width: 1": one number for each dimension, named.
std::string named_text(const char* what, std::span<const int64_t> values, const char* between) {
  static constexpr const char* kNames[] = {"depth", "height", "width"};
  std::string out;
  // One dimension is an image of height 1, or starts at 0.
  for (size_t d = 0; d < values.size(); ++d)
    out += cat(d ? between : "", what, "_", kNames[d + 3 - values.size()], ": ", values[d]);
  return out;
}

Dims spatial(const Dims& sizes) {
  Dims out;
  for (size_t d = 2; d < sizes.size(); ++d) out.push_back(sizes[d]);
  return out;
}

[[noreturn]] void refuse_kernel_size(const Dims& weight) {
  Dims kernel = spatial(weight);
  if (kernel.size() == 3)
    raise(
        ErrorKind::kRuntime,
        cat("kernel size should be greater than zero, but got: ", image_text(kernel), " (TxHxW)"));
  if (kernel.size() == 1) kernel.insert(0, 1);
  raise(ErrorKind::kRuntime, cat("kernel size should be greater than zero, but got ",
                                 named_text("kernel", kernel, " ")));
}

// The reach of the kernel along dimension d; raises where it does not fit 64 bits.
int64_t reach(const Dims& weight, const Params& p, int d) {
  int64_t out;
  TS_CHECK(!__builtin_mul_overflow(p.dilation[d], weight[d + 2] - 1, &out) && out < INT64_MAX,
           "Kernel of size ", weight, " with dilation ", p.dilation, " is too large");
  return out + 1;
}

}  // namespace

void check_params(const Params& p, int n) {
  TS_CHECK(n >= 1 && n <= 3, "convolution in ", n, " dimensions: expected 1, 2 or 3");
  for (const Dims* list : {&p.padding, &p.dilation, &p.output_padding})
    TS_CHECK(list->ndim() == n, "expected a list of ", n,
             " values to match the convolution dimensions, but got ", *list);
  for (int d = 0; d < n; ++d) {
    TS_CHECK(p.padding[d] >= 0, "negative padding is not supported");
    TS_CHECK(p.padding[d] <= INT64_MAX / 2, "Given padding=", p.padding[d], " at dimension ", d,
             " , expected padding to be at most ", INT64_MAX / 2);
    TS_CHECK(p.output_padding[d] >= 0, "negative output_padding is not supported");
    TS_CHECK(p.stride[d] > 0, "non-positive stride is not supported");
    TS_CHECK(p.dilation[d] > 0, "dilation should be greater than zero, but got ", p.dilation);
  }
  TS_CHECK(p.groups > 0, "non-positive groups is not supported");
}

void check_sizes(const Op& op, const Dims& input, const Dims& weight, const Dims& output,
                 const Params& p) {
  const int n = p.spatial();
  check_params(p, n);
  const size_t dims = static_cast<size_t>(n) + 2;
  bool fits = input.size() == dims && weight.size() == dims && output.size() == dims;
  if (fits) {
    for (int64_t size : {input[0], input[1]}) fits &= size >= 0;
    fits &= input[0] == output[0] && weight[0] == output[1] && weight[0] % p.groups == 0 &&
            input[1] % p.groups == 0 && weight[1] == input[1] / p.groups;
  }
  for (int d = 0; fits && d < n; ++d) {
    if (weight[d + 2] < 1) refuse_kernel_size(weight);
    int64_t padded;
    fits = input[d + 2] >= 0 && output[d + 2] >= 0 &&
           !__builtin_add_overflow(input[d + 2], 2 * p.padding[d], &padded);
    if (!fits || output[d + 2] == 0) continue;
    const int64_t room = padded - reach(weight, p, d);
    fits = room >= 0 && output[d + 2] <= room / p.stride[d] + 1;
  }
  TS_CHECK(fits, op.name, "(): an input of size ", input, ", a weight of size ", weight,
           " and an output of size ", output,
           " are not those of a convolution with stride=", p.stride, ", padding=", p.padding,
           ", dilation=", p.dilation, " and groups=", p.groups);
}

void check(const TensorBase& input, const TensorBase& weight, const TensorBase& bias,
           const Params& p) {
  int n = p.spatial();
  check_params(p, n);
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
    bool fits = true;
    Dims padded(static_cast<size_t>(n)), kernel(static_cast<size_t>(n));
    for (int d = 0; d < n; ++d) {
      if (weight.sizes()[d + 2] < 1) refuse_kernel_size(weight.sizes());
      TS_CHECK(!__builtin_add_overflow(input.sizes()[d + 2], 2 * p.padding[d], &padded[d]),
               "Given padding=", p.padding[d], " at dimension ", d,
               ", the padded input size does not fit 64 bits");
      kernel[d] = reach(weight.sizes(), p, d);
      fits &= padded[d] >= kernel[d];
    }
    TS_CHECK(fits, "Calculated padded input size per channel: (", image_text(padded),
             "). Kernel size: (", image_text(kernel),
             "). Kernel size can't be greater than actual input size");
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
    for (int d = 0; d < n; ++d) {
      if (weight.sizes()[d + 2] < 1) refuse_kernel_size(weight.sizes());
      TS_CHECK(input.sizes()[d + 2] > 0,
               "Only zero batch or zero channel inputs are supported, but got input shape: ",
               input.sizes());
      if (p.output_padding[d] < p.stride[d] || p.output_padding[d] < p.dilation[d]) continue;
      auto named = [n](const char* what, Dims values) {  // one dimension is an image of height 1
        if (n == 1) values.insert(0, std::string_view(what) == "output_padding" ? 0 : 1);
        return named_text(what, values, " ");
      };
      raise(ErrorKind::kRuntime,
            cat("output padding must be smaller than either stride or dilation, but got ",
                named("output_padding", p.output_padding), " ", named("stride", p.stride), " ",
                named("dilation", p.dilation)));
    }
  }
}

Dims output_size(const Dims& input, const Dims& weight, const Params& p) {
  Dims out;
  out.push_back(input[0]);
  out.push_back(p.transposed ? weight[1] * p.groups : weight[0]);
  bool fits = true;
  for (int d = 0; d < p.spatial(); ++d) {
    const int64_t kernel = reach(weight, p, d);
    int64_t size;
    if (p.transposed) {
      TS_CHECK(!__builtin_mul_overflow(input[d + 2] - 1, p.stride[d], &size) &&
                   !__builtin_add_overflow(size, kernel, &size) &&
                   !__builtin_add_overflow(size, p.output_padding[d], &size),
               "the transposed convolution's output does not fit 64 bits with stride=", p.stride,
               ", dilation=", p.dilation, " and output_padding=", p.output_padding);
      size -= 2 * p.padding[d];
    } else {
      size = (input[d + 2] + 2 * p.padding[d] - kernel) / p.stride[d] + 1;
    }
    fits &= size >= 0;
    out.push_back(size);
  }
  if (!fits) {
    Dims in = spatial(input), result = spatial(out);
    if (in.size() == 1) {
      in.insert(0, 1);
      result.insert(0, 1);
    }
    raise(ErrorKind::kRuntime, cat("Given input size per channel: (", image_text(in),
                                   "). Calculated output size per channel: (", image_text(result),
                                   "). Output size is too small"));
  }
  return out;
}

}  // namespace tessera::conv
