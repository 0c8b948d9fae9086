#include "masked.h"
#include "tessera/gen/binary.h"
#include "tessera/gen/creation.h"
#include "tessera/gen/masked.h"
#include "tessera/gen/scan.h"
#include "tessera/gen/softmax.h"
#include "tessera/gen/unary.h"

namespace tessera {

TS_OP({
    .schema = "masked.cumsum(Tensor input, int dim, *, dtype? dtype=None, Tensor? mask=None) -> "
              "Tensor",
    .doc = "Along a dimension, the sum of each element and all before it whose mask is true.",
    .example = "torch.masked.cumsum(torch.tensor([1.0, 2.0]), 0, mask=torch.tensor([True, False]))",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& x = c.tensor(0);
      const DType dtype = c.dtype(2, x.dtype());
      return op::cumsum(masked_input(x, c.maybe(3), Fill::kZero), c.integer(1), dtype);
    },
    .samples = {{"T(3, 4), 1, mask=B(3, 4)"}},
});
TS_OP({
    .schema = "masked.cumprod(Tensor input, int dim, *, dtype? dtype=None, Tensor? mask=None) -> "
              "Tensor",
    .doc = "Along a dimension, the product of each element and all before it whose mask is true.",
    .example = "torch.masked.cumprod(torch.tensor([1.0, 2.0]), 0, mask=torch.tensor([True, "
               "False]))",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& x = c.tensor(0);
      const DType dtype = c.dtype(2, x.dtype());
      return op::cumprod(masked_input(x, c.maybe(3), Fill::kOne), c.integer(1), dtype);
    },
    .samples = {{"T(3, 4), 1, mask=B(3, 4)"}},
});

TS_OP({
    .schema = "masked.softmax(Tensor input, int dim, *, dtype? dtype=None, Tensor? mask=None) -> "
              "Tensor",
    .doc = "The softmax along a dimension over the elements whose mask is true; 0 for the others.",
    .example = "torch.masked.softmax(torch.tensor([1.0, 2.0]), 0, mask=torch.tensor([True, "
               "False]))",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& x = c.tensor(0);
      return op::softmax(masked_input(x, c.maybe(3), Fill::kLowest), c.integer(1),
                         c.dtype(2, x.dtype()));
    },
    .samples = {{"T(3, 4), 1"}},
});
TS_OP({
    .schema = "masked.log_softmax(Tensor input, int dim, *, dtype? dtype=None, Tensor? mask=None) "
              "-> Tensor",
    .doc = "The logarithm of the softmax along a dimension over the elements whose mask is true.",
    .example = "torch.masked.log_softmax(torch.tensor([1.0, 2.0]), 0, mask=torch.tensor([True, "
               "False]))",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& x = c.tensor(0);
      return op::log_softmax(masked_input(x, c.maybe(3), Fill::kLowest), c.integer(1),
                             c.dtype(2, x.dtype()));
    },
    .samples = {{"T(3, 4), 1"}},
});
TS_OP({
    .schema = "masked.softmin(Tensor input, int dim, *, dtype? dtype=None, Tensor? mask=None) -> "
              "Tensor",
    .doc = "The softmax of the negatives along a dimension over the elements whose mask is true.",
    .example = "torch.masked.softmin(torch.tensor([1.0, 2.0]), 0, mask=torch.tensor([True, "
               "False]))",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& x = c.tensor(0);
      return op::softmax(op::neg(masked_input(x, c.maybe(3), Fill::kHighest)), c.integer(1),
                         c.dtype(2, x.dtype()));
    },
    .samples = {{"T(3, 4), 1"}},
});

TS_OP({
    .schema = "masked.logaddexp(Tensor input, Tensor other, *, dtype? dtype=None, Tensor? "
              "input_mask=None, Tensor? other_mask=None) -> Tensor",
    .doc = "log(exp(input) + exp(other)) of what the masks leave.",
    .example = "torch.masked.logaddexp(torch.tensor([1.0]), torch.tensor([2.0]))",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& x = c.tensor(0);
      TensorBase out = op::logaddexp(masked_input(x, c.maybe(3), Fill::kLowest),
                                     masked_input(c.tensor(1), c.maybe(4), Fill::kLowest));
      return in_dtype(out, c.dtype(2, x.dtype()));
    },
    .samples = {{"T(3, 4), T(3, 4)"}},
});

TS_OP({
    .schema = "masked.normalize(Tensor input, float ord, int dim, *, float eps=1e-12, dtype? "
              "dtype=None, Tensor? mask=None) -> Tensor",
    .doc = "The elements whose mask is true, divided by their norm along a dimension.",
    .example = "torch.masked.normalize(torch.tensor([3.0, 4.0]), 2.0, 0)",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& x = c.tensor(0);
      const int64_t dim = c.integer(2);
      TensorBase norm = op::masked_norm(x, c.number(1), std::span(&dim, 1), true,
                                        c.dtype(4, x.dtype()), c.maybe(5));
      TensorBase low = op::full({}, c.scalar(3), norm.dtype(), norm.device());
      return op::div(masked_input(x, c.maybe(5), Fill::kZero), op::maximum(norm, low));
    },
    .samples = {{"T(3, 4), 2.0, 1, mask=B(3, 4)"}},
});

}  // namespace tessera
