#include "tessera/gen/softmax.h"
#include "tessera/driver/current.h"
#include "tessera/gen/binary.h"
#include "tessera/gen/copy.h"
#include "tessera/gen/reduce.h"
#include "tessera/gen/unary.h"
#include "tessera/ops/in_dtype.h"
#include "tessera/ops/valid.h"

namespace tessera {

namespace {

// The dimension of a kernel over rows, and the rows.
constexpr int64_t kLast[] = {1};
Rows rows_of(const TensorBase& t, uint32_t whole = 1) {
  const int64_t n = t.size(-1);
  return {0, 0, t.numel() / n, n, -1, whole};
}

Outputs along_dim(const Call& c, const char* kernel) {
  const TensorBase& self = c.tensor(0);
  DType dtype = c.dtype(2, self.dtype());
  TS_CHECK_IMPLEMENTED(is_floating(dtype), "\"", c.op.name, "\" not implemented for ", dtype);
  int64_t dim = wrap_dim(c.integer(1), self.dim());
  TensorBase in = in_dtype(self, dtype);
  if (self.dim() > 0 && dim == self.dim() - 1 && in.numel() > 0 && in.is_contiguous()) {
    TensorBase out = new_unallocated(self.sizes(), dtype, self.device());
    launch_later(kernel, {&out, 1}, {&in, 1}, kLast, {}, rows_of(in));
    return out;
  }
  TensorBase out = new_empty(self.sizes(), dtype, self.device());
  if (out.numel() == 0 || out.device().is_meta()) return out;
  if (self.dim() == 0) {  // a row of one
    dim = 0;
    TensorBase to = alias(out, {1}, {1}, out.storage_offset());
    TensorBase from = alias(in, {1}, {1}, in.storage_offset());
    launch(kernel, {&to, 1}, {&from, 1}, {&dim, 1});
    return out;
  }
  launch(kernel, {&out, 1}, {&in, 1}, {&dim, 1});
  return out;
}

TensorBase total(const TensorBase& t, int64_t dim) {
  return op::sum(t, std::span<const int64_t>(&dim, 1), true);
}

// By the kernel of that name, where the backend has it.
bool launch_backward(const Call& c, const char* kernel, TensorBase& out) {
  const TensorBase& grad = c.tensor(0);
  check_shape(c, 1, grad.sizes().span());
  check_floating(c, 0);
  check_dtype(c, 1, grad.dtype());
  if (!has_kernel(grad.device(), kernel) || grad.dim() == 0) return false;
  int64_t dim = wrap_dim(c.integer(2), grad.dim());
  TensorBase in[] = {grad, c.tensor(1)};
  if (dim == grad.dim() - 1 && grad.numel() > 0 && grad.is_contiguous() && in[1].is_contiguous() &&
      in[1].sizes() == grad.sizes()) {
    out = new_unallocated(grad.sizes(), grad.dtype(), grad.device());
    launch_later(kernel, {&out, 1}, in, kLast, {}, rows_of(grad, 3));
    return true;
  }
  out = new_empty(grad.sizes(), grad.dtype(), grad.device());
  if (out.numel() > 0) launch(kernel, {&out, 1}, in, {&dim, 1});
  return true;
}

}  // namespace

TS_OP({
    .schema = "softmax(Tensor self, int dim, dtype? dtype=None) -> Tensor",
    .also = "special.softmax",
    .doc = "Exponentials along a dimension, divided by their sum.",
    .example = "torch.softmax(torch.tensor([1.0, 2.0, 3.0]), dim=0)",
    .kind = Kind::kKernel,
    .forms = kFunction | kMethod | kOut,
    .run = [](const Call& c) { return along_dim(c, "softmax"); },
    .saves = "result",
    .backward =
        [](Backward& b) { b.set(0, op::_softmax_backward(b.grad, b.result, b.integer(1))); },
    .autocast = Autocast::kFloat32Gpu,
    .exact_out = true,
    .samples = {{"T(3, 4), 0"}, {"T(3, 4), -1"}, {"T(2, 3, 4), 1"}, {"T(), 0"}, {"T(0, 3), 1"}},
});

TS_OP({
    .schema = "log_softmax(Tensor self, int dim, dtype? dtype=None) -> Tensor",
    .also = "special.log_softmax",
    .doc = "The logarithm of softmax, without its loss of digits.",
    .example = "torch.log_softmax(torch.tensor([1.0, 2.0, 3.0]), dim=0)",
    .kind = Kind::kKernel,
    .forms = kFunction | kMethod | kOut,
    .run = [](const Call& c) { return along_dim(c, "log_softmax"); },
    .saves = "result",
    .backward =
        [](Backward& b) { b.set(0, op::_log_softmax_backward(b.grad, b.result, b.integer(1))); },
    .autocast = Autocast::kFloat32Gpu,
    .exact_out = true,
    .samples = {{"T(3, 4), 0"}, {"T(3, 4), -1"}, {"T(2, 3, 4), 1"}, {"T(), 0"}, {"T(0, 3), 1"}},
});

TS_OP({
    .schema = "_softmax_backward(Tensor grad, Tensor result, int dim) -> Tensor",
    .kind = Kind::kKernel,
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      TensorBase out;
      if (launch_backward(c, "softmax_backward", out)) return out;
      TensorBase weighted = op::mul(c.tensor(0), c.tensor(1));
      return op::sub(weighted, op::mul(c.tensor(1), total(weighted, c.integer(2))));
    },
    .saves = "grad result",
    .backward =
        [](Backward& b) {
          const TensorBase &g = b.tensor(0), &y = b.tensor(1);
          const int64_t dim = b.integer(2);
          if (b.wants(0)) b.set(0, op::_softmax_backward(b.grad, y, dim));
          if (!b.wants(1)) return;
          TensorBase direct = op::mul(b.grad, op::sub(g, total(op::mul(g, y), dim)));
          b.set(1, op::sub(direct, op::mul(g, total(op::mul(b.grad, y), dim))));
        },
    .aten = "_softmax_backward_data",
});

TS_OP({
    .schema = "_log_softmax_backward(Tensor grad, Tensor result, int dim) -> Tensor",
    .kind = Kind::kKernel,
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      TensorBase out;
      if (launch_backward(c, "log_softmax_backward", out)) return out;
      TensorBase p = op::exp(c.tensor(1));
      return op::sub(c.tensor(0), op::mul(p, total(c.tensor(0), c.integer(2))));
    },
    .saves = "grad result",
    .backward =
        [](Backward& b) {
          const int64_t dim = b.integer(2);
          TensorBase p = op::exp(b.tensor(1)), weighted = op::mul(b.grad, p);
          if (b.wants(0)) b.set(0, op::sub(b.grad, total(weighted, dim)));
          if (b.wants(1)) b.set(1, op::neg(op::mul(weighted, total(b.tensor(0), dim))));
        },
    .aten = "_log_softmax_backward_data",
});

}  // namespace tessera
