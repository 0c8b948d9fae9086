#include "dims.h"
#include "tessera/driver/current.h"
#include "tessera/gen/binary.h"
#include "tessera/gen/copy.h"
#include "tessera/gen/reduce.h"
#include "tessera/ops/in_dtype.h"
#include "tessera/ops/loops.h"

namespace tessera {

TS_BODY(root, "t", 't', 0, (TS_FLOATS), return sqrt(a);)
TS_OP({
    .schema = "_root(Tensor self) -> Tensor",
    .kind = Kind::kPointwise,
    .forms = kFunction,
    .body = &root_body,
    .not_differentiable = true,
});

// grad / (2 result), and no gradient where there is no spread.
TS_BODY(half_quotient, "tt", 't', 0, (TS_FLOATS), return select(b == T(0), T(0), a / (b * T(2)));)
TS_OP({
    .schema = "_half_quotient(Tensor grad, Tensor result) -> Tensor",
    .kind = Kind::kPointwise,
    .forms = kFunction,
    .body = &half_quotient_body,
    .saves = "grad result",
    .backward =
        [](Backward& b) {
          const TensorBase& y = b.tensor(1);
          if (b.wants(0)) b.set(0, op::_half_quotient(b.grad, y));
          if (b.wants(1)) {
            TensorBase q = op::_half_quotient(op::_half_quotient(b.tensor(0), y), y);
            b.set(1, op::mul(op::mul(b.grad, q), -2));
          }
        },
});

namespace {

struct Spread {
  TensorBase var, mean;
};

// The arguments of the three ways to ask, of which a call has one.
struct Asked {
  Dims dims;
  double correction = 1;
  bool keepdim = false;
};
Asked unbiased_only(const Call& c) {
  Asked a;
  for (int d = 0; d < c.tensor(0).dim(); ++d) a.dims.push_back(d);
  a.correction = c.flag(1) ? 1 : 0;
  return a;
}
Asked unbiased_dims(const Call& c) {
  return {reduced_dims(c, 1, c.tensor(0).dim()), c.flag(2) ? 1.0 : 0.0, c.flag(3)};
}
Asked corrected(const Call& c) {
  return {reduced_dims(c, 1, c.tensor(0).dim()), c.has(2) ? c.number(2) : 1.0, c.flag(3)};
}

TensorBase without(const TensorBase& t, const Asked& a) {
  if (a.keepdim || t.dim() == 0) return t;
  Dims sizes, strides;
  for (int d = 0; d < t.dim(); ++d) {
    if (std::count(a.dims.begin(), a.dims.end(), d) > 0) continue;
    sizes.push_back(t.sizes()[static_cast<size_t>(d)]);
    strides.push_back(t.strides()[static_cast<size_t>(d)]);
  }
  return alias(t, sizes, strides, t.storage_offset());
}

// The real parts of complex numbers, or the imaginary ones, where they lie.
TensorBase part(const TensorBase& t, int64_t which) {
  Dims strides = t.strides();
  for (int64_t& s : strides) s *= 2;
  return alias_as(t, real_dtype(t.dtype()), t.sizes(), strides, 2 * t.storage_offset() + which);
}

Spread spread(const Op& op, const TensorBase& self, const Asked& a) {
  if (is_complex(self.dtype())) {
    Spread re = spread(op, part(self, 0), a), im = spread(op, part(self, 1), a);
    TensorBase mean = new_empty(re.mean.sizes(), self.dtype(), self.device());
    copy_into(part(mean, 0), re.mean, false);
    copy_into(part(mean, 1), im.mean, false);
    return {op::add(re.var, im.var), mean};
  }
  TS_CHECK(is_floating(self.dtype()), op.name,
           "(): only support floating point and complex dtypes, got ", self.dtype());
  if (has_kernel(self.device(), "var_mean")) {
    Dims shape = self.sizes();
    for (int64_t d : a.dims) shape[static_cast<size_t>(d)] = 1;
    const int64_t first = self.dim() - static_cast<int64_t>(a.dims.size());
    if (self.numel() > 0 && self.is_contiguous() && !a.dims.empty() && a.dims[0] == first) {
      TensorBase out[] = {new_unallocated(shape, self.dtype(), self.device()),
                          new_unallocated(shape, self.dtype(), self.device())};
      const int64_t rows = out[0].numel(), last[] = {1};
      launch_later("var_mean", out, {&self, 1}, last, {&a.correction, 1},
                   {0, 0, rows, self.numel() / rows});
      return {without(out[0], a), without(out[1], a)};
    }
    TensorBase out[] = {new_empty(shape, self.dtype(), self.device()),
                        new_empty(shape, self.dtype(), self.device())};
    if (out[0].numel() > 0 && !self.device().is_meta())
      launch("var_mean", out, {&self, 1}, a.dims.span(), {&a.correction, 1});
    return {without(out[0], a), without(out[1], a)};
  }
  // Without a kernel: the mean, then the squares around it, in float at least.
  const DType wide = self.dtype() == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
  TensorBase x = in_dtype(self, wide);
  TensorBase mean = op::mean(x, a.dims.span(), true);
  TensorBase d = op::sub(x, mean);
  TensorBase m2 = op::sum(op::mul(d, d), a.dims.span(), true);
  const double n = static_cast<double>(reduced_count(a.dims, self.sizes()));
  TensorBase var = op::div(m2, Scalar(std::max(0.0, n - a.correction)));
  return {in_dtype(without(var, a), self.dtype()), in_dtype(without(mean, a), self.dtype())};
}

// Gradient of the variance; `grad` has the result's shape.
TensorBase var_gradient(const Backward& b, const TensorBase& grad, const Asked& a) {
  const TensorBase& x = b.tensor(0);
  const Dims& shape = b.shape(0);
  TensorBase g = with_reduced_dims(grad, a.dims, a.keepdim, shape);
  const double n = static_cast<double>(reduced_count(a.dims, shape));
  TensorBase centred = op::sub(x, op::mean(x, a.dims.span(), true));
  return op::mul(op::mul(g, Scalar(2 / (n - a.correction))), centred);
}
TensorBase mean_gradient(const Backward& b, const TensorBase& grad, const Asked& a) {
  const Dims& shape = b.shape(0);
  TensorBase g = with_reduced_dims(grad, a.dims, a.keepdim, shape);
  return op::div(op::expand(g, shape.span()), Scalar(reduced_count(a.dims, shape)));
}

Asked unbiased_only(const Backward& b) {
  Asked a;
  for (int d = 0; d < b.shape(0).ndim(); ++d) a.dims.push_back(d);
  a.correction = b.flag(1) ? 1 : 0;
  return a;
}
Asked with_dims(const Backward& b, double correction) {
  Asked a = unbiased_only(b);
  Dims dims = dims_of(b, 1, b.shape(0).ndim());
  if (!dims.empty() && b.shape(0).ndim() > 0) a.dims = dims;
  a.correction = correction;
  a.keepdim = b.flag(3);
  return a;
}
Asked unbiased_dims(const Backward& b) { return with_dims(b, b.flag(2) ? 1 : 0); }
Asked corrected(const Backward& b) { return with_dims(b, b.has(2) ? b.number(2) : 1); }

template <Asked (*kAsked)(const Call&)>
Outputs run_var(const Call& c) {
  return spread(c.op, c.tensor(0), kAsked(c)).var;
}
template <Asked (*kAsked)(const Call&)>
Outputs run_std(const Call& c) {
  return op::_root(spread(c.op, c.tensor(0), kAsked(c)).var);
}
template <Asked (*kAsked)(const Call&), bool kRoot>
Outputs run_both(const Call& c) {
  Spread s = spread(c.op, c.tensor(0), kAsked(c));
  return {kRoot ? op::_root(s.var) : s.var, s.mean};
}
template <Asked (*kAsked)(const Backward&)>
void var_backward(Backward& b) {
  b.set(0, var_gradient(b, b.grad, kAsked(b)));
}
template <Asked (*kAsked)(const Backward&)>
void std_backward(Backward& b) {
  b.set(0, var_gradient(b, op::_half_quotient(b.grad, b.result), kAsked(b)));
}
template <Asked (*kAsked)(const Backward&), bool kRoot>
void both_backward(Backward& b) {
  const Asked a = kAsked(b);
  TensorBase g;
  if (b.has_grad(0)) g = var_gradient(b, kRoot ? op::_half_quotient(b.grad, b.result) : b.grad, a);
  if (b.has_grad(1)) {
    TensorBase m = mean_gradient(b, b.grad_of(1), a);
    g = g.defined() ? op::add(g, m) : m;
  }
  b.set(0, g);
}

}  // namespace

TS_OP({
    .schema = "var(Tensor self, bool unbiased) -> Tensor",
    .doc = "The variance of all elements, or of those along the given dimensions; divided by n - 1 "
           "if unbiased, else by n.",
    .example = "torch.var(torch.tensor([1.0, 2.0, 4.0]), False)",
    .kind = Kind::kKernel,
    .forms = kFunction | kMethod,
    .run = run_var<unbiased_only>,
    .saves = "self",
    .backward = var_backward<unbiased_only>,
    .samples = {{"T(3, 4), False"}, {"T(7), True"}},
});

TS_OP({
    .schema = "var(Tensor self, int[1]? dim, bool unbiased, bool keepdim=False) -> Tensor",
    .doc = "The variance of all elements, or of those along the given dimensions; divided by n - 1 "
           "if unbiased, else by n.",
    .example = "torch.var(torch.tensor([[1.0, 2.0, 4.0]]), 1, False)",
    .kind = Kind::kKernel,
    .forms = kFunction | kMethod | kOut,
    .run = run_var<unbiased_dims>,
    .saves = "self",
    .backward = var_backward<unbiased_dims>,
    .samples = {{"T(3, 4), 0, False"}, {"T(3, 4), [0, 1], True, True"}},
});

TS_OP({
    .schema = "var(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) "
              "-> Tensor",
    .doc = "The variance of all elements, or of those along the given dimensions; divided by n - "
           "correction (1 unless said).",
    .example = "torch.var(torch.tensor([[1.0, 2.0, 4.0]]), 1)",
    .kind = Kind::kKernel,
    .forms = kFunction | kMethod | kOut,
    .run = run_var<corrected>,
    .saves = "self",
    .backward = var_backward<corrected>,
    .samples = {{"T(3, 4)"},
                {"T(3, 4), 0"},
                {"T(2, 3, 4), [0, 2], correction=0, keepdim=True"},
                {"T(3, 4), 1, correction=2"}},
});

TS_OP({
    .schema = "std(Tensor self, bool unbiased) -> Tensor",
    .doc = "The standard deviation of all elements, or of those along the given dimensions; "
           "divided by n - 1 if unbiased, else by n.",
    .example = "torch.std(torch.tensor([1.0, 2.0, 4.0]), False)",
    .kind = Kind::kKernel,
    .forms = kFunction | kMethod,
    .run = run_std<unbiased_only>,
    .saves = "self result",
    .backward = std_backward<unbiased_only>,
    .samples = {{"T(3, 4), False"}, {"T(7), True"}},
});

TS_OP({
    .schema = "std(Tensor self, int[1]? dim, bool unbiased, bool keepdim=False) -> Tensor",
    .doc = "The standard deviation of all elements, or of those along the given dimensions; "
           "divided by n - 1 if unbiased, else by n.",
    .example = "torch.std(torch.tensor([[1.0, 2.0, 4.0]]), 1, False)",
    .kind = Kind::kKernel,
    .forms = kFunction | kMethod | kOut,
    .run = run_std<unbiased_dims>,
    .saves = "self result",
    .backward = std_backward<unbiased_dims>,
    .samples = {{"T(3, 4), 0, False"}, {"T(3, 4), [0, 1], True, True"}},
});

TS_OP({
    .schema = "std(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) "
              "-> Tensor",
    .doc = "The standard deviation of all elements, or of those along the given dimensions; "
           "divided by n - correction (1 unless said).",
    .example = "torch.std(torch.tensor([[1.0, 2.0, 4.0]]), 1)",
    .kind = Kind::kKernel,
    .forms = kFunction | kMethod | kOut,
    .run = run_std<corrected>,
    .saves = "self result",
    .backward = std_backward<corrected>,
    .samples = {{"T(3, 4)"},
                {"T(3, 4), 0"},
                {"T(2, 3, 4), [0, 2], correction=0, keepdim=True"},
                {"T(3, 4), 1, correction=2"}},
});

TS_OP({
    .schema = "var_mean(Tensor self, bool unbiased) -> (Tensor, Tensor)",
    .doc = "The variance and the mean; divided by n - 1 if unbiased, else by n.",
    .example = "torch.var_mean(torch.tensor([1.0, 2.0, 4.0]), False)",
    .kind = Kind::kKernel,
    .forms = kFunction,
    .run = run_both<unbiased_only, false>,
    .saves = "self",
    .backward = both_backward<unbiased_only, false>,
    .samples = {{"T(3, 4), False"}, {"T(7), True"}},
});

TS_OP({
    .schema =
        "var_mean(Tensor self, int[1]? dim, bool unbiased, bool keepdim=False) -> (Tensor, Tensor)",
    .doc = "The variance and the mean along dimensions; divided by n - 1 if unbiased, else by n.",
    .example = "torch.var_mean(torch.tensor([[1.0, 2.0, 4.0]]), 1, False)",
    .kind = Kind::kKernel,
    .forms = kFunction,
    .run = run_both<unbiased_dims, false>,
    .saves = "self",
    .backward = both_backward<unbiased_dims, false>,
    .samples = {{"T(3, 4), 0, False"}, {"T(3, 4), [0, 1], True, True"}},
});

TS_OP({
    .schema = "var_mean(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool "
              "keepdim=False) -> (Tensor, Tensor)",
    .doc = "The variance and the mean; divided by n - correction (1 unless said).",
    .example = "torch.var_mean(torch.tensor([[1.0, 2.0, 4.0]]), 1)",
    .kind = Kind::kKernel,
    .forms = kFunction,
    .run = run_both<corrected, false>,
    .saves = "self",
    .backward = both_backward<corrected, false>,
    .samples = {{"T(3, 4)"},
                {"T(3, 4), 0"},
                {"T(2, 3, 4), [0, 2], correction=0, keepdim=True"},
                {"T(3, 4), 1, correction=2"}},
});

TS_OP({
    .schema = "std_mean(Tensor self, bool unbiased) -> (Tensor, Tensor)",
    .doc = "The standard deviation and the mean; divided by n - 1 if unbiased, else by n.",
    .example = "torch.std_mean(torch.tensor([1.0, 2.0, 4.0]), False)",
    .kind = Kind::kKernel,
    .forms = kFunction,
    .run = run_both<unbiased_only, true>,
    .saves = "self result",
    .backward = both_backward<unbiased_only, true>,
    .samples = {{"T(3, 4), False"}, {"T(7), True"}},
});

TS_OP({
    .schema =
        "std_mean(Tensor self, int[1]? dim, bool unbiased, bool keepdim=False) -> (Tensor, Tensor)",
    .doc = "The standard deviation and the mean along dimensions; divided by n - 1 if unbiased, "
           "else by n.",
    .example = "torch.std_mean(torch.tensor([[1.0, 2.0, 4.0]]), 1, False)",
    .kind = Kind::kKernel,
    .forms = kFunction,
    .run = run_both<unbiased_dims, true>,
    .saves = "self result",
    .backward = both_backward<unbiased_dims, true>,
    .samples = {{"T(3, 4), 0, False"}, {"T(3, 4), [0, 1], True, True"}},
});

TS_OP({
    .schema = "std_mean(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool "
              "keepdim=False) -> (Tensor, Tensor)",
    .doc = "The standard deviation and the mean; divided by n - correction (1 unless said).",
    .example = "torch.std_mean(torch.tensor([[1.0, 2.0, 4.0]]), 1)",
    .kind = Kind::kKernel,
    .forms = kFunction,
    .run = run_both<corrected, true>,
    .saves = "self result",
    .backward = both_backward<corrected, true>,
    .samples = {{"T(3, 4)"},
                {"T(3, 4), 0"},
                {"T(2, 3, 4), [0, 2], correction=0, keepdim=True"},
                {"T(3, 4), 1, correction=2"}},
});

}  // namespace tessera
