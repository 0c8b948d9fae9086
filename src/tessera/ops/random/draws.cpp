// Uniform and normal numbers.
#include "tessera/gen/binary.h"
#include "tessera/gen/compare.h"
#include "tessera/gen/copy.h"
#include "tessera/gen/creation.h"
#include "tessera/gen/random.h"
#include "tessera/gen/reduce.h"
#include "tessera/ops/random/draw.h"

namespace tessera {

namespace {

using random::created;
using random::draw;
using random::draw_into;
using random::laid_out_like;

// Complex numbers are drawn as pairs.
void draw_any(const char* kernel, const TensorBase& t, double a, double b, Mt19937Generator* g,
              const Op& op) {
  if (is_complex(t.dtype())) {
    Dims size = t.sizes();
    size.push_back(2);
    TensorBase parts =
        alias_as(t, real_dtype(t.dtype()), size, contiguous_strides(size), 2 * t.storage_offset());
    draw(kernel, parts, {a, b}, g);
    return;
  }
  TS_CHECK_IMPLEMENTED(is_floating(t.dtype()), "\"", op.name, "\" not implemented for ", t.dtype());
  draw(kernel, t, {a, b}, g);
}

Outputs fresh(const Call& c, const char* kernel) {
  TensorBase t = created(c, c.ints(0), 2, default_dtype(), Device{});
  // A complex normal number has variance one: each part has half of it.
  bool halved = is_complex(t.dtype()) && kernel[0] == 'n';
  draw_any(kernel, t, 0.0, halved ? 0.70710678118654752440 : 1.0, c.generator(1), c.op);
  return t;
}

Outputs like(const Call& c, const char* kernel) {
  const TensorBase& self = c.tensor(0);
  TensorBase t = created(c, self.sizes(), 1, self.dtype(), self.device());
  bool halved = is_complex(t.dtype()) && kernel[0] == 'n';
  draw_any(kernel, t, 0.0, halved ? 0.70710678118654752440 : 1.0, nullptr, c.op);
  return laid_out_like(c, t, 6);
}

}  // namespace

TS_OP({
    .schema = "rand(int... size, *, Generator? generator=None, dtype? dtype=None, "
              "layout? layout=None, device? device=None, bool? pin_memory=None, "
              "bool? requires_grad=False) -> Tensor",
    .doc = "Uniform numbers from [0, 1).",
    .example = "torch.rand(2, 3).shape",
    .forms = kFunction | kOut,
    .run = [](const Call& c) -> Outputs { return fresh(c, "uniform"); },
    .random = true,
    .samples = {{"(2, 3)"}},
});

TS_OP({
    .schema = "randn(int... size, *, Generator? generator=None, dtype? dtype=None, "
              "layout? layout=None, device? device=None, bool? pin_memory=None, "
              "bool? requires_grad=False) -> Tensor",
    .doc = "Normal numbers of mean 0 and standard deviation 1.",
    .example = "torch.randn(2, 3).shape",
    .forms = kFunction | kOut,
    .run = [](const Call& c) -> Outputs { return fresh(c, "normal"); },
    .random = true,
    .samples = {{"(2, 3)"}},
});

TS_OP({
    .schema = "rand_like(Tensor self, *, dtype? dtype=None, layout? layout=None, "
              "device? device=None, bool? pin_memory=None, bool? requires_grad=False, "
              "memory_format? memory_format=None) -> Tensor",
    .doc = "Uniform numbers from [0, 1) in the shape of self.",
    .example = "torch.rand_like(torch.ones(2)).shape",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs { return like(c, "uniform"); },
    .random = true,
    .not_differentiable = true,
    .samples = {{"T(2, 3)"}},
});

TS_OP({
    .schema = "randn_like(Tensor self, *, dtype? dtype=None, layout? layout=None, "
              "device? device=None, bool? pin_memory=None, bool? requires_grad=False, "
              "memory_format? memory_format=None) -> Tensor",
    .doc = "Normal numbers in the shape of self.",
    .example = "torch.randn_like(torch.ones(2)).shape",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs { return like(c, "normal"); },
    .random = true,
    .not_differentiable = true,
    .samples = {{"T(2, 3)"}},
});

TS_OP({
    .schema = "uniform_(Tensor self, float from=0.0, float to=1.0, *, "
              "Generator? generator=None) -> Tensor",
    .doc = "Fills self with uniform numbers.",
    .example = "torch.empty(3).uniform_(-1, 1).shape",
    .kind = Kind::kKernel,
    .forms = kMethod,
    .run = [](const Call& c) -> Outputs {
      TS_CHECK(c.number(1) <= c.number(2),
               "uniform_ expects to return a [from, to) range, but found "
               "from=",
               c.number(1), " > to=", c.number(2));
      return draw_into(c.tensor(0), "uniform", {c.number(1), c.number(2)}, c.generator(3));
    },
    .backward = [](Backward&) {},
    .random = true,
});

TS_OP({
    .schema = "normal_(Tensor self, float mean=0.0, float std=1.0, *, "
              "Generator? generator=None) -> Tensor",
    .doc = "Fills self with normal numbers.",
    .example = "torch.empty(3).normal_().shape",
    .kind = Kind::kKernel,
    .forms = kMethod,
    .run = [](const Call& c) -> Outputs {
      TS_CHECK(c.number(2) >= 0, "normal expects std >= 0.0, but found std ", c.number(2));
      return draw_into(c.tensor(0), "normal", {c.number(1), c.number(2)}, c.generator(3));
    },
    .backward = [](Backward&) {},
    .random = true,
});

namespace {

void check_std(const TensorBase& std) {
  TS_CHECK(!is_complex(std.dtype()), "normal expects standard deviation to be non-complex");
  if (std.device().is_meta() || std.numel() == 0) return;
  TS_CHECK(!host_scalar(op::all(op::ge(std, 0))).is_zero(),
           "normal expects all elements of std >= 0.0");
}

// Standard normal numbers, scaled and moved.
Outputs normal_of(const Dims& size, DType dtype, Device device, const Value& mean, const Value& std,
                  Mt19937Generator* g) {
  TensorBase t = new_empty(size, dtype, device);
  draw("normal", t, {0.0, 1.0}, g);
  t = op::add(op::mul(t, std), mean);
  return t.dtype() == dtype ? t : op::_to_dtype(t, dtype);
}

// As PyTorch: the numbers are as if they did not depend on mean and deviation.
void no_slope(Backward& b) {
  for (int i : {0, 1})
    if (b.wants(i)) b.set(i, op::new_zeros(b.grad, b.shape(i).span()));
}

}  // namespace

TS_OP({
    .schema = "normal(Tensor mean, Tensor std, *, Generator? generator=None) -> Tensor",
    .doc = "Normal numbers, each with a mean and a standard deviation of its own.",
    .example = "torch.normal(torch.zeros(2), torch.ones(2)).shape",
    .kind = Kind::kKernel,
    .forms = kFunction | kOut,
    .run = [](const Call& c) -> Outputs {
      const TensorBase &mean = c.tensor(0), &std = c.tensor(1);
      check_same_device(c.op, c.args);
      check_std(std);
      Dims size = broadcast_shapes(mean.sizes(), std.sizes());
      return normal_of(size, mean.dtype(), mean.device(), Value(mean), Value(std), c.generator(2));
    },
    .backward = no_slope,
    .random = true,
    .samples = {{"T(2, 3), P(2, 3)"}},
});
TS_OP({
    .schema = "normal(Tensor mean, float std=1.0, *, Generator? generator=None) -> Tensor",
    .doc = "Normal numbers around each element of mean.",
    .example = "torch.normal(torch.zeros(2), 0.5).shape",
    .kind = Kind::kKernel,
    .forms = kFunction | kOut,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& mean = c.tensor(0);
      TS_CHECK(c.number(1) >= 0, "normal expects std >= 0.0, but found std ", c.number(1));
      return normal_of(mean.sizes(), mean.dtype(), mean.device(), Value(mean), Value(c.number(1)),
                       c.generator(2));
    },
    .backward = no_slope,
    .random = true,
    .samples = {{"T(2, 3), 0.5"}},
});
TS_OP({
    .schema = "normal(float mean, Tensor std, *, Generator? generator=None) -> Tensor",
    .doc = "Normal numbers around one mean.",
    .example = "torch.normal(1.0, torch.ones(2)).shape",
    .kind = Kind::kKernel,
    .forms = kFunction | kOut,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& std = c.tensor(1);
      check_std(std);
      return normal_of(std.sizes(), std.dtype(), std.device(), Value(c.number(0)), Value(std),
                       c.generator(2));
    },
    .backward = no_slope,
    .random = true,
    .samples = {{"1.0, P(2, 3)"}},
});
TS_OP({
    .schema = "normal(float mean, float std, int[] size, *, Generator? generator=None, "
              "dtype? dtype=None, layout? layout=None, device? device=None, "
              "bool? pin_memory=None, bool? requires_grad=False) -> Tensor",
    .doc = "Normal numbers in a shape.",
    .example = "torch.normal(1.0, 2.0, (2, 3)).shape",
    .forms = kFunction | kOut,
    .run = [](const Call& c) -> Outputs {
      TS_CHECK(c.number(1) >= 0, "normal expects std >= 0.0, but found std ", c.number(1));
      TensorBase t = created(c, c.ints(2), 4, default_dtype(), Device{});
      draw("normal", t, {c.number(0), c.number(1)}, c.generator(3));
      return t;
    },
    .random = true,
    .samples = {{"1.0, 2.0, (2, 3)"}},
});

}  // namespace tessera
