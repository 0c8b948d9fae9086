#include "masked.h"
#include "tessera/gen/binary.h"
#include "tessera/gen/complex.h"
#include "tessera/gen/copy.h"
#include "tessera/gen/creation.h"
#include "tessera/gen/linalg.h"
#include "tessera/gen/reduce.h"
#include "tessera/gen/sort.h"
#include "tessera/gen/unary.h"

namespace tessera {

namespace {

DType summed_dtype(const Call& c) {
  const DType t = c.tensor(0).dtype();
  return c.dtype(3, is_integral(t, true) ? DType::kInt64 : t);
}
bool keeps(const Call& c, int arg) { return c.has(arg) && c.flag(arg); }

// Sums and counts may be beyond half floats where means are not.
DType wide(DType t) { return is_reduced_floating(t) ? DType::kFloat32 : t; }

// How many elements count along the dimensions.
TensorBase count(const TensorBase& input, const TensorBase& mask, const Dims& dims, bool keepdim) {
  TensorBase m = mask.defined() ? full_mask(input, mask) : op::ones_like(input, DType::kBool);
  return op::sum(m, dims.span(), keepdim);
}

Outputs extreme(const Call& c, bool largest) {
  const TensorBase& x = c.tensor(0);
  const Dims dims = masked_dims(c, 1);
  TensorBase in = masked_input(x, c.maybe(4), largest ? Fill::kLowest : Fill::kHighest);
  TensorBase out =
      largest ? op::amax(in, dims.span(), keeps(c, 2)) : op::amin(in, dims.span(), keeps(c, 2));
  return in_dtype(out, c.dtype(3, x.dtype()));
}
Outputs position(const Call& c, bool largest) {
  const TensorBase& x = c.tensor(0);
  TensorBase in = masked_input(x, c.maybe(4), largest ? Fill::kLowest : Fill::kHighest);
  std::optional<int64_t> dim;
  if (c.has(1)) dim = c.integer(1);
  TensorBase out = largest ? op::argmax(in, dim, keeps(c, 2)) : op::argmin(in, dim, keeps(c, 2));
  return in_dtype(out, c.dtype(3, x.dtype()));
}

// Variance around the mean of what counts. Arguments: dim, unbiased, correction, keepdim, dtype,
// mask.
TensorBase variance(const Call& c) {
  const TensorBase& x = c.tensor(0);
  TS_CHECK_VALUE(!c.has(2) || !c.has(3), c.op.name, "(): unbiased and correction are both given");
  double correction = 1;
  if (c.has(2)) correction = c.flag(2) ? 1 : 0;
  if (c.has(3)) correction = c.number(3);
  const DType dtype = c.dtype(5, is_differentiable(x.dtype()) ? x.dtype() : DType::kFloat32);
  const DType computed = is_differentiable(dtype) ? wide(dtype) : DType::kFloat32;
  const Dims dims = masked_dims(c, 1);
  const TensorBase mask = c.maybe(6);
  const bool keepdim = keeps(c, 4);
  auto total = [&](const TensorBase& t, bool keep, DType as) {
    return op::sum(masked_input(t, mask, Fill::kZero), dims.span(), keep, as);
  };
  TensorBase mean = op::div(total(x, true, wide(dtype)), count(x, mask, dims, true));
  TensorBase d = op::sub(x, mean);
  TensorBase squares = total(op::mul(d, op::conj(d)), keepdim, computed);
  TensorBase n = count(x, mask, dims, keepdim);
  if (correction != 0) {
    n = op::sub(in_dtype(n, real_dtype(computed)), Scalar(correction));
    n = op::maximum(n, op::zeros_like(n));
  }
  return in_dtype(op::div(squares, n), dtype);
}

}  // namespace

TS_OP({
    .schema = "masked.sum(Tensor input, int[1]? dim=None, *, bool? keepdim=False, dtype? "
              "dtype=None, Tensor? mask=None) -> Tensor",
    .doc = "The sum of the elements whose mask is true.",
    .example = "torch.masked.sum(torch.tensor([1.0, 2.0]), mask=torch.tensor([True, False]))",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      return op::sum(masked_input(c.tensor(0), c.maybe(4), Fill::kZero), masked_dims(c, 1).span(),
                     keeps(c, 2), summed_dtype(c));
    },
    .samples = {{"T(3, 4), mask=B(3, 4)"}, {"T(3, 4), 1, mask=B(4)"}},
});

