// Memory for operators that write several existing tensors.
#pragma once
#include <span>

#include "tessera/tensor/tensor.h"

namespace tessera {

// Makes sure of memory for writes to `targets`, on any devices, that read `sources`, before the
// first of them is recorded: an optimizer's step then changes all of its parameters or none. Raises
// ErrorKind::kOutOfMemory; then nothing has been written.
void reserve_for_writes(std::span<const TensorBase> targets, std::span<const TensorBase> sources);

}  // namespace tessera
