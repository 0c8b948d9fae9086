// Products added to a tensor: beta * self + alpha * (product). With beta 0 self is not looked at,
// so NaN and infinities in it do not spread.
#include "tessera/gen/binary.h"
#include "tessera/gen/copy.h"
#include "tessera/gen/linalg.h"
#include "tessera/gen/view.h"
#include "tessera/ops/in_dtype.h"
#include "tessera/ops/linalg/common.h"
#include "tessera/ops/loops.h"

namespace tessera {

using linalg::conj;
using linalg::is_one;

TS_BODY(scaled_sum, "tt", 't', 2, (TS_NUMBERS, TS_COMPLEX), return s0 * a + s1 * b;)
TS_OP({
    .schema = "_scaled_sum(Tensor self, Tensor product, Scalar beta, Scalar alpha) -> Tensor",
    .kind = Kind::kPointwise,
    .forms = kFunction,
    .body = &scaled_sum_body,
    .backward =
        [](Backward& b) {
          if (b.wants(0)) b.set(0, op::mul(b.grad, conj(b.scalar(2))));
          if (b.wants(1)) b.set(1, op::mul(b.grad, conj(b.scalar(3))));
        },
});

namespace {

// Checks what the five records share: dtypes, factors that an integer result cannot hold.
void check_operands(const Call& c) {
  constexpr int beta = 3, alpha = 4;
  check_same_device(c.op, c.args);
  const DType self = c.tensor(0).dtype();
  for (int i : {1, 2})
    TS_CHECK(c.tensor(i).dtype() == self, "self and ", c.op.args[static_cast<size_t>(i)].name,
             " must have the same dtype, but got ", dtype_title(self), " and ",
             dtype_title(c.tensor(i).dtype()));
  for (int i : {beta, alpha})
    check_fits(c.scalar(i), is_reduced_floating(self) ? DType::kFloat32 : self);
}

// A factor as the result's dtype has it: for integers without its fraction.
Scalar factor(const Call& c, int i) {
  return is_differentiable(c.tensor(0).dtype()) ? c.scalar(i) : Scalar(c.scalar(i).to_int());
}

// Half floats are multiplied and added in float, and rounded once.
TensorBase wide(const TensorBase& t) {
  return is_reduced_floating(t.dtype()) ? op::_to_dtype(t, DType::kFloat32) : t;
}

TensorBase combine(const Call& c, const TensorBase& self, const TensorBase& product,
                   const Dims& shape) {
  const Scalar beta = factor(c, 3), alpha = factor(c, 4);
  TensorBase to = op::expand(self, shape.span()), out;
  if (beta.is_zero())
    out = is_one(alpha) ? product : op::mul(product, alpha);
  else
    out = op::_scaled_sum(wide(to), product, beta, alpha);
  DType dtype = c.tensor(0).dtype();
  return in_dtype(out, dtype);
}

TensorBase scaled(const TensorBase& t, Scalar s) { return is_one(s) ? t : op::mul(t, conj(s)); }

// The gradient of beta * self.
void set_self(Backward& b) {
  if (b.wants(0)) b.set(0, scaled(b.grad, b.scalar(3)));
}

}  // namespace

TS_OP({
    .schema = "addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> "
              "Tensor",
    .doc = "beta * self + alpha * (mat1 @ mat2).",
    .example = "torch.addmm(torch.ones(2, 2), torch.ones(2, 3), torch.ones(3, 2), alpha=2)",
    .kind = Kind::kKernel,
    .forms = kFunction | kMethod | kInplace | kOut,
    .run = [](const Call& c) -> Outputs {
      const TensorBase &self = c.tensor(0), &a = c.tensor(1), &b = c.tensor(2);
      TS_CHECK(a.dim() == 2, "mat1 must be a matrix, got ", a.dim(), "-D tensor");
      TS_CHECK(b.dim() == 2, "mat2 must be a matrix, got ", b.dim(), "-D tensor");
      check_operands(c);
      TS_CHECK(a.size(1) == b.size(0), "mat1 and mat2 shapes cannot be multiplied (", a.size(0),
               "x", a.size(1), " and ", b.size(0), "x", b.size(1), ")");
      // A row added to a product: the kernel does it before it rounds.
      if (self.dim() == 1 && self.size(0) == b.size(1) && is_one(c.scalar(3)) &&
          is_one(c.scalar(4)) && a.numel() > 0 && b.numel() > 0)
        return op::_mm_bias(a, b, self);
      return combine(c, self, op::mm(wide(a), wide(b)), {a.size(0), b.size(1)});
    },
    .saves = "mat1:mat2 mat2:mat1",
    .backward =
        [](Backward& b) {
          set_self(b);
          if (b.wants(1))
            b.set(1, scaled(linalg::gradient_of_left(b.grad, b.tensor(2), b.by_columns(1)),
                            b.scalar(4)));
          if (b.wants(2))
            b.set(2, scaled(linalg::gradient_of_right(b.tensor(1), b.grad, b.by_columns(2)),
                            b.scalar(4)));
        },
    .flops = [](const Call& c) { return linalg::product_flops(c.tensor(1), c.tensor(2)); },
    .autocast = Autocast::kLower,
    .exact_out = true,
    .samples = {{"T(2, 3), T(2, 4), T(4, 3)"},
                {"T(3), T(2, 4), T(4, 3), beta=2, alpha=3"},
                {"T(3), T(2, 4), T(4, 3)"}},
});

TS_OP({
    .schema = "addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> "
              "Tensor",
    .doc = "beta * self + alpha * (mat @ vec).",
    .example = "torch.addmv(torch.ones(2), torch.ones(2, 3), torch.ones(3))",
    .kind = Kind::kKernel,
    .forms = kFunction | kMethod | kInplace | kOut,
    .run = [](const Call& c) -> Outputs {
      const TensorBase &self = c.tensor(0), &mat = c.tensor(1), &vec = c.tensor(2);
      TS_CHECK(mat.dim() == 2 && vec.dim() == 1 && self.dim() <= 1,
               "vector + matrix @ vector expected, got ", self.dim(), ", ", mat.dim(), ", ",
               vec.dim());
      check_operands(c);
      TS_CHECK(mat.size(1) == vec.size(0) && (self.numel() == 1 || mat.size(0) == self.numel()),
               "size mismatch, got input (", self.dim() > 0 ? self.size(0) : 1, "), mat (",
               mat.size(0), "x", mat.size(1), "), vec (", vec.size(0), ")");
      return combine(c, self, op::mv(wide(mat), wide(vec)), {mat.size(0)});
    },
    .saves = "mat:vec vec:mat",
    .backward =
        [](Backward& b) {
          set_self(b);
          if (b.wants(1)) b.set(1, scaled(op::outer(b.grad, conj(b.tensor(2))), b.scalar(4)));
          if (b.wants(2)) b.set(2, scaled(op::mv(linalg::mH(b.tensor(1)), b.grad), b.scalar(4)));
        },
    .autocast = Autocast::kLowerGpu,
    .exact_out = true,
    .samples = {{"T(2), T(2, 3), T(3)"}, {"T(), T(2, 3), T(3), beta=2, alpha=3"}},
});

namespace {

void check_batches(const TensorBase& a, const TensorBase& b) {
  TS_CHECK(a.dim() == 3, "batch1 must be a 3D tensor");
  TS_CHECK(b.dim() == 3, "batch2 must be a 3D tensor");
  TS_CHECK(a.size(0) == b.size(0), "batch1 and batch2 must have same number of batches, got ",
           a.size(0), " and ", b.size(0));
  TS_CHECK(a.size(2) == b.size(1), "Incompatible matrix sizes for bmm (", a.size(1), "x", a.size(2),
           " and ", b.size(1), "x", b.size(2), ")");
}

}  // namespace

TS_OP({
    .schema = "addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) "
              "-> Tensor",
    .doc = "beta * self + alpha * (the sum of the products of two batches of matrices).",
    .example = "torch.addbmm(torch.ones(2, 2), torch.ones(4, 2, 3), torch.ones(4, 3, 2))",
    .kind = Kind::kKernel,
    .forms = kFunction | kMethod | kInplace | kOut,
    .run = [](const Call& c) -> Outputs {
      const TensorBase &self = c.tensor(0), &a = c.tensor(1), &b = c.tensor(2);
      check_batches(a, b);
      check_operands(c);
      // Half floats are rounded after each product, as in PyTorch.
      if (is_reduced_floating(self.dtype()) && a.size(0) > 0) {
        TensorBase sum = self;
        for (int64_t i = 0; i < a.size(0); ++i)
          sum = op::addmm(sum, op::select(a, 0, i), op::select(b, 0, i),
                          i == 0 ? c.scalar(3) : Scalar(1), c.scalar(4));
        return sum;
      }
      // One product: the matrices of a side by side, those of b one under the other.
      Dims rows{a.size(1), a.size(0) * a.size(2)}, columns{a.size(0) * a.size(2), b.size(2)};
      TensorBase x = op::reshape(op::transpose(wide(a), 0, 1), rows.span());
      TensorBase y = op::reshape(wide(b), columns.span());
      return combine(c, self, op::mm(x, y), {a.size(1), b.size(2)});
    },
    .saves = "batch1:batch2 batch2:batch1",
    .backward =
        [](Backward& b) {
          set_self(b);
          const Dims &x = b.shape(1), &y = b.shape(2);
          Dims all{x[0], x[1], y[2]};
          TensorBase g = op::expand(scaled(b.grad, b.scalar(4)), all.span());
          if (b.wants(1)) b.set(1, op::bmm(g, linalg::mH(b.tensor(2))));
          if (b.wants(2)) b.set(2, op::bmm(linalg::mH(b.tensor(1)), g));
        },
    .autocast = Autocast::kLower,
    .exact_out = true,
    .samples = {{"P(2, 3), P(2, 2, 5), P(2, 5, 3)"},
                {"P(3), P(2, 2, 5), P(2, 5, 3), beta=2, alpha=3"}},
});

TS_OP({
    .schema = "baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar "
              "alpha=1) -> Tensor",
    .doc = "beta * self + alpha * (the products of two batches of matrices).",
    .example = "torch.baddbmm(torch.ones(1, 2, 2), torch.ones(4, 2, 3), torch.ones(4, 3, 2)).shape",
    .kind = Kind::kKernel,
    .forms = kFunction | kMethod | kInplace | kOut,
    .run = [](const Call& c) -> Outputs {
      const TensorBase &self = c.tensor(0), &a = c.tensor(1), &b = c.tensor(2);
      check_batches(a, b);
      check_operands(c);
      return combine(c, self, op::bmm(wide(a), wide(b)), {a.size(0), a.size(1), b.size(2)});
    },
    .saves = "batch1:batch2 batch2:batch1",
    .backward =
        [](Backward& b) {
          set_self(b);
          if (b.wants(1))
            b.set(1, scaled(linalg::gradient_of_left(b.grad, b.tensor(2), b.by_columns(1)),
                            b.scalar(4)));
          if (b.wants(2))
            b.set(2, scaled(linalg::gradient_of_right(b.tensor(1), b.grad, b.by_columns(2)),
                            b.scalar(4)));
        },
    .flops = [](const Call& c) { return linalg::product_flops(c.tensor(1), c.tensor(2)); },
    .autocast = Autocast::kLower,
    .exact_out = true,
    .samples = {{"T(4, 2, 3), T(4, 2, 5), T(4, 5, 3)"},
                {"T(3), T(4, 2, 5), T(4, 5, 3), beta=2, alpha=3"}},
});

TS_OP({
    .schema = "addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> "
              "Tensor",
    .doc = "beta * self + alpha * (the outer product of two vectors).",
    .example = "torch.addr(torch.zeros(2, 3), torch.ones(2), torch.ones(3))",
    .forms = kFunction | kMethod | kInplace | kOut,
    .run = [](const Call& c) -> Outputs {
      const TensorBase &self = c.tensor(0), &a = c.tensor(1), &b = c.tensor(2);
      TS_CHECK(a.dim() == 1 && b.dim() == 1, "addr: Expected 1-D argument vec1 and vec2, but got ",
               a.dim(), "-D and ", b.dim(), "-D");
      check_same_device(c.op, c.args);
      Scalar beta = c.scalar(3), alpha = c.scalar(4);
      const DType type = promote(self.dtype(), promote(a.dtype(), b.dtype()));
      if (type == DType::kBool)
        TS_CHECK(beta.kind == Scalar::Kind::kBool || !beta.is_double(),
                 "Boolean beta only supported for Boolean results.");
      if (!is_differentiable(type)) {
        TS_CHECK(!beta.is_double(),
                 "For integral input tensors, argument beta must not be a floating point number.");
        TS_CHECK(!alpha.is_double(),
                 "For integral input tensors, argument alpha must not be a floating point number.");
      }
      Dims shape{a.size(0), b.size(0)};
      TensorBase to = op::expand(self, shape.span());
      TensorBase product = op::outer(a, b);
      product = in_dtype(product, type);
      if (type == DType::kBool) {  // "and" and "or"
        if (alpha.is_zero()) product = op::mul(product, Scalar(false));
        return beta.is_zero() ? product : op::add(product, to);
      }
      if (beta.is_zero()) return is_one(alpha) ? product : op::mul(product, alpha);
      return op::_scaled_sum(to, product, beta, alpha);
    },
    .autocast = Autocast::kLowerGpu,
    .samples = {{"T(2, 3), T(2), T(3)"}, {"T(2, 3), T(2), T(3), beta=2, alpha=3"}},
});

}  // namespace tessera
