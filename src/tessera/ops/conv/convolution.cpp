// Convolution, its two gradients, and theirs. The transposed kind is the gradient by the input, so
// three kernels do all:
//   conv_forward          out = input * weight (+ bias)
//   conv_backward_input   input's gradient of the output's and the weight
//   conv_backward_weight  weight's gradient of the output's and the input
// Each is told stride, padding, dilation (three numbers each, leading dimensions one) and groups.
// A backend that has them with "_strided" behind takes operands in any layout and in their own
// dtype, and is told two ints more: see settings.h.
#include "tessera/gen/binary.h"
#include "tessera/gen/complex.h"
#include "tessera/gen/conv.h"
#include "tessera/gen/copy.h"
#include "tessera/gen/reduce.h"
#include "tessera/gen/view.h"
#include "tessera/ops/conv/geometry.h"
#include "tessera/ops/conv/settings.h"
#include "tessera/ops/in_dtype.h"
#include "tessera/ops/valid.h"

namespace tessera {

namespace {

using conv::Params;

Params read_params(auto&& c, int first) {
  Params p;
  p.stride = c.ints(first);
  p.padding = c.ints(first + 1);
  p.dilation = c.ints(first + 2);
  p.groups = c.integer(first + 3);
  p.output_padding = Dims(p.stride.size());
  for (int64_t& v : p.output_padding) v = 0;
  return p;
}

// What the kernels compute in: half types as float32, rounded once.
DType compute_dtype(DType t) { return is_reduced_floating(t) ? DType::kFloat32 : t; }

// Three spatial dimensions, whatever there were: leading ones of size one.
TensorBase three(const TensorBase& t) {
  Dims size = t.sizes(), strides = t.strides();
  while (size.size() < 5) {
    size.insert(2, 1);
    strides.insert(2, 1);
  }
  return alias(t, size, strides, t.storage_offset());
}
Dims kernel_ints(const Params& p) {
  Dims out;
  for (const Dims* list : {&p.stride, &p.padding, &p.dilation}) {
    for (int d = p.spatial(); d < 3; ++d) out.push_back(list == &p.padding ? 0 : 1);
    for (int64_t v : *list) out.push_back(v);
  }
  out.push_back(p.groups);
  return out;
}

struct KernelNames {
  const char *dense, *strided;
};

// Channels last where one of the two lies so, as PyTorch has it.
MemoryFormat format_for(const TensorBase& a, const TensorBase& b) {
  if (a.dim() < 4 || a.dtype() == DType::kFloat64) return MemoryFormat::kContiguous;
  const MemoryFormat f = suggested_format(a);
  return f == MemoryFormat::kContiguous ? suggested_format(b) : f;
}

TensorBase run_strided(const char* kernel, const Dims& size, const TensorBase& a,
                       const TensorBase& b, const TensorBase& bias, const Params& p) {
  const MemoryFormat f = format_for(a, b);
  TensorBase out = new_empty_strided(size, strides_in(size, f), a.dtype(), a.device());
  if (out.numel() == 0) return out;
  if (!bias.defined() && (a.numel() == 0 || b.numel() == 0)) {
    fill(out, Scalar(0));  // sums of no elements
    return out;
  }
  TensorBase view = three(out);
  std::vector<TensorBase> inputs{three(op::contiguous(a, f)),
                                 three(op::contiguous(in_dtype(b, a.dtype()), f))};
  if (bias.defined()) inputs.push_back(op::contiguous(in_dtype(bias, a.dtype())));
  Dims ints = kernel_ints(p);
  ints.push_back(conv::flags());
  ints.push_back(conv::benchmark_limit());
  launch(kernel, {&view, 1}, inputs, ints.span());
  return out;
}

TensorBase run_kernel(const KernelNames& kernel, const Dims& size, const TensorBase& a,
                      const TensorBase& b, const TensorBase& bias, const Params& p) {
  if (a.device().is_cuda() && has_kernel(a.device(), kernel.strided))
    return run_strided(kernel.strided, size, a, b, bias, p);
  DType t = a.dtype(), c = compute_dtype(t);
  auto ready = [&](const TensorBase& x) { return three(op::contiguous(in_dtype(x, c))); };
  TensorBase out = new_empty(size, c, a.device());
  if (out.numel() > 0 && !bias.defined() && (a.numel() == 0 || b.numel() == 0)) {
    fill(out, Scalar(0));  // sums of no elements
  } else if (out.numel() > 0) {
    TensorBase view = three(out);
    std::vector<TensorBase> inputs{ready(a), ready(b)};
    if (bias.defined()) inputs.push_back(op::contiguous(in_dtype(bias, c)));
    launch(kernel.dense, {&view, 1}, inputs, kernel_ints(p).span());
  }
  return in_dtype(out, t);
}

// An output padding of a stride or more leaves places that no element of the input came from.
TensorBase cropped(TensorBase t, const Dims& size) {
  for (int d = 2; d < t.dim(); ++d)
    if (t.sizes()[d] > size[d]) t = op::slice(t, d, 0, size[d], 1);
  return t;
}

void check_supported(const Op& op, DType t) {
  TS_CHECK_IMPLEMENTED(t != DType::kBool, "\"", op.name, "\" not implemented for 'Bool'");
}

}  // namespace

TS_OP({
    .schema = "_conv_forward(Tensor input, Tensor weight, Tensor? bias, int[] stride, "
              "int[] padding, int[] dilation, int groups) -> Tensor",
    .kind = Kind::kKernel,
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      Params p = read_params(c, 3);
      check_supported(c.op, c.tensor(0).dtype());
      conv::check_params(p, p.spatial());
      check_dim(c, 0, p.spatial() + 2);
      check_dim(c, 1, p.spatial() + 2);
      check_shape_if_given(c, 2, {c.tensor(1).size(0)});
      Dims size = conv::output_size(c.tensor(0).sizes(), c.tensor(1).sizes(), p);
      conv::check_sizes(c.op, c.tensor(0).sizes(), c.tensor(1).sizes(), size, p);
      return run_kernel({"conv_forward", "conv_forward_strided"}, size, c.tensor(0), c.tensor(1),
                        c.maybe(2), p);
    },
    .saves = "input:weight weight:input",
    .backward =
        [](Backward& b) {
          Params p = read_params(b, 3);
          if (b.wants(0))
            b.set(0, op::_conv_backward_input(b.grad, op::conj(b.tensor(1)), b.shape(0).span(),
                                              p.stride.span(), p.padding.span(), p.dilation.span(),
                                              p.groups));
          if (b.wants(1))
            b.set(1, op::_conv_backward_weight(b.grad, op::conj(b.tensor(0)), b.shape(1).span(),
                                               p.stride.span(), p.padding.span(), p.dilation.span(),
                                               p.groups));
          if (b.wants(2)) {
            Dims dims;
            for (int d = 0; d < b.grad.dim(); ++d)
              if (d != 1) dims.push_back(d);
            b.set(2, op::sum(b.grad, dims.span(), false, std::nullopt));
          }
        },
    .aten = "convolution",
    .flops =
        [](const Call& c) {
          const Dims& weight = c.tensor(1).sizes();
          int64_t flops = 2;
          for (int64_t n : conv::output_size(c.tensor(0).sizes(), weight, read_params(c, 3)))
            flops *= n;
          for (size_t d = 1; d < weight.size(); ++d) flops *= weight[d];
          return flops;
        },
});