TS_OP({
    .schema = "masked.prod(Tensor input, int[1]? dim=None, *, bool? keepdim=False, dtype? "
              "dtype=None, Tensor? mask=None) -> Tensor",
    .doc = "The product of the elements whose mask is true.",
    .example = "torch.masked.prod(torch.tensor([3.0, 2.0]), mask=torch.tensor([True, False]))",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      TensorBase x = masked_input(c.tensor(0), c.maybe(4), Fill::kOne);
      x = in_dtype(x, summed_dtype(c));
      const Dims dims = masked_dims(c, 1);
      for (size_t i = dims.size(); i-- > 0;) x = op::prod(x, dims[i], keeps(c, 2), x.dtype());
      return x;
    },
    .autocast = Autocast::kFloat32,
    .samples = {{"T(3, 4), mask=B(3, 4)"}, {"T(3, 4), 1, mask=B(4)"}},
});

TS_OP({
    .schema = "masked.mean(Tensor input, int[1]? dim=None, *, bool? keepdim=False, dtype? "
              "dtype=None, Tensor? mask=None) -> Tensor",
    .doc = "The mean of the elements whose mask is true.",
    .example = "torch.masked.mean(torch.tensor([1.0, 2.0]), mask=torch.tensor([True, False]))",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& x = c.tensor(0);
      const DType dtype = c.dtype(3, x.dtype());
      TS_CHECK_VALUE(is_differentiable(dtype), "mean(): Could not infer output dtype. ",
                     c.has(3) ? "Optional" : "Input",
                     " dtype must be either a floating point or complex dtype. Got: ", dtype);
      const Dims dims = masked_dims(c, 1);
      TensorBase total =
          op::sum(masked_input(x, c.maybe(4), Fill::kZero), dims.span(), keeps(c, 2), wide(dtype));
      return in_dtype(op::div(total, count(x, c.maybe(4), dims, keeps(c, 2))), dtype);
    },
    .samples = {{"T(3, 4), mask=B(3, 4)"}, {"T(3, 4), 0"}},
});

TS_OP({
    .schema = "masked.amax(Tensor input, int[1]? dim=None, *, bool? keepdim=False, dtype? "
              "dtype=None, Tensor? mask=None) -> Tensor",
    .doc = "The largest of the elements whose mask is true.",
    .example = "torch.masked.amax(torch.tensor([1.0, 2.0]), mask=torch.tensor([True, False]))",
    .forms = kFunction,
    .run = [](const Call& c) { return extreme(c, true); },
    .samples = {{"T(3, 4), 1"}},
});
TS_OP({
    .schema = "masked.amin(Tensor input, int[1]? dim=None, *, bool? keepdim=False, dtype? "
              "dtype=None, Tensor? mask=None) -> Tensor",
    .doc = "The smallest of the elements whose mask is true.",
    .example = "torch.masked.amin(torch.tensor([1.0, 2.0]), mask=torch.tensor([True, False]))",
    .forms = kFunction,
    .run = [](const Call& c) { return extreme(c, false); },
    .samples = {{"T(3, 4), 1"}},
});
TS_OP({
    .schema = "masked.argmax(Tensor input, int? dim=None, *, bool? keepdim=False, dtype? "
              "dtype=None, Tensor? mask=None) -> Tensor",
    .doc = "Where the largest of the elements is whose mask is true, in the dtype of the input.",
    .example = "torch.masked.argmax(torch.tensor([1.0, 2.0]), mask=torch.tensor([True, False]))",
    .forms = kFunction,
    .run = [](const Call& c) { return position(c, true); },
    .not_differentiable = true,
});
TS_OP({
    .schema = "masked.argmin(Tensor input, int? dim=None, *, bool? keepdim=False, dtype? "
              "dtype=None, Tensor? mask=None) -> Tensor",
    .doc = "Where the smallest of the elements is whose mask is true, in the dtype of the input.",
    .example = "torch.masked.argmin(torch.tensor([1.0, 2.0]), mask=torch.tensor([False, True]))",
    .forms = kFunction,
    .run = [](const Call& c) { return position(c, false); },
    .not_differentiable = true,
});

