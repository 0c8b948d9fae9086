#include "tessera/gen/binary.h"
#include "tessera/gen/join.h"
#include "tessera/gen/stat.h"
#include "tessera/gen/view.h"

namespace tessera {

namespace {

// Three components turned by one or two places.
TensorBase turned(const TensorBase& t, int64_t dim, int64_t by) {
  const TensorBase parts[] = {op::slice(t, dim, by, 3), op::slice(t, dim, 0, by)};
  return op::cat(parts, dim);
}

}  // namespace

TS_OP({
    .schema = "linalg.cross(Tensor self, Tensor other, *, int dim=-1) -> Tensor",
    .doc = "The cross product of vectors of three components along a dimension.",
    .example = "torch.linalg.cross(torch.tensor([1.0, 0.0, 0.0]), torch.tensor([0.0, 1.0, 0.0]))",
    .forms = kFunction | kOut,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& a = c.tensor(0);
      const TensorBase& b = c.tensor(1);
      check_same_device(c.op, c.args);
      TS_CHECK(a.dim() == b.dim(), "linalg.cross: inputs must have the same number of dimensions.");
      const int64_t given = c.integer(2);
      wrap_dim(given, a.dim());
      TS_CHECK(a.dim() > 0 && a.size(given) == 3 && b.size(given) == 3,
               "linalg.cross: inputs dimension ", given, " must have length 3. Got ",
               a.dim() ? a.size(given) : 0, " and ", b.dim() ? b.size(given) : 0);
      const int64_t dim = wrap_dim(given, a.dim());
      broadcast_shapes(a.sizes(), b.sizes());
      return op::sub(op::mul(turned(a, dim, 1), turned(b, dim, 2)),
                     op::mul(turned(a, dim, 2), turned(b, dim, 1)));
    },
    .autocast = Autocast::kPromoteGpu,
    .exact_out = true,
    .samples = {{"T(4, 3), T(4, 3)"}, {"T(3, 4), T(3, 1), dim=0"}},
});

TS_OP({
    .schema = "cross(Tensor self, Tensor other, int? dim=None) -> Tensor",
    .doc = "The cross product of vectors of three components, along the first dimension of size 3 "
           "unless said.",
    .example = "torch.cross(torch.tensor([1.0, 0.0, 0.0]), torch.tensor([0.0, 1.0, 0.0]))",
    .forms = kFunction | kMethod | kOut,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& a = c.tensor(0);
      if (c.has(2)) return op::linalg_cross(a, c.tensor(1), c.integer(2));
      for (int d = 0; d < a.dim(); ++d)
        if (a.size(d) == 3) return op::linalg_cross(a, c.tensor(1), d);
      raise(ErrorKind::kRuntime, "no dimension of size 3 in input");
    },
    .autocast = Autocast::kPromoteGpu,
    .exact_out = true,
    .samples = {{"T(3, 4), T(3, 4)"}, {"T(4, 3), T(4, 3), 1"}},
});

}  // namespace tessera