TS_OP({
    .schema = "_conv_backward_input(Tensor grad, Tensor weight, int[] input_size, int[] stride, "
              "int[] padding, int[] dilation, int groups) -> Tensor",
    .kind = Kind::kKernel,
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      check_supported(c.op, c.tensor(0).dtype());
      const Params p = read_params(c, 3);
      conv::check_sizes(c.op, c.ints(2), c.tensor(1).sizes(), c.tensor(0).sizes(), p);
      return run_kernel({"conv_backward_input", "conv_backward_input_strided"}, c.ints(2),
                        c.tensor(0), c.tensor(1), TensorBase(), p);
    },
    .saves = "grad:weight weight:grad",
    .backward =
        [](Backward& b) {
          Params p = read_params(b, 3);
          if (b.wants(0))
            b.set(0, cropped(op::_conv_forward(b.grad, op::conj(b.tensor(1)), TensorBase(),
                                               p.stride.span(), p.padding.span(), p.dilation.span(),
                                               p.groups),
                             b.shape(0)));
          if (b.wants(1))
            b.set(1, op::_conv_backward_weight(op::conj(b.tensor(0)), b.grad, b.shape(1).span(),
                                               p.stride.span(), p.padding.span(), p.dilation.span(),
                                               p.groups));
        },
    .aten = "convolution_backward",
});

