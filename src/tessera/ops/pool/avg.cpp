// Average pooling, regular and adaptive.
#include "tessera/gen/copy.h"
#include "tessera/gen/pool.h"
#include "tessera/gen/reduce.h"
#include "tessera/ops/pool/geometry.h"
#include "tessera/ops/valid.h"

namespace tessera {

namespace {

using pool::Windows;

struct Divisor {
  bool include_pad = true;
  int64_t fixed = 0;  // divides all, if not 0
};

TensorBase averages(const Op& op, const TensorBase& input, const Windows& w, Divisor by) {
  TS_CHECK_IMPLEMENTED(
      is_floating(input.dtype()) || (input.dtype() == DType::kInt64 && !w.adaptive), "\"", op.name,
      "\" not implemented for ", input.dtype());
  const int n = w.spatial();
  const MemoryFormat f = pool::format_of(input, n);
  const Dims size = pool::output_shape(input, w);
  if (w.adaptive && input.numel() > 0) {
    Dims dims;
    for (int d = input.dim() - n; d < input.dim(); ++d)
      if (size[d] == 1) dims.push_back(d);
    if (dims.ndim() == n) {  // one window: a mean, which also takes in what is around it
      TensorBase mean = op::mean(input, dims.span(), true);
      return alias(mean, size, strides_in(size, f), mean.storage_offset());
    }
  }
  TensorBase out = new_empty_strided(size, strides_in(size, f), input.dtype(), input.device());
  if (out.numel() == 0) return out;
  TensorBase dense = op::contiguous(input, f);
  TensorBase from = pool::planes(dense, n, f), to = pool::planes(out, n, f);
  launch("pool_avg", {&to, 1}, {&from, 1},
         pool::kernel_ints(w, {by.include_pad ? 1 : 0, by.fixed}).span());
  return out;
}

TensorBase spread_back(const Op& op, const TensorBase& grad, const Windows& w, Divisor by,
                       const Dims& size) {
  const int n = w.spatial();
  Dims expected = size;
  for (int d = 0; d < n; ++d) expected[expected.size() - w.out.size() + d] = w.out[d];
  TS_CHECK(grad.sizes() == expected, op.name, "(): expected grad to have shape ", expected,
           ", but got shape ", grad.sizes());
  TS_CHECK_IMPLEMENTED(is_floating(grad.dtype()) || grad.dtype() == DType::kInt64, "\"", op.name,
                       "\" not implemented for ", grad.dtype());
  const MemoryFormat f = pool::format_of(grad, n);
  TensorBase out = new_empty_strided(size, strides_in(size, f), grad.dtype(), grad.device());
  if (grad.numel() == 0) {
    fill(out, Scalar(0));
    return out;
  }
  TensorBase dense = op::contiguous(grad, f);
  TensorBase from = pool::planes(dense, n, f), to = pool::planes(out, n, f);
  launch("pool_avg_backward", {&to, 1}, {&from, 1},
         pool::kernel_ints(w, {by.include_pad ? 1 : 0, by.fixed}).span());
  return out;
}

Windows windows_of(const Op& op, const TensorBase& like, int n, const Dims& kernel,
                   const Dims& stride, const Dims& padding, bool ceil_mode) {
  return pool::regular(op, like, n, kernel, stride, padding, Dims{1}, ceil_mode);
}

Divisor divisor_of(bool include_pad, std::optional<int64_t> fixed) {
  TS_CHECK(!fixed || *fixed != 0, "divisor must be not zero");
  return {include_pad, fixed.value_or(0)};
}

}  // namespace

// The gradient of an average pool, and its own, which is the pool again.
TS_OP({
    .schema =
        "_avg_pool_backward(Tensor grad, int[] size, int spatial, int[] kernel, int[] stride, "
        "int[] padding, bool ceil_mode, bool include_pad, int divisor) -> Tensor",
    .kind = Kind::kKernel,
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      check_integer(c, 2, 1, 3);
      checked_numel(c, c.ints(1));
      TensorBase like = new_unallocated(c.ints(1), c.tensor(0).dtype(), c.tensor(0).device());
      Windows w = windows_of(c.op, like, static_cast<int>(c.integer(2)), c.ints(3), c.ints(4),
                             c.ints(5), c.flag(6));
      return spread_back(c.op, c.tensor(0), w, {c.flag(7), c.integer(8)}, c.ints(1));
    },
    .backward =
        [](Backward& b) {
          b.set(0, op::_avg_pool(b.grad, b.integer(2), b.args[3].ints, b.args[4].ints,
                                 b.args[5].ints, b.flag(6), b.flag(7), b.integer(8)));
        },
});
TS_OP({
    .schema = "_avg_pool(Tensor self, int spatial, int[] kernel, int[] stride, int[] padding, "
              "bool ceil_mode, bool include_pad, int divisor) -> Tensor",
    .kind = Kind::kKernel,
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      check_integer(c, 1, 1, 3);
      Windows w = windows_of(c.op, c.tensor(0), static_cast<int>(c.integer(1)), c.ints(2),
                             c.ints(3), c.ints(4), c.flag(5));
      return averages(c.op, c.tensor(0), w, {c.flag(6), c.integer(7)});
    },
    .backward =
        [](Backward& b) {
          b.set(0, op::_avg_pool_backward(b.grad, b.shape(0).span(), b.integer(1), b.args[2].ints,
                                          b.args[3].ints, b.args[4].ints, b.flag(5), b.flag(6),
                                          b.integer(7)));
        },
});
TS_OP({
    .schema = "_adaptive_avg_pool_backward(Tensor grad, int[] size, int spatial) -> Tensor",
    .kind = Kind::kKernel,
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& grad = c.tensor(0);
      check_integer(c, 2, 1, 3);
      checked_numel(c, c.ints(1));
      int n = static_cast<int>(c.integer(2));
      check_length(c, 1, grad.sizes().size());
      TS_CHECK(grad.dim() > n, c.op.name, "(): expected grad to have more than ", n,
               " dimensions, but got shape ", grad.sizes());
      TensorBase like = new_unallocated(c.ints(1), grad.dtype(), grad.device());
      Dims out;
      for (int d = grad.dim() - n; d < grad.dim(); ++d) out.push_back(grad.sizes()[d]);
      return spread_back(c.op, grad, pool::adaptive(c.op, like, n, out), {}, c.ints(1));
    },
    .backward =
        [](Backward& b) {
          int64_t n = b.integer(2);
          const Dims& shape = b.shape(0);
          Dims out;
          for (size_t d = shape.size() - static_cast<size_t>(n); d < shape.size(); ++d)
            out.push_back(shape[d]);
          b.set(0, op::_adaptive_avg_pool(b.grad, n, out.span()));
        },
});
TS_OP({
    .schema = "_adaptive_avg_pool(Tensor self, int spatial, int[] output_size) -> Tensor",
    .kind = Kind::kKernel,
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      check_integer(c, 1, 1, 3);
      int n = static_cast<int>(c.integer(1));
      return averages(c.op, c.tensor(0), pool::adaptive(c.op, c.tensor(0), n, c.ints(2)), {});
    },
    .backward =
        [](Backward& b) {
          b.set(0, op::_adaptive_avg_pool_backward(b.grad, b.shape(0).span(), b.integer(1)));
        },
});

