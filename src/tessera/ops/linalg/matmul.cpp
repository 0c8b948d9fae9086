#include "tessera/gen/linalg.h"
#include "tessera/gen/view.h"
#include "tessera/ops/linalg/common.h"
#include "tessera/ops/linalg/settings.h"
#include "tessera/ops/valid.h"

namespace tessera {

namespace {

// [B, M, K] x [B, K, N], with an optional row that is added.
void launch_product(const TensorBase& out, std::span<const TensorBase> in) {
  const int64_t tf32 = linalg::allow_tf32();
  launch("matmul", {&out, 1}, in, {&tf32, 1});
}

}  // namespace

TS_OP({
    .schema = "bmm(Tensor self, Tensor mat2) -> Tensor",
    .doc = "Products of two batches of matrices.",
    .example = "torch.bmm(torch.ones(2, 3, 4), torch.ones(2, 4, 5)).shape",
    .kind = Kind::kKernel,
    .forms = kFunction | kMethod | kOut,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& a = c.tensor(0);
      const TensorBase& b = c.tensor(1);
      check_same_device(c.op, c.args);
      TS_CHECK(a.dim() == 3 && b.dim() == 3, "batch1 and batch2 must be 3D tensors, got ", a.dim(),
               "D and ", b.dim(), "D");
      TS_CHECK(a.dtype() == b.dtype(),
               "expected m1 and m2 to have the same dtype, but got: ", a.dtype(),
               " != ", b.dtype());
      TS_CHECK(a.sizes()[0] == b.sizes()[0] && a.sizes()[2] == b.sizes()[1],
               "Expected size for first two dimensions of batch2 tensor to be: [", a.sizes()[0],
               ", ", a.sizes()[2], "] but got: [", b.sizes()[0], ", ", b.sizes()[1], "].");
      TensorBase out = new_empty({a.sizes()[0], a.sizes()[1], b.sizes()[2]}, a.dtype(), a.device());
      if (out.numel() == 0) return out;
      TensorBase in[] = {a, b};
      launch_product(out, in);
      return out;
    },
    .saves = "self:mat2 mat2:self",
    .backward =
        [](Backward& b) {
          if (b.wants(0)) b.set(0, linalg::gradient_of_left(b.grad, b.tensor(1), b.by_columns(0)));
          if (b.wants(1)) b.set(1, linalg::gradient_of_right(b.tensor(0), b.grad, b.by_columns(1)));
        },
    .flops = [](const Call& c) { return linalg::product_flops(c.tensor(0), c.tensor(1)); },
    .autocast = Autocast::kLower,
    .exact_out = true,
    .samples = {{"T(2, 3, 4), T(2, 4, 5)"}},
});

namespace {

// A matrix as a batch of one.
TensorBase as_one(const TensorBase& t) {
  return alias(t, {1, t.sizes()[0], t.sizes()[1]}, {0, t.strides()[0], t.strides()[1]},
               t.storage_offset());
}

}  // namespace

TS_OP({
    .schema = "mm(Tensor self, Tensor mat2) -> Tensor",
    .doc = "The product of two matrices.",
    .example = "torch.mm(torch.ones(2, 3), torch.ones(3, 2))",
    .kind = Kind::kKernel,
    .forms = kFunction | kMethod | kOut,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& a = c.tensor(0);
      const TensorBase& b = c.tensor(1);
      check_same_device(c.op, c.args);
      TS_CHECK(a.dim() == 2, "self must be a matrix");
      TS_CHECK(b.dim() == 2, "mat2 must be a matrix");
      TS_CHECK(a.sizes()[1] == b.sizes()[0], "mat1 and mat2 shapes cannot be multiplied (",
               a.sizes()[0], "x", a.sizes()[1], " and ", b.sizes()[0], "x", b.sizes()[1], ")");
      TS_CHECK(a.dtype() == b.dtype(),
               "expected m1 and m2 to have the same dtype, but got: ", a.dtype(),
               " != ", b.dtype());
      TensorBase out = new_empty({a.sizes()[0], b.sizes()[1]}, a.dtype(), a.device());
      if (out.numel() == 0) return out;
      TensorBase in[] = {as_one(a), as_one(b)};
      TensorBase to = as_one(out);
      launch_product(to, in);
      return out;
    },
    .saves = "self:mat2 mat2:self",
    .backward =
        [](Backward& b) {
          if (b.wants(0)) b.set(0, linalg::gradient_of_left(b.grad, b.tensor(1), b.by_columns(0)));
          if (b.wants(1)) b.set(1, linalg::gradient_of_right(b.tensor(0), b.grad, b.by_columns(1)));
        },
    .flops = [](const Call& c) { return linalg::product_flops(c.tensor(0), c.tensor(1)); },
    .autocast = Autocast::kLower,
    .exact_out = true,
    .samples = {{"T(3, 4), T(4, 5)"}, {"T(0, 4), T(4, 5)"}, {"T(3, 0), T(0, 5)"}},
});

