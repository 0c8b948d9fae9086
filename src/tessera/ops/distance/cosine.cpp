#include "tessera/gen/binary.h"
#include "tessera/gen/copy.h"
#include "tessera/gen/distance.h"
#include "tessera/gen/linalg.h"
#include "tessera/gen/reduce.h"
#include "tessera/gen/ternary.h"
#include "tessera/gen/view.h"
#include "tessera/ops/in_dtype.h"
#include "tessera/ops/loops.h"

namespace tessera {

// At least s0; the gradient passes as if it were the element itself.
TS_BODY(at_least, "t", 't', 1, (TS_FLOATS), return select(a < s0, s0, a);)
TS_OP({
    .schema = "_at_least(Tensor self, Scalar low) -> Tensor",
    .kind = Kind::kPointwise,
    .forms = kFunction,
    .body = &at_least_body,
    .backward = [](Backward& b) { b.set(0, b.grad); },
});

TS_OP({
    .schema = "cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08) -> Tensor",
    .also = "nn.functional.cosine_similarity",
    .doc = "The cosine of the angle between vectors along a dimension; norms count as at least "
           "eps.",
    .example = "torch.cosine_similarity(torch.tensor([[1.0, 0.0]]), torch.tensor([[1.0, 1.0]]))",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const DType common = result_type(c.args.first(2));
      TS_CHECK(is_floating(common),
               "expected common dtype to be floating point, yet common dtype is ",
               dtype_title(common));
      const Dims shape = broadcast_shapes(c.tensor(0).sizes(), c.tensor(1).sizes());
      const int64_t dim = c.integer(2);
      auto unit = [&](const TensorBase& given) {
        TensorBase x = in_dtype(given, common);
        x = op::expand(x, shape.span());
        TensorBase norm = op::linalg_vector_norm(x, Scalar(2), std::span(&dim, 1), true);
        return op::div(x, op::_at_least(norm, c.scalar(3)));
      };
      return op::sum(op::mul(unit(c.tensor(0)), unit(c.tensor(1))), std::span(&dim, 1));
    },
    .autocast = Autocast::kFloat32Gpu,
    .samples = {{"T(3, 4), T(3, 4)"}, {"T(3, 4), T(4), 0"}},
});

TS_OP({
    .schema =
        "nn.functional.normalize(Tensor input, float p=2.0, int[1] dim=1, float eps=1e-12) -> "
        "Tensor",
    .doc = "The vectors along a dimension divided by their p-norm, or by eps where that is larger.",
    .example = "torch.nn.functional.normalize(torch.tensor([[3.0, 4.0]]))",
    .forms = kFunction | kOut,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& x = c.tensor(0);
      TensorBase norm = op::norm(x, c.scalar(1), c.args[2].ints, true);
      return op::div(x, op::clamp(norm, c.scalar(3)));
    },
    .autocast = Autocast::kFloat32Gpu,
    .samples = {{"T(3, 4)"}, {"T(3, 4), 1.0, 0"}},
});

}  // namespace tessera