TS_OP({
    .schema = "avg_pool1d(Tensor self, int[1] kernel_size, int[1]? stride=None, int[1] padding=0, "
              "bool ceil_mode=False, bool count_include_pad=True) -> Tensor",
    .also = "nn.functional.avg_pool1d",
    .doc = "The average of each window, in one dimension.",
    .example = "torch.nn.functional.avg_pool1d(torch.ones(1, 1, 6), 2).shape",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      Divisor by = divisor_of(c.flag(5), std::nullopt);
      Windows w = windows_of(c.op, c.tensor(0), 1, c.ints(1), c.ints(2), c.ints(3), c.flag(4));
      return op::_avg_pool(c.tensor(0), 1, w.kernel.span(), w.stride.span(), w.padding.span(),
                           c.flag(4), by.include_pad, by.fixed);
    },
    .samples = {{"T(2, 2, 6), 3, 2, 1"}, {"T(2, 6), 2, 2, 1, True, False"}},
});
TS_OP({
    .schema = "adaptive_avg_pool1d(Tensor self, int[1] output_size) -> Tensor",
    .doc = "The averages of the windows that divide the input evenly.",
    .example = "torch.adaptive_avg_pool1d(torch.ones(1, 1, 6), 2).shape",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      return op::_adaptive_avg_pool(c.tensor(0), 1, c.ints(1).span());
    },
    .samples = {{"T(2, 2, 6), 4"}},
});

