// Numbers of other distributions, made of uniform ones.
#include "tessera/gen/random.h"
#include "tessera/ops/loops.h"
#include "tessera/ops/random/draw.h"

namespace tessera {

namespace {

using random::draw;
using random::draw_into;
using random::uniform_doubles;

// The values made of uniform doubles go into self, whatever its dtype.
Outputs filled(const Call& c, const TensorBase& values) {
  TS_CHECK_IMPLEMENTED(is_floating(c.tensor(0).dtype()) || c.op.name == "geometric_", "\"",
                       c.op.name, "\" not implemented for ", c.tensor(0).dtype());
  copy_into(c.tensor(0), values, false);
  return c.tensor(0);
}

}  // namespace

TS_BODY(to_exponential, "t", 't', 1, (TS_FLOATS), return negate(log1p(negate(a))) / s0;)
TS_OP({
    .schema = "_to_exponential(Tensor u, float rate) -> Tensor",
    .kind = Kind::kPointwise,
    .forms = kFunction,
    .body = &to_exponential_body,
    .not_differentiable = true,
});
// The ends of (0, 1) would be infinite.
TS_BODY(to_cauchy, "t", 't', 2, (TS_FLOATS), const T tiny = std::numeric_limits<T>::epsilon();
        const T u = max(min(a, T(1) - tiny), tiny);
        return s0 + s1 * tan(T(3.14159265358979323846) * (u - T(0.5)));)
TS_OP({
    .schema = "_to_cauchy(Tensor u, float median, float sigma) -> Tensor",
    .kind = Kind::kPointwise,
    .forms = kFunction,
    .body = &to_cauchy_body,
    .not_differentiable = true,
});
TS_BODY(to_geometric, "t", 't', 1, (TS_FLOATS), return ceil(log(a) / log1p(negate(s0)));)
TS_OP({
    .schema = "_to_geometric(Tensor u, float p) -> Tensor",
    .kind = Kind::kPointwise,
    .forms = kFunction,
    .body = &to_geometric_body,
    .not_differentiable = true,
});
TS_BODY(to_log_normal, "t", 't', 0, (TS_FLOATS), return exp(a);)
TS_OP({
    .schema = "_to_log_normal(Tensor z) -> Tensor",
    .kind = Kind::kPointwise,
    .forms = kFunction,
    .body = &to_log_normal_body,
    .not_differentiable = true,
});

TS_OP({
    .schema = "exponential_(Tensor self, float lambd=1.0, *, Generator? generator=None) -> Tensor",
    .doc = "Fills self with numbers of the exponential distribution of a rate.",
    .example = "torch.empty(3).exponential_().shape",
    .kind = Kind::kKernel,
    .forms = kMethod,
    .run = [](const Call& c) -> Outputs {
      TS_CHECK(c.number(1) > 0,
               "exponential_ expects lambda > 0.0, but found lambda=", c.number(1));
      return filled(c,
                    op::_to_exponential(uniform_doubles(c.tensor(0), c.generator(2)), c.number(1)));
    },
    .backward = [](Backward&) {},
    .random = true,
});

TS_OP({
    .schema = "cauchy_(Tensor self, float median=0.0, float sigma=1.0, *, "
              "Generator? generator=None) -> Tensor",
    .doc = "Fills self with numbers of a Cauchy distribution.",
    .example = "torch.empty(3).cauchy_().shape",
    .kind = Kind::kKernel,
    .forms = kMethod,
    .run = [](const Call& c) -> Outputs {
      TS_CHECK(c.number(2) > 0, "cauchy_ expects sigma > 0.0, but found sigma=", c.number(2));
      TensorBase u = uniform_doubles(c.tensor(0), c.generator(3));
      return filled(c, op::_to_cauchy(u, c.number(1), c.number(2)));
    },
    .backward = [](Backward&) {},
    .random = true,
});

TS_OP({
    .schema = "geometric_(Tensor self, float p, *, Generator? generator=None) -> Tensor",
    .doc = "Fills self with the number of trials up to the first success of probability p.",
    .example = "torch.empty(3).geometric_(0.5).shape",
    .kind = Kind::kKernel,
    .forms = kMethod,
    .run = [](const Call& c) -> Outputs {
      double p = c.number(1);
      TS_CHECK(p > 0 && p < 1, "geometric_ expects p to be in (0, 1), but got p=", p);
      return filled(c, op::_to_geometric(uniform_doubles(c.tensor(0), c.generator(2)), p));
    },
    .backward = [](Backward&) {},
    .random = true,
});

TS_OP({
    .schema = "log_normal_(Tensor self, float mean=1.0, float std=2.0, *, "
              "Generator? generator=None) -> Tensor",
    .doc = "Fills self with numbers whose logarithms are normal.",
    .example = "torch.empty(3).log_normal_().shape",
    .kind = Kind::kKernel,
    .forms = kMethod,
    .run = [](const Call& c) -> Outputs {
      TS_CHECK(c.number(2) > 0, "log_normal_ expects std > 0.0, but found std=", c.number(2));
      TensorBase z = new_empty(c.tensor(0).sizes(), DType::kFloat64, c.tensor(0).device());
      draw("normal_each", z, {c.number(1), c.number(2)}, c.generator(3), {}, {},
           static_cast<uint64_t>(z.numel()));
      return filled(c, op::_to_log_normal(z));
    },
    .backward = [](Backward&) {},
    .random = true,
});

TS_OP({
    .schema = "poisson(Tensor self, Generator? generator=None) -> Tensor",
    .doc = "Numbers of events, each with the rate that self has.",
    .example = "torch.poisson(torch.tensor([1.0, 5.0])).shape",
    .kind = Kind::kKernel,
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& self = c.tensor(0);
      TS_CHECK_IMPLEMENTED(is_floating(self.dtype()), "\"poisson\" not implemented for ",
                           self.dtype());
      TensorBase out = new_empty(self.sizes(), self.dtype(), self.device());
      draw("poisson", out, {}, c.generator(1), {}, {&self, 1}, static_cast<uint64_t>(out.numel()));
      return out;
    },
    .backward = [](Backward& b) { b.set(0, op::_no_gradient(b.grad)); },
    .random = true,
    .samples = {{"P(2, 3)"}},
});

// The gradient of a draw: zeros.
TS_BODY(no_gradient, "t", 't', 0, (TS_FLOATS, TS_COMPLEX), return T(0);)
TS_OP({
    .schema = "_no_gradient(Tensor grad) -> Tensor",
    .kind = Kind::kPointwise,
    .forms = kFunction,
    .body = &no_gradient_body,
    .not_differentiable = true,
});

}  // namespace tessera
