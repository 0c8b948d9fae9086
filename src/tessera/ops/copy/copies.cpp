// Copies, fills and conversions.
#include "tessera/gen/copy.h"
#include "tessera/gen/creation.h"
#include "tessera/gen/reduce.h"
#include "tessera/ops/loops.h"

namespace tessera {

TS_BODY(copy, "t", 't', 0, (TS_ALL, TS_COMPLEX), return a;)

namespace {

void copy_elements(const Op& op, const TensorBase& from, DType common, const TensorBase& to) {
  Value sources[] = {Value(from)};
  pointwise_into(op, copy_body, sources, common, to);
}

// A copy of a dtype, laid out by a format or as `self` is.
TensorBase copied(const Call& c, DType dtype, const Value& format) {
  const TensorBase& self = c.tensor(0);
  MemoryFormat f = format.is_none() ? MemoryFormat::kPreserve
                                    : static_cast<MemoryFormat>(format.scalar.to_int());
  TensorBase out;
  if (f == MemoryFormat::kPreserve) {
    out = unallocated_like(self, dtype);
  } else {
    out = new_unallocated(self.sizes(), dtype, self.device());
    if (f != MemoryFormat::kContiguous)
      set_geometry(out, self.sizes(), strides_in(self.sizes(), f), 0);
  }
  copy_elements(c.op, self, dtype, out);
  return out;
}

// By argument 1, a number or a tensor without dimensions.
void fill_elements(const Call& c, const TensorBase& to) {
  TensorBase value;
  if (c.args[1].is_tensor()) {
    value = c.tensor(1);
    TS_CHECK(value.dim() == 0, "fill_ only supports 0-dimension value tensor but got tensor with ",
             value.dim(), " dimensions.");
    if (!(value.device() == to.device())) value = op::_to_device(value, to.device());
  } else {
    check_fits(c.scalar(1), to.dtype());
  }
  Value sources[] = {value.defined() ? Value(value) : c.args[1]};
  pointwise_into(c.op, copy_body, sources, to.dtype(), to);
}

}  // namespace

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
        copy_elements(c.op, src, src.dtype(), from);
      }
      copy_elements(c.op, from, self.dtype(), self);
      count_write(self);
      return self;
    },
    .backward =
        [](Backward& b) {
          if (b.wants(1)) b.set(1, b.grad);
        },
});

TS_OP({
    .schema = "fill_(Tensor self, Tensor|Scalar value) -> Tensor",
    .doc = "Sets every element, to a number or to the value of a tensor without dimensions.",
    .example = "torch.zeros(3).fill_(2)",
    .kind = Kind::kKernel,
    .run = [](const Call& c) -> Outputs {
      fill_elements(c, c.tensor(0));
      count_write(c.tensor(0));
      return c.tensor(0);
    },
    .backward =
        [](Backward& b) {
          if (b.wants(1)) b.set(1, op::sum(b.grad));
        },
});

// In C++ `fill` writes into a tensor.
TS_OP({
    .schema = "_fill(Tensor self, Tensor|Scalar value) -> Tensor",
    .also = "fill",
    .doc = "A tensor like self with one value everywhere.",
    .example = "torch.fill(torch.zeros(3), 2)",
    .forms = kFunction | kOut,
    .run = [](const Call& c) -> Outputs {
      TensorBase out = unallocated_like(c.tensor(0), c.tensor(0).dtype());
      fill_elements(c, out);
      return out;
    },
    .backward =
        [](Backward& b) {
          if (b.wants(1)) b.set(1, op::sum(b.grad));
          if (b.wants(0)) b.set(0, op::zeros_like(b.grad));
        },
    .samples = {{"T(3, 4), 2"}, {"T(3), T()"}},
});

TS_OP({
    .schema = "zero_(Tensor self) -> Tensor",
    .doc = "Sets every element to zero.",
    .example = "torch.ones(3).zero_()",
    .kind = Kind::kKernel,
    .run = [](const Call& c) -> Outputs {
      fill(c.tensor(0), Scalar(0));
      return c.tensor(0);
    },
    .backward = [](Backward&) {},
});

TS_OP({
    .schema = "clone(Tensor self, *, memory_format? memory_format=None) -> Tensor",
    .doc = "A copy with memory of its own.",
    .example = "torch.clone(torch.ones(2))",
    .kind = Kind::kKernel,
    .run = [](const Call& c) -> Outputs { return copied(c, c.tensor(0).dtype(), c.args[1]); },
    .backward = [](Backward& b) { b.set(0, b.grad); },
    .samples = {{"T(3, 4)"}, {"T()"}, {"T(0, 3)"}},
});

TS_OP({
    .schema = "_contiguous_copy(Tensor self) -> Tensor",
    .kind = Kind::kKernel,
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      return copied(c, c.tensor(0).dtype(), Value(MemoryFormat::kContiguous));
    },
    .backward = [](Backward& b) { b.set(0, b.grad); },
});

TS_OP({
    .schema = "contiguous(Tensor self, *, memory_format? memory_format=None) -> Tensor",
    .doc = "The tensor itself if it is row-major without gaps, else a copy that is; or the same "
           "for another memory format.",
    .example = "torch.ones(2, 3).t().contiguous().is_contiguous()",
    .forms = kMethod,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& self = c.tensor(0);
      MemoryFormat format =
          c.has(1) ? static_cast<MemoryFormat>(c.integer(1)) : MemoryFormat::kContiguous;
      TS_CHECK(format != MemoryFormat::kPreserve,
               "preserve memory format is unsupported by the contiguous operator");
      if (is_contiguous_in(self, format)) return self;
      return op::clone(self, format);
    },
    .samples = {{"T(3, 4)"}},
});

TS_OP({
    .schema = "_to_dtype(Tensor self, dtype dtype, memory_format? memory_format=None) -> Tensor",
    .kind = Kind::kKernel,
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs { return copied(c, c.args[1].dtype, c.args[2]); },
    .backward = [](Backward& b) { b.set(0, b.grad); },
    .aten = "_to_copy",
});  // the engine converts back

TS_OP({
    .schema = "_to_device(Tensor self, device device, bool non_blocking=False) -> Tensor",
    .kind = Kind::kKernel,
    .forms = kFunction,
    .run = [](const Call& c) -> Outputs {
      // Laid out as it was where it has no gaps: then it crosses as one piece.
      const TensorBase& self = c.tensor(0);
      TensorBase out =
          new_empty_strided(self.sizes(), preserved_strides(self), self.dtype(), c.args[1].device);
      copy_into(out, self, c.flag(2));
      return out;
    },
    .backward = [](Backward& b) { b.set(0, b.grad); },
    .aten = "_to_copy",
});  // the engine brings it back

}  // namespace tessera
