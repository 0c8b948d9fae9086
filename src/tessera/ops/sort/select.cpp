#include "tessera/gen/binary.h"
#include "tessera/gen/copy.h"
#include "tessera/gen/reduce.h"
#include "tessera/gen/view.h"
#include "tessera/ops/picked.h"

namespace tessera {

namespace {

void check_ordered(const Op& op, const TensorBase& self) {
  TS_CHECK(!is_complex(self.dtype()), op.name, "(): complex numbers have no order, got ",
           self.dtype());
}

// One element of each line, by a kernel that gives its value and place.
Outputs one_of_each(const char* kernel, const Call& c, int64_t dim, bool keepdim,
                    std::initializer_list<int64_t> more) {
  const TensorBase& self = c.tensor(0);
  check_ordered(c.op, self);
  dim = wrap_dim(dim, self.dim());
  const Dims shape = shape_without(self.sizes(), dim, keepdim);
  TensorBase out[] = {new_empty(shape, self.dtype(), self.device()),
                      new_empty(shape, DType::kInt64, self.device())};
  TS_CHECK_INDEX(self.dim() == 0 || self.size(dim) > 0, c.op.name, "(): Expected reduction dim ",
                 dim, " to have non-zero size.");
  if (out[0].numel() == 0) return {out[0], out[1]};
  Dims ints{dim};
  for (int64_t v : more) ints.push_back(v);
  launch(kernel, out, {&self, 1}, ints.span());
  return {out[0], out[1]};
}

// Of all elements: the flattened tensor's. Without elements there is none: NaN.
TensorBase median_of_all(const Call& c, bool skip_nan) {
  const TensorBase& self = c.tensor(0);
  check_ordered(c.op, self);
  TensorBase out = new_empty({}, self.dtype(), self.device());
  if (self.numel() == 0) {
    // What a NaN becomes as an integer; of few bits, none.
    const bool narrow = itemsize(self.dtype()) < 4 && self.dtype() != DType::kBool;
    fill(out, is_floating(self.dtype())       ? Scalar(std::numeric_limits<double>::quiet_NaN())
              : narrow                        ? Scalar(int64_t{0})
              : self.dtype() == DType::kInt32 ? Scalar(int64_t{std::numeric_limits<int32_t>::min()})
                                              : Scalar(std::numeric_limits<int64_t>::min()));
    return out;
  }
  const Dims flat{self.numel()};
  TensorBase line = op::reshape(self, flat.span());
  TensorBase to[] = {out, new_empty({}, DType::kInt64, self.device())};
  const int64_t ints[] = {0, skip_nan};
  launch("median", to, {&line, 1}, ints);
  return out;
}

// Shared by all elements that have the value.
void evenly(Backward& b) {
  TensorBase mask = op::_to_dtype(op::_same(b.tensor(0), b.result), b.grad.dtype());
  b.set(0, op::mul(op::div(b.grad, op::sum(mask)), mask));
}

}  // namespace

TS_OP({
    .schema = "topk(Tensor self, int k, int dim=-1, bool largest=True, bool sorted=True) -> "
              "(Tensor values, Tensor indices)",
    .doc = "The k largest or smallest elements along a dimension, in order, and where they are.",
    .example = "torch.topk(torch.tensor([1.0, 4.0, 2.0, 3.0]), 2)",
    .kind = Kind::kKernel,
    .forms = kFunction | kMethod | kOut,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& self = c.tensor(0);
      check_ordered(c.op, self);
      const int64_t k = c.integer(1), dim = wrap_dim(c.integer(2), self.dim());
      TS_CHECK(k >= 0 && k <= (self.dim() > 0 ? self.size(dim) : 1),
               "selected index k out of range");
      Dims shape = self.sizes();
      if (self.dim() > 0) shape[static_cast<size_t>(dim)] = k;
      TensorBase out[] = {new_empty(shape, self.dtype(), self.device()),
                          new_empty(shape, DType::kInt64, self.device())};
      if (out[0].numel() == 0) return {out[0], out[1]};
      const int64_t ints[] = {dim, k, c.flag(3)};
      launch("topk", out, {&self, 1}, ints);
      return {out[0], out[1]};
    },
    .saves = "indices",
    .backward =
        [](Backward& b) { b.set(0, to_where_picked(b, b.grad, b.results[1], b.integer(2), true)); },
    .samples = {{"T(3, 6), 2"}, {"T(3, 4), 3, 0, False"}, {"T(), 1"}, {"T(3, 4), 0"}},
});

