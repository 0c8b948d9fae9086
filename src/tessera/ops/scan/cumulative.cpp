#include "tessera/gen/binary.h"
#include "tessera/gen/complex.h"
#include "tessera/gen/copy.h"
#include "tessera/gen/creation.h"
#include "tessera/gen/index.h"
#include "tessera/gen/join.h"
#include "tessera/gen/scan.h"
#include "tessera/gen/unary.h"
#include "tessera/gen/view.h"
#include "tessera/ops/in_dtype.h"
#include "tessera/ops/loops.h"
#include "tessera/ops/valid.h"

namespace tessera {

namespace {

// Along a dimension, from its end where `reverse`; in the shape and dtype of `self`.
TensorBase scanned(const char* kernel, const TensorBase& self, int64_t dim, bool reverse) {
  const int64_t ints[] = {wrap_dim(dim, self.dim()), reverse};
  TensorBase out = new_empty(self.sizes(), self.dtype(), self.device());
  if (out.numel() == 0) return out;
  launch(kernel, {&out, 1}, {&self, 1}, ints);
  return out;
}

// With dtype the elements are converted first; integers and booleans become int64 by themselves.
TensorBase as_scanned(const Call& c, int dtype_arg) {
  const TensorBase& self = c.tensor(0);
  wrap_dim(c.integer(1), self.dim());
  const DType natural = is_integral(self.dtype(), true) ? DType::kInt64 : self.dtype();
  const DType dtype = c.dtype(dtype_arg, natural);
  TensorBase in = in_dtype(self, dtype);
  // A scan in bool is one of integers, brought back.
  return dtype == DType::kBool ? op::_to_dtype(in, DType::kInt64) : in;
}
Outputs cumulative(const char* kernel, const Call& c) {
  TensorBase out = scanned(kernel, as_scanned(c, 2), c.integer(1), false);
  return c.dtype(2, out.dtype()) == DType::kBool ? op::_to_dtype(out, DType::kBool) : out;
}

// The neighbour before each element along a dimension (behind it where by = -1), and `edge` where
// there is none.
TensorBase neighbours(const TensorBase& t, int64_t dim, int by, double edge) {
  const int64_t n = t.size(dim);
  if (n == 0) return t;
  Dims shape = t.sizes();
  shape[static_cast<size_t>(dim)] = 1;
  TensorBase end = op::full(shape.span(), Scalar(edge), t.dtype(), t.device());
  TensorBase rest = by > 0 ? op::slice(t, dim, 0, n - 1) : op::slice(t, dim, 1, n);
  TensorBase parts[] = {by > 0 ? end : rest, by > 0 ? rest : end};
  return op::cat(parts, dim);
}

Outputs extremes(const char* kernel, const Call& c) {
  const TensorBase& self = c.tensor(0);
  TS_CHECK(!is_complex(self.dtype()), c.op.name, "(): complex numbers have no order, got ",
           self.dtype());
  const int64_t dim = wrap_dim(c.integer(1), self.dim());
  TensorBase out[] = {new_empty(self.sizes(), self.dtype(), self.device()),
                      new_empty(self.sizes(), DType::kInt64, self.device())};
  if (self.numel() > 0) launch(kernel, out, {&self, 1}, {&dim, 1});
  return {out[0], out[1]};
}
// An element has the gradients of all results that are its value.
void extremes_backward(Backward& b) {
  const Dims& shape = b.shape(0);
  if (shape.ndim() == 0) return b.set(0, b.grad);
  const int64_t dim = wrap_dim(b.integer(1), shape.ndim());
  b.set(0, op::scatter_add(op::new_zeros(b.grad, shape.span()), dim, b.results[1], b.grad));
}

}  // namespace

// exp(a - b), and 1 where both are the same infinity.
TS_BODY(exp_difference, "tt", 't', 0, (TS_FLOATS, TS_COMPLEX),
        return exp(select(a == b, T(0), a - b));)
TS_OP({
    .schema = "_exp_difference(Tensor self, Tensor other) -> Tensor",
    .kind = Kind::kPointwise,
    .forms = kFunction,
    .body = &exp_difference_body,
    .saves = "result",
    .backward =
        [](Backward& b) {
          TensorBase g = op::mul(b.grad, op::conj(b.result));
          b.set(0, g);
          if (b.wants(1)) b.set(1, op::neg(g));
        },
});

TS_OP({
    .schema = "cumsum(Tensor self, int dim, *, dtype? dtype=None) -> Tensor",
    .doc = "Along a dimension, the sum of each element and all before it.",
    .example = "torch.cumsum(torch.tensor([1.0, 2.0, 3.0]), 0)",
    .kind = Kind::kKernel,
    .forms = kFunction | kMethod | kInplace | kOut,
    .run = [](const Call& c) { return cumulative("cumsum", c); },
    .backward = [](Backward& b) { b.set(0, op::_reverse_cumsum(b.grad, b.integer(1))); },
    .autocast = Autocast::kFloat32Gpu,
    .samples = {{"T(3, 4), 0"}, {"T(3, 4), -1"}, {"T(2, 3, 4), 1"}, {"T(), 0"}, {"T(0, 3), 1"}},
});

TS_OP({
    .schema = "_reverse_cumsum(Tensor self, int dim) -> Tensor",
    .kind = Kind::kKernel,
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      return scanned("cumsum", c.tensor(0), c.integer(1), true);
    },
    .backward = [](Backward& b) { b.set(0, op::cumsum(b.grad, b.integer(1))); },
});

