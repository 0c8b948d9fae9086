#include "tessera/gen/binary.h"
#include "tessera/gen/complex.h"
#include "tessera/gen/creation.h"
#include "tessera/gen/linalg.h"
#include "tessera/gen/reduce.h"
#include "tessera/gen/stat.h"
#include "tessera/gen/ternary.h"
#include "tessera/gen/unary.h"
#include "tessera/gen/view.h"

namespace tessera {

namespace {

// Frequencies and weights: one for each observation, none negative.
void check_weights(const char* name, const TensorBase& w, int64_t observations, bool integral) {
  TS_CHECK(w.dim() <= 1, "cov(): expected ", name, " to have one or fewer dimensions but got ",
           name, " with ", w.dim(), " dimensions");
  TS_CHECK(integral ? is_integral(w.dtype(), false) : is_floating(w.dtype()), "cov(): expected ",
           name, " to have ", integral ? "integral" : "floating point", " dtype but got ", name,
           " with ", w.dtype(), " dtype");
  TS_CHECK(w.numel() == observations, "cov(): expected ", name,
           " to have the same numel as there are observations in the input but got ", w.numel(),
           " != ", observations);
  TS_CHECK(observations == 0 || host_scalar(op::all(op::ge(w, 0))).to_int() != 0, "cov(): ", name,
           " cannot be negative");
}

}  // namespace

TS_OP({
    .schema = "cov(Tensor self, *, int correction=1, Tensor? fweights=None, Tensor? aweights=None) "
              "-> Tensor",
    .doc = "The covariance matrix of variables (rows) over observations (columns).",
    .example = "torch.cov(torch.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))",
    .run = [](const Call& c) -> Outputs {
      const TensorBase& self = c.tensor(0);
      TS_CHECK(self.dim() <= 2,
               "cov(): expected input to have two or fewer dimensions but got an input with ",
               self.dim(), " dimensions");
      TS_CHECK(self.dtype() != DType::kBool, "cov(): bool dtype is not supported for input");
      const int64_t correction = c.integer(1);
      const Dims row{1, -1};
      TensorBase x = self.dim() < 2 ? op::reshape(self, row.span()) : self;
      const int64_t n = x.size(1), one = 1;
      TensorBase w;
      if (c.has(2)) {
        w = c.tensor(2);
        check_weights("fweights", w, n, true);
      }
      if (c.has(3)) {
        check_weights("aweights", c.tensor(3), n, false);
        w = w.defined() ? op::mul(w, c.tensor(3)) : c.tensor(3);
      }
      auto weighted = [&](const TensorBase& t) { return w.defined() ? op::mul(t, w) : t; };
      TensorBase total =
          w.defined() ? op::sum(w) : op::full({}, Scalar(n), DType::kInt64, self.device());
      TS_CHECK(!w.defined() || !host_scalar(total).is_zero(),
               "cov(): weights sum to zero, can't be normalized");
      TensorBase mean = op::div(op::sum(weighted(x), std::span(&one, 1)), total);
      TensorBase divisor = op::sub(total, Scalar(correction));
      if (c.has(3) && correction != 0) {
        TensorBase squares = op::sum(op::mul(w, c.tensor(3)));
        divisor = op::sub(total, op::div(op::mul(squares, Scalar(correction)), total));
      }
      // Without degrees of freedom the divisor is zero, and never negative.
      divisor = op::clamp(divisor, Scalar(0));
      x = op::sub(x, op::unsqueeze(mean, 1));
      TensorBase product = op::mm(x, op::conj(op::t(weighted(x))));
      TensorBase out = op::div(product, divisor);
      return self.dim() < 2 || out.size(0) == 1 ? op::squeeze(op::squeeze(out, 1), 0) : out;
    },
    .samples = {{"T(3, 5)"}, {"T(5)"}, {"T(3, 5), correction=0"}},
});

TS_OP({
    .schema = "corrcoef(Tensor self) -> Tensor",
    .doc = "The correlation coefficients of variables (rows) over observations (columns).",
    .example = "torch.corrcoef(torch.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))",
    .run = [](const Call& call) -> Outputs {
      const TensorBase& self = call.tensor(0);
      TS_CHECK(self.dim() <= 2,
               "corrcoef(): expected input to have two or fewer dimensions but got an input with ",
               self.dim(), " dimensions");
      TensorBase c = op::cov(self);
      if (c.dim() == 0) return op::div(c, c);
      TensorBase variances = op::diagonal(c);
      const bool complex = is_complex(c.dtype());
      TensorBase deviations = op::sqrt(complex ? op::real(variances) : variances);
      c = op::div(c, op::unsqueeze(deviations, 1));
      c = op::div(c, op::unsqueeze(deviations, 0));
      if (!complex) return op::clamp(c, Scalar(-1), Scalar(1));
      return op::complex(op::clamp(op::real(c), Scalar(-1), Scalar(1)),
                         op::clamp(op::imag(c), Scalar(-1), Scalar(1)));
    },
    .samples = {{"T(3, 5)"}},
});

}  // namespace tessera
