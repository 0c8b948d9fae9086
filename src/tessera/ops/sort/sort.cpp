
#include "tessera/gen/sort.h"
#include "tessera/ops/picked.h"

namespace tessera {

namespace {

Outputs sorted(const TensorBase& self, int64_t dim, bool descending) {
  TS_CHECK(!is_complex(self.dtype()), "sort(): complex numbers have no order, got ", self.dtype());
  dim = wrap_dim(dim, self.dim());
  TensorBase out[] = {new_empty(self.sizes(), self.dtype(), self.device()),
                      new_empty(self.sizes(), DType::kInt64, self.device())};
  if (self.numel() == 0) return {out[0], out[1]};
  const int64_t ints[] = {dim, descending};
  launch("sort", out, {&self, 1}, ints);
  return {out[0], out[1]};
}

}  // namespace

TS_OP({
    .schema =
        "sort(Tensor self, int dim=-1, bool descending=False, *, bool? stable=None) -> (Tensor "
        "values, Tensor indices)",
    .doc = "The elements along a dimension in ascending or descending order, and where each was. "
           "Equal elements keep their order, whether stable is asked for or not; NaN counts as the "
           "largest.",
    .example = "torch.sort(torch.tensor([3.0, 1.0, 2.0]))",
    .kind = Kind::kKernel,
    .forms = kFunction | kMethod | kOut,
    .run = [](const Call& c) { return sorted(c.tensor(0), c.integer(1), c.flag(2)); },
    .saves = "indices",
    .backward =
        [](Backward& b) { b.set(0, to_where_picked(b, b.grad, b.results[1], b.integer(1), true)); },
    .samples = {{"T(3, 4)"}, {"T(3, 4), 0, True"}, {"T(2, 3, 4), 1"}, {"T()"}, {"T(0, 3)"}},
});

TS_OP({
    .schema = "argsort(Tensor self, int dim=-1, bool descending=False, *, bool? stable=None) -> "
              "Tensor",
    .doc = "Where the elements along a dimension are, in the order of their values.",
    .example = "torch.argsort(torch.tensor([3.0, 1.0, 2.0]))",
    .forms = kFunction | kMethod | kOut,
    .run = [](const Call& c) -> Outputs { return sorted(c.tensor(0), c.integer(1), c.flag(2))[1]; },
    .exact_out = true,
    .not_differentiable = true,
    .samples = {{"T(3, 4)"}, {"T(3, 4), 0, True"}, {"T()"}},
});

TS_OP({
    .schema = "msort(Tensor self) -> Tensor",
    .doc = "The elements along the first dimension in ascending order.",
    .example = "torch.msort(torch.tensor([[3.0, 1.0], [2.0, 4.0]]))",
    .forms = kFunction | kMethod | kOut,
    .run = [](const Call& c) -> Outputs { return op::sort(c.tensor(0), 0, false)[0]; },
    .exact_out = true,
    .samples = {{"T(3, 4)"}, {"T(3)"}},
});

}  // namespace tessera
