#include "tessera/gen/binary.h"
#include "tessera/gen/bitwise.h"
#include "tessera/gen/copy.h"
#include "tessera/gen/creation.h"
#include "tessera/gen/index.h"
#include "tessera/gen/reduce.h"
#include "tessera/gen/sort.h"
#include "tessera/gen/ternary.h"
#include "tessera/gen/unary.h"
#include "tessera/gen/view.h"

namespace tessera {

namespace {

// Of `self` along a dimension (of all elements without one), at the fractions q: [*q, *kept].
TensorBase quantiles(const Call& c, const TensorBase& q, bool skip_nan) {
  const TensorBase& self = c.tensor(0);
  const std::string_view how = c.text(4);
  TS_CHECK(self.numel() > 0, c.op.name, "() input tensor must be non-empty");
  TS_CHECK(q.dim() <= 1, c.op.name, "() q must be a scalar or 1D tensor");
  TS_CHECK(self.dtype() == DType::kFloat32 || self.dtype() == DType::kFloat64, c.op.name,
           "() input tensor must be either float or double dtype");
  TS_CHECK(self.dtype() == q.dtype(), c.op.name,
           "() q tensor must be same dtype as the input tensor");
  TS_CHECK(self.device() == q.device(), c.op.name,
           "() q tensor must be on the same device as the input tensor");
  TS_CHECK(
      how == "linear" || how == "lower" || how == "higher" || how == "midpoint" || how == "nearest",
      c.op.name,
      "() interpolation must be one of linear, lower, higher, midpoint or nearest, but got ", how);

  TensorBase x = self;
  const bool keepdim = c.flag(3);
  const int dim = c.has(2) ? wrap_dim(c.integer(2), self.dim()) : 0;
  Dims shape = self.sizes();
  if (!c.has(2)) {
    const Dims flat{self.numel()};
    x = op::reshape(self, flat.span());
    if (keepdim)
      std::fill(shape.begin(), shape.end(), 1);
    else
      shape = Dims();
  } else if (self.dim() == 0) {
    x = op::unsqueeze(self, 0);
  } else {
    x = op::transpose(op::unsqueeze(self, -1), dim, -1);
    shape[static_cast<size_t>(dim)] = 1;
    if (!keepdim) shape.erase(static_cast<size_t>(dim));
  }
  TensorBase sorted = op::sort(x, -1, false)[0];

  const int64_t last = sorted.size(-1) - 1;
  TensorBase ranks;  // [*lines, |q|]
  const Dims q_flat{-1};
  TensorBase fractions = op::reshape(q, q_flat.span());
  const int64_t minus_one = -1;
  if (skip_nan) {
    TensorBase there = op::sum(op::eq(sorted, sorted), std::span(&minus_one, 1), true);
    ranks = op::mul(fractions, op::sub(there, 1));
    ranks = op::maximum(ranks, op::zeros_like(ranks));
  } else {
    // A line with a NaN has nothing else: they are at its end.
    TensorBase nan = op::any(op::ne(sorted, sorted), std::span(&minus_one, 1), true);
    ranks = op::where(nan, op::full({}, Scalar(static_cast<double>(last)), q.dtype(), q.device()),
                      op::mul(fractions, Scalar(static_cast<double>(last))));
  }
  if (how == "lower") ranks = op::floor(ranks);
  if (how == "higher") ranks = op::ceil(ranks);
  if (how == "nearest") ranks = op::round(ranks);

  TensorBase below = op::_to_dtype(ranks, DType::kInt64);
  TensorBase values = op::gather(sorted, -1, below);
  if (how == "linear" || how == "midpoint") {
    TensorBase weights = how == "midpoint" ? op::full({}, Scalar(0.5), q.dtype(), q.device())
                                           : op::sub(ranks, below);
    TensorBase above = op::_to_dtype(op::ceil(ranks), DType::kInt64);
    values = op::lerp(values, op::gather(sorted, -1, above), weights);
  }
  // |q| comes first, then the kept dimensions.
  if (q.dim() == 0) return op::reshape(values, shape.span());
  Dims out{values.size(-1)};
  for (int64_t n : shape) out.push_back(n);
  TensorBase first =
      values.dim() > 1 ? op::movedim(values, detail::one_int<-1>, detail::one_int<0>) : values;
  return op::reshape(first, out.span());
}

void check_fraction(const Op& op, double q) {
  TS_CHECK(q >= 0 && q <= 1, op.name, "() q must be in the range [0, 1] but got ", q);
}

Outputs by_number(const Call& c, bool skip_nan) {
  check_fraction(c.op, c.number(1));
  const TensorBase& self = c.tensor(0);
  return quantiles(c, op::full({}, c.scalar(1), self.dtype(), self.device()), skip_nan);
}
Outputs by_tensor(const Call& c, bool skip_nan) {
  const TensorBase& q = c.tensor(1);
  if (q.device().is_cpu() && q.numel() > 0) {
    TensorBase inside = op::all(op::logical_and(op::ge(q, 0), op::le(q, 1)));
    TS_CHECK(host_scalar(inside).to_int() != 0, c.op.name,
             "() q values must be in the range [0, 1]");
  }
  return quantiles(c, q, skip_nan);
}

}  // namespace

TS_OP({
    .schema = "quantile(Tensor self, float q, int? dim=None, bool keepdim=False, *, str "
              "interpolation=\"linear\") -> Tensor",
    .doc = "The value below which a fraction q of the elements lies, along a dimension or of all; "
           "NaN where there is one.",
    .example = "torch.quantile(torch.tensor([1.0, 2.0, 3.0, 4.0]), 0.5)",
    .forms = kFunction | kMethod | kOut,
    .run = [](const Call& c) { return by_number(c, false); },
    .autocast = Autocast::kFloat32Cpu,
    .exact_out = true,
    .samples = {{"T(3, 5), 0.3"},
                {"T(3, 5), 0.6, 0, True"},
                {"T(3, 5), 0.4, 1, "
                 "interpolation='lower'"}},
});
TS_OP({
    .schema = "quantile(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, str "
              "interpolation=\"linear\") -> Tensor",
    .doc = "The values below which fractions q of the elements lie, along a dimension or of all; "
           "the fractions are the first dimension of the result.",
    .example = "torch.quantile(torch.tensor([1.0, 2.0, 3.0, 4.0]), torch.tensor([0.25, 0.5]))",
    .forms = kFunction | kMethod | kOut,
    .run = [](const Call& c) { return by_tensor(c, false); },
    .autocast = Autocast::kFloat32Cpu,
    .exact_out = true,
});
TS_OP({
    .schema = "nanquantile(Tensor self, float q, int? dim=None, bool keepdim=False, *, str "
              "interpolation=\"linear\") -> Tensor",
    .doc = "The value below which a fraction q of the elements that are no NaN lies, along a "
           "dimension or of all.",
    .example = "torch.nanquantile(torch.tensor([1.0, float('nan'), 3.0]), 0.5)",
    .forms = kFunction | kMethod | kOut,
    .run = [](const Call& c) { return by_number(c, true); },
    .autocast = Autocast::kFloat32Cpu,
    .exact_out = true,
    .samples = {{"T(3, 5), 0.3"}, {"T(3, 5), 0.6, 0, True"}},
});
TS_OP({
    .schema = "nanquantile(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, str "
              "interpolation=\"linear\") -> Tensor",
    .doc = "The values below which fractions q of the elements that are no NaN lie.",
    .example = "torch.nanquantile(torch.tensor([1.0, float('nan'), 3.0]), torch.tensor([0.5]))",
    .forms = kFunction | kMethod | kOut,
    .run = [](const Call& c) { return by_tensor(c, true); },
    .autocast = Autocast::kFloat32Cpu,
    .exact_out = true,
});

}  // namespace tessera