TS_OP({
    .schema = "masked.median(Tensor input, int dim=-1, *, bool? keepdim=False, dtype? dtype=None, "
              "Tensor? mask=None) -> Tensor",
    .doc = "The element in the middle along a dimension of those whose mask is true.",
    .example = "torch.masked.median(torch.tensor([1.0, 2.0]), mask=torch.tensor([True, False]))",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& x = c.tensor(0);
      const DType dtype = c.dtype(3, x.dtype());
      const bool floating = is_floating(x.dtype());
      TensorBase in = floating ? x : op::_to_dtype(x, DType::kFloat32);
      TensorBase out = op::nanmedian(masked_input(in, c.maybe(4), Fill::kNan),
                                     wrap_dim(c.integer(1), x.dim()), keeps(c, 2))[0];
      if (floating) return out;
      TS_CHECK_VALUE(host_scalar(op::all(op::eq(out, out))).to_int() != 0,
                     "masked median expects no fully masked out rows if dtype is not floating "
                     "point");
      return in_dtype(out, dtype);
    },
    .samples = {{"T(3, 5), 1"}},
});

TS_OP({
    .schema = "masked.logsumexp(Tensor input, int[1]? dim=None, *, bool keepdim=False, dtype? "
              "dtype=None, Tensor? mask=None) -> Tensor",
    .doc = "The logarithm of the sum of exponentials of the elements whose mask is true.",
    .example = "torch.masked.logsumexp(torch.tensor([1.0, 2.0]), 0, mask=torch.tensor([True, "
               "False]))",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& x = c.tensor(0);
      TensorBase out = op::logsumexp(masked_input(x, c.maybe(4), Fill::kLowest),
                                     masked_dims(c, 1).span(), c.flag(2));
      return in_dtype(out, c.dtype(3, x.dtype()));
    },
    .samples = {{"T(3, 4), 1"}, {"T(3, 4), mask=B(3, 4)"}, {"T()"}},
});

TS_OP({
    .schema = "masked.norm(Tensor input, float? ord=2.0, int[1]? dim=None, *, bool? keepdim=False, "
              "dtype? dtype=None, Tensor? mask=None) -> Tensor",
    .doc = "The norm of the elements whose mask is true.",
    .example = "torch.masked.norm(torch.tensor([3.0, 4.0]), mask=torch.tensor([True, False]))",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& x = c.tensor(0);
      const double p = c.has(1) ? c.number(1) : 2;
      const bool lowest = p == -std::numeric_limits<double>::infinity();
      TensorBase in = masked_input(x, c.maybe(5), lowest ? Fill::kHighest : Fill::kZero);
      return op::linalg_vector_norm(in, Scalar(p), masked_dims(c, 2).span(), keeps(c, 3),
                                    c.dtype(4, x.dtype()));
    },
    .samples = {{"T(3, 4), 2.0, 1, mask=B(3, 4)"}, {"T(3, 4), 1.0"}},
});

TS_OP({
    .schema = "masked.var(Tensor input, int[1]? dim=None, bool? unbiased=None, *, Scalar? "
              "correction=None, bool? keepdim=False, dtype? dtype=None, Tensor? mask=None) -> "
              "Tensor",
    .doc = "The variance of the elements whose mask is true.",
    .example = "torch.masked.var(torch.tensor([1.0, 2.0, 4.0]), mask=torch.tensor([True, False, "
               "True]))",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs { return variance(c); },
    .samples = {{"T(3, 4), 1"}, {"T(3, 4), 0, False"}},
});
TS_OP({
    .schema = "masked.std(Tensor input, int[1]? dim=None, bool? unbiased=None, *, Scalar? "
              "correction=None, bool? keepdim=False, dtype? dtype=None, Tensor? mask=None) -> "
              "Tensor",
    .doc = "The standard deviation of the elements whose mask is true.",
    .example = "torch.masked.std(torch.tensor([1.0, 2.0, 4.0]), mask=torch.tensor([True, False, "
               "True]))",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs { return op::sqrt(variance(c)); },
    .samples = {{"T(3, 4), 1"}, {"T(3, 4), 0, False"}},
});

}  // namespace tessera