TS_OP({
    .schema = "_conv_backward_weight(Tensor grad, Tensor input, int[] weight_size, int[] stride, "
              "int[] padding, int[] dilation, int groups) -> Tensor",
    .kind = Kind::kKernel,
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      check_supported(c.op, c.tensor(0).dtype());
      const Params p = read_params(c, 3);
      conv::check_sizes(c.op, c.tensor(1).sizes(), c.ints(2), c.tensor(0).sizes(), p);
      return run_kernel({"conv_backward_weight", "conv_backward_weight_strided"}, c.ints(2),
                        c.tensor(0), c.tensor(1), TensorBase(), p);
    },
    .saves = "grad:input input:grad",
    .backward =
        [](Backward& b) {
          Params p = read_params(b, 3);
          if (b.wants(0))
            b.set(0, op::_conv_forward(op::conj(b.tensor(1)), b.grad, TensorBase(), p.stride.span(),
                                       p.padding.span(), p.dilation.span(), p.groups));
          if (b.wants(1))
            b.set(1, op::_conv_backward_input(op::conj(b.tensor(0)), b.grad, b.shape(1).span(),
                                              p.stride.span(), p.padding.span(), p.dilation.span(),
                                              p.groups));
        },
    .aten = "convolution_backward",
});

namespace {

TensorBase convolve(const TensorBase& input, const TensorBase& weight, const TensorBase& bias,
                    const Params& p) {
  conv::check(input, weight, bias, p);
  if (!p.transposed)
    return op::_conv_forward(input, weight, bias, p.stride.span(), p.padding.span(),
                             p.dilation.span(), p.groups);
  Dims size = conv::output_size(input.sizes(), weight.sizes(), p);
  TensorBase out = op::_conv_backward_input(input, weight, size.span(), p.stride.span(),
                                            p.padding.span(), p.dilation.span(), p.groups);
  if (!bias.defined()) return out;
  Dims shape;
  for (int d = 0; d < out.dim(); ++d) shape.push_back(d == 1 ? -1 : 1);
  return op::add(out, op::reshape(bias, shape.span()));
}

}  // namespace

TS_OP({
    .schema = "convolution(Tensor input, Tensor weight, Tensor? bias, int[] stride, int[] padding, "
              "int[] dilation, bool transposed, int[] output_padding, int groups) -> Tensor",
    .doc = "Convolution or transposed convolution in one to three dimensions.",
    .example =
        "torch.convolution(torch.ones(1, 1, 4), torch.ones(1, 1, 2), None, (1,), (0,), (1,), "
        "False, (0,), 1)",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      int n = c.tensor(1).dim() - 2;
      TS_CHECK(n >= 1 && n <= 3, "weight should have at least three dimensions and at most five");
      Params p{conv::spread(c.ints(3), n, "stride"),
               conv::spread(c.ints(4), n, "padding"),
               conv::spread(c.ints(5), n, "dilation"),
               conv::spread(c.ints(7), n, "output_padding"),
               c.integer(8),
               c.flag(6)};
      check_same_device(c.op, c.args);
      return convolve(c.tensor(0), c.tensor(1), c.maybe(2), p);
    },
    .autocast = Autocast::kLowerGpu,
    .samples = {{"T(2, 3, 6), T(4, 3, 2), None, (1,), (0,), (1,), False, (0,), 1"}},
});

