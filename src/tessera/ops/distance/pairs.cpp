#include "tessera/gen/binary.h"
#include "tessera/gen/copy.h"
#include "tessera/gen/creation.h"
#include "tessera/gen/distance.h"
#include "tessera/gen/index.h"
#include "tessera/gen/join.h"
#include "tessera/gen/linalg.h"
#include "tessera/gen/rearrange.h"
#include "tessera/gen/reduce.h"
#include "tessera/gen/ternary.h"
#include "tessera/gen/unary.h"
#include "tessera/gen/view.h"
#include "tessera/ops/valid.h"

namespace tessera {

namespace {

constexpr std::string_view kWhenLarge = "use_mm_for_euclid_dist_if_necessary";

// Leading dimensions broadcast to one batch: [batch, rows, columns].
TensorBase as_batch(const TensorBase& t, const Dims& lead, int64_t count) {
  Dims whole = lead;
  whole.push_back(t.size(-2));
  whole.push_back(t.size(-1));
  const Dims flat{count, t.size(-2), t.size(-1)};
  return op::reshape(op::expand(t, whole.span()), flat.span());
}

}  // namespace

// Batches of dense rows: [batch, P, M], [batch, R, M] to [batch, P, R].
TS_OP({
    .schema = "_cdist(Tensor x1, Tensor x2, float p) -> Tensor",
    .kind = Kind::kKernel,
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      TS_CHECK_IMPLEMENTED(!is_reduced_floating(c.tensor(0).dtype()),
                           "cdist(): not implemented for ", c.tensor(0).dtype());
      const TensorBase& x = c.tensor(0);
      check_dim(c, 0, 3);
      check_shape(c, 1, {x.size(0), -1, x.size(2)});
      check_dtype(c, 1, x.dtype());
      const TensorBase in[] = {op::contiguous(c.tensor(0)), op::contiguous(c.tensor(1))};
      TensorBase out =
          new_empty({in[0].size(0), in[0].size(1), in[1].size(1)}, in[0].dtype(), in[0].device());
      const double p = c.number(2);
      if (out.numel() > 0) launch("cdist", {&out, 1}, in, {}, {&p, 1});
      return out;
    },
    .saves = "x1 x2 result",
    .backward =
        [](Backward& b) {
          const TensorBase &x1 = b.tensor(0), &x2 = b.tensor(1);
          const double p = b.number(2);
          if (b.wants(0)) b.set(0, op::_cdist_backward(b.grad, x1, x2, b.result, p));
          if (b.wants(1))
            b.set(1, op::_cdist_backward(op::transpose(b.grad, 1, 2), x2, x1,
                                         op::transpose(b.result, 1, 2), p));
        },
});
TS_OP({
    .schema = "_cdist_backward(Tensor grad, Tensor x1, Tensor x2, Tensor dist, float p) -> Tensor",
    .kind = Kind::kKernel,
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      check_dim(c, 1, 3);
      check_shape(c, 2, {c.tensor(1).size(0), -1, c.tensor(1).size(2)});
      TensorBase in[4];
      for (int i = 0; i < 4; ++i) {
        if (i % 3 == 0)  // of each pair
          check_shape(c, i, {c.tensor(1).size(0), c.tensor(1).size(1), c.tensor(2).size(1)});
        check_dtype(c, i, c.tensor(1).dtype());
        in[i] = op::contiguous(c.tensor(i));
      }
      TensorBase out = new_empty(in[1].sizes(), in[1].dtype(), in[1].device());
      const double p = c.number(4);
      if (out.numel() > 0) launch("cdist_backward", {&out, 1}, in, {}, {&p, 1});
      return out;
    },
    .backward =
        [](Backward&) {
          raise(ErrorKind::kNotImplemented,
                "the derivative for '_cdist_backward' is not implemented.");
        },
});

// By a matrix product: |a|^2 + |b|^2 - 2 a b, never below zero.
TS_OP({
    .schema = "_euclidean_dist(Tensor x1, Tensor x2) -> Tensor",
    .kind = Kind::kKernel,
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase &a = c.tensor(0), &b = c.tensor(1);
      const int64_t last = -1;
      TensorBase norm_a = op::sum(op::mul(a, a), std::span(&last, 1), true);
      TensorBase norm_b = op::sum(op::mul(b, b), std::span(&last, 1), true);
      const TensorBase left[] = {op::mul(a, -2), norm_a, op::ones_like(norm_a)};
      const TensorBase right[] = {b, op::ones_like(norm_b), norm_b};
      TensorBase squares = op::matmul(op::cat(left, -1), op::transpose(op::cat(right, -1), -2, -1));
      return op::sqrt(op::clamp(squares, Scalar(0)));
    },
    .saves = "x1 x2 result",
    .backward =
        [](Backward& b) {
          const TensorBase &x1 = b.tensor(0), &x2 = b.tensor(1);
          const int64_t last = -1;
          TensorBase ratio =
              op::masked_fill(op::div(b.grad, b.result), op::eq(b.result, 0), Scalar(0));
          auto gradient = [&](const TensorBase& r, const TensorBase& a, const TensorBase& other) {
            return op::sub(op::mul(a, op::sum(r, std::span(&last, 1), true)), op::matmul(r, other));
          };
          if (b.wants(0)) b.set(0, gradient(ratio, x1, x2));
          if (b.wants(1)) b.set(1, gradient(op::transpose(ratio, -2, -1), x2, x1));
        },
});

