#include "tessera/driver/current.h"
#include "tessera/ops/call.h"

namespace tessera {

namespace {

// Arguments (size, dtype, device, requires_grad) from position `at`.
TensorBase made(const Call& c, const Dims& size, DType dtype, int at) {
  Device device = c.has(at + 1) ? resolve_device(c.args[at + 1].device) : Device{};
  TensorBase t = new_unallocated(size, dtype, device);
  if (c.flag(at + 2)) {
    TS_CHECK(is_floating(dtype),
             "Only Tensors of floating point and complex dtype can require gradients");
    t.impl()->requires_grad = true;
  }
  return t;
}

TensorBase filled(TensorBase t, Scalar value) {
  fill(t, value);
  t.storage().version.store(0, std::memory_order_relaxed);
  return t;
}

TensorBase filled_like(const Call& c, Scalar value) {
  const TensorBase& like = c.tensor(0);
  TensorBase t = unallocated_like(like, c.dtype(1, like.dtype()));
  if (c.has(2) && !(resolve_device(c.args[2].device) == like.device()))
    t = new_unallocated(like.sizes(), t.dtype(), resolve_device(c.args[2].device));
  if (c.flag(3)) t.impl()->requires_grad = true;
  return filled(std::move(t), value);
}

}  // namespace

TS_OP({
    .schema = "empty(int... size, *, dtype? dtype=None, device? device=None, "
              "bool requires_grad=False) -> Tensor",
    .doc = "A tensor of undefined content.",
    .example = "torch.empty(2, 3).shape",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      TensorBase t = made(c, c.ints(0), c.dtype(1, default_dtype()), 1);
      allocate(t.storage());
      return t;
    },
    .random = true,
    .samples = {{"(2, 3)"}},
});

TS_OP({
    .schema = "zeros(int... size, *, dtype? dtype=None, device? device=None, "
              "bool requires_grad=False) -> Tensor",
    .doc = "A tensor of zeros.",
    .example = "torch.zeros(2, 3)",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      return filled(made(c, c.ints(0), c.dtype(1, default_dtype()), 1), Scalar(0));
    },
    .samples = {{"(2, 3)"}, {"()"}},
});

TS_OP({
    .schema = "ones(int... size, *, dtype? dtype=None, device? device=None, "
              "bool requires_grad=False) -> Tensor",
    .doc = "A tensor of ones.",
    .example = "torch.ones(2, 3)",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      return filled(made(c, c.ints(0), c.dtype(1, default_dtype()), 1), Scalar(1));
    },
    .samples = {{"(2, 3)"}, {"()"}},
});

TS_OP({
    .schema = "full(int[] size, Scalar fill_value, *, dtype? dtype=None, device? device=None, "
              "bool requires_grad=False) -> Tensor",
    .doc = "A tensor with the same value everywhere.",
    .example = "torch.full((2, 2), 3.5)",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      Scalar value = c.scalar(1);
      return filled(made(c, c.ints(0), c.dtype(2, value.dtype()), 2), value);
    },
    .samples = {{"(2, 3), 2.5"}, {"(), 1"}},
});

TS_OP({
    .schema = "zeros_like(Tensor self, *, dtype? dtype=None, device? device=None, "
              "bool requires_grad=False) -> Tensor",
    .doc = "Zeros in the shape, dtype and place of another tensor.",
    .example = "torch.zeros_like(torch.ones(2, 3))",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs { return filled_like(c, Scalar(0)); },
    .samples = {{"T(3, 4)"}},
});

TS_OP({
    .schema = "ones_like(Tensor self, *, dtype? dtype=None, device? device=None, "
              "bool requires_grad=False) -> Tensor",
    .doc = "Ones in the shape, dtype and place of another tensor.",
    .example = "torch.ones_like(torch.zeros(2, 3))",
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs { return filled_like(c, Scalar(1)); },
    .samples = {{"T(3, 4)"}},
});

TS_OP({
    .schema = "new_zeros(Tensor self, int... size) -> Tensor",
    .doc = "Zeros of another shape, with the dtype and place of self.",
    .example = "torch.ones(2).new_zeros(3)",
    .forms = kMethod,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& self = c.tensor(0);
      return filled(new_unallocated(c.ints(1), self.dtype(), self.device()), Scalar(0));
    },
    .samples = {{"T(3, 4), (2,)"}},
});

}  // namespace tessera
