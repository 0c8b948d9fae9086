// Kernels that a backend may have:
//   attention_support   computes nothing: would the other two take these shapes?
//   attention_forward   out, stats = of queries, keys, values
//   attention_backward  dq, dk, dv = of gradient, queries, keys, values, out, stats
// All are told {causal, flags of conv/settings.h}, the last two {scale}. Tensors have four
// dimensions, [batch, heads, length, width], the last one dense and vectors of 16 bytes aligned.
#include "tessera/ops/attention/fused.h"

#include "tessera/gen/attention.h"
#include "tessera/gen/copy.h"
#include "tessera/gen/view.h"
#include "tessera/ops/attention/settings.h"
#include "tessera/ops/conv/settings.h"
#include "tessera/ops/support.h"
#include "tessera/ops/valid.h"

namespace tessera {

namespace {

constexpr int64_t kVector = 8, kMaxWidth = 256;

bool is_laid_out(const TensorBase& t) {
  if (reinterpret_cast<uintptr_t>(t.raw()) % 16) return false;  // what has no memory yet will be
  for (int d = 0; d < 4; ++d) {
    const int64_t step = t.strides()[static_cast<size_t>(d)];
    if (t.sizes()[static_cast<size_t>(d)] == 1) continue;
    // Elements that share a place are not what such kernels are made for.
    if (d == 3 ? step != 1 : step <= 0 || step % kVector) return false;
  }
  return true;
}
TensorBase laid_out(const TensorBase& t) {
  return is_laid_out(t) ? t : t.is_contiguous() ? op::clone(t) : op::contiguous(t);
}

// Of a result of [batch, heads, length, width]: heads lie side by side, as the next layer of a
// model wants them.
Dims result_strides(const Dims& size) {
  return {size[2] * size[1] * size[3], size[3], size[1] * size[3], 1};
}
// Of a gradient: as its tensor lies, without the gaps.
Dims gradient_strides(const TensorBase& t) {
  Dims s = preserved_strides(t);
  return s.back() == 1 ? s : contiguous_strides(t.sizes());
}

Dims kernel_ints(bool causal) { return {causal, conv::flags()}; }

Dims result_size(const TensorBase& q, const TensorBase& v) {
  return {q.sizes()[0], q.sizes()[1], q.sizes()[2], v.sizes()[3]};
}

// `t` with these strides: itself, or a copy.
TensorBase with_strides(const TensorBase& t, const Dims& strides) {
  bool same = reinterpret_cast<uintptr_t>(t.raw()) % 16 == 0;
  for (size_t d = 0; d < strides.size(); ++d)
    same &= t.sizes()[d] == 1 || t.strides()[d] == strides[d];
  if (same) return t;
  TensorBase out = new_empty_strided(t.sizes(), strides, t.dtype(), t.device());
  copy_into(out, t, false);
  return out;
}

// The arguments from `first` on are queries, keys and values that the kernels take.
void check_operands(const Call& c, int first) {
  const TensorBase& q = c.tensor(first);
  for (int arg = first; arg < first + 3; ++arg) {
    check_dim(c, arg, 4);
    check_dtype(c, arg, q.dtype());
  }
  TS_CHECK_IMPLEMENTED(is_reduced_floating(q.dtype()), c.op.name, "(): not implemented for ",
                       q.dtype());
  const TensorBase& k = c.tensor(first + 1);
  check_shape(c, first + 1, {q.size(0), -1, -1, q.size(3)});
  check_shape(c, first + 2, {q.size(0), k.size(1), k.size(2), -1});
  TS_CHECK(k.size(1) > 0 && q.size(1) % k.size(1) == 0, c.op.name, "(): ", q.size(1),
           " heads of queries do not share ", k.size(1), " heads of keys");
  for (int arg = first; arg < first + 3; ++arg)
    TS_CHECK_IMPLEMENTED(c.tensor(arg).numel() > 0 && c.tensor(arg).size(3) % kVector == 0 &&
                             c.tensor(arg).size(3) <= kMaxWidth && is_laid_out(c.tensor(arg)),
                         c.op.name, "(): not implemented for operands of size ",
                         c.tensor(arg).sizes(), " and stride ", c.tensor(arg).strides());
}

bool has_kernels(const TensorBase& q, const TensorBase& k, const TensorBase& v, bool causal,
                 bool with_gradient) {
  const Dims size = result_size(q, v), strides = result_strides(size);
  const Dims of_gradients[] = {gradient_strides(q), gradient_strides(k), gradient_strides(v)};
  std::vector<KernelTensor> operands;
  auto add = [&](const Dims& sizes, const Dims& steps) {
    operands.push_back({nullptr, q.dtype(), 4, sizes.data(), steps.data(), 1});
  };
  for (const TensorBase* t : {&q, &k, &v}) add(t->sizes(), t->strides());
  add(size, strides);
  if (with_gradient)
    for (int i = 0; i < 3; ++i) add((i == 0 ? q : i == 1 ? k : v).sizes(), of_gradients[i]);
  return supports(q.device(), "attention_support", operands, kernel_ints(causal));
}

}  // namespace

TensorBase attention::fused(const TensorBase& q, const TensorBase& k, const TensorBase& v,
                            bool causal, double scale, bool grouped) {
  const int64_t any_fused = attention::kFlash | attention::kEfficient | attention::kCudnn;
  if (!q.device().is_cuda() || !is_reduced_floating(q.dtype()) || !(ways() & any_fused) ||
      !(conv::flags() & conv::kVendorLibrary) || q.dim() < 3 || q.dim() > 4 || k.dim() != q.dim() ||
      v.dim() != q.dim() || !has_kernel(q.device(), "attention_support"))
    return {};
  if (q.dim() == 3) {
    auto four = [](const TensorBase& t) { return op::unsqueeze(t, 1); };
    TensorBase out = fused(four(q), four(k), four(v), causal, scale, false);
    return out.defined() ? op::squeeze(out, 1) : out;
  }
  const Dims &sq = q.sizes(), &sk = k.sizes(), &sv = v.sizes();
  const bool heads_fit =
      sk[1] == sv[1] && (sk[1] == sq[1] || (grouped && sk[1] > 0 && sq[1] % sk[1] == 0));
  if (!heads_fit || sk[0] != sq[0] || sv[0] != sq[0] || sk[2] != sv[2] || sk[3] != sq[3] ||
      sq[3] % kVector || sv[3] % kVector || sq[3] > kMaxWidth || sv[3] > kMaxWidth ||
      q.numel() == 0 || k.numel() == 0 || v.numel() == 0 ||
      std::max({q.numel(), k.numel(), v.numel()}) > INT32_MAX)
    return {};
  const TensorBase in[] = {laid_out(q), laid_out(k), laid_out(v)};
  if (!has_kernels(in[0], in[1], in[2], causal, is_recorded({q, k, v}))) return {};
  return op::_fused_attention(in[0], in[1], in[2], causal, scale)[0];
}

TS_OP({
    .schema = "_fused_attention(Tensor query, Tensor key, Tensor value, bool is_causal, "
              "float scale) -> (Tensor out, Tensor stats)",
    .kind = Kind::kKernel,
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      check_operands(c, 0);
      const TensorBase in[] = {c.tensor(0), c.tensor(1), c.tensor(2)};
      const Dims size = result_size(in[0], in[2]);
      const TensorBase out[] = {
          new_empty_strided(size, result_strides(size), in[0].dtype(), in[0].device()),
          new_empty({size[0], size[1], size[2]}, DType::kFloat32, in[0].device())};
      const double scale = c.number(4);
      launch("attention_forward", out, in, kernel_ints(c.flag(3)), {&scale, 1});
      return std::vector<TensorBase>{out[0], out[1]};
    },
    .saves = "query key value out stats",
    .backward =
        [](Backward& b) {
          Outputs grads =
              op::_fused_attention_backward(b.grad, b.tensor(0), b.tensor(1), b.tensor(2),
                                            b.results[0], b.results[1], b.flag(3), b.number(4));
          for (int i = 0; i < 3; ++i)
            if (b.wants(i)) b.set(i, grads[static_cast<size_t>(i)]);
        },
});

