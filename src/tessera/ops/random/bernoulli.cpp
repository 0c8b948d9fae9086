// Choices: single ones, masks, and among several.
#include "tessera/gen/binary.h"
#include "tessera/gen/bitwise.h"
#include "tessera/gen/compare.h"
#include "tessera/gen/copy.h"
#include "tessera/gen/random.h"
#include "tessera/gen/reduce.h"
#include "tessera/gen/view.h"
#include "tessera/ops/in_dtype.h"
#include "tessera/ops/loops.h"
#include "tessera/ops/philox.h"
#include "tessera/ops/random/draw.h"

namespace tessera {

namespace {

using random::draw;
using random::draw_into;

// The probability each element is compared with decides how many bits are drawn: a float's.
TensorBase chosen(const TensorBase& p, const Dims& size, Mt19937Generator* g) {
  TS_CHECK_IMPLEMENTED(is_floating(p.dtype()), "\"bernoulli_tensor\" not implemented for ",
                       p.dtype());
  // As PyTorch: an accelerator is not asked, which would have to be waited for.
  if (p.device().is_cpu() && p.numel() > 0) {
    TensorBase sound = op::logical_and(op::ge(p, 0), op::le(p, 1));
    TS_CHECK(!host_scalar(op::all(sound)).is_zero(), "Expected p_in >= 0 && p_in <= 1 to be true");
  }
  DType t = p.dtype() == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
  TensorBase u = new_empty(size, t, p.device());
  draw("uniform", u, {0.0, 1.0}, g);
  return op::_less(u, in_dtype(p, t));
}

void check_probability(double p) {
  TS_CHECK(p >= 0 && p <= 1, "bernoulli_ expects p to be in [0, 1], but got p=", p);
}

}  // namespace

TS_BODY(less, "tt", 't', 0, (TS_FLOATS), return select(a < b, T(1), T(0));)
TS_OP({
    .schema = "_less(Tensor u, Tensor p) -> Tensor",
    .kind = Kind::kPointwise,
    .forms = kFunction,
    .body = &less_body,
    .not_differentiable = true,
});

TS_OP({
    .schema = "bernoulli(Tensor self, *, Generator? generator=None) -> Tensor",
    .doc = "Ones with the probabilities that self has, and zeros.",
    .example = "torch.bernoulli(torch.tensor([0.0, 1.0]))",
    .kind = Kind::kKernel,
    .forms = kFunction | kMethod | kOut,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& self = c.tensor(0);
      return op::_to_dtype(chosen(self, self.sizes(), c.generator(1)), self.dtype());
    },
    .backward = [](Backward& b) { b.set(0, op::_no_gradient(b.grad)); },
    .random = true,
    .samples = {{"V([0.25, 0.5, 0.75])"}},
});
TS_OP({
    .schema = "bernoulli(Tensor self, float p, *, Generator? generator=None) -> Tensor",
    .doc = "Ones with probability p, and zeros, in the shape of self.",
    .example = "torch.bernoulli(torch.ones(3), 1.0)",
    .kind = Kind::kKernel,
    .forms = kFunction | kMethod,
    .run = [](const Call& c) -> Outputs {
      check_probability(c.number(1));
      TensorBase t = new_empty(c.tensor(0).sizes(), c.tensor(0).dtype(), c.tensor(0).device());
      draw("bernoulli", t, {c.number(1)}, c.generator(2));
      return t;
    },
    .backward = [](Backward& b) { b.set(0, op::_no_gradient(b.grad)); },
    .random = true,
    .samples = {{"T(2, 3), 0.5"}},
});

TS_OP({
    .schema = "bernoulli_(Tensor self, Tensor p, *, Generator? generator=None) -> Tensor",
    .doc = "Fills self with ones, each with a probability of its own, and zeros.",
    .example = "torch.empty(3).bernoulli_(torch.ones(3))",
    .kind = Kind::kKernel,
    .forms = kMethod,
    .run = [](const Call& c) -> Outputs {
      TensorBase p = op::expand(c.tensor(1), c.tensor(0).sizes().span());
      copy_into(c.tensor(0), chosen(p, c.tensor(0).sizes(), c.generator(2)), false);
      return c.tensor(0);
    },
    .backward = [](Backward&) {},
    .random = true,
});
TS_OP({
    .schema = "bernoulli_(Tensor self, float p=0.5, *, Generator? generator=None) -> Tensor",
    .doc = "Fills self with ones, each with probability p, and zeros.",
    .example = "torch.empty(3).bernoulli_(1.0)",
    .kind = Kind::kKernel,
    .forms = kMethod,
    .run = [](const Call& c) -> Outputs {
      check_probability(c.number(1));
      return draw_into(c.tensor(0), "bernoulli", {c.number(1)}, c.generator(2));
    },
    .backward = [](Backward&) {},
    .random = true,
});

TS_OP({
    .schema = "multinomial(Tensor self, int num_samples, bool replacement=False, *, "
              "Generator? generator=None) -> Tensor",
    .doc = "Places drawn by the weights in each row.",
    .example = "torch.multinomial(torch.tensor([0.0, 1.0]), 3, replacement=True)",
    .kind = Kind::kKernel,
    .forms = kFunction | kMethod | kOut,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& self = c.tensor(0);
      int64_t n = c.integer(1);
      TS_CHECK(self.dim() == 1 || self.dim() == 2, "prob_dist must be 1 or 2 dim");
      TS_CHECK(is_floating(self.dtype()),
               "multinomial only supports floating-point dtypes for input, got: ", self.dtype());
      TS_CHECK(n > 0, "cannot sample n_sample <= 0 samples");
      int64_t places = self.sizes()[static_cast<size_t>(self.dim() - 1)];
      TS_CHECK(c.flag(2) || n <= places,
               "cannot sample n_sample > prob_dist.size(-1) samples without replacement");
      TS_CHECK(places <= int64_t{1} << 24, "number of categories cannot exceed 2^24");
      Dims size = self.sizes();
      size[size.size() - 1] = n;
      TensorBase out = new_empty(size, DType::kInt64, self.device());
      TensorBase weights = op::contiguous(self);
      const bool by_sums = c.flag(2) && n > 1;
      draw("multinomial", out, {}, c.generator(3), {c.flag(2) ? 1 : 0}, {&weights, 1},
           philox_blocks(static_cast<uint64_t>(by_sums ? out.numel() : weights.numel()), true));
      return out;
    },
    .exact_out = true,
    .random = true,
    .not_differentiable = true,
    .samples = {{"P(2, 3), 2"}},
});

}  // namespace tessera
