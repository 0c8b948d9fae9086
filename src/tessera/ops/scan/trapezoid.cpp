#include "tessera/gen/binary.h"
#include "tessera/gen/creation.h"
#include "tessera/gen/reduce.h"
#include "tessera/gen/scan.h"
#include "tessera/gen/view.h"

namespace tessera {

namespace {

void check_no_bool(const Op& op, const TensorBase& t) {
  TS_CHECK(t.dtype() != DType::kBool, op.name,
           ": received a bool input for `x` or `y`, but bool is not supported");
}

struct Pairs {
  TensorBase left, right;
};
Pairs neighbours(const TensorBase& t, int64_t dim) {
  const int64_t n = t.size(dim);
  return {op::slice(t, dim, 0, std::max<int64_t>(n - 1, 0)), op::slice(t, dim, 1, n)};
}

// The distances between the points x, shaped to go with y.
TensorBase distances(const Op& op, const TensorBase& y, const TensorBase& x, int64_t dim) {
  check_no_bool(op, y);
  check_no_bool(op, x);
  Dims shape(static_cast<size_t>(y.dim()), 1);
  TensorBase at = x;
  if (x.dim() == 1) {
    TS_CHECK(x.size(0) == y.size(dim), op.name,
             ": There must be one `x` value for each sample point");
    shape[static_cast<size_t>(dim)] = x.size(0);
    at = op::reshape(x, shape.span());
  } else if (x.dim() < y.dim()) {
    std::copy(x.sizes().begin(), x.sizes().end(), shape.end() - x.dim());
    at = op::reshape(x, shape.span());
  }
  Pairs p = neighbours(at, dim);
  return op::sub(p.right, p.left);
}

Outputs whole_by_x(const Call& c) {
  const TensorBase& y = c.tensor(0);
  const int64_t dim = wrap_dim(c.integer(2), y.dim());
  if (y.size(dim) == 0) {
    Dims shape = y.sizes();
    shape.erase(static_cast<size_t>(dim));
    return op::new_zeros(y, shape.span());
  }
  TensorBase dx = distances(c.op, y, c.tensor(1), dim);
  Pairs p = neighbours(y, dim);
  TensorBase areas = op::mul(op::add(p.left, p.right), dx);
  return op::div(op::sum(areas, std::span(&dim, 1)), 2.0);
}
Outputs whole_by_dx(const Call& c) {
  const TensorBase& y = c.tensor(0);
  const int64_t dim = wrap_dim(c.integer(2), y.dim());
  if (y.size(dim) == 0) {
    Dims shape = y.sizes();
    shape.erase(static_cast<size_t>(dim));
    return op::new_zeros(y, shape.span());
  }
  check_no_bool(c.op, y);
  TensorBase ends = op::add(op::select(y, dim, 0), op::select(y, dim, -1));
  return op::mul(op::sub(op::sum(y, std::span(&dim, 1)), op::mul(ends, 0.5)), c.scalar(1));
}

}  // namespace

TS_OP({
    .schema = "trapezoid(Tensor y, Tensor x, *, int dim=-1) -> Tensor",
    .doc = "The integral along a dimension by trapezoids between the points x.",
    .example = "torch.trapezoid(torch.tensor([1.0, 5.0, 10.0]), torch.tensor([1.0, 3.0, 6.0]))",
    .forms = kFunction,
    .run = whole_by_x,
    .samples = {{"T(3, 4), T(4)"}, {"T(3, 4), T(3, 4), dim=0"}},
});
TS_OP({
    .schema = "trapezoid(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor",
    .doc = "The integral along a dimension by trapezoids of width dx.",
    .example = "torch.trapezoid(torch.tensor([1.0, 5.0, 10.0]))",
    .forms = kFunction,
    .run = whole_by_dx,
    .samples = {{"T(3, 4)"}, {"T(3, 4), dx=0.5, dim=0"}},
});
TS_OP({
    .schema = "trapz(Tensor y, Tensor x, *, int dim=-1) -> Tensor",
    .doc = "The integral along a dimension by trapezoids between the points x.",
    .example = "torch.trapz(torch.tensor([1.0, 5.0, 10.0]), torch.tensor([1.0, 3.0, 6.0]))",
    .forms = kFunction,
    .run = whole_by_x,
    .samples = {{"T(3, 4), T(4)"}},
});
TS_OP({
    .schema = "trapz(Tensor y, *, float dx=1, int dim=-1) -> Tensor",
    .doc = "The integral along a dimension by trapezoids of width dx.",
    .example = "torch.trapz(torch.tensor([1.0, 5.0, 10.0]))",
    .forms = kFunction,
    .run = whole_by_dx,
    .samples = {{"T(3, 4), dx=0.5, dim=0"}},
});

TS_OP({
    .schema = "cumulative_trapezoid(Tensor y, Tensor x, *, int dim=-1) -> Tensor",
    .doc = "The integral up to each point along a dimension, by trapezoids between the points x.",
    .example = "torch.cumulative_trapezoid(torch.tensor([1.0, 5.0, 10.0]), torch.tensor([1.0, 3.0, "
               "6.0]))",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& y = c.tensor(0);
      const int64_t dim = wrap_dim(c.integer(2), y.dim());
      TensorBase dx = distances(c.op, y, c.tensor(1), dim);
      Pairs p = neighbours(y, dim);
      return op::div(op::cumsum(op::mul(dx, op::add(p.left, p.right)), dim), 2.0);
    },
    .samples = {{"T(3, 4), T(4)"}, {"T(3, 4), T(3, 4), dim=0"}},
});
TS_OP({
    .schema = "cumulative_trapezoid(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor",
    .doc = "The integral up to each point along a dimension, by trapezoids of width dx.",
    .example = "torch.cumulative_trapezoid(torch.tensor([1.0, 5.0, 10.0]))",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& y = c.tensor(0);
      check_no_bool(c.op, y);
      const int64_t dim = wrap_dim(c.integer(2), y.dim());
      Pairs p = neighbours(y, dim);
      Scalar half = c.scalar(1).is_complex() ? Scalar(c128(c.scalar(1).d / 2, c.scalar(1).im / 2))
                                             : Scalar(c.scalar(1).to_double() / 2);
      return op::cumsum(op::mul(op::add(p.left, p.right), half), dim);
    },
    .samples = {{"T(3, 4)"}, {"T(3, 4), dx=0.5, dim=0"}},
});

}  // namespace tessera
