#include "tessera/gen/copy.h"
#include "tessera/ops/loops.h"

namespace tessera {

TS_BODY(copy, "t", 't', 0, (TS_ALL, TS_COMPLEX), return a;)

TS_OP({
    .schema = "copy_(Tensor self, Tensor src, bool non_blocking=False) -> Tensor",
    .doc = "Writes src into self, converting and broadcasting; across devices too.",
    .example = "torch.zeros(3).copy_(torch.ones(3))",
    .kind = Kind::kKernel,
    .forms = kMethod,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& self = c.tensor(0);
      const TensorBase& src = c.tensor(1);
      Dims shape = broadcast_shapes(self.sizes(), src.sizes());
      TS_CHECK(shape == self.sizes(), "output with shape ", self.sizes(),
               " doesn't match the broadcast shape ", shape);
      if (!(self.device() == src.device())) {
        copy_into(self, src, c.flag(2));
        return self;
      }
      if (self.is_same(src)) return self;
      // Source and target may share memory in any way: then the source is copied first.
      TensorBase from = src;
      if (&self.storage() == &src.storage()) {
        from = unallocated_like(src, src.dtype());
        Value original[] = {Value(src)};
        pointwise_into(c.op, copy_body, original, src.dtype(), from);
      }
      Value sources[] = {Value(from)};
      pointwise_into(c.op, copy_body, sources, self.dtype(), self);
      self.storage().version.fetch_add(1, std::memory_order_relaxed);
      return self;
    },
    .backward =
        [](Backward& b) {
          if (b.wants(1)) b.set(1, b.grad);
        },
});

TS_OP({
    .schema = "fill_(Tensor self, Scalar value) -> Tensor",
    .doc = "Sets every element.",
    .example = "torch.zeros(3).fill_(2)",
    .kind = Kind::kKernel,
    .forms = kMethod,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& self = c.tensor(0);
      Value sources[] = {c.args[1]};
      pointwise_into(c.op, copy_body, sources, self.dtype(), self);
      self.storage().version.fetch_add(1, std::memory_order_relaxed);
      return self;
    },
    .backward = [](Backward&) {},
});

TS_OP({
    .schema = "zero_(Tensor self) -> Tensor",
    .doc = "Sets every element to zero.",
    .example = "torch.ones(3).zero_()",
    .kind = Kind::kKernel,
    .forms = kMethod,
    .run = [](const Call& c) -> Outputs {
      fill(c.tensor(0), Scalar(0));
      return c.tensor(0);
    },
    .backward = [](Backward&) {},
});

TS_OP({
    .schema = "clone(Tensor self) -> Tensor",
    .doc = "A copy with memory of its own.",
    .example = "torch.clone(torch.ones(2))",
    .kind = Kind::kKernel,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& self = c.tensor(0);
      TensorBase out = unallocated_like(self, self.dtype());
      Value sources[] = {Value(self)};
      pointwise_into(c.op, copy_body, sources, self.dtype(), out);
      return out;
    },
    .backward = [](Backward& b) { b.set(0, b.grad); },
    .samples = {{"T(3, 4)"}, {"T()"}, {"T(0, 3)"}},
});

TS_OP({
    .schema = "_contiguous_copy(Tensor self) -> Tensor",
    .kind = Kind::kKernel,
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& self = c.tensor(0);
      TensorBase out = new_unallocated(self.sizes(), self.dtype(), self.device());
      Value sources[] = {Value(self)};
      pointwise_into(c.op, copy_body, sources, self.dtype(), out);
      return out;
    },
    .backward = [](Backward& b) { b.set(0, b.grad); },
});

TS_OP({
    .schema = "contiguous(Tensor self) -> Tensor",
    .doc = "The tensor itself if it is row-major without gaps, else a copy that is.",
    .example = "torch.ones(2, 3).t().contiguous().is_contiguous()",
    .forms = kMethod,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& self = c.tensor(0);
      return self.is_contiguous() ? self : op::_contiguous_copy(self);
    },
    .samples = {{"T(3, 4)"}},
});

TS_OP({
    .schema = "_to_dtype(Tensor self, dtype dtype) -> Tensor",
    .kind = Kind::kKernel,
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& self = c.tensor(0);
      DType dtype = c.args[1].dtype;
      TensorBase out = unallocated_like(self, dtype);
      Value sources[] = {Value(self)};
      pointwise_into(c.op, copy_body, sources, dtype, out);
      return out;
    },
    .backward = [](Backward& b) { b.set(0, b.grad); },
});  // the engine converts back

TS_OP({
    .schema = "_to_device(Tensor self, device device, bool non_blocking=False) -> Tensor",
    .kind = Kind::kKernel,
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& self = c.tensor(0);
      TensorBase out = new_empty(self.sizes(), self.dtype(), c.args[1].device);
      copy_into(out, self, c.flag(2));
      return out;
    },
    .saves = "self",
    .backward = [](Backward& b) { b.set(0, op::_to_device(b.grad, b.tensor(0).device(), false)); },
});

}  // namespace tessera