// With a row added to each row of the product before that is rounded.
TS_OP({
    .schema = "_mm_bias(Tensor self, Tensor mat2, Tensor bias) -> Tensor",
    .kind = Kind::kKernel,
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase &a = c.tensor(0), &b = c.tensor(1);
      check_dim(c, 0, 2);
      check_shape(c, 1, {a.size(1), -1});
      check_shape(c, 2, {b.size(1)});
      check_dtype(c, 1, a.dtype());
      check_dtype(c, 2, a.dtype());
      TensorBase out = new_empty({a.size(0), b.size(1)}, a.dtype(), a.device());
      TensorBase in[] = {as_one(a), as_one(b), c.tensor(2)};
      TensorBase to = as_one(out);
      launch_product(to, in);
      return out;
    },
    .aten = "addmm",
    .not_differentiable = true,  // addmm, which calls it, has the gradient
});

namespace {

// Leading dimensions broadcast, then folded into one batch.
TensorBase batched_matmul(const TensorBase& a, const TensorBase& b) {
  auto lead = [](const TensorBase& t) {
    Dims d = t.sizes();
    d.resize(d.size() - 2);
    return d;
  };
  int64_t m = a.size(-2), k = a.size(-1), n = b.size(-1);
  Dims batch = broadcast_shapes(lead(a), lead(b));
  int64_t count = 1;
  for (int64_t d : batch) count *= d;
  Dims shape_a = batch, shape_b = batch, out = batch;
  shape_a.push_back(m);
  shape_a.push_back(k);
  shape_b.push_back(b.size(-2));
  shape_b.push_back(n);
  out.push_back(m);
  out.push_back(n);
  Dims flat_a{count, m, k}, flat_b{count, b.size(-2), n};
  TensorBase x = op::reshape(op::expand(a, shape_a.span()), flat_a.span());
  TensorBase y = op::reshape(op::expand(b, shape_b.span()), flat_b.span());
  return op::reshape(op::bmm(x, y), out.span());
}

}  // namespace

TS_OP({
    .schema = "matmul(Tensor self, Tensor other) -> Tensor",
    .doc = "The matrix product: of vectors, matrices, or batches of matrices by broadcasting.",
    .example = "torch.matmul(torch.ones(2, 3), torch.ones(3))",
    .kind = Kind::kComposite,
    .forms = kFunction | kMethod | kOut,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& a = c.tensor(0);
      const TensorBase& b = c.tensor(1);
      check_same_device(c.op, c.args);
      int da = a.dim(), db = b.dim();
      TS_CHECK(da > 0 && db > 0, "both arguments to matmul need to be at least 1D, but they are ",
               da, "D and ", db, "D");
      if (da == 2 && db == 2) return op::mm(a, b);
      if (da == 1 && db == 1) return op::dot(a, b);
      if (da == 2 && db == 1) return op::mv(a, b);
      if (da == 1) return op::squeeze(op::matmul(op::unsqueeze(a, 0), b), -2);
      if (db == 1) return op::squeeze(op::matmul(a, op::unsqueeze(b, 1)), -1);
      if (db == 2) {  // one matrix for all rows of a: a single product
        Dims out = a.sizes();
        const int64_t inner = out.back();
        out.resize(out.size() - 1);
        Dims flat{linalg::numel_of(out), inner};
        out.push_back(b.size(1));
        return op::reshape(op::mm(op::reshape(a, flat.span()), b), out.span());
      }
      return batched_matmul(a, b);
    },
    .autocast = Autocast::kLower,
    .exact_out = true,
    .operators = "__matmul__",
    .samples = {{"T(3, 4), T(4, 5)"},
                {"T(4), T(4)"},
                {"T(3, 4), T(4)"},
                {"T(4), T(4, 5)"},
                {"T(2, 3, 4), T(4, 5)"},
                {"T(2, 1, 3, 4), T(5, 4, 2)"}},
});

}  // namespace tessera
