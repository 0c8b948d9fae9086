// A tensor's own shape and memory, changed.
#include "tessera/ops/call.h"

namespace tessera {

namespace {

void resize(const TensorBase& self, const Dims& sizes, MemoryFormat format) {
  TS_CHECK(!self.requires_grad(), "cannot resize variables that require grad");
  TS_CHECK(format != MemoryFormat::kPreserve, "Unsupported memory format Preserve");
  int64_t numel = checked_numel(sizes, self.dtype());
  Dims strides = strides_in(sizes, format);
  grow_storage(self, static_cast<size_t>(self.storage_offset() + numel) * itemsize(self.dtype()));
  set_geometry(self, sizes, strides, self.storage_offset());
}

void take_storage(const TensorBase& self, const Ref<Storage>& storage) {
  Ref<Storage> before = std::exchange(self.impl()->storage, storage);
  if (before->pending.load(std::memory_order_acquire)) release_pending_storage(before.release());
}

void check_source(const TensorBase& self, const TensorBase& source) {
  TS_CHECK(self.dtype() == source.dtype(), "Could not set tensor of type ",
           dtype_name(source.dtype()), " to a tensor of type ", dtype_name(self.dtype()));
  TS_CHECK(self.device() == source.device(),
           "Attempted to set the storage of a tensor on device \"", self.device(),
           "\" to a storage on different device \"", source.device(),
           "\".  This is no longer allowed; the devices must match.");
}

}  // namespace

TS_OP({
    .schema = "resize_(Tensor self, int... size, *, memory_format? memory_format=None) -> Tensor",
    .doc = "Gives the tensor another shape. Its memory grows where it has to; what is new in it is "
           "undefined.",
    .example = "torch.ones(2, 3).resize_(2, 2)",
    .kind = Kind::kKernel,
    .forms = kMethod,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& self = c.tensor(0);
      if (!c.has(2) && c.ints(1) == self.sizes() && !self.requires_grad()) return self;
      resize(self, c.ints(1),
             c.has(2) ? static_cast<MemoryFormat>(c.integer(2)) : MemoryFormat::kContiguous);
      return self;
    },
    .not_differentiable = true,
});

TS_OP({
    .schema = "resize_as_(Tensor self, Tensor the_template, *, memory_format? memory_format=None) "
              "-> Tensor",
    .doc = "Gives the tensor the shape of another one.",
    .example = "torch.ones(2, 3).resize_as_(torch.zeros(2, 2))",
    .kind = Kind::kKernel,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& self = c.tensor(0);
      MemoryFormat format =
          c.has(2) ? static_cast<MemoryFormat>(c.integer(2)) : MemoryFormat::kContiguous;
      if (format == MemoryFormat::kPreserve) format = suggested_format(c.tensor(1));
      if (!c.has(2) && c.tensor(1).sizes() == self.sizes() && !self.requires_grad()) return self;
      resize(self, c.tensor(1).sizes(), format);
      return self;
    },
    .not_differentiable = true,
});

TS_OP({
    .schema = "set_(Tensor self) -> Tensor",
    .doc = "Leaves the tensor empty, without its memory; or over the memory of another one.",
    .example = "torch.ones(2).set_().shape",
    .kind = Kind::kKernel,
    .forms = kMethod,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& self = c.tensor(0);
      take_storage(self, Ref<Storage>::make(self.device(), 0));
      set_geometry(self, {0}, {1}, 0);
      return self;
    },
    .not_differentiable = true,
});
TS_OP({
    .schema = "set_(Tensor self, Tensor source) -> Tensor",
    .doc = "Makes the tensor one over the memory of another, in its shape.",
    .example = "torch.ones(2).set_(torch.zeros(3))",
    .kind = Kind::kKernel,
    .forms = kMethod,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& self = c.tensor(0);
      const TensorBase& from = c.tensor(1);
      check_source(self, from);
      if (self.is_same(from)) return self;
      take_storage(self, from.impl()->storage);
      set_geometry(self, from.sizes(), from.strides(), from.storage_offset());
      return self;
    },
    .not_differentiable = true,
});
TS_OP({
    .schema = "set_(Tensor self, Tensor source, int storage_offset, int[] size, int[] stride=()) "
              "-> Tensor",
    .doc = "Makes the tensor one over the memory of another, in a shape, strides and place.",
    .example = "torch.ones(2).set_(torch.arange(4.0), 1, (2,), (2,))",
    .kind = Kind::kKernel,
    .forms = kMethod,
    .run = [](const Call& c) -> Outputs {
      const TensorBase& self = c.tensor(0);
      const TensorBase& from = c.tensor(1);
      check_source(self, from);
      Dims sizes = c.ints(3), strides = c.ints(4);
      if (strides.empty()) strides = contiguous_strides(sizes);
      check_in_storage(from.storage(), sizes, strides, c.integer(2), self.dtype());
      if (!self.is_same(from)) take_storage(self, from.impl()->storage);
      set_geometry(self, sizes, strides, c.integer(2));
      return self;
    },
    .not_differentiable = true,
});

}  // namespace tessera
