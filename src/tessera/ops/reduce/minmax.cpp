#include "dims.h"
#include "tessera/gen/binary.h"
#include "tessera/gen/copy.h"
#include "tessera/gen/reduce.h"
#include "tessera/gen/view.h"
#include "tessera/ops/loops.h"
#include "tessera/ops/picked.h"

namespace tessera {

// Equal, or both NaN.
TS_BODY(same, "tt", 'b', 0, (TS_ALL), return (a == b) | ((a != a) & (b != b));)
TS_OP({
    .schema = "_same(Tensor self, Tensor other) -> Tensor",
    .kind = Kind::kPointwise,
    .types = TypeRule::kCompare,
    .forms = kFunction,
    .body = &same_body,
    .not_differentiable = true,
});

namespace {

void check_ordered(const Op& op, const TensorBase& self) {
  TS_CHECK(!is_complex(self.dtype()), op.name, "(): does not support complex input");
}
void check_not_empty(const Op& op, const TensorBase& self) {
  TS_CHECK(self.numel() > 0, op.name,
           "(): Expected reduction dim to be specified for input.numel() == 0. Specify the "
           "reduction dim with the 'dim' argument.");
}

// The extreme element of each line and where it is; `values` may stay undefined.
struct Extremes {
  TensorBase values, indices;
};
Extremes extremes(const char* kernel, const Op& op, const TensorBase& self, int64_t dim,
                  bool keepdim, bool with_values) {
  check_ordered(op, self);
  dim = wrap_dim(dim, self.dim());
  TS_CHECK_INDEX(self.dim() == 0 || self.size(dim) > 0, op.name, "(): Expected reduction dim ", dim,
                 " to have non-zero size.");
  const Dims shape = shape_without(self.sizes(), dim, keepdim);
  TensorBase out[] = {with_values ? new_empty(shape, self.dtype(), self.device()) : TensorBase(),
                      new_empty(shape, DType::kInt64, self.device())};
  if (out[1].numel() > 0)
    launch(kernel, with_values ? std::span(out) : std::span(out).last(1), {&self, 1}, {&dim, 1});
  return {out[0], out[1]};
}

Outputs by_dim(const char* kernel, const Call& c) {
  Extremes e = extremes(kernel, c.op, c.tensor(0), c.integer(1), c.flag(2), true);
  return {e.values, e.indices};
}
void by_dim_backward(Backward& b) {
  b.set(0, to_where_picked(b, b.grad, b.results[1], b.integer(1), b.flag(2)));
}

// Equal elements share the gradient.
void of_all_backward(Backward& b) {
  TensorBase mask = op::_to_dtype(op::_same(b.tensor(0), b.result), b.grad.dtype());
  b.set(0, op::mul(op::div(b.grad, op::sum(mask)), mask));
}

// Without a dimension: of the elements in row-major order.
Outputs position(const char* kernel, const Call& c) {
  const TensorBase& self = c.tensor(0);
  const bool keepdim = c.flag(2);
  if (c.has(1)) return extremes(kernel, c.op, self, c.integer(1), keepdim, false).indices;
  check_ordered(c.op, self);
  TS_CHECK_INDEX(self.numel() > 0, c.op.name,
                 "(): Expected reduction dim to be specified for input.numel() == 0. Specify the "
                 "reduction dim with the 'dim' argument.");
  const Dims flat{self.numel()};
  TensorBase at = extremes(kernel, c.op, op::reshape(self, flat.span()), 0, false, false).indices;
  const Dims ones(static_cast<size_t>(keepdim ? self.dim() : 0), 1);
  return op::reshape(at, ones.span());
}

}  // namespace

TS_OP({
    .schema = "max(Tensor self) -> Tensor",
    .doc = "The largest element. Equal ones share the gradient.",
    .example = "torch.max(torch.tensor([1.0, 3.0, 2.0]))",
    .kind = Kind::kReduction,
    .forms = kFunction | kMethod | kOut,
    .run = [](const Call& c) -> Outputs {
      check_ordered(c.op, c.tensor(0));
      check_not_empty(c.op, c.tensor(0));
      return op::amax(c.tensor(0));
    },
    .saves = "self result",
    .backward = of_all_backward,
    .samples = {{"T(3, 4)"}, {"T()"}},
});
TS_OP({
    .schema = "max(Tensor self, Tensor other) -> Tensor",
    .doc = "The larger of two elements, element by element.",
    .example = "torch.max(torch.tensor([1.0, 3.0]), torch.tensor([2.0, 2.0]))",
    .forms = kFunction | kMethod | kOut,
    .run = [](const Call& c) -> Outputs { return op::maximum(c.tensor(0), c.tensor(1)); },
    .samples = {{"T(3, 4), T(3, 4)"}, {"T(3, 4), T(4)"}},
});
TS_OP({
    .schema = "max(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
    .doc = "The largest element along a dimension and where it is first. NaN counts as the "
           "largest.",
    .example = "torch.max(torch.tensor([[1.0, 3.0, 2.0]]), 1)",
    .kind = Kind::kKernel,
    .forms = kFunction | kMethod | kOut,
    .run = [](const Call& c) { return by_dim("arg_max", c); },
    .saves = "indices",
    .backward = by_dim_backward,
    .samples = {{"T(3, 4), 0"}, {"T(3, 4), -1, True"}, {"T(2, 3, 4), 1"}, {"T(), 0"}},
});

TS_OP({
    .schema = "min(Tensor self) -> Tensor",
    .doc = "The smallest element. Equal ones share the gradient.",
    .example = "torch.min(torch.tensor([1.0, 3.0, 2.0]))",
    .kind = Kind::kReduction,
    .forms = kFunction | kMethod | kOut,
    .run = [](const Call& c) -> Outputs {
      check_ordered(c.op, c.tensor(0));
      check_not_empty(c.op, c.tensor(0));
      return op::amin(c.tensor(0));
    },
    .saves = "self result",
    .backward = of_all_backward,
    .samples = {{"T(3, 4)"}, {"T()"}},
});
TS_OP({
    .schema = "min(Tensor self, Tensor other) -> Tensor",
    .doc = "The smaller of two elements, element by element.",
    .example = "torch.min(torch.tensor([1.0, 3.0]), torch.tensor([2.0, 2.0]))",
    .forms = kFunction | kMethod | kOut,
    .run = [](const Call& c) -> Outputs { return op::minimum(c.tensor(0), c.tensor(1)); },
    .samples = {{"T(3, 4), T(3, 4)"}, {"T(3, 4), T(4)"}},
});
TS_OP({
    .schema = "min(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
    .doc = "The smallest element along a dimension and where it is first. NaN counts as the "
           "smallest.",
    .example = "torch.min(torch.tensor([[1.0, 3.0, 2.0]]), 1)",
    .kind = Kind::kKernel,
    .forms = kFunction | kMethod | kOut,
    .run = [](const Call& c) { return by_dim("arg_min", c); },
    .saves = "indices",
    .backward = by_dim_backward,
    .samples = {{"T(3, 4), 0"}, {"T(3, 4), -1, True"}, {"T(2, 3, 4), 1"}, {"T(), 0"}},
});

TS_OP({
    .schema = "argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor",
    .doc = "Where the largest element is first, along a dimension or among all.",
    .example = "torch.argmax(torch.tensor([1.0, 3.0, 2.0]))",
    .kind = Kind::kKernel,
    .forms = kFunction | kMethod | kOut,
    .run = [](const Call& c) { return position("arg_max", c); },
    .exact_out = true,
    .not_differentiable = true,
    .samples = {{"T(3, 4)"}, {"T(3, 4), 0"}, {"T(3, 4), -1, True"}, {"T()"}},
});
TS_OP({
    .schema = "argmin(Tensor self, int? dim=None, bool keepdim=False) -> Tensor",
    .doc = "Where the smallest element is first, along a dimension or among all.",
    .example = "torch.argmin(torch.tensor([1.0, 3.0, 2.0]))",
    .kind = Kind::kKernel,
    .forms = kFunction | kMethod | kOut,
    .run = [](const Call& c) { return position("arg_min", c); },
    .exact_out = true,
    .not_differentiable = true,
    .samples = {{"T(3, 4)"}, {"T(3, 4), 0"}, {"T(3, 4), -1, True"}, {"T()"}},
});

TS_OP({
    .schema = "aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor "
              "max)",
    .doc = "The smallest and the largest element, along a dimension or of all.",
    .example = "torch.aminmax(torch.tensor([1.0, 3.0, 2.0]))",
    .forms = kFunction | kMethod | kOut,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& self = c.tensor(0);
      check_ordered(c.op, self);
      if (!c.has(1)) {
        TS_CHECK(self.numel() > 0,
                 "aminmax(): cannot compute aminmax over an empty dimension as the operation has "
                 "no identity.");
        Dims all;
        if (c.flag(2))
          for (int d = 0; d < self.dim(); ++d) all.push_back(d);
        return {op::amin(self, all.span(), c.flag(2)), op::amax(self, all.span(), c.flag(2))};
      }
      const int64_t dim = wrap_dim(c.integer(1), self.dim());
      TS_CHECK_INDEX(self.dim() == 0 || self.size(dim) > 0, "aminmax(): Expected reduction dim ",
                     dim, " to have non-zero size.");
      return {op::amin(self, std::span(&dim, 1), c.flag(2)),
              op::amax(self, std::span(&dim, 1), c.flag(2))};
    },
    .exact_out = true,
    .samples = {{"T(3, 4)"}, {"T(3, 4), dim=0"}, {"T(3, 4), dim=1, keepdim=True"}},
});

}  // namespace tessera