TS_OP({
    .schema = "_affine_scan(Tensor factor, Tensor self, int dim, bool reverse) -> Tensor",
    .doc = "y[k] = self[k] + factor[k] * y[k - 1]; from the end, y[k + 1].",
    .kind = Kind::kKernel,
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& self = c.tensor(1);
      check_floating_or_complex(c, 1);
      check_shape(c, 0, self.sizes().span());
      check_dtype(c, 0, self.dtype());
      TensorBase out = new_empty(self.sizes(), self.dtype(), self.device());
      if (out.numel() == 0) return out;
      const TensorBase in[] = {c.tensor(0), self};
      const int64_t ints[] = {wrap_dim(c.integer(2), self.dim()), c.flag(3)};
      launch("affine_scan", {&out, 1}, in, ints);
      return out;
    },
    .saves = "factor result",
    .backward =
        [](Backward& b) {
          const int64_t dim = wrap_dim(b.integer(2), b.shape(1).ndim());
          const bool reverse = b.flag(3);
          const int by = reverse ? -1 : 1;
          // What a result contributes to the ones after it, in the other direction.
          TensorBase factor = neighbours(op::conj(b.tensor(0)), dim, -by, 0);
          TensorBase g = op::_affine_scan(factor, b.grad, dim, !reverse);
          b.set(1, g);
          if (b.wants(0)) b.set(0, op::mul(g, op::conj(neighbours(b.result, dim, by, 0))));
        },
});

TS_OP({
    .schema = "cumprod(Tensor self, int dim, *, dtype? dtype=None) -> Tensor",
    .doc = "Along a dimension, the product of each element and all before it.",
    .example = "torch.cumprod(torch.tensor([1.0, 2.0, 3.0]), 0)",
    .kind = Kind::kKernel,
    .forms = kFunction | kMethod | kInplace | kOut,
    .run = [](const Call& c) { return cumulative("cumprod", c); },
    .saves = "self result",
    .backward =
        [](Backward& b) {
          TensorBase x = b.tensor(0);
          if (x.dim() == 0) return b.set(0, b.grad);
          x = in_dtype(x, b.grad.dtype());
          const int64_t dim = wrap_dim(b.integer(1), x.dim());
          // Of element k: the product before it, times the sum over the results from k on of their
          // gradient and the elements between. No division: zeros are right.
          TensorBase between = neighbours(op::conj(x), dim, -1, 0);
          TensorBase behind = op::_affine_scan(between, b.grad, dim, true);
          b.set(0, op::mul(behind, op::conj(neighbours(b.result, dim, 1, 1))));
        },
    .autocast = Autocast::kFloat32Gpu,
    .samples = {{"T(3, 4), 0"}, {"T(3, 4), -1"}, {"T(2, 3, 4), 1"}, {"T(), 0"}, {"T(0, 3), 1"}},
});

TS_OP({
    .schema = "logcumsumexp(Tensor self, int dim) -> Tensor",
    .doc = "Along a dimension, the logarithm of the sum of the exponentials of each element and "
           "all before it.",
    .example = "torch.logcumsumexp(torch.tensor([1.0, 2.0, 3.0]), 0)",
    .kind = Kind::kKernel,
    .forms = kFunction | kMethod | kOut,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& self = c.tensor(0);
      TS_CHECK_IMPLEMENTED(is_differentiable(self.dtype()),
                           "\"logcumsumexp_out_cpu\" not implemented for ", self.dtype());
      return scanned("logcumsumexp", self, c.integer(1), false);
    },
    .saves = "self result",
    .backward =
        [](Backward& b) {
          const TensorBase& x = b.tensor(0);
          const TensorBase& y = b.result;
          if (x.dim() == 0) return b.set(0, b.grad);
          const int64_t dim = wrap_dim(b.integer(1), x.dim());
          // Results only grow, so each factor is at most 1 in size: nothing overflows.
          TensorBase next = neighbours(y, dim, -1, 0);
          TensorBase factor = op::_exp_difference(y, next);
          TensorBase behind = op::_affine_scan(op::conj(factor), b.grad, dim, true);
          b.set(0, op::mul(behind, op::conj(op::_exp_difference(x, y))));
        },
    .exact_out = true,
    .samples = {{"T(3, 4), 0"}, {"T(3, 4), -1"}, {"T(), 0"}},
});

TS_OP({
    .schema = "cummax(Tensor self, int dim) -> (Tensor values, Tensor indices)",
    .doc = "Along a dimension, the largest of each element and all before it, and where that is "
           "last.",
    .example = "torch.cummax(torch.tensor([1.0, 3.0, 2.0]), 0)",
    .kind = Kind::kKernel,
    .forms = kFunction | kMethod | kOut,
    .run = [](const Call& c) { return extremes("cummax", c); },
    .saves = "indices",
    .backward = extremes_backward,
    .samples = {{"T(3, 4), 0"}, {"T(3, 4), -1"}, {"T(), 0"}, {"T(0, 3), 1"}},
});

TS_OP({
    .schema = "cummin(Tensor self, int dim) -> (Tensor values, Tensor indices)",
    .doc = "Along a dimension, the smallest of each element and all before it, and where that is "
           "last.",
    .example = "torch.cummin(torch.tensor([1.0, 3.0, 2.0]), 0)",
    .kind = Kind::kKernel,
    .forms = kFunction | kMethod | kOut,
    .run = [](const Call& c) { return extremes("cummin", c); },
    .saves = "indices",
    .backward = extremes_backward,
    .samples = {{"T(3, 4), 0"}, {"T(3, 4), -1"}, {"T(), 0"}, {"T(0, 3), 1"}},
});

}  // namespace tessera
