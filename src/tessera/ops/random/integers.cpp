// Integers and permutations.
#include "tessera/gen/random.h"
#include "tessera/ops/philox.h"
#include "tessera/ops/random/draw.h"

namespace tessera {

namespace {

using random::created;
using random::draw;
using random::draw_into;
using random::laid_out_like;

// The largest integer up to which a dtype holds all of them.
int64_t largest(DType t) {
  switch (t) {
    case DType::kBool:
      return 1;
    case DType::kUInt8:
      return 255;
    case DType::kInt8:
      return 127;
    case DType::kInt16:
      return 32767;
    case DType::kInt32:
      return INT32_MAX;
    case DType::kFloat16:
      return 1 << 11;
    case DType::kBFloat16:
      return 1 << 8;
    case DType::kFloat32:
      return 1 << 24;
    case DType::kFloat64:
      return int64_t{1} << 53;
    default:
      return INT64_MAX;
  }
}

void check_range(DType t, int64_t low, int64_t high) {
  TS_CHECK(low < high, "random_ expects 'from' to be less than 'to', but got from=", low,
           " >= to=", high);
  if (is_floating(t)) return;
  int64_t top = largest(t);
  int64_t bottom = t == DType::kBool || t == DType::kUInt8 ? 0 : -top - 1;
  TS_CHECK(low >= bottom && low <= top, "from is out of bounds for ", t);
  TS_CHECK(high - 1 >= bottom && high - 1 <= top, "to - 1 is out of bounds for ", t);
}

Outputs integers(const Call& c, int64_t low, int64_t high, int size, int first) {
  TensorBase t = created(c, c.ints(size), first, DType::kInt64, Device{});
  check_range(t.dtype(), low, high);
  draw("random_int", t, {}, c.generator(first - 1), {low, high});
  return t;
}

Outputs integers_like(const Call& c, int64_t low, int64_t high, int first) {
  const TensorBase& self = c.tensor(0);
  TensorBase t = created(c, self.sizes(), first, self.dtype(), self.device());
  check_range(t.dtype(), low, high);
  draw("random_int", t, {}, nullptr, {low, high});
  return laid_out_like(c, t, first + 5);
}

}  // namespace

TS_OP({
    .schema = "randint(int high, int[] size, *, Generator? generator=None, dtype? dtype=None, "
              "layout? layout=None, device? device=None, bool? pin_memory=None, "
              "bool? requires_grad=False) -> Tensor",
    .doc = "Integers from 0 to high - 1, each as likely as the others.",
    .example = "torch.randint(10, (2, 3)).shape",
    .forms = kFunction | kOut,
    .run = [](const Call& c) -> Outputs { return integers(c, 0, c.integer(0), 1, 3); },
    .random = true,
    .samples = {{"10, (2, 3)"}},
});
TS_OP({
    .schema = "randint(int low, int high, int[] size, *, Generator? generator=None, "
              "dtype? dtype=None, layout? layout=None, device? device=None, "
              "bool? pin_memory=None, bool? requires_grad=False) -> Tensor",
    .doc = "Integers from low to high - 1.",
    .example = "torch.randint(3, 10, (2, 3)).shape",
    .forms = kFunction | kOut,
    .run = [](const Call& c) -> Outputs { return integers(c, c.integer(0), c.integer(1), 2, 4); },
    .random = true,
    .samples = {{"3, 10, (2, 3)"}},
});

TS_OP({
    .schema = "randint_like(Tensor self, int high, *, dtype? dtype=None, layout? layout=None, "
              "device? device=None, bool? pin_memory=None, bool? requires_grad=False, "
              "memory_format? memory_format=None) -> Tensor",
    .doc = "Integers from 0 to high - 1 in the shape of self.",
    .example = "torch.randint_like(torch.ones(2), 10).shape",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs { return integers_like(c, 0, c.integer(1), 2); },
    .random = true,
    .not_differentiable = true,
    .samples = {{"T(2, 3), 10"}},
});
TS_OP({
    .schema = "randint_like(Tensor self, int low, int high, *, dtype? dtype=None, "
              "layout? layout=None, device? device=None, bool? pin_memory=None, "
              "bool? requires_grad=False, memory_format? memory_format=None) -> Tensor",
    .doc = "Integers from low to high - 1 in the shape of self.",
    .example = "torch.randint_like(torch.ones(2), 3, 10).shape",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs { return integers_like(c, c.integer(1), c.integer(2), 3); },
    .random = true,
    .not_differentiable = true,
    .samples = {{"T(2, 3), 3, 10"}},
});

TS_OP({
    .schema = "random_(Tensor self, int from, int? to, *, Generator? generator=None) -> Tensor",
    .doc = "Fills self with integers from `from` to `to` - 1.",
    .example = "torch.empty(3).random_(2, 10).shape",
    .kind = Kind::kKernel,
    .forms = kMethod,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& self = c.tensor(0);
      int64_t high = c.has(2) ? c.integer(2) : largest(self.dtype());
      if (!c.has(2) && high != INT64_MAX) ++high;
      check_range(self.dtype(), c.integer(1), high);
      return draw_into(self, "random_int", {}, c.generator(3), {c.integer(1), high});
    },
    .backward = [](Backward&) {},
    .random = true,
});
TS_OP({
    .schema = "random_(Tensor self, int to, *, Generator? generator=None) -> Tensor",
    .doc = "Fills self with integers from 0 to `to` - 1.",
    .example = "torch.empty(3).random_(10).shape",
    .kind = Kind::kKernel,
    .forms = kMethod,
    .run = [](const Call& c) -> Outputs {
      check_range(c.tensor(0).dtype(), 0, c.integer(1));
      return draw_into(c.tensor(0), "random_int", {}, c.generator(2), {0, c.integer(1)});
    },
    .backward = [](Backward&) {},
    .random = true,
});
TS_OP({
    .schema = "random_(Tensor self, *, Generator? generator=None) -> Tensor",
    .doc = "Fills self with integers of all that its dtype holds.",
    .example = "torch.empty(3).random_().shape",
    .kind = Kind::kKernel,
    .forms = kMethod,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& self = c.tensor(0);
      // One more than the largest; that of int64 is what 64 bits wrap to.
      uint64_t high = static_cast<uint64_t>(largest(self.dtype())) + 1;
      return draw_into(self, "random_int", {}, c.generator(1), {0, static_cast<int64_t>(high)});
    },
    .backward = [](Backward&) {},
    .random = true,
});

TS_OP({
    .schema = "randperm(int n, *, Generator? generator=None, dtype? dtype=None, "
              "layout? layout=None, device? device=None, bool? pin_memory=None, "
              "bool? requires_grad=False) -> Tensor",
    .doc = "The numbers from 0 to n - 1 in random order.",
    .example = "torch.randperm(5).shape",
    .kind = Kind::kKernel,
    .forms = kFunction | kOut,
    .run = [](const Call& c) -> Outputs {
      int64_t n = c.integer(0);
      TS_CHECK(n >= 0, "n must be non-negative, got ", n);
      TensorBase t = created(c, Dims{n}, 2, DType::kInt64, Device{});
      TS_CHECK(n == 0 || n - 1 <= largest(t.dtype()), "n is too large for result tensor type: '",
               t.dtype(), "'");
      draw("randperm", t, {}, c.generator(1), {}, {},
           philox_blocks(static_cast<uint64_t>(n), true));
      return t;
    },
    .random = true,
    .samples = {{"5"}},
});

}  // namespace tessera
