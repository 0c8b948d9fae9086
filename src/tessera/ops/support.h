// What a choice between two ways to compute depends on, before autograd records one of them.
#pragma once
#include <span>

#include "tessera/driver/program.h"
#include "tessera/tensor/tensor.h"

namespace tessera {

// Runs a kernel that computes nothing but says, by kUnsupported, that it would not take operands of
// these shapes; they need no memory. False too where the backend has no such kernel.
bool supports(Device device, const char* kernel, std::span<const KernelTensor> operands,
              std::span<const int64_t> ints);
// Will a call with these be recorded, for one of them wants a gradient?
bool is_recorded(std::initializer_list<TensorBase> tensors);

}  // namespace tessera
