#include "dims.h"
#include "tessera/gen/binary.h"
#include "tessera/gen/copy.h"
#include "tessera/gen/creation.h"
#include "tessera/gen/reduce.h"
#include "tessera/ops/gradient.h"
#include "tessera/ops/reduce_loops.h"

namespace tessera {

TS_REDUCE(prod, (TS_NUMBERS, TS_COMPLEX), T(1), a, x* y, x)

namespace {

Outputs product(const Call& c, const Dims& dims, bool keepdim, int dtype_arg) {
  const TensorBase& self = c.tensor(0);
  DType natural = is_integral(self.dtype(), true) ? DType::kInt64 : self.dtype();
  DType out = c.dtype(dtype_arg, natural);
  const bool converts = c.has(dtype_arg) && reg_class(out) != reg_class(self.dtype());
  return reduce(prod_reduce, converts ? op::_to_dtype(self, out) : self, dims, keepdim, out);
}

// Along the last dimension, the product of all elements but one, for each. By pairs: the others of
// an element are the others of its pair, times its partner. No division, so that zeros are right,
// also in higher derivatives.
TensorBase products_of_others(const TensorBase& x) {
  const int64_t n = x.size(-1), last = n - 1;
  if (n <= 1) return op::ones_like(x);
  TensorBase out = op::new_zeros(x, x.sizes().span());
  if (n % 2 != 0) {
    TensorBase front = op::slice(x, -1, 0, last);
    TensorBase times_last = op::mul(products_of_others(front), op::slice(x, -1, last));
    op::copy_(op::slice(out, -1, 0, last), times_last);
    op::copy_(op::select(out, -1, last), op::prod(front, -1));
  } else {
    TensorBase even = op::slice(x, -1, 0, n, 2), odd = op::slice(x, -1, 1, n, 2);
    TensorBase others = products_of_others(op::mul(even, odd));
    op::copy_(op::slice(out, -1, 0, n, 2), op::mul(others, odd));
    op::copy_(op::slice(out, -1, 1, n, 2), op::mul(others, even));
  }
  return out;
}

}  // namespace

TS_OP({
    .schema = "prod(Tensor self, *, dtype? dtype=None) -> Tensor",
    .doc = "The product of all elements.",
    .example = "torch.prod(torch.tensor([1.0, 2.0, 3.0]))",
    .kind = Kind::kReduction,
    .run = [](const Call& c) -> Outputs {
      Dims dims;
      for (int d = 0; d < c.tensor(0).dim(); ++d) dims.push_back(d);
      return product(c, dims, false, 1);
    },
    .saves = "self",
    .backward =
        [](Backward& b) {
          const TensorBase& x = b.tensor(0);
          Dims flat{-1}, shape = x.sizes();
          TensorBase others = products_of_others(op::reshape(x, flat.span()));
          b.set(0, grad::times(b.grad, op::reshape(others, shape.span())));
        },
    .autocast = Autocast::kFloat32,
    .samples = {{"T(3, 4)"}, {"T()"}, {"T(0, 3)"}, {"T(7)"}},
});

TS_OP({
    .schema = "prod(Tensor self, int dim, bool keepdim=False, *, dtype? dtype=None) -> Tensor",
    .doc = "The product of the elements along a dimension.",
    .example = "torch.prod(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), 0)",
    .kind = Kind::kReduction,
    .forms = kFunction | kMethod | kOut,
    .run = [](const Call& c) -> Outputs {
      Dims dims;
      const int ndim = c.tensor(0).dim();
      const int64_t dim = wrap_dim(c.integer(1), ndim);
      if (ndim > 0) dims.push_back(dim);
      return product(c, dims, c.flag(2), 3);
    },
    .saves = "self",
    .backward =
        [](Backward& b) {
          const TensorBase& x = b.tensor(0);
          if (x.dim() == 0) return b.set(0, b.grad);
          const int64_t dim = wrap_dim(b.integer(1), x.dim());
          TensorBase others = op::transpose(products_of_others(op::transpose(x, dim, -1)), dim, -1);
          b.set(0, grad::times(b.flag(2) ? b.grad : op::unsqueeze(b.grad, dim), others));
        },
    .autocast = Autocast::kFloat32,
    .samples = {{"T(3, 4), 0"}, {"T(3, 4), -1, keepdim=True"}, {"T(), 0"}, {"T(0, 3), 0"}},
});

}  // namespace tessera