TS_OP({
    .schema =
        "avg_pool2d(Tensor self, int[2] kernel_size, int[2]? stride=None, int[2] padding=0, "
        "bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor",
    .also = "nn.functional.avg_pool2d",
    .doc = "The average of each window, in two dimensions.",
    .example = "torch.nn.functional.avg_pool2d(torch.ones(1, 1, 6, 6), 2).shape",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      Divisor by =
          divisor_of(c.flag(5), c.has(6) ? std::optional<int64_t>(c.integer(6)) : std::nullopt);
      Windows w = windows_of(c.op, c.tensor(0), 2, c.ints(1), c.ints(2), c.ints(3), c.flag(4));
      return op::_avg_pool(c.tensor(0), 2, w.kernel.span(), w.stride.span(), w.padding.span(),
                           c.flag(4), by.include_pad, by.fixed);
    },
    .samples = {{"T(1, 2, 4, 4), 3, 2, 1"}, {"T(2, 4, 4), 2, 2, 1, True, False"}},
});
TS_OP({
    .schema = "adaptive_avg_pool2d(Tensor self, int[2] output_size) -> Tensor",
    .doc = "The averages of the windows that divide the input evenly.",
    .example = "torch.adaptive_avg_pool2d(torch.ones(1, 1, 6, 6), 2).shape",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      return op::_adaptive_avg_pool(c.tensor(0), 2, c.ints(1).span());
    },
    .samples = {{"T(1, 2, 4, 4), 3"}},
});

TS_OP({
    .schema =
        "avg_pool3d(Tensor self, int[3] kernel_size, int[3]? stride=None, int[3] padding=0, "
        "bool ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor",
    .also = "nn.functional.avg_pool3d",
    .doc = "The average of each window, in three dimensions.",
    .example = "torch.nn.functional.avg_pool3d(torch.ones(1, 1, 6, 6, 6), 2).shape",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      Divisor by =
          divisor_of(c.flag(5), c.has(6) ? std::optional<int64_t>(c.integer(6)) : std::nullopt);
      Windows w = windows_of(c.op, c.tensor(0), 3, c.ints(1), c.ints(2), c.ints(3), c.flag(4));
      return op::_avg_pool(c.tensor(0), 3, w.kernel.span(), w.stride.span(), w.padding.span(),
                           c.flag(4), by.include_pad, by.fixed);
    },
    .autocast = Autocast::kFloat32Cpu,
    .samples = {{"T(1, 1, 3, 3, 3), 2, 1, 1"}, {"T(1, 3, 3, 3), 2, 2, 1, True, False"}},
});
TS_OP({
    .schema = "adaptive_avg_pool3d(Tensor self, int[3] output_size) -> Tensor",
    .doc = "The averages of the windows that divide the input evenly.",
    .example = "torch.adaptive_avg_pool3d(torch.ones(1, 1, 6, 6, 6), 2).shape",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      return op::_adaptive_avg_pool(c.tensor(0), 3, c.ints(1).span());
    },
    .autocast = Autocast::kFloat32Cpu,
    .samples = {{"T(1, 1, 3, 3, 3), 2"}},
});

}  // namespace tessera