namespace {

// A batch of one where there is none.
TensorBase batched(const Op& op, const TensorBase& input, int n, bool* added) {
  *added = input.dim() == n + 1;
  TS_CHECK(*added || input.dim() == n + 2, "Expected ", n + 1, "D (unbatched) or ", n + 2,
           "D (batched) input to ", op.name, ", but got input of size: ", input.sizes());
  return *added ? op::unsqueeze(input, 0) : input;
}

Outputs conv_nd(const Call& c, int n) {
  bool added;
  check_same_device(c.op, c.args);
  TensorBase input = batched(c.op, c.tensor(0), n, &added);
  Params p;
  p.stride = conv::spread(c.ints(3), n, "stride");
  p.dilation = conv::spread(c.ints(5), n, "dilation");
  p.groups = c.integer(6);
  p.output_padding = Dims(p.stride.size());
  for (int64_t& v : p.output_padding) v = 0;
  p.padding = conv::spread(c.ints(4), n, "padding");
  TensorBase out = convolve(input, c.tensor(1), c.maybe(2), p);
  return added ? op::squeeze(out, 0) : out;
}

// padding="same": the total is divided evenly, an odd one has its larger half at the end.
Outputs conv_padded(const Call& c, int n) {
  std::string_view mode = c.text(4);
  TS_CHECK(mode == "same" || mode == "valid", "Invalid padding string: '", mode, "'");
  bool added;
  check_same_device(c.op, c.args);
  TensorBase input = batched(c.op, c.tensor(0), n, &added);
  const TensorBase& weight = c.tensor(1);
  TS_CHECK(weight.dim() == n + 2, "Expected weight of ", n + 2, " dimensions, but got size ",
           weight.sizes());
  Params p;
  p.stride = conv::spread(c.ints(3), n, "stride");
  p.dilation = conv::spread(c.ints(5), n, "dilation");
  p.groups = c.integer(6);
  p.padding = p.output_padding = Dims(p.stride.size());
  for (int d = 0; d < n; ++d) p.padding[d] = p.output_padding[d] = 0;
  if (mode == "same") {
    for (int64_t s : p.stride)
      TS_CHECK(s == 1, "padding='same' is not supported for strided convolutions");
    for (int d = 0; d < n; ++d) {
      TS_CHECK(p.dilation[d] > 0 && p.dilation[d] <= INT32_MAX,
               "dilation should be greater than zero, but got ", p.dilation);
      // A kernel of size 0 is refused later, with the others.
      int64_t total = p.dilation[d] * std::max<int64_t>(0, weight.sizes()[d + 2] - 1);
      p.padding[d] = total / 2;
      if (total % 2) input = op::_pad_end(input, d + 2, 1);
    }
  }
  TensorBase out = convolve(input, weight, c.maybe(2), p);
  return added ? op::squeeze(out, 0) : out;
}

Outputs conv_transpose_nd(const Call& c, int n) {
  bool added;
  check_same_device(c.op, c.args);
  TensorBase input = batched(c.op, c.tensor(0), n, &added);
  Params p{conv::spread(c.ints(3), n, "stride"),
           conv::spread(c.ints(4), n, "padding"),
           conv::spread(c.ints(7), n, "dilation"),
           conv::spread(c.ints(5), n, "output_padding"),
           c.integer(6),
           true};
  TensorBase out = convolve(input, c.tensor(1), c.maybe(2), p);
  return added ? op::squeeze(out, 0) : out;
}

}  // namespace

