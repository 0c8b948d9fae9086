#include "dims.h"
#include "tessera/gen/binary.h"
#include "tessera/gen/copy.h"
#include "tessera/gen/reduce.h"
#include "tessera/gen/unary.h"
#include "tessera/gen/view.h"
#include "tessera/ops/in_dtype.h"
#include "tessera/ops/reduce_loops.h"

namespace tessera {

TS_REDUCE(nansum, (TS_FLOATS), T(0), select(a == a, a, T(0)), x + y, x)

TS_OP({
    .schema =
        "nansum(Tensor self, int[1]? dim=None, bool keepdim=False, *, dtype? dtype=None) -> Tensor",
    .doc = "The sum of all elements that are no NaN, or of those along the given dimensions.",
    .example = "torch.nansum(torch.tensor([1.0, float('nan'), 2.0]))",
    .kind = Kind::kReduction,
    .forms = kFunction | kMethod | kOut,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& self = c.tensor(0);
      TS_CHECK(!is_complex(self.dtype()), "nansum does not support complex inputs");
      const DType out = c.dtype(3, is_integral(self.dtype(), true) ? DType::kInt64 : self.dtype());
      std::optional<std::span<const int64_t>> dims;
      if (c.has(1)) dims = c.args[1].ints;
      if (is_integral(self.dtype(), true)) return op::sum(self, dims, c.flag(2), out);
      // Whether an element is NaN is decided before it is converted.
      TensorBase in = self;
      if (!is_floating(out)) in = op::_to_dtype(op::nan_to_num(self, 0.0), out);
      if (!is_floating(out)) return op::sum(in, dims, c.flag(2), out);
      if (reg_class(out) != reg_class(self.dtype())) in = op::_to_dtype(self, out);
      return reduce(nansum_reduce, in, reduced_dims(c, 1, self.dim()), c.flag(2), out);
    },
    .saves = "self",
    .backward =
        [](Backward& b) {
          const Dims& shape = b.shape(0);
          TensorBase g = with_reduced_dims(b.grad, dims_of(b, 1, shape.ndim()), b.flag(2), shape);
          const TensorBase& x = b.tensor(0);
          b.set(0, op::mul(op::expand(g, shape.span()), op::eq(x, x)));
        },
    .autocast = {Cast::kKeep, Cast::kNone},
    .samples = {{"T(3, 4)"}, {"T(3, 4), 0"}, {"T(3, 4), [0, 1], keepdim=True"}, {"T()"}},
});

TS_OP({
    .schema = "nanmean(Tensor self, int[1]? dim=None, bool keepdim=False, *, dtype? dtype=None) -> "
              "Tensor",
    .doc = "The mean of all elements that are no NaN, or of those along the given dimensions.",
    .example = "torch.nanmean(torch.tensor([1.0, float('nan'), 2.0]))",
    .forms = kFunction | kMethod | kOut,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& self = c.tensor(0);
      TS_CHECK(is_differentiable(self.dtype()),
               "nanmean(): expected input to have floating point or complex dtype but got ",
               self.dtype());
      std::optional<std::span<const int64_t>> dims;
      if (c.has(1)) dims = c.args[1].ints;
      std::optional<DType> dtype;
      if (c.has(3)) dtype = c.args[3].dtype;
      // A sum or a count may be beyond half floats where the mean is not.
      const DType out = dtype.value_or(self.dtype());
      if (is_reduced_floating(out)) dtype = DType::kFloat32;
      TensorBase total = op::nansum(self, dims, c.flag(2), dtype);
      TensorBase mean = op::div(total, op::sum(op::eq(self, self), dims, c.flag(2)));
      return in_dtype(mean, out);
    },
    .samples = {{"T(3, 4)"}, {"T(3, 4), 0"}, {"T(3, 4), [0, 1], keepdim=True"}, {"T()"}},
});

namespace {

Outputs count(const Call& c, std::optional<std::span<const int64_t>> dims) {
  return op::sum(op::_to_dtype(c.tensor(0), DType::kBool), dims);
}

}  // namespace

TS_OP({
    .schema = "count_nonzero(Tensor self, int? dim=None) -> Tensor",
    .doc = "How many elements are not zero, along a dimension or of all.",
    .example = "torch.count_nonzero(torch.tensor([0.0, 1.0, 2.0]))",
    .run = [](const Call& c) -> Outputs {
      if (!c.has(1)) return count(c, std::nullopt);
      const int64_t dim = c.integer(1);
      return count(c, std::span(&dim, 1));
    },
    .not_differentiable = true,
    .samples = {{"T(3, 4)"}, {"T(3, 4), 0"}, {"T()"}},
});
TS_OP({
    .schema = "count_nonzero(Tensor self, int[] dim) -> Tensor",
    .doc = "How many elements are not zero along the given dimensions.",
    .example = "torch.count_nonzero(torch.tensor([[0.0, 1.0, 2.0]]), (0, 1))",
    .run = [](const Call& c) -> Outputs { return count(c, c.args[1].ints); },
    .not_differentiable = true,
    .samples = {{"T(3, 4), (0, 1)"}},
});

}  // namespace tessera