TS_OP({
    .schema = "cdist(Tensor x1, Tensor x2, float p=2.0, str "
              "compute_mode=\"use_mm_for_euclid_dist_if_necessary\") -> Tensor",
    .doc = "The p-norm distances of all pairs of rows of two matrices, or of batches of them.",
    .example = "torch.cdist(torch.tensor([[0.0, 0.0]]), torch.tensor([[3.0, 4.0], [0.0, 1.0]]))",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase &a = c.tensor(0), &b = c.tensor(1);
      const std::string_view mode = c.text(3);
      TS_CHECK_VALUE(mode == kWhenLarge || mode == "use_mm_for_euclid_dist" ||
                         mode == "donot_use_mm_for_euclid_dist",
                     mode, " is not a valid value for compute_mode");
      TS_CHECK(a.dim() >= 2, "cdist only supports at least 2D tensors, X1 got: ", a.dim(), "D");
      TS_CHECK(b.dim() >= 2, "cdist only supports at least 2D tensors, X2 got: ", b.dim(), "D");
      TS_CHECK(a.size(-1) == b.size(-1),
               "X1 and X2 must have the same number of columns. X1: ", a.size(-1),
               " X2: ", b.size(-1));
      TS_CHECK(is_floating(a.dtype()),
               "cdist only supports floating-point dtypes, X1 got: ", a.dtype());
      TS_CHECK(is_floating(b.dtype()),
               "cdist only supports floating-point dtypes, X2 got: ", b.dtype());
      TS_CHECK(a.dtype() == b.dtype(),
               "expected X1 and X2 to have the same dtype, but got: ", a.dtype(), " and ",
               b.dtype());
      check_same_device(c.op, c.args);
      const double p = c.number(2);
      TS_CHECK(p >= 0, "cdist only supports non-negative p values");
      auto lead = [](const TensorBase& t) {
        Dims d = t.sizes();
        d.resize(d.size() - 2);
        return d;
      };
      const Dims batch = broadcast_shapes(lead(a), lead(b));
      int64_t count = 1;
      for (int64_t d : batch) count *= d;
      TensorBase x = as_batch(a, batch, count), y = as_batch(b, batch, count);
      const bool large = a.size(-2) > 25 || b.size(-2) > 25;
      const bool product = p == 2 && a.size(-1) > 0 &&
                           (mode == "use_mm_for_euclid_dist" || (mode == kWhenLarge && large));
      Dims shape = batch;
      shape.push_back(a.size(-2));
      shape.push_back(b.size(-2));
      return op::reshape(product ? op::_euclidean_dist(x, y) : op::_cdist(x, y, p), shape.span());
    },
    .autocast = Autocast::kFloat32,
    .samples = {{"T(3, 4), T(5, 4)"}, {"T(2, 3, 4), T(5, 4), 1.0"}, {"T(3, 4), T(5, 4), 3.0"}},
});

TS_OP({
    .schema = "pdist(Tensor self, float p=2) -> Tensor",
    .also = "nn.functional.pdist",
    .doc = "The p-norm distances of all pairs of different rows of a matrix.",
    .example = "torch.pdist(torch.tensor([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]]))",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& self = c.tensor(0);
      TS_CHECK(self.dim() == 2, "pdist only supports 2D tensors, got: ", self.dim(), "D");
      TS_CHECK(is_floating(self.dtype()), "pdist only supports floating-point dtypes");
      TS_CHECK(c.number(1) >= 0, "pdist only supports non-negative p values");
      const int64_t n = self.size(0);
      if (n <= 1) {
        // No pairs, but still a result of self.
        const int64_t along = 1;
        return op::sum(op::slice(self, 0, 0, 0), std::span(&along, 1));
      }
      TensorBase rows = op::unsqueeze(self, 0);
      TensorBase all = op::squeeze(op::_cdist(rows, rows, c.number(1)), 0);
      const Dims square{n, n};
      TensorBase above = op::triu(op::ones(square.span(), DType::kBool, self.device()), 1);
      return op::masked_select(all, above);
    },
    .autocast = Autocast::kFloat32Gpu,
    .samples = {{"T(4, 3)"}, {"T(4, 3), 1"}},
});

TS_OP({
    .schema = "pairwise_distance(Tensor x1, Tensor x2, float p=2, float eps=1e-06, bool "
              "keepdim=False) -> Tensor",
    .also = "nn.functional.pairwise_distance",
    .doc = "The p-norm of x1 - x2 + eps along the last dimension.",
    .example = "torch.pairwise_distance(torch.tensor([[0.0, 0.0]]), torch.tensor([[3.0, 4.0]]))",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      TensorBase d = op::add(op::sub(c.tensor(0), c.tensor(1)), c.scalar(3));
      const int64_t dim = std::max(c.tensor(0).dim(), c.tensor(1).dim()) - 1;
      return op::norm(d, c.scalar(2), std::span(&dim, 1), c.flag(4));
    },
    .autocast = Autocast::kFloat32Gpu,
    .samples = {{"T(3, 4), T(3, 4)"}, {"T(3, 4), T(4), 1, 1e-06, True"}},
});

TS_OP({
    .schema = "dist(Tensor self, Tensor other, Scalar p=2) -> Tensor",
    .doc = "The p-norm of self - other.",
    .example = "torch.dist(torch.tensor([0.0, 0.0]), torch.tensor([3.0, 4.0]))",
    .run = [](const Call& c) -> Outputs {
      return op::norm(op::sub(c.tensor(0), c.tensor(1)), c.scalar(2));
    },
    .autocast = Autocast::kFloat32Gpu,
    .samples = {{"T(3, 4), T(3, 4)"}, {"T(3, 4), T(4), 1"}},
});

}  // namespace tessera