// Zeros after the end of a dimension.
TS_OP({
    .schema = "_pad_end(Tensor self, int dim, int count) -> Tensor",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& self = c.tensor(0);
      Dims size = self.sizes();
      check_integer(c, 1, 0, self.dim() - 1);
      check_integer(c, 2, 0);
      size_t d = static_cast<size_t>(c.integer(1));
      TS_CHECK(!__builtin_add_overflow(size[d], c.integer(2), &size[d]), c.op.name,
               "(): invalid padding ", c.integer(2));
      TensorBase out = new_empty(size, self.dtype(), self.device());
      fill(out, Scalar(0));
      copy_into(alias(out, self.sizes(), out.strides(), 0), self, false);
      return out;
    },
    .backward =
        [](Backward& b) {
          int64_t d = b.integer(1);
          b.set(0, op::slice(b.grad, d, 0, b.shape(0)[static_cast<size_t>(d)], 1));
        },
});

TS_OP({
    .schema = "conv1d(Tensor input, Tensor weight, Tensor? bias=None, int[1] stride=1, "
              "int[1] padding=0, int[1] dilation=1, int groups=1) -> Tensor",
    .also = "nn.functional.conv1d",
    .doc = "Convolution in one dimension.",
    .example = "torch.conv1d(torch.ones(1, 1, 4), torch.ones(1, 1, 2))",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs { return conv_nd(c, 1); },
    .autocast = Autocast::kLower,
    .samples = {{"T(2, 2, 5), T(4, 1, 2), T(4), 2, 1, 1, 2"}, {"T(2, 5), T(3, 2, 2)"}},
});
TS_OP({
    .schema = "conv1d(Tensor input, Tensor weight, Tensor? bias=None, int[1] stride=1, "
              "str padding=\"valid\", int[1] dilation=1, int groups=1) -> Tensor",
    .also = "nn.functional.conv1d",
    .doc = "Convolution whose padding is 'valid' (none) or 'same' (the output is as large as the "
           "input).",
    .example = "torch.conv1d(torch.ones(1, 1, 4), torch.ones(1, 1, 2), padding='same').shape",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs { return conv_padded(c, 1); },
    .autocast = Autocast::kLower,
    .samples = {{"T(2, 2, 5), T(3, 2, 2), None, 1, 'same'"}},
});
TS_OP({
    .schema = "conv_transpose1d(Tensor input, Tensor weight, Tensor? bias=None, int[1] stride=1, "
              "int[1] padding=0, int[1] output_padding=0, int groups=1, int[1] dilation=1) -> "
              "Tensor",
    .also = "nn.functional.conv_transpose1d",
    .doc = "Transposed convolution in one dimension: the gradient of a convolution by its input.",
    .example = "torch.conv_transpose1d(torch.ones(1, 1, 2), torch.ones(1, 1, 2)).shape",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs { return conv_transpose_nd(c, 1); },
    .autocast = Autocast::kLower,
    .samples = {{"T(2, 4, 5), T(4, 1, 2), T(2), 2, 1, 1, 2"}},
});

