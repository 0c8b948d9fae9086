// Activations with parameters, with chance, and with gates.
#include "tessera/gen/activation.h"
#include "tessera/gen/random.h"
#include "tessera/gen/view.h"
#include "tessera/ops/gradient.h"
#include "tessera/ops/loops.h"

namespace tessera {

TS_BODY(prelu, "tt", 't', 0, (TS_FLOATS), return select(a > T(0), a, a* b);)
TS_OP({
    .schema = "_prelu(Tensor self, Tensor weight) -> Tensor",
    .kind = Kind::kPointwise,
    .forms = kFunction,
    .body = &prelu_body,
    .saves = "self weight:self",
    .backward =
        [](Backward& b) {
          const TensorBase& x = b.tensor(0);
          TensorBase above = op::gt(x, 0);
          if (b.wants(0)) b.set(0, op::where(above, b.grad, op::mul(b.grad, b.args[1])));
          if (b.wants(1)) b.set(1, op::where(above, 0, op::mul(b.grad, x)));
        },
});
TS_OP({
    .schema = "prelu(Tensor self, Tensor weight) -> Tensor",
    .also = "nn.functional.prelu",
    .doc = "Each element, times weight where it is negative: one for all, or one a channel.",
    .example = "torch.prelu(torch.tensor([[-1.0, 2.0]]), torch.tensor([0.25]))",
    .run = [](const Call& c) -> Outputs {
      const TensorBase &self = c.tensor(0), &weight = c.tensor(1);
      TS_CHECK(self.dtype() == weight.dtype(), "prelu: Type promoting not supported. Got ",
               dtype_title(self.dtype()), " and ", dtype_title(weight.dtype()));
      if (weight.numel() != 1) {
        TS_CHECK(self.dim() > 0, "Not allow zero-dim input tensor.");
        int64_t channels = self.dim() > 1 ? self.sizes()[1] : 1;
        TS_CHECK(weight.dim() > 1 || channels == weight.numel(),
                 "Mismatch of parameter numbers and input channel size. Found parameter numbers = ",
                 weight.numel(), " and channel size = ", channels, ".");
      }
      TS_CHECK(
          weight.dim() <= 1,
          "prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = ", weight.dim());
      if (self.dim() < 2) return op::_prelu(self, op::reshape(weight, Dims{}.span()));
      Dims shape(self.sizes().size(), 1);
      shape[1] = weight.numel();
      return op::_prelu(self, op::reshape(weight, shape.span()));
    },
    .autocast = Autocast::kLower,
    .samples = {{"T(3, 4), P(4)"}, {"T(3, 4, 2), P(1)"}},
});

TS_OP({
    .schema = "rrelu(Tensor self, float lower=0.125, float upper=0.3333333333333333, "
              "bool training=False, *, Generator? generator=None) -> Tensor",
    .also = "nn.functional.rrelu",
    .doc = "Each element; where it is negative times a number of [lower, upper], drawn for each in "
           "training, else their mean.",
    .example = "torch.rrelu(torch.tensor([-1.0, 2.0]))",
    .forms = kFunction | kInplace,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& self = c.tensor(0);
      double lower = c.number(1), upper = c.number(2);
      TS_CHECK(lower <= upper, "Lower bound should be less than or equal to the upper bound");
      TS_CHECK_IMPLEMENTED(is_floating(self.dtype()), "\"rrelu\" not implemented for '",
                           dtype_title(self.dtype()), "'");
      if (!c.flag(3)) return op::leaky_relu(self, (lower + upper) / 2);
      TS_CHECK_IMPLEMENTED(!c.has(4), "rrelu() with a generator is not implemented in Tessera yet");
      TensorBase slope = new_empty(self.sizes(), self.dtype(), self.device());
      op::uniform_(slope, lower, upper);
      return op::_prelu(self, slope);
    },
    .random = true,
    .samples = {{"T(3, 4)"}, {"T(3, 4), 0.1, 0.5, True"}},
});

TS_OP({
    .schema = "nn.functional.glu(Tensor self, int dim=-1) -> Tensor",
    .doc = "The first half along a dimension times the sigmoid of the second.",
    .example = "torch.nn.functional.glu(torch.tensor([1.0, 2.0, 0.0, 1.0]))",
    .forms = kFunction | kOut,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& self = c.tensor(0);
      TS_CHECK(self.dim() > 0, "glu does not support 0-dimensional tensors");
      int dim = wrap_dim(c.integer(1), self.dim());
      int64_t size = self.sizes()[dim];
      TS_CHECK(size % 2 == 0, "Halving dimension must be even, but dimension ", dim, " is size ",
               size);
      TensorBase value = op::slice(self, dim, 0, size / 2);
      TensorBase gate = op::slice(self, dim, size / 2, size);
      return op::mul(value, op::sigmoid(gate));
    },
    .samples = {{"T(3, 4)"}, {"T(4, 3), 0"}},
});

}  // namespace tessera