TS_OP({
    .schema = "kthvalue(Tensor self, int k, int dim=-1, bool keepdim=False) -> (Tensor values, "
              "Tensor indices)",
    .doc = "The k-th smallest element along a dimension, k from 1, and where it is.",
    .example = "torch.kthvalue(torch.tensor([1.0, 4.0, 2.0, 3.0]), 2)",
    .kind = Kind::kKernel,
    .forms = kFunction | kMethod | kOut,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& self = c.tensor(0);
      const int64_t k = c.integer(1), dim = wrap_dim(c.integer(2), self.dim());
      TS_CHECK_INDEX(self.dim() == 0 || self.size(dim) > 0, "kthvalue(): Expected reduction dim ",
                     dim, " to have non-zero size.");
      TS_CHECK(k >= 1 && k <= (self.dim() > 0 ? self.size(dim) : 1),
               "kthvalue(): selected number k out of range for dimension ", dim);
      return one_of_each("kthvalue", c, dim, c.flag(3), {k});
    },
    .saves = "indices",
    .backward =
        [](Backward& b) {
          b.set(0, to_where_picked(b, b.grad, b.results[1], b.integer(2), b.flag(3)));
        },
    .samples = {{"T(3, 5), 2"}, {"T(3, 4), 1, 0, True"}, {"T(), 1"}},
});

TS_OP({
    .schema = "median(Tensor self) -> Tensor",
    .doc = "The element in the middle of all, the lower one of two; NaN if there is one.",
    .example = "torch.median(torch.tensor([1.0, 4.0, 2.0, 3.0]))",
    .kind = Kind::kKernel,
    .run = [](const Call& c) -> Outputs { return median_of_all(c, false); },
    .saves = "self result",
    .backward = evenly,
    .samples = {{"T(3, 5)"}, {"T()"}},
});

TS_OP({
    .schema = "median(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
    .doc = "The element in the middle along a dimension, the lower one of two, and where it is; "
           "NaN if there is one.",
    .example = "torch.median(torch.tensor([[1.0, 4.0, 2.0]]), 1)",
    .kind = Kind::kKernel,
    .forms = kFunction | kMethod | kOut,
    .run = [](const Call& c) { return one_of_each("median", c, c.integer(1), c.flag(2), {0}); },
    .saves = "indices",
    .backward =
        [](Backward& b) {
          b.set(0, to_where_picked(b, b.grad, b.results[1], b.integer(1), b.flag(2)));
        },
    .samples = {{"T(3, 5), 1"}, {"T(3, 4), 0, True"}, {"T(), 0"}},
});

TS_OP({
    .schema = "nanmedian(Tensor self) -> Tensor",
    .doc = "The element in the middle of all that are no NaN, the lower one of two.",
    .example = "torch.nanmedian(torch.tensor([1.0, float('nan'), 2.0, 3.0]))",
    .kind = Kind::kKernel,
    .run = [](const Call& c) -> Outputs { return median_of_all(c, true); },
    .saves = "self result",
    .backward = evenly,
    .samples = {{"T(3, 5)"}, {"T()"}},
});

TS_OP({
    .schema =
        "nanmedian(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
    .doc = "The element in the middle along a dimension of those that are no NaN, the lower one of "
           "two, and where it is.",
    .example = "torch.nanmedian(torch.tensor([[1.0, float('nan'), 2.0]]), 1)",
    .kind = Kind::kKernel,
    .forms = kFunction | kMethod | kOut,
    .run = [](const Call& c) { return one_of_each("median", c, c.integer(1), c.flag(2), {1}); },
    .saves = "indices",
    .backward =
        [](Backward& b) {
          b.set(0, to_where_picked(b, b.grad, b.results[1], b.integer(1), b.flag(2)));
        },
    .samples = {{"T(3, 5), 1"}, {"T(3, 4), 0, True"}, {"T(), 0"}},
});

TS_OP({
    .schema =
        "mode(Tensor self, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)",
    .doc = "The most frequent element along a dimension, the smallest one of several, and where it "
           "is last.",
    .example = "torch.mode(torch.tensor([3, 1, 1, 2]))",
    .kind = Kind::kKernel,
    .forms = kFunction | kMethod | kOut,
    .run = [](const Call& c) { return one_of_each("mode", c, c.integer(1), c.flag(2), {}); },
    .saves = "indices",
    .backward =
        [](Backward& b) {
          b.set(0, to_where_picked(b, b.grad, b.results[1], b.integer(1), b.flag(2)));
        },
    .samples = {{"T(3, 5)"}, {"T(3, 4), 0, True"}, {"T()"}},
});

}  // namespace tessera
