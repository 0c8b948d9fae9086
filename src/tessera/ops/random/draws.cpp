#include "tessera/driver/current.h"
#include "tessera/gen/binary.h"
#include "tessera/gen/random.h"
#include "tessera/ops/philox.h"
#include "tessera/tensor/generators.h"

namespace tessera {

namespace {

// Fills dense memory from the device's generator: the CPU's in sequence, a GPU's by counter.
void draw(const char* kernel, const TensorBase& out, std::initializer_list<double> doubles) {
  if (out.numel() == 0) return;
  Mt19937Generator& g = default_generator(out.device());
  std::lock_guard lock(g.mutex);
  int64_t ints[3] = {static_cast<int64_t>(g.philox_seed()), 0, 0};
  if (out.device().is_cpu())
    ints[2] = reinterpret_cast<int64_t>(&g);
  else
    ints[1] = static_cast<int64_t>(g.take_philox(
        philox_blocks(static_cast<uint64_t>(out.numel()), out.dtype() == DType::kFloat64)));
  launch(kernel, {&out, 1}, {}, ints, {doubles.begin(), doubles.size()});
}

TensorBase drawn(const Call& c, const char* kernel, std::initializer_list<double> doubles) {
  DType dtype = c.dtype(1, default_dtype());
  TS_CHECK_IMPLEMENTED(is_floating(dtype), "\"", c.op.name, "\" not implemented for ", dtype);
  Device device = c.has(2) ? resolve_device(c.args[2].device) : Device{};
  TensorBase t = new_empty(c.ints(0), dtype, device);
  t.impl()->requires_grad = c.flag(3);
  draw(kernel, t, doubles);
  return t;
}

// In-place draws into any layout.
Outputs draw_into(const TensorBase& self, const char* kernel,
                  std::initializer_list<double> doubles) {
  if (self.is_contiguous()) {
    draw(kernel, self, doubles);
    self.storage().version.fetch_add(1, std::memory_order_relaxed);
  } else {
    TensorBase dense = new_empty(self.sizes(), self.dtype(), self.device());
    draw(kernel, dense, doubles);
    copy_into(self, dense, false);
  }
  return self;
}

}  // namespace

TS_OP({
    .schema = "rand(int... size, *, dtype? dtype=None, device? device=None, "
              "bool requires_grad=False) -> Tensor",
    .doc = "Uniform numbers from [0, 1).",
    .example = "torch.rand(2, 3).shape",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      return drawn(c, "uniform", {0.0, 1.0});
    },
    .random = true,
    .samples = {{"(2, 3)"}},
});

TS_OP({
    .schema = "randn(int... size, *, dtype? dtype=None, device? device=None, "
              "bool requires_grad=False) -> Tensor",
    .doc = "Normal numbers of mean 0 and standard deviation 1.",
    .example = "torch.randn(2, 3).shape",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      return drawn(c, "normal", {0.0, 1.0});
    },
    .random = true,
    .samples = {{"(2, 3)"}},
});

TS_OP({
    .schema = "uniform_(Tensor self, float from=0.0, float to=1.0) -> Tensor",
    .doc = "Fills self with uniform numbers.",
    .example = "torch.empty(3).uniform_(-1, 1).shape",
    .kind = Kind::kKernel,
    .forms = kMethod,
    .run = [](const Call& c) -> Outputs {
      TS_CHECK(c.number(1) <= c.number(2),
               "uniform_ expects to return a [from, to) range, but found "
               "from=",
               c.number(1), " > to=", c.number(2));
      return draw_into(c.tensor(0), "uniform", {c.number(1), c.number(2)});
    },
    .backward = [](Backward&) {},
    .random = true,
});

TS_OP({
    .schema = "normal_(Tensor self, float mean=0.0, float std=1.0) -> Tensor",
    .doc = "Fills self with normal numbers.",
    .example = "torch.empty(3).normal_().shape",
    .kind = Kind::kKernel,
    .forms = kMethod,
    .run = [](const Call& c) -> Outputs {
      TS_CHECK(c.number(2) >= 0, "normal expects std >= 0.0, but found std ", c.number(2));
      return draw_into(c.tensor(0), "normal", {c.number(1), c.number(2)});
    },
    .backward = [](Backward&) {},
    .random = true,
});

TS_OP({
    .schema = "bernoulli_(Tensor self, float p=0.5) -> Tensor",
    .doc = "Fills self with ones, each with probability p, and zeros.",
    .example = "torch.empty(3).bernoulli_(1.0)",
    .kind = Kind::kKernel,
    .forms = kMethod,
    .run = [](const Call& c) -> Outputs {
      double p = c.number(1);
      TS_CHECK(p >= 0 && p <= 1, "bernoulli_ expects p to be in [0, 1], but got p=", p);
      return draw_into(c.tensor(0), "bernoulli", {p});
    },
    .backward = [](Backward&) {},
    .random = true,
});

TS_OP({
    .schema = "dropout(Tensor input, float p, bool train) -> Tensor",
    .doc = "Zeroes elements with probability p and scales the others by 1 / (1 - p), in training.",
    .example = "torch.dropout(torch.ones(4), 0.0, True)",
    .forms = kFunction | kInplace,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& input = c.tensor(0);
      double p = c.number(1);
      TS_CHECK_VALUE(p >= 0 && p <= 1, "dropout probability has to be between 0 and 1, but got ",
                     p);
      if (p == 0 || !c.flag(2) || input.numel() == 0) return input;
      if (p == 1) return op::mul(input, Scalar(0));
      TensorBase mask = unallocated_like(input, input.dtype());
      allocate(mask.storage());
      op::bernoulli_(mask, 1 - p);
      op::div_(mask, Scalar(1 - p));
      return op::mul(input, mask);
    },
    .random = true,
    .samples = {{"T(3, 4), 0.5, True"}, {"T(3, 4), 0.5, False"}, {"T(3, 4), 0.0, True"}},
});

}  // namespace tessera
