#include "tessera/ops/creation/options.h"

#include "tessera/driver/current.h"
#include "tessera/tensor/batch_scope.h"

namespace tessera {

CreationOptions::CreationOptions(const Call& c, int at, Device otherwise)
    : device(c.has(at + 1) ? resolve_device(c.args[at + 1].device) : otherwise),
      requires_grad(c.flag(at + 2)),
      pin_memory(c.has(at + 4) && c.flag(at + 4)) {
  if (c.has(at)) dtype = c.args[at].dtype;
  TS_CHECK_IMPLEMENTED(!c.has(at + 3) || c.integer(at + 3) == 0, c.op.name,
                       "(): only torch.strided is a layout here");
  TS_CHECK(!pin_memory || device.is_cpu(), "Only dense CPU tensors can be pinned");
}

TensorBase CreationOptions::unallocated(const Dims& sizes, DType of) const {
  TensorBase t = new_unallocated(sizes, of, device);
  if (pin_memory) allocate_pinned(t.storage());
  return t;
}

TensorBase CreationOptions::unallocated(const Dims& sizes, const Dims& strides, DType of) const {
  TS_CHECK(sizes.size() == strides.size(), "mismatch in length of strides and shape");
  int64_t bytes = bytes_reached(sizes, strides, 0, of);
  auto storage = Ref<Storage>::make(device, static_cast<size_t>(bytes));
  note_new_storage(*storage);
  storage->made_for(sizes.data(), sizes.ndim(), of);
  if (pin_memory) allocate_pinned(*storage);
  return TensorBase(Ref<TensorImpl>::make(std::move(storage), of, sizes, strides, 0));
}

TensorBase CreationOptions::finish(TensorBase t) const {
  if (!(t.device() == device)) {
    TensorBase moved = new_empty(t.sizes(), t.dtype(), device);
    copy_into(moved, t, false);
    t = std::move(moved);
  }
  TS_CHECK(!requires_grad || is_differentiable(t.dtype()),
           "Only Tensors of floating point and complex dtype can require gradients");
  t.impl()->requires_grad = requires_grad;
  t.storage().version.store(0, std::memory_order_relaxed);
  return t;
}

MemoryFormat format_of(const Call& c, int at, MemoryFormat otherwise) {
  return c.has(at) ? static_cast<MemoryFormat>(c.integer(at)) : otherwise;
}

Dims strides_like(const Call& c, int format_at) {
  const TensorBase& self = c.tensor(0);
  const MemoryFormat format = format_of(c, format_at, MemoryFormat::kPreserve);
  return format == MemoryFormat::kPreserve ? preserved_strides(self)
                                           : strides_in(self.sizes(), format);
}

}  // namespace tessera
