#include "reduction.h"
#include "tessera/gen/activation.h"
#include "tessera/gen/binary.h"
#include "tessera/gen/bitwise.h"
#include "tessera/gen/copy.h"
#include "tessera/gen/creation.h"
#include "tessera/gen/distance.h"
#include "tessera/gen/index.h"
#include "tessera/gen/reduce.h"
#include "tessera/gen/scan.h"
#include "tessera/gen/ternary.h"
#include "tessera/gen/unary.h"
#include "tessera/gen/view.h"

namespace tessera {

namespace {

// A loss of rows: [N, C], or [C] as a batch of one.
struct Rows {
  TensorBase x;
  bool single;
};
Rows rows_of(const TensorBase& input) {
  TS_CHECK((input.dim() == 2 && input.size(1) > 0) || (input.dim() == 1 && input.size(0) > 0) ||
               input.dim() == 0,
           "Expected non-empty vector or matrix with optional 0-dim batch size, but got: ",
           input.sizes());
  if (input.dim() == 2) return {input, false};
  const Dims row{1, -1};
  return {op::reshape(input, row.span()), true};
}

}  // namespace

TS_OP({
    .schema = "nn.functional.margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, "
              "float margin=0, bool? size_average=None, bool? reduce=None, str "
              "reduction=\"mean\") -> Tensor",
    .doc = "max(0, margin - target * (input1 - input2)), of targets 1 and -1.",
    .example = "torch.nn.functional.margin_ranking_loss(torch.tensor([0.1]), torch.tensor([0.3]), "
               "torch.tensor([1.0]))",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase &a = c.tensor(0), &b = c.tensor(1), &t = c.tensor(2);
      const Reduction how = reduction_of(c, 4, 5, 6);
      TS_CHECK(a.dim() == b.dim() && a.dim() == t.dim(),
               "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
               "input1: ",
               a.sizes(), ", input2: ", b.sizes(), ", target: ", t.sizes(), " ");
      TensorBase z = op::add(op::mul(op::neg(t), op::sub(a, b)), c.scalar(3));
      return reduced(op::clamp(z, Scalar(0)), how);
    },
    .autocast = Autocast::kFloat32,
    .samples = {{"T(6), T(6), U(6), 0.5"}},
});

TS_OP({
    .schema = "nn.functional.hinge_embedding_loss(Tensor input, Tensor target, float margin=1.0, "
              "bool? size_average=None, bool? reduce=None, str reduction=\"mean\") -> Tensor",
    .doc = "The input where the target is 1, max(0, margin - input) where it is -1.",
    .example = "torch.nn.functional.hinge_embedding_loss(torch.tensor([0.3, 0.4]), "
               "torch.tensor([1.0, -1.0]))",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase &x = c.tensor(0), &t = c.tensor(1);
      // Beside integers the margin is one.
      Scalar margin = is_differentiable(x.dtype()) ? c.scalar(2) : Scalar(c.scalar(2).to_int());
      TensorBase far = op::clamp(op::rsub(x, margin), Scalar(0));
      TensorBase zero = op::zeros_like(far);
      TensorBase losses =
          op::add(op::where(op::ne(t, 1), far, zero), op::where(op::ne(t, -1), x, zero));
      return reduced(losses, reduction_of(c, 3, 4, 5));
    },
    .autocast = Autocast::kFloat32,
    .samples = {{"T(6), U(6)"}},
});

TS_OP({
    .schema = "nn.functional.cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, "
              "float margin=0, bool? size_average=None, bool? reduce=None, str "
              "reduction=\"mean\") -> Tensor",
    .doc = "1 - cos where the target is 1, max(0, cos - margin) where it is -1.",
    .example = "torch.nn.functional.cosine_embedding_loss(torch.ones(1, 2), torch.ones(1, 2), "
               "torch.tensor([-1.0]))",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase &a = c.tensor(0), &b = c.tensor(1), &t = c.tensor(2);
      TS_CHECK(t.dim() <= 1, "0D or 1D target tensor expected, multi-target not supported");
      TS_CHECK(a.dim() == t.dim() + 1 && b.dim() == t.dim() + 1, t.dim(),
               "D target tensor expects ", t.dim() + 1,
               "D input tensors, but found inputs with sizes ", a.sizes(), " and ", b.sizes(), ".");
      const int64_t dim = t.dim();
      auto dot = [&](const TensorBase& x, const TensorBase& y) {
        return op::sum(op::mul(x, y), std::span(&dim, 1));
      };
      TensorBase sizes = op::mul(op::add(dot(a, a), 1e-12), op::add(dot(b, b), 1e-12));
      TensorBase cosine = op::div(dot(a, b), op::sqrt(sizes));
      TensorBase zero = op::zeros_like(cosine);
      TensorBase apart = op::clamp(op::sub(cosine, c.scalar(3)), Scalar(0));
      TensorBase losses = op::add(op::where(op::eq(t, 1), op::rsub(cosine, 1), zero),
                                  op::where(op::eq(t, -1), apart, zero));
      return reduced(losses, reduction_of(c, 4, 5, 6));
    },
    .autocast = Autocast::kFloat32,
});

