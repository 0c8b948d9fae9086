#include "tessera/gen/copy.h"
#include "tessera/ops/reduce_loops.h"

namespace tessera {

TS_REDUCE(any, (bool), T(false), a, x | y, x)
TS_REDUCE(all, (bool), T(true), a, x& y, x)

namespace {

// An empty list of dimensions reduces nothing; of uint8 the result is uint8, as PyTorch keeps it.
Outputs truth(const Call& c, const ReduceBody& body) {
  const TensorBase& self = c.tensor(0);
  Dims dims;
  if (!c.has(1) || !c.args[1].ints.empty()) dims = reduced_dims(c, 1, self.dim());
  TensorBase out = reduce(body, self, dims, c.flag(2), DType::kBool);
  return self.dtype() == DType::kUInt8 ? op::_to_dtype(out, DType::kUInt8) : out;
}

}  // namespace

TS_OP({
    .schema = "any(Tensor self, int[1]? dim=None, bool keepdim=False) -> Tensor",
    .doc = "Whether any element, or any along the given dimensions, is true (not zero).",
    .example = "torch.any(torch.tensor([[0, 2], [0, 0]]), 1)",
    .kind = Kind::kReduction,
    .forms = kFunction | kMethod | kOut,
    .run = [](const Call& c) { return truth(c, any_reduce); },
    .bool_out = true,
    .not_differentiable = true,
    .samples =
        {{"T(3, 4)"}, {"T(3, 4), 0"}, {"T(3, 4), -1, keepdim=True"}, {"T(), 0"}, {"T(0, 3), 0"}},
});

TS_OP({
    .schema = "all(Tensor self, int[1]? dim=None, bool keepdim=False) -> Tensor",
    .doc = "Whether all elements, or all along the given dimensions, are true (not zero).",
    .example = "torch.all(torch.tensor([[0, 2], [0, 0]]), 1)",
    .kind = Kind::kReduction,
    .forms = kFunction | kMethod | kOut,
    .run = [](const Call& c) { return truth(c, all_reduce); },
    .bool_out = true,
    .not_differentiable = true,
    .samples =
        {{"T(3, 4)"}, {"T(3, 4), 0"}, {"T(3, 4), -1, keepdim=True"}, {"T(), 0"}, {"T(0, 3), 0"}},
});

}  // namespace tessera
