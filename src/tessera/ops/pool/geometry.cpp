#include "tessera/ops/pool/geometry.h"

namespace tessera::pool {

namespace {

Dims spread(const Op& op, const Dims& given, int n, const char* name) {
  if (given.ndim() == n) return given;
  TS_CHECK(given.ndim() == 1, op.name, "(): ", name, " must either be a single int, or a tuple of ",
           n, " ints");
  Dims all;
  for (int i = 0; i < n; ++i) all.push_back(given[0]);
  return all;
}

void check_input(const Op& op, const TensorBase& input, int n) {
  TS_CHECK(input.dim() == n + 1 || input.dim() == n + 2, op.name, "() Expected ", n + 1, "D or ",
           n + 2, "D input tensor, but got: ", input.sizes());
  for (int d = input.dim() - n - 1; d < input.dim(); ++d)
    TS_CHECK(input.sizes()[d] > 0, op.name,
             "(): Expected input's non-batch dimensions to have positive length, but input has "
             "sizes ",
             input.sizes(), " with dimension ", d, " being empty");
}

Dims spatial_sizes(const TensorBase& input, int n) {
  Dims out;
  for (int d = input.dim() - n; d < input.dim(); ++d) out.push_back(input.sizes()[d]);
  return out;
}

// "kH: 0 kW: 1": a number for each of n dimensions; one dimension is an image of height 1.
std::string named_text(const char* prefix, const Dims& values, int64_t height) {
  static constexpr const char* kNames[] = {"T", "H", "W"};
  Dims all = values;
  if (all.size() == 1) all.insert(0, height);
  std::string out;
  for (size_t d = 0; d < all.size(); ++d)
    out += cat(d ? " " : "", prefix, kNames[d + 3 - all.size()], ": ", all[d]);
  return out;
}

// "1x4x4": the channels and the sizes of an image.
std::string image_text(const TensorBase& input, const Dims& sizes) {
  std::string out = std::to_string(input.size(-1 - sizes.ndim()));
  if (sizes.size() == 1) out += "x1";
  for (int64_t n : sizes) out += cat("x", n);
  return out;
}

bool is_positive(const Dims& values) {
  return std::all_of(values.begin(), values.end(), [](int64_t v) { return v > 0; });
}

// Raises PyTorch's messages. max_pool1d has messages of its own.
void check_windows(const Op& op, const Windows& w) {
  if (is_positive(w.kernel) && is_positive(w.stride) && is_positive(w.dilation)) [[likely]]
    return;
  if (op.name == "_max_pool1d") {
    TS_CHECK(w.kernel[0] > 0, "max_pool1d() kernel_size must be greater than zero, but got ",
             w.kernel[0]);
    TS_CHECK(w.stride[0] > 0, "max_pool1d() stride must be greater than zero, but got ",
             w.stride[0]);
    TS_CHECK(false, "max_pool1d() dilation must be greater than zero, but got ", w.dilation[0]);
  }
  for (int64_t v : w.stride) TS_CHECK(v != 0, "stride should not be zero");
  TS_CHECK(is_positive(w.kernel), "kernel size should be greater than zero, but got ",
           named_text("k", w.kernel, 1));
  TS_CHECK(is_positive(w.stride), "stride should be greater than zero, but got ",
           named_text("d", w.stride, 1));
  TS_CHECK(false, "dilation should be greater than zero, but got ",
           named_text("dilation", w.dilation, 1));
}

int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

}  // namespace

Windows regular(const Op& op, const TensorBase& input, int n, const Dims& kernel,
                const Dims& stride, const Dims& padding, const Dims& dilation, bool ceil_mode) {
  Windows w;
  w.kernel = spread(op, kernel, n, "kernel_size");
  w.stride = stride.ndim() == 0 ? w.kernel : spread(op, stride, n, "stride");
  w.padding = spread(op, padding, n, "padding");
  w.dilation = spread(op, dilation, n, "dilation");
  check_input(op, input, n);
  w.in = spatial_sizes(input, n);
  check_windows(op, w);
  bool fits = true;
  for (int d = 0; d < n; ++d) {
    TS_CHECK(w.padding[d] >= 0, "pad must be non-negative, but got pad: ", w.padding[d]);
    TS_CHECK(w.kernel[d] - 1 < INT64_MAX / w.dilation[d],
             "effective kernel size overflows, but got kernel_size=", w.kernel[d],
             " and dilation=", w.dilation[d]);
    int64_t reach = (w.kernel[d] - 1) * w.dilation[d] + 1;
    TS_CHECK(w.padding[d] <= reach / 2,
             "pad should be at most half of effective kernel size, but got pad=", w.padding[d],
             ", kernel_size=", w.kernel[d], " and dilation=", w.dilation[d]);
    int64_t span = w.in[d] + 2 * w.padding[d] - reach + (ceil_mode ? w.stride[d] - 1 : 0);
    int64_t out = floor_div(span, w.stride[d]) + 1;
    // The last window begins inside the input or its left padding.
    if (ceil_mode && (out - 1) * w.stride[d] >= w.in[d] + w.padding[d]) --out;
    fits &= out >= 1;
    w.out.push_back(out);
  }
  TS_CHECK(fits, "Given input size: (", image_text(input, w.in), "). Calculated output size: (",
           image_text(input, w.out), "). Output size is too small");
  return w;
}

Windows adaptive(const Op& op, const TensorBase& input, int n, const Dims& size) {
  Windows w;
  w.adaptive = true;
  check_input(op, input, n);
  w.in = spatial_sizes(input, n);
  w.out = spread(op, size, n, "output_size");
  w.kernel = w.stride = w.dilation = w.padding = Dims(static_cast<size_t>(n));
  for (int d = 0; d < n; ++d) {
    TS_CHECK(w.out[d] >= 0, op.name,
             "(): elements of output_size must be greater than or equal to 0 but received ", size);
    w.kernel[d] = w.stride[d] = w.dilation[d] = 1;
    w.padding[d] = 0;
  }
  return w;
}

Dims kernel_ints(const Windows& w, std::initializer_list<int64_t> more) {
  Dims out{w.adaptive ? 1 : 0};
  for (const Dims* list : {&w.in, &w.out, &w.kernel, &w.stride, &w.padding, &w.dilation}) {
    for (int d = w.spatial(); d < 3; ++d) out.push_back(list == &w.padding ? 0 : 1);
    for (int64_t v : *list) out.push_back(v);
  }
  for (int64_t v : more) out.push_back(v);
  return out;
}

Windows done(const Dims& input, const Dims& output, int n, const Dims& kernel, const Dims& stride,
             const Dims& padding, const Dims& dilation) {
  Windows w;
  w.adaptive = kernel.ndim() == 0;
  auto at = [&](const Dims& given, int d, int64_t otherwise) {
    return given.ndim() == 0 ? otherwise : given[given.ndim() == 1 ? 0 : d];
  };
  for (int d = 0; d < n; ++d) {
    w.in.push_back(input[input.ndim() - n + d]);
    w.out.push_back(output[output.ndim() - n + d]);
    w.kernel.push_back(at(kernel, d, 1));
    w.stride.push_back(at(stride, d, w.kernel[d]));
    w.padding.push_back(at(padding, d, 0));
    w.dilation.push_back(at(dilation, d, 1));
  }
  return w;
}

MemoryFormat format_of(const TensorBase& t, int n) {
  if (!t.device().is_cuda() || n == 1 || t.dim() != n + 2) return MemoryFormat::kContiguous;
  return suggested_format(t);
}

TensorBase planes(const TensorBase& t, int n, MemoryFormat format) {
  Dims size;
  int64_t points = 1;
  for (int d = t.dim() - n; d < t.dim(); ++d) points *= t.sizes()[d];
  const bool last = format != MemoryFormat::kContiguous;
  size.push_back(last ? t.sizes()[0] : points ? t.numel() / points : 0);
  for (int d = n; d < 3; ++d) size.push_back(1);
  for (int d = t.dim() - n; d < t.dim(); ++d) size.push_back(t.sizes()[d]);
  if (last) size.push_back(t.sizes()[1]);
  return alias(t, size, contiguous_strides(size), t.storage_offset());
}

Dims output_shape(const TensorBase& input, const Windows& w) {
  Dims size = input.sizes();
  for (int d = 0; d < w.spatial(); ++d) size[size.size() - w.out.size() + d] = w.out[d];
  return size;
}

}  // namespace tessera::pool