TS_OP({
    .schema = "conv2d(Tensor input, Tensor weight, Tensor? bias=None, int[2] stride=1, "
              "int[2] padding=0, int[2] dilation=1, int groups=1) -> Tensor",
    .also = "nn.functional.conv2d",
    .doc = "Convolution in two dimensions.",
    .example = "torch.conv2d(torch.ones(1, 1, 4, 4), torch.ones(1, 1, 2, 2))",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs { return conv_nd(c, 2); },
    .autocast = Autocast::kLower,
    .samples = {{"T(1, 2, 4, 4), T(4, 1, 2, 2), T(4), 2, 1, 1, 2"}, {"T(2, 4, 4), T(3, 2, 2, 2)"}},
});
TS_OP({
    .schema = "conv2d(Tensor input, Tensor weight, Tensor? bias=None, int[2] stride=1, "
              "str padding=\"valid\", int[2] dilation=1, int groups=1) -> Tensor",
    .also = "nn.functional.conv2d",
    .doc = "Convolution whose padding is 'valid' (none) or 'same' (the output is as large as the "
           "input).",
    .example = "torch.conv2d(torch.ones(1, 1, 4, 4), torch.ones(1, 1, 2, 2), padding='same').shape",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs { return conv_padded(c, 2); },
    .autocast = Autocast::kLower,
    .samples = {{"T(1, 2, 4, 4), T(3, 2, 2, 2), None, 1, 'same'"}},
});
TS_OP({
    .schema = "conv_transpose2d(Tensor input, Tensor weight, Tensor? bias=None, int[2] stride=1, "
              "int[2] padding=0, int[2] output_padding=0, int groups=1, int[2] dilation=1) -> "
              "Tensor",
    .also = "nn.functional.conv_transpose2d",
    .doc = "Transposed convolution in two dimensions: the gradient of a convolution by its input.",
    .example = "torch.conv_transpose2d(torch.ones(1, 1, 2, 2), torch.ones(1, 1, 2, 2)).shape",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs { return conv_transpose_nd(c, 2); },
    .autocast = Autocast::kLower,
    .samples = {{"T(1, 4, 3, 3), T(4, 1, 2, 2), T(2), 2, 1, 1, 2"}},
});

TS_OP({
    .schema = "conv3d(Tensor input, Tensor weight, Tensor? bias=None, int[3] stride=1, "
              "int[3] padding=0, int[3] dilation=1, int groups=1) -> Tensor",
    .also = "nn.functional.conv3d",
    .doc = "Convolution in three dimensions.",
    .example = "torch.conv3d(torch.ones(1, 1, 4, 4, 4), torch.ones(1, 1, 2, 2, 2))",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs { return conv_nd(c, 3); },
    .autocast = Autocast::kLower,
    .samples = {{"T(1, 2, 3, 3, 3), T(4, 1, 2, 2, 2), T(4), 2, 1, 1, 2"},
                {"T(2, 3, 3, 3), T(1, 2, 2, 2, 2)"}},
});
TS_OP({
    .schema = "conv3d(Tensor input, Tensor weight, Tensor? bias=None, int[3] stride=1, "
              "str padding=\"valid\", int[3] dilation=1, int groups=1) -> Tensor",
    .also = "nn.functional.conv3d",
    .doc = "Convolution whose padding is 'valid' (none) or 'same' (the output is as large as the "
           "input).",
    .example =
        "torch.conv3d(torch.ones(1, 1, 4, 4, 4), torch.ones(1, 1, 2, 2, 2), padding='same').shape",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs { return conv_padded(c, 3); },
    .autocast = Autocast::kLower,
    .samples = {{"T(1, 2, 3, 3, 3), T(1, 2, 2, 2, 2), None, 1, 'same'"}},
});
TS_OP({
    .schema = "conv_transpose3d(Tensor input, Tensor weight, Tensor? bias=None, int[3] stride=1, "
              "int[3] padding=0, int[3] output_padding=0, int groups=1, int[3] dilation=1) -> "
              "Tensor",
    .also = "nn.functional.conv_transpose3d",
    .doc =
        "Transposed convolution in three dimensions: the gradient of a convolution by its input.",
    .example = "torch.conv_transpose3d(torch.ones(1, 1, 2, 2, 2), torch.ones(1, 1, 2, 2, 2)).shape",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs { return conv_transpose_nd(c, 3); },
    .autocast = Autocast::kLower,
    .samples = {{"T(1, 4, 2, 2, 2), T(4, 1, 2, 2, 2), T(2), 2, 1, 1, 2"}},
});

}  // namespace tessera
