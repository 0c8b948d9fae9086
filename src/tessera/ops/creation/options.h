// What every creating operator takes: dtype, device, requires_grad, layout, pin_memory.
#pragma once
#include "tessera/ops/call.h"

namespace tessera {

// They stand in a schema in this order:
//   dtype? dtype=None, device? device=None, bool requires_grad=False, layout? layout=None,
//   bool? pin_memory=False
struct CreationOptions {
  std::optional<DType> dtype;
  Device device;
  bool requires_grad;
  bool pin_memory;

  // Arguments `at` .. `at + 4` of the call; `otherwise` is the place where none is named.
  CreationOptions(const Call& c, int at, Device otherwise = Device{});

  // Without memory, but pinned memory is there at once.
  TensorBase unallocated(const Dims& sizes, DType dtype) const;
  TensorBase unallocated(const Dims& sizes, const Dims& strides, DType dtype) const;
  // The last step: moved to the device if it was made elsewhere, and marked.
  TensorBase finish(TensorBase t) const;
};

// A memory format that is argument `at`.
MemoryFormat format_of(const Call& c, int at, MemoryFormat otherwise);
// Strides of what is made like the first argument, by the memory format that argument `format_at`
// asks for.
Dims strides_like(const Call& c, int format_at);

}  // namespace tessera