TS_OP({
    .schema = "nn.functional.triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, "
              "float margin=1.0, float p=2, float eps=1e-06, bool swap=False, bool? "
              "size_average=None, bool? reduce=None, str reduction=\"mean\") -> Tensor",
    .doc = "max(0, margin + distance to the positive - distance to the negative).",
    .example = "torch.nn.functional.triplet_margin_loss(torch.zeros(1, 2), torch.ones(1, 2), "
               "torch.ones(1, 2))",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase &a = c.tensor(0), &p = c.tensor(1), &n = c.tensor(2);
      const Reduction how = reduction_of(c, 7, 8, 9);
      TS_CHECK_VALUE(c.number(3) > 0, "margin must be greater than 0, got ", c.number(3));
      TS_CHECK(a.dim() == p.dim() && a.dim() == n.dim(),
               "The anchor, positive, and negative tensors are expected to have the same number of "
               "dimensions, but got: anchor ",
               a.dim(), "D, positive ", p.dim(), "D, and negative ", n.dim(), "D inputs");
      auto distance = [&](const TensorBase& x, const TensorBase& y) {
        return op::pairwise_distance(x, y, c.number(4), c.number(5));
      };
      TensorBase to_positive = distance(a, p), to_negative = distance(a, n);
      if (c.flag(6)) to_negative = op::minimum(to_negative, distance(p, n));
      TensorBase z = op::sub(op::add(to_positive, c.scalar(3)), to_negative);
      return reduced(op::clamp(z, Scalar(0)), how);
    },
    .autocast = Autocast::kFloat32,
    .samples = {{"T(3, 4), U(3, 4), P(3, 4)"}, {"T(3, 4), U(3, 4), P(3, 4), swap=True"}},
});

TS_OP({
    .schema = "nn.functional.multi_margin_loss(Tensor input, Tensor target, int p=1, float "
              "margin=1.0, Tensor? weight=None, bool? size_average=None, bool? reduce=None, str "
              "reduction=\"mean\") -> Tensor",
    .doc = "The mean over all other classes of max(0, margin - x[target] + x[class]) to the power "
           "p.",
    .example = "torch.nn.functional.multi_margin_loss(torch.tensor([[0.1, 0.2, 0.4]]), "
               "torch.tensor([2]))",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const Reduction how = reduction_of(c, 5, 6, 7);
      const TensorBase x = rows_of(c.tensor(0)).x;
      const TensorBase& given = c.tensor(1);
      const int64_t n = x.size(0), classes = x.size(1), p = c.integer(2);
      TS_CHECK_VALUE(p == 1 || p == 2, "only p == 1 and p == 2 supported");
      if (c.has(4)) TS_CHECK_VALUE(c.tensor(4).dim() == 1, "weight must be one-dimensional");
      TS_CHECK(given.dim() <= 1 && given.numel() == n, "inconsistent target size, expected ", n,
               " but got ", given.sizes());
      TS_CHECK(given.dtype() == DType::kInt64, "expected scalar type Long but found ",
               dtype_title(given.dtype()));
      if (c.has(4))
        TS_CHECK(c.tensor(4).numel() == classes, "inconsistent weight size, expected ", classes,
                 " but got ", c.tensor(4).sizes());
      const Dims column{n, 1};
      TensorBase t = op::reshape(given, column.span());
      TensorBase z = op::relu(op::add(op::sub(x, op::gather(x, 1, t)), c.scalar(3)));
      if (p == 2) z = op::mul(z, z);
      if (c.has(4)) {
        const Dims flat{n};
        TensorBase w = op::index_select(c.tensor(4), 0, op::reshape(given, flat.span()));
        z = op::mul(z, op::unsqueeze(w, 1));
      }
      TensorBase own = op::scatter(op::zeros_like(z), 1, t, op::ones_like(op::slice(z, 1, 0, 1)));
      TensorBase others = op::mul(z, op::rsub(own, 1));
      const int64_t one = 1;
      TensorBase losses = op::div(op::sum(others, std::span(&one, 1)), Scalar(classes));
      if (given.dim() == 0 && how == Reduction::kNone) losses = op::squeeze(losses, 0);
      return reduced(losses, how);
    },
    .autocast = Autocast::kFloat32,
});

TS_OP({
    .schema = "nn.functional.multilabel_margin_loss(Tensor input, Tensor target, bool? "
              "size_average=None, bool? reduce=None, str reduction=\"mean\") -> Tensor",
    .doc = "For each label before the first -1 and each class that is none, max(0, 1 - x[label] + "
           "x[class]), over the number of classes.",
    .example = "torch.nn.functional.multilabel_margin_loss(torch.tensor([[0.1, 0.2, 0.4, 0.8]]), "
               "torch.tensor([[3, 0, -1, 1]]))",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const Reduction how = reduction_of(c, 2, 3, 4);
      const auto [x, single] = rows_of(c.tensor(0));
      const TensorBase& given = c.tensor(1);
      TS_CHECK(given.sizes() == c.tensor(0).sizes(), "inconsistent target size ", given.sizes(),
               " for input of size: ", c.tensor(0).sizes());
      TS_CHECK(given.dtype() == DType::kInt64, "expected scalar type Long but found ",
               dtype_title(given.dtype()));
      const int64_t classes = x.size(1), labels = 2;
      TensorBase t = op::reshape(given, x.sizes().span());
      TensorBase counts = op::eq(op::cumsum(op::lt(t, 0), 1), 0);  // before the first -1
      t = op::where(counts, t, op::zeros_like(t));
      TensorBase weight = op::_to_dtype(counts, x.dtype());
      TensorBase is_label = op::gt(op::scatter_add(op::zeros_like(x), 1, t, weight), 0);
      // [N, labels, classes]
      TensorBase z = op::sub(op::unsqueeze(x, 1), op::unsqueeze(op::gather(x, 1, t), 2));
      z = op::mul(op::relu(op::add(z, 1)), op::unsqueeze(weight, 2));
      z = op::mul(z, op::unsqueeze(op::logical_not(is_label), 1));
      const int64_t dims[] = {1, labels};
      TensorBase losses = op::div(op::sum(z, dims), Scalar(classes));
      if (single && how == Reduction::kNone) losses = op::squeeze(losses, 0);
      return reduced(losses, how);
    },
    .autocast = Autocast::kFloat32,
});

}  // namespace tessera
