// Numbers times powers of two.
#include "tessera/gen/binary.h"
#include "tessera/gen/bitwise.h"
#include "tessera/gen/copy.h"
#include "tessera/gen/ternary.h"
#include "tessera/gen/unary.h"
#include "tessera/gen/view.h"
#include "tessera/ops/loops.h"
#include "tessera/ops/modes.h"

namespace tessera {

namespace {

// 2 ** e for integers of which it is a normal number: as bits, so that it is exact on every device.
TensorBase power_of_two(const TensorBase& e, DType dtype) {
  const bool wide = dtype == DType::kFloat64;
  TensorBase bits = op::bitwise_left_shift(op::add(e, wide ? 1023 : 127), Value(wide ? 52 : 23));
  return op::view(wide ? bits : op::_to_dtype(bits, DType::kInt32), dtype);
}

// The number is brought between 1/2 and 1, and then to its place, by two steps each: one power may
// be larger than any number although the result is not, and only the last step may round.
TensorBase scaled(const TensorBase& self, const TensorBase& by) {
  const DType own = self.dtype();
  const DType dtype = is_reduced_floating(own) ? DType::kFloat32 : own;
  TensorBase x = own == dtype ? self : op::_to_dtype(self, dtype);
  const int64_t most = dtype == DType::kFloat64 ? 1000 : 120;
  auto moved = [&](const TensorBase& t, const TensorBase& e) {
    TensorBase first = op::clamp(e, -most, most);
    TensorBase rest = op::clamp(op::sub(e, first), -most, most);
    return op::mul(op::mul(t, power_of_two(first, dtype)), power_of_two(rest, dtype));
  };
  TensorBase exponent = op::_to_dtype(op::_frexp_exponent(op::detach(x)), DType::kInt64);
  TensorBase further = op::clamp(op::_to_dtype(by, DType::kInt64), -5000, 5000);
  TensorBase y = moved(moved(x, op::neg(exponent)), op::add(exponent, further));
  return own == dtype ? y : op::_to_dtype(y, own);
}

}  // namespace

TS_OP({
    .schema = "ldexp(Tensor self, Tensor other) -> Tensor",
    .doc = "self * 2 ** other.",
    .example = "torch.ldexp(torch.tensor([1.0, 3.0]), torch.tensor([4, -1]))",
    .forms = kFunction | kMethod | kInplace | kOut,
    .run = [](const Call& c) -> Outputs {
      const TensorBase &self = c.tensor(0), &by = c.tensor(1);
      if (is_differentiable(by.dtype()) || is_complex(self.dtype()))
        return op::mul(self, op::pow(Scalar(2.0), by));
      return scaled(is_floating(self.dtype()) ? self : op::_to_dtype(self, default_dtype()), by);
    },
    .samples = {{"T(3, 4), T(3, 4)"}, {"T(3), I([4, -1, 2], 99)"}},
});

}  // namespace tessera
