// Differences of neighbours, and numbers as places: one-hot vectors and coordinates.
#include "tessera/gen/binary.h"
#include "tessera/gen/bitwise.h"
#include "tessera/gen/copy.h"
#include "tessera/gen/creation.h"
#include "tessera/gen/join.h"
#include "tessera/gen/rearrange.h"
#include "tessera/gen/reduce.h"
#include "tessera/gen/view.h"
#include "tessera/ops/in_dtype.h"
#include "tessera/ops/loops.h"

namespace tessera {

namespace {

TS_BODY(one_hot, "tt", 't', 0, (int64_t), return a == b ? T(1) : T(0);)
// Coordinate of a place: floor(a / s0) modulo s1, both positive.
TS_BODY(coordinate, "t", 't', 2, (int64_t), T q = a / s0 - (a % s0 < 0 ? 1 : 0); T r = q % s1;
        return r < 0 ? r + s1 : r;)

TensorBase difference(const TensorBase& t, int64_t dim) {
  int64_t n = std::max<int64_t>(t.size(dim) - 1, 0);
  TensorBase from = op::narrow(t, dim, 0, n);
  TensorBase to = op::narrow(t, dim, t.size(dim) - n, n);
  return t.dtype() == DType::kBool ? op::logical_xor(to, from) : op::sub(to, from);
}

}  // namespace

TS_OP({
    .schema = "_one_hot(Tensor classes, Tensor numbers) -> Tensor",
    .kind = Kind::kPointwise,
    .forms = kFunction,
    .body = &one_hot_body,
    .not_differentiable = true,
});
TS_OP({
    .schema = "_coordinate(Tensor places, Scalar step, Scalar size) -> Tensor",
    .kind = Kind::kPointwise,
    .forms = kFunction,
    .check =
        [](const Call& c) {
          TS_CHECK(c.scalar(1).to_int() > 0 && c.scalar(2).to_int() > 0, c.op.name,
                   "(): expected a step and a size above 0, but got ", c.scalar(1).to_int(),
                   " and ", c.scalar(2).to_int());
        },
    .body = &coordinate_body,
    .not_differentiable = true,
});

TS_OP({
    .schema = "nn.functional.one_hot(Tensor tensor, int num_classes=-1) -> Tensor",
    .doc = "Each number as a vector of zeros with a one at its place.",
    .example = "torch.nn.functional.one_hot(torch.tensor([0, 2]), 3)",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& t = c.tensor(0);
      TS_CHECK(t.dtype() == DType::kInt64,
               "one_hot is only applicable to index tensor of type LongTensor.");
      int64_t classes = c.integer(1);
      Dims shape = t.sizes();
      if (t.numel() == 0) {
        TS_CHECK(classes > 0, "Can not infer total number of classes from empty tensor.");
        shape.push_back(classes);
        return op::zeros(shape.span(), DType::kInt64, t.device());
      }
      if (!t.device().is_meta()) {
        TS_CHECK(host_scalar(op::amin(t)).to_int() >= 0, "Class values must be non-negative.");
        int64_t highest = host_scalar(op::amax(t)).to_int();
        TS_CHECK(classes == -1 || classes > 0, "num_classes should be positive");
        TS_CHECK(classes == -1 || highest < classes,
                 "Class values must be smaller than num_classes.");
        if (classes == -1) classes = highest + 1;
      }
      TS_CHECK(classes > 0, "one_hot(): the number of classes cannot be read off a meta tensor");
      return op::_one_hot(op::unsqueeze(t, -1), op::arange(classes, DType::kInt64, t.device()));
    },
    .not_differentiable = true,
    .samples = {{"I([0, 2], 3), 4"}},
});

TS_OP({
    .schema = "unravel_index(Tensor indices, int[1] shape) -> Tensor[]",
    .doc = "The coordinates of places that are counted in row-major order.",
    .example = "torch.unravel_index(torch.tensor([0, 4]), (2, 3))",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& t = c.tensor(0);
      Dims shape = c.ints(1);
      TS_CHECK_TYPE(is_integral(t.dtype(), false),
                    "expected 'indices' to be integer dtype, but got ", t.dtype());
      for (int64_t n : shape)
        TS_CHECK_VALUE(n >= 0, "'shape' cannot have negative values, but got ", shape);
      TensorBase places = in_dtype(t, DType::kInt64);
      std::vector<TensorBase> out(shape.size());
      int64_t step = 1;
      for (size_t d = shape.size(); d-- > 0;) {
        TS_CHECK_VALUE(shape[d] != 0 || t.numel() == 0,
                       "'shape' cannot have zero dimensions when 'indices' is non-empty, but got ",
                       shape);
        out[d] = t.numel() == 0 ? op::clone(places)
                                : op::_coordinate(places, Scalar(step), Scalar(shape[d]));
        step *= shape[d];
      }
      return out;
    },
    .not_differentiable = true,
    .samples = {{"I([0, 4], 6), (2, 3)"}},
});

TS_OP({
    .schema = "diff(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None) "
              "-> Tensor",
    .doc = "Differences of neighbours along a dimension, n times over.",
    .example = "torch.diff(torch.tensor([1, 4, 9]))",
    .forms = kFunction | kMethod | kOut,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& self = c.tensor(0);
      int64_t n = c.integer(1), dim = c.integer(2);
      TS_CHECK(self.dim() > 0, "diff expects input to be at least one-dimensional");
      size_t d = static_cast<size_t>(wrap_dim(dim, self.dim()));
      TS_CHECK(n >= 0, "order must be non-negative but got ", n);
      std::vector<TensorBase> parts;
      for (int arg : {3, 0, 4}) {
        if (!c.has(arg)) continue;
        const TensorBase& t = c.tensor(arg);
        TS_CHECK(t.dim() == self.dim(),
                 "diff expects prepend or append to be the same dimension as input");
        for (size_t i = 0; i < self.sizes().size(); ++i)
          TS_CHECK(i == d || t.sizes()[i] == self.sizes()[i],
                   "diff expects the shape of tensor to prepend or append to match that of input "
                   "except along the differencing dimension; input.size(",
                   i, ") = ", self.sizes()[i], ", but got tensor.size(", i, ") = ", t.sizes()[i]);
        parts.push_back(t);
      }
      if (n == 0) return op::clone(self);
      TensorBase t = parts.size() == 1 ? self : op::cat(parts, dim);
      for (n = std::min(n, t.size(dim)); n > 0; --n) t = difference(t, dim);
      return t;
    },
    .samples = {{"T(4)"}, {"T(3, 4), 2, 0"}, {"T(3, 4), 1, 1, T(3, 1)"}, {"T(2), 5"}},
});

}  // namespace tessera