TS_OP({
    .schema = "_fused_attention_backward(Tensor grad, Tensor query, Tensor key, Tensor value, "
              "Tensor out, Tensor stats, bool is_causal, float scale) -> (Tensor, Tensor, Tensor)",
    .kind = Kind::kKernel,
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      check_operands(c, 1);
      const Dims size = result_size(c.tensor(1), c.tensor(3));
      for (int arg : {0, 4}) {
        check_shape(c, arg, size.span());
        check_dtype(c, arg, c.tensor(1).dtype());
      }
      check_shape(c, 5, {size[0], size[1], size[2]});
      check_dtype(c, 5, DType::kFloat32);
      const TensorBase in[] = {with_strides(c.tensor(0), c.tensor(4).strides()),
                               c.tensor(1),
                               c.tensor(2),
                               c.tensor(3),
                               c.tensor(4),
                               c.tensor(5)};
      std::vector<TensorBase> out;
      for (int i = 1; i <= 3; ++i)
        out.push_back(new_empty_strided(in[i].sizes(), gradient_strides(in[i]), in[i].dtype(),
                                        in[i].device()));
      const double scale = c.number(7);
      launch("attention_backward", out, in, kernel_ints(c.flag(6)), {&scale, 1});
      return out;
    },
    .backward =
        [](Backward&) {
          TS_CHECK_IMPLEMENTED(
              false,
              "derivative for _fused_attention_backward is not implemented: gradients of gradients "
              "of scaled_dot_product_attention need "
              "torch.nn.attention.sdpa_kernel(SDPBackend.MATH)");
        },
});

}  // namespace tessera
